use super::*;
use proptest::prelude::*;

/// A dump of GPUs behind PCI switches, two at each, with a NIC each and NVLinks as a function says.
fn dump(gpus: usize, nvlinks: impl Fn(usize) -> String) -> String {
    let mut out = "<system version=\"1\">\n".to_owned();
    for cpu in 0..2 {
        out += &format!(
            "  <cpu numaid=\"{cpu}\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
        );
        for pair in (0..gpus / 2).filter(|pair| pair % 2 == cpu) {
            out += &format!(
                "    <pci busid=\"0000:{pair}0:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n"
            );
            for dev in [2 * pair, 2 * pair + 1] {
                out += &format!(
                    "      <pci busid=\"{}\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">\n        \
                     <gpu dev=\"{dev}\" sm=\"80\" rank=\"{dev}\" gdr=\"1\">{}</gpu>\n      </pci>\n",
                    bus(dev),
                    nvlinks(dev)
                );
            }
            out += &format!(
                "      <pci busid=\"0000:{pair}f:00.0\" class=\"0x020700\" link_speed=\"16 GT/s\" link_width=\"16\">\n        \
                 <nic><net name=\"mlx5_{pair}\" dev=\"{pair}\" speed=\"200000\" port=\"1\"/></nic>\n      </pci>\n    </pci>\n"
            );
        }
        out += "  </cpu>\n";
    }
    out + "</system>\n"
}

fn bus(dev: usize) -> String {
    format!("0000:a{dev}:00.0")
}

fn link(target: &str, count: u32, class: &str) -> String {
    format!("<nvlink target=\"{target}\" count=\"{count}\" tclass=\"{class}\"/>")
}

fn switched() -> String {
    dump(8, |_| link("ffff:ff:ff.0", 12, "0x068000"))
}

fn read(text: &str) -> System {
    System::parse(text.as_bytes()).unwrap()
}

fn wrong(text: &str) -> String {
    System::parse(text.as_bytes()).unwrap_err().to_string()
}

fn names(network: &Network, from: usize) -> Vec<&str> {
    network.names[from..].iter().map(String::as_str).collect()
}

#[test]
fn a_group_of_gpus_sees_no_others() {
    // Behind switches those of the group, with their own links.
    let whole = read(&switched());
    let part = whole.only(&[2, 5, 6]).unwrap();
    let network = join(&[&part]).unwrap();
    assert_eq!(network.names, ["gpu2", "gpu5", "gpu6", "nvs"]);
    assert_eq!(network.links.len(), 6);
    let two = join(&[&part, &part]).unwrap();
    assert_eq!((two.npus, two.nics[0].len()), (6, 4));
    assert_eq!(whole.only(&(0..8).collect::<Vec<_>>()), Ok(whole.clone()));
    let wrong = whole.only(&[0, 8]).unwrap_err().to_string();
    assert!(wrong.contains("no GPU 8; its GPUs are 0, 1, 2"), "{wrong}");
    // Around a ring of NVLinks, those between the group's.
    let ring = read(&dump(8, |gpu| {
        let ends = [(gpu + 7) % 8, (gpu + 1) % 8];
        ends.map(|end| link(&bus(end), 2, "0x030200")).concat()
    }));
    let part = join(&[&ring.only(&[3, 4, 5]).unwrap()]).unwrap();
    assert_eq!(part.links.len(), 4);
}

#[test]
fn a_lone_machine_has_nvlink_alone() {
    let network = join(&[&read(&switched())]).unwrap();
    assert_eq!((network.npus, names(&network, 8)), (8, vec!["nvs"]));
    assert_eq!(network.links.len(), 16);
    assert!(
        network
            .links
            .iter()
            .all(|link| link.bandwidth == 300_000_000_000)
    );
    assert!(network.sums.is_empty() && network.notes.is_empty());
    let hopper = switched().replace("sm=\"80\"", "sm=\"90\"");
    assert_eq!(join(&[&read(&hopper)]).unwrap().sums, [8]);
}

#[test]
fn several_machines_have_their_nics_and_pci() {
    let system = read(&switched());
    let network = join(&[&system, &system]).unwrap();
    assert_eq!(network.npus, 16);
    assert_eq!(network.nodes[1], [8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(network.names[8], "n1.gpu0");
    let name = |&device: &usize| network.names[device].as_str();
    let nics: Vec<&str> = network.nics[1].iter().map(name).collect();
    assert_eq!(nics, ["n1.net0", "n1.net1", "n1.net2", "n1.net3"]);
    let net = network
        .links
        .iter()
        .filter(|link| link.medium == Medium::Net);
    assert_eq!(net.clone().count(), 16);
    assert!(net.clone().all(|link| link.bandwidth == 25_000_000_000));
    // 16 lanes of 16 GT/s, of which coding leaves 128 in 130.
    let pcie = network
        .links
        .iter()
        .find(|link| link.medium == Medium::Pcie);
    assert_eq!(pcie.unwrap().bandwidth, 31_507_692_307);
    assert_eq!(network.notes.len(), 1);
}

#[test]
fn without_nvlink_there_is_pci_and_bridges_are_shortened() {
    let network = join(&[&read(&dump(4, |_| String::new()))]).unwrap();
    // Each processor has one PCI switch with two GPUs and, of a lone machine, no NIC.
    assert_eq!(names(&network, 4), ["cpu0", "pci0", "cpu1", "pci1"]);
    let upi = network.links.iter().find(|link| link.medium == Medium::Upi);
    assert_eq!(upi.unwrap().bandwidth, 22_000_000_000);
    let chain = "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">\
        <pci busid=\"0:1\" class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\">\
        <pci busid=\"0:2\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\
        <pci busid=\"0:3\" class=\"0x0302\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"70\" rank=\"0\"/></pci>\
        </pci></pci>\
        <pci busid=\"0:4\" class=\"0x0302\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"70\" rank=\"1\"/></pci>\
        </cpu></system>";
    let network = join(&[&read(chain)]).unwrap();
    assert_eq!(names(&network, 0), ["gpu0", "gpu1", "cpu0"]);
    let slow = network.links.iter().map(|link| link.bandwidth).min();
    assert_eq!(slow, Some(15_753_846_153));
}

#[test]
fn processors_are_those_of_the_first_of_each_host() {
    let of = |cpus: &[(&str, &str, &str)]| {
        let mut text = "<system version=\"1\">".to_owned();
        for (number, (host, arch, vendor)) in cpus.iter().enumerate() {
            text += &format!(
                "<cpu host_hash=\"{host}\" numaid=\"{number}\" arch=\"{arch}\" vendor=\"{vendor}\">\
                 <pci busid=\"0:{number}\" class=\"0x0302\" link_speed=\"16 GT/s\" link_width=\"16\">\
                 <gpu dev=\"{number}\" sm=\"80\" rank=\"{number}\"/></pci></cpu>"
            );
        }
        read(&(text + "</system>")).processor.map(Processor::name)
    };
    let intel = ("0x1", "x86_64", "GenuineIntel");
    let amd = ("0x1", "x86_64", "AuthenticAMD");
    assert_eq!(of(&[intel]), Some("intel"));
    assert_eq!(of(&[amd, amd]), Some("amd"));
    assert_eq!(of(&[amd, intel]), Some("amd"));
    assert_eq!(of(&[amd, ("0x2", intel.1, intel.2)]), Some("mixed"));
    assert_eq!(of(&[("0x1", "arm64", "")]), Some("other"));
    assert_eq!(of(&[("0x1", "ppc64", "GenuineIntel")]), Some("other"));
    assert_eq!(System::default().processor, None);
}

#[test]
fn direct_nvlinks_are_links_of_their_own_direction() {
    let pairs = dump(4, |dev| link(&bus(dev ^ 1), 2, "0x030200"));
    let system = read(&pairs);
    let direct: Vec<_> = system
        .links
        .iter()
        .filter(|it| it.medium == Medium::NvLink)
        .collect();
    assert_eq!(direct.len(), 4);
    assert!(direct.iter().all(|it| it.bandwidth == 50_000_000_000));
    // They join pairs alone, so that PCI is kept.
    assert!(
        join(&[&system])
            .unwrap()
            .links
            .iter()
            .any(|it| it.medium == Medium::Upi)
    );
    let own = dump(2, |dev| link(&bus(dev), 12, "0x030200"));
    assert!(read(&own).notes[0].contains("gpu0, gpu1 lead to the GPU itself"));
}

#[test]
fn hosts_of_one_domain_have_their_own_numbers() {
    let host = |hash: &str, rank: usize| {
        format!(
            "<cpu host_hash=\"{hash}\" numaid=\"0\" arch=\"arm64\"><pci busid=\"0008:01:00.0\" class=\"0x030200\" \
             link_speed=\"32 GT/s\" link_width=\"16\"><gpu dev=\"0\" sm=\"100\" rank=\"{rank}\">{}\
             <c2c bw=\"44712\" count=\"10\"/></gpu></pci></cpu>",
            link("fffffff:ffff:ff", 18, "0x068000")
        )
    };
    let text = format!(
        "<system version=\"1\">{}{}</system>",
        host("0x1", 0),
        host("0x2", 1)
    );
    let system = read(&text);
    assert_eq!(system.gpus[1].id(), 1 << 56);
    assert_eq!(system.devices[system.gpus[1].device].name, "h1.gpu0");
    assert!(system.sums());
    assert!(
        system
            .links
            .iter()
            .any(|it| it.bandwidth == 447_120_000_000)
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let text = switched();
    let change = |from: &str, to: &str| wrong(&text.replacen(from, to, 1));
    assert!(change("version=\"1\"", "version=\"7\"").contains("line 1: it is of version 7"));
    assert!(change("rank=\"1\"", "rank=\"0\"").contains("two GPUs have rank 0"));
    assert!(change("dev=\"1\" sm", "dev=\"0\" sm").contains("two GPUs have dev 0"));
    assert!(change("dev=\"1\" speed", "dev=\"0\" speed").contains("two NICs have dev 0"));
    assert!(change("count=\"12\"", "count=\"-2\"").contains("count of <nvlink> is \"-2\""));
    assert!(change("sm=\"80\"", "sm=\"50\"").contains("a GPU of sm 50 has no NVLink"));
    assert!(change("numaid=\"0\"", "").contains("line 2: <cpu> has no numaid"));
    assert!(wrong(&text.replace(" rank", " other")).contains("NCCL_TOPO_DUMP_FILE"));
    assert!(wrong("<graphs version=\"1\"/>").contains("that is a file of graphs"));
    let alone = dump(2, |_| link("ffff:ff:ff.0", 12, "0x068000"));
    let no_nic = read(&alone.replace("<net ", "<other "));
    assert!(
        join(&[&no_nic, &no_nic])
            .unwrap_err()
            .to_string()
            .contains("node 0 has no NIC")
    );
}

const MATRIX: &str = "\
\t\u{1b}[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\u{1b}[0m
GPU0\t X \tNV12\tNV12\tNV12\tPXB\t0-31\t0
GPU1\tNV12\t X \tNV12\tNV12\tSYS\t0-31\t0
GPU2\tNV12\tNV12\t X \tNV12\tSYS\t32-63\t1
GPU3\tNV12\tNV12\tNV12\t X \tSYS\t32-63\t1
NIC0\tPXB\tSYS\tSYS\tSYS\t X

Legend:
  X    = Self
";

fn links_of(gpu: usize, name: &str, rates: &[&str]) -> String {
    let mut out = format!("GPU {gpu}: {name} (UUID: GPU-0)\n");
    for (link, rate) in rates.iter().enumerate() {
        out += &format!("\t Link {link}: {rate}\n");
    }
    out
}

#[test]
fn a_matrix_with_more_links_than_a_gpu_has_is_of_a_switch() {
    let system = read_smi(MATRIX.as_bytes()).unwrap();
    let network = join(&[&system]).unwrap();
    assert_eq!(names(&network, 0), ["gpu0", "gpu1", "gpu2", "gpu3", "nvs"]);
    assert!(
        network
            .links
            .iter()
            .all(|it| it.bandwidth == 300_000_000_000)
    );
    assert!(network.notes[0].contains("25 GB/s each way is assumed"));
    let list: String = (0..4)
        .map(|gpu| {
            let rates = if gpu == 2 {
                ["26.562 GB/s", "<inactive>"]
            } else {
                ["26.562 GB/s"; 2]
            };
            links_of(gpu, "NVIDIA H100 80GB HBM3", &rates)
        })
        .collect();
    let system = read_smi(format!("{MATRIX}{list}").as_bytes()).unwrap();
    let network = join(&[&system]).unwrap();
    let rates: Vec<u64> = network
        .links
        .iter()
        .map(|it| it.bandwidth / 1_000_000_000)
        .collect();
    assert_eq!(rates, [50, 50, 50, 50, 25, 25, 50, 50]);
    assert_eq!(network.sums, [4]);
}

#[test]
fn a_matrix_of_pci_alone() {
    let text = "\tGPU0\tGPU1\tGPU2\n\
        GPU0\t X \tPIX\tSYS\n\
        GPU1\tPIX\t X \tSYS\n\
        GPU2\tSYS\tSYS\t X \n";
    let network = join(&[&read_smi(text.as_bytes()).unwrap()]).unwrap();
    assert_eq!(names(&network, 3), ["cpu0", "pci0", "cpu1"]);
    assert!(network.notes[0].contains("PCIe 4.0 x16"));
}

#[test]
fn a_matrix_that_is_none_is_refused() {
    let wrong = |text: &str| read_smi(text.as_bytes()).unwrap_err().to_string();
    assert!(wrong("nothing").contains("no line that begins with GPU0"));
    assert!(wrong("nothing").contains("NCCL_TOPO_DUMP_FILE"));
    assert!(wrong("\tGPU0\tGPU1\nGPU0\t X \tNV2\n").contains("2 columns, but 1 rows"));
    let uneven = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV1\t X \n";
    assert!(wrong(uneven).contains("line 2: GPU0 has NV2 to GPU1, and NV1 back"));
    let odd = "\tGPU0\tGPU1\nGPU0\t X \tFAR\nGPU1\tFAR\t X \n";
    assert!(wrong(odd).contains("there is no \"FAR\""));
    let few = format!("{MATRIX}{}", links_of(0, "NVIDIA H100", &["25 GB/s"]));
    assert!(wrong(&few).contains("4 GPUs, the list of links 1"));
    let bad = format!("{MATRIX}{}", links_of(0, "NVIDIA H100", &["fast GB/s"]));
    assert!(wrong(&bad).contains("\"fast\" is no rate"));
}

/// The processor of each GPU: where its PCI link leads.
fn processors(system: &System) -> Vec<usize> {
    let up = |from: usize| {
        let mut links = system.links.iter();
        let link = links.find(|link| {
            let kind = system.devices[link.dst].kind;
            let is_up = kind == Kind::Cpu
                || (kind == Kind::Pci && system.devices[link.src].kind == Kind::Gpu);
            link.src == from && is_up
        });
        link.expect("it has one").dst
    };
    system.gpus.iter().map(|gpu| up(up(gpu.device))).collect()
}

/// A text of GPUs and NICs, of which each is near a processor: (processor, PCI switch), with NVLinks among sets of GPUs.
fn text_of(
    gpus: &[(usize, usize)],
    nics: &[(usize, usize)],
    nvlink: impl Fn(usize, usize) -> bool,
    affinity: impl Fn(usize) -> String,
    columns: &str,
) -> String {
    let all: Vec<_> = gpus.iter().chain(nics).collect();
    let name = |i: usize| match i.checked_sub(gpus.len()) {
        Some(nic) => format!("NIC{nic}"),
        None => format!("GPU{i}"),
    };
    let head: Vec<String> = (0..all.len()).map(name).collect();
    let mut text = format!("\t{}{columns}\n", head.join("\t"));
    for (a, one) in all.iter().enumerate() {
        text += &name(a);
        for (b, other) in all.iter().enumerate() {
            text += "\t";
            text += match (one, other) {
                _ if a == b => " X ",
                _ if a.max(b) < gpus.len() && nvlink(a, b) => "NV4",
                (one, other) if one.0 != other.0 => "SYS",
                (one, other) if one.1 != other.1 => "NODE",
                _ => "PIX",
            };
        }
        if a < gpus.len() {
            text += &affinity(one.0);
        }
        text += "\n";
    }
    text
}

#[test]
fn pairs_that_nvlinks_join_share_the_processor_of_their_affinity() {
    let gpus = [(0, 0), (0, 1), (1, 2), (1, 3)];
    let pairs = |a: usize, b: usize| a / 2 == b / 2;
    let read = |affinity: &dyn Fn(usize) -> String, columns: &str| {
        let text = text_of(&gpus, &[], pairs, affinity, columns);
        read_smi(text.as_bytes()).unwrap()
    };
    let numa = "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID";
    type Affinity = fn(usize) -> String;
    let texts: [(&str, Affinity); 6] = [
        (numa, |cpu| {
            format!("\t{}-{}\t{cpu}\t\tN/A", 16 * cpu, 16 * cpu + 15)
        }),
        // Older drivers, and machines that do not say where memory is.
        ("\tCPU Affinity", |cpu| {
            format!("\t{}-{}", 16 * cpu, 16 * cpu + 15)
        }),
        (numa, |cpu| format!("\t{},{}\tN/A\t\tN/A", cpu, cpu + 8)),
        ("\tCPU Affinity\tNUMA Affinity", |cpu| {
            format!("\t0-31\t{cpu}")
        }),
        // All cores are near all GPUs, and nothing at all is said: the SYS between the pairs still holds.
        ("\tCPU Affinity\tNUMA Affinity", |_| {
            "\t0-31\tN/A".to_owned()
        }),
        ("", |_| String::new()),
    ];
    for (i, (columns, affinity)) in texts.iter().enumerate() {
        let system = read(affinity, columns);
        let found = processors(&system);
        assert_eq!(found[0], found[1], "text {i}");
        assert_eq!(found[2], found[3], "text {i}");
        assert_ne!(found[0], found[2], "text {i}");
        let between = system
            .links
            .iter()
            .filter(|link| link.medium == Medium::Upi);
        assert_eq!(between.count(), 2, "one link, each way; text {i}");
        let is_guessed = system
            .notes
            .iter()
            .any(|note| note.contains("it is assumed"));
        assert_eq!(
            is_guessed,
            columns.is_empty(),
            "text {i}: {:?}",
            system.notes
        );
    }
    // A pair whose GPUs are near different processors.
    let apart = |cpu: usize| format!("\t{cpu}");
    let gpus = [(0, 0), (1, 1), (0, 2), (1, 3)];
    let text = text_of(&gpus, &[], pairs, apart, "\tNUMA Affinity");
    let found = processors(&read_smi(text.as_bytes()).unwrap());
    assert!(
        found[0] != found[1] && found[0] == found[2] && found[1] == found[3],
        "{found:?}"
    );
}

/// Two large sets of which one pair alone is said to be apart: asked once, not for each pair.
#[test]
fn large_matrices_take_no_longer_than_their_cells() {
    let gpus: Vec<_> = (0..600).map(|gpu| (usize::from(gpu > 298), gpu)).collect();
    let nvlink = |a: usize, b: usize| gpus[a].0 != gpus[b].0 && a.min(b) > 0;
    let text = text_of(&gpus, &[], nvlink, |_| String::new(), "");
    let found = processors(&read_smi(text.as_bytes()).unwrap());
    assert!((0..600).all(|gpu| (found[gpu] == found[0]) == (gpu <= 298)));
}

#[test]
fn a_matrix_that_a_switch_could_have_says_so() {
    let said = |count: usize, nvlink: &dyn Fn(usize, usize) -> bool, list: &str| {
        let gpus = vec![(0, 0); count];
        let text = text_of(&gpus, &[], nvlink, |_| String::new(), "") + list;
        let notes = read_smi(text.as_bytes()).unwrap().notes;
        notes
            .into_iter()
            .find(|note| note.contains("a switch would look the same"))
    };
    let note = said(3, &|_, _| true, "").expect("a note");
    assert!(note.starts_with("NV4 between any two of 3 GPUs") && note.contains("8 of each"));
    assert!(said(4, &|_, _| true, "").is_some());
    assert!(
        said(8, &|a, b| a / 4 == b / 4, "").is_some(),
        "two sets of four"
    );
    assert_eq!(
        said(2, &|_, _| true, ""),
        None,
        "one pair is the same either way"
    );
    assert_eq!(said(8, &|a, b| a / 2 == b / 2, ""), None, "pairs");
    assert_eq!(said(4, &|a, b| a.abs_diff(b) != 2, ""), None, "a ring");
    assert_eq!(said(6, &|_, _| true, ""), None, "more links than a GPU has");
    let list: String = (0..3)
        .map(|gpu| links_of(gpu, "NVIDIA A800", &["25 GB/s"; 8]))
        .collect();
    assert_eq!(said(3, &|_, _| true, &list), None, "the list tells");
}

proptest! {
    /// Whatever NVLinks hide: GPUs share a processor where they do in the machine.
    #[test]
    fn gpus_share_the_processors_that_they_have(
        gpus in proptest::collection::vec((0..3usize, 0..2usize), 2..9),
        nics in proptest::collection::vec((0..3usize, 0..2usize), 0..4),
        hidden in any::<[u16; 9]>(),
        columns in 0..3usize,
    ) {
        let own = |list: &[(usize, usize)]| -> Vec<(usize, usize)> {
            list.iter().map(|&(cpu, switch)| (cpu, 2 * cpu + switch)).collect()
        };
        let (gpus, nics) = (own(&gpus), own(&nics));
        let nvlink = |a: usize, b: usize| hidden[a.min(b)] >> a.max(b) & 1 == 1;
        let (columns, affinity): (&str, fn(usize) -> String) = [
            ("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID", (|cpu| format!("\t{}-{},{}\t{cpu}\t\tN/A", 8 * cpu, 8 * cpu + 7, 64 + cpu)) as fn(usize) -> String),
            ("\tCPU Affinity", |cpu| format!("\t{}-{}", 8 * cpu, 8 * cpu + 7)),
            ("\tNUMA Affinity", |cpu| format!("\t{cpu}")),
        ][columns];
        let text = text_of(&gpus, &nics, nvlink, affinity, columns);
        let found = processors(&read_smi(text.as_bytes()).unwrap());
        for (a, one) in gpus.iter().enumerate() {
            for (b, other) in gpus.iter().enumerate() {
                prop_assert_eq!(found[a] == found[b], one.0 == other.0, "{} and {} of\n{}", a, b, text);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_in_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for read in [System::parse(&bytes), read_smi(&bytes)] {
            if let Err(fault) = read {
                prop_assert!(!fault.to_string().contains('\n'));
            }
        }
    }

    #[test]
    fn a_changed_dump_is_read_and_joined_or_refused(at in any::<usize>(), byte in any::<u8>()) {
        let mut bytes = switched().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(system) = System::parse(&bytes) {
            let _ = join(&[&system, &system]);
        }
        let mut bytes = MATRIX.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(system) = read_smi(&bytes) {
            let _ = join(&[&system]);
        }
    }
}
