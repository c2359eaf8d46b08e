use super::*;
use proptest::prelude::*;

fn order(first: i64) -> Vec<GpuRef> {
    let gpu = |k: i64| GpuRef {
        dev: (first + k) % 4,
        rank: None,
    };
    (0..4).map(gpu).collect()
}

fn graph(id: i64, pattern: i64, channels: usize) -> Graph {
    let channel = |k: usize| Channel {
        nets: vec![k as i64; 2],
        gpus: order(k as i64),
        line: 0,
    };
    Graph {
        id,
        pattern,
        cross_nic: 0,
        speed_intra: 20.0,
        speed_inter: 12.5,
        latency_inter: 0.0,
        type_intra: "NVL".to_owned(),
        type_inter: "PXB".to_owned(),
        same_channels: 0,
        channels: (0..channels).map(channel).collect(),
        line: 0,
    }
}

fn both(channels: usize) -> Graphs {
    Graphs {
        graphs: vec![graph(0, 4, channels), graph(1, 1, channels)],
    }
}

/// Without lines, which a file that is written has of its own.
fn bare(mut graphs: Graphs) -> Graphs {
    for graph in &mut graphs.graphs {
        graph.line = 0;
        graph.channels.iter_mut().for_each(|it| it.line = 0);
    }
    graphs
}

#[test]
fn what_is_written_is_read() {
    let graphs = both(4);
    let text = graphs.write().unwrap();
    let read = Graphs::parse(text.as_bytes()).unwrap();
    assert_eq!(read.graphs[1].line, 36);
    assert_eq!(bare(read), graphs);
    assert!(
        text.contains("nchannels=\"4\" speedintra=\"20\" speedinter=\"12.5\" latencyinter=\"0\"")
    );
    assert!(!text.contains('\t'));
}

fn refused(change: impl Fn(&mut Graphs)) -> String {
    let mut graphs = both(2);
    change(&mut graphs);
    graphs.write().unwrap_err().to_string()
}

#[test]
fn limits_are_said() {
    type Case = (&'static str, fn(&mut Graphs));
    let cases: [Case; 14] = [
        ("no graph of a tree", |it| drop(it.graphs.pop())),
        ("no graph of a ring", |it| drop(it.graphs.remove(0))),
        ("rings have 2 channels and trees 1", |it| {
            drop(it.graphs[1].channels.pop())
        }),
        ("it has 33 channels", |it| *it = both(33)),
        ("its pattern is 3", |it| it.graphs[0].pattern = 3),
        ("there is no type \"NEAR\"", |it| {
            it.graphs[0].type_intra = "NEAR".to_owned()
        }),
        ("a channel of 0 GB/s", |it| it.graphs[1].speed_inter = 0.0),
        ("crossnic is 3", |it| it.graphs[1].cross_nic = 3),
        ("channel 1 passes a GPU twice", |it| {
            it.graphs[0].channels[1].gpus[0].dev = 2
        }),
        ("channel 1 of graph 0 has other GPUs", |it| {
            it.graphs[0].channels[1].gpus[0].dev = 9
        }),
        ("channel 0 has a negative number", |it| {
            it.graphs[0].channels[0].nets = vec![-1, -1]
        }),
        ("channel 0 has not two NICs", |it| {
            it.graphs[0].channels[0].nets.clear()
        }),
        ("channel 1 goes out by another NIC", |it| {
            it.graphs[0].channels[1].nets[1] = 0
        }),
        ("channel 0 has no GPU", |it| {
            it.graphs[0].channels[0].gpus.clear()
        }),
    ];
    for (why, change) in cases {
        let said = refused(change);
        assert!(said.contains(why), "{said}, not {why}");
        assert!(!said.contains('\n'));
    }
}

fn wrong(text: &str) -> String {
    Graphs::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let text = both(2).write().unwrap();
    let change = |from: &str, to: &str| wrong(&text.replacen(from, to, 1));
    assert!(change("version=\"1\"", "version=\"2\"").contains("line 1: it is of version 2"));
    assert!(change("id=\"1\"", "id=\"0\"").contains("line 20: there are two graphs of id 0"));
    assert!(change("nchannels=\"2\"", "nchannels=\"3\"").contains("line 2: nchannels is 3"));
    assert!(change("dev=\"0x3\"", "dev=\"three\"").contains("line 8: dev of <gpu>"));
    assert!(change("\"NVL\"", "\"FAR\"").contains("there is no type \"FAR\""));
    assert!(change("pattern=\"4\"", "").contains("<graph> has no pattern"));
    assert!(wrong("<system version=\"1\"/>").contains("that is a topology"));
    assert!(wrong("<graphs version=\"1\"/>").contains("it has no graph"));
}

#[test]
fn a_dump_of_a_release_is_read() {
    let text = "<graphs version=\"1\">\n  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"12\" \
        speedinter=\"12\" typeintra=\"SYS\" typeinter=\"SYS\" samechannels=\"1\">\n    <channel>\n      <net dev=\"3\"/>\n      \
        <gpu dev=\"a\" rank=\"10\"/>\n      <net dev=\"0\"/>\n    </channel>\n  </graph>\n  <graph id=\"2\" pattern=\"3\" \
        crossnic=\"0\" nchannels=\"0\" speedintra=\"0\" speedinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" \
        samechannels=\"1\"/>\n</graphs>\n";
    let read = Graphs::parse(text.as_bytes()).unwrap();
    let ring = read.of(0).unwrap();
    assert_eq!(ring.channels[0].nets, [3, 0]);
    let expected = GpuRef {
        dev: 10,
        rank: Some(10),
    };
    assert_eq!(ring.channels[0].gpus, [expected]);
    assert_eq!(ring.latency_inter, 0.0);
    assert!(read.of(2).is_none() && read.of(1).is_none());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_in_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Err(fault) = Graphs::parse(&bytes) {
            prop_assert!(!fault.to_string().contains('\n'));
        }
    }

    #[test]
    fn a_changed_file_is_read_or_refused(at in 0usize..2000, byte in any::<u8>()) {
        let mut bytes = both(3).write().unwrap().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(read) = Graphs::parse(&bytes) {
            // What is read can be written, or is refused for a limit.
            let _ = read.write();
        }
    }
}
