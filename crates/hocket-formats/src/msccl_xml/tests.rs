//! Real files, and the form itself: what is written is read as it was.

use std::time::Instant;

use hocket_base::id::narrow;
use hocket_base::progress::Silent;
use hocket_program::program::Buffer;
use hocket_program::program::check::CheckOptions;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use strum::VariantArray as _;

use super::{
    Algo, At, COLLECTIVES, Gpu, LineNumber, Protocol, Step, StepType, Tb, check, read, write,
};
use crate::files::files;

fn text(algo: &Algo) -> String {
    let mut out = String::new();
    write(algo, &mut out).expect("a string takes all");
    out
}

#[test]
fn published_files_are_right_and_survive_a_round() {
    for file in files("HOCKET_MSCCL_FILES", "msccl", "xml") {
        let source = std::fs::read_to_string(&file).expect("readable");
        let algo = read(&source).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(read(&text(&algo)).as_ref(), Ok(&algo), "{}", file.display());
        let start = Instant::now();
        let verdict = check(&algo, &CheckOptions::default(), &mut Silent).expect("not stopped");
        let name = file
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        println!("{name}: {:?} {:?}", start.elapsed(), verdict.findings);
        if name == "mscclang_ag_rd.xml" {
            assert_eq!(
                verdict.findings[0].code, "deadlock",
                "{:?}",
                verdict.findings
            );
            let options = CheckOptions {
                chunks_per_message: 4,
            };
            assert!(
                check(&algo, &options, &mut Silent)
                    .expect("not stopped")
                    .is_right()
            );
        } else {
            assert!(verdict.is_right(), "{name}: {:?}", verdict.findings);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let at = || (select(Buffer::ALL), -1..1 << 20);
    let rest = (0..1_u32 << 24, 0..1_u32 << 16, any::<bool>());
    let dependency = option::of((0..4097_u32, 0..1_u32 << 24));
    let kind = select(StepType::VARIANTS);
    (kind, at(), at(), rest, dependency).prop_map(|(kind, src, dst, rest, dependency)| {
        let at = |(buffer, offset)| At { buffer, offset };
        let (position, count, awaited) = rest;
        Step {
            position,
            kind,
            src: at(src),
            dst: at(dst),
            count,
            dependency,
            awaited,
            line: LineNumber(0),
        }
    })
}

fn tb() -> impl Strategy<Value = Tb> {
    let peer = || option::of(0..1_u32 << 20);
    let all = (peer(), peer(), 0..1024_u32, vec(step(), 0..6));
    all.prop_map(|(send, recv, channel, steps)| Tb {
        send,
        recv,
        channel,
        steps,
        line: LineNumber(0),
    })
}

fn algo() -> impl Strategy<Value = Algo> {
    let gpu = (any::<[u16; 3]>(), vec(tb(), 0..4)).prop_map(|(sizes, blocks)| Gpu {
        sizes: sizes.map(u32::from),
        blocks,
        line: LineNumber(0),
    });
    let names = COLLECTIVES.map(|(name, _)| name);
    let head = ("[a-z0-9_(=)-]{1,20}", select(Protocol::VARIANTS));
    let sizes = (1..1025_u32, 1..1_u32 << 20);
    let bytes = || option::of(0..i64::MAX as u64);
    let modes = (any::<bool>(), option::of(any::<bool>()));
    let rest = (bytes(), bytes(), option::of(0..1025_u32));
    let gpus = vec(gpu, 1..5);
    let all = (head, sizes, select(names.to_vec()), modes, rest, gpus);
    all.prop_map(|(head, sizes, collective, modes, rest, gpus)| Algo {
        name: head.0,
        protocol: head.1,
        channels: sizes.0,
        chunks: sizes.1,
        ranks: narrow(gpus.len()),
        collective: collective.to_owned(),
        in_place: modes.0,
        out_of_place: modes.1,
        min_bytes: rest.0,
        max_bytes: rest.1,
        threads: rest.2,
        gpus,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn what_is_written_is_read_as_it_was(algo in algo()) {
        let written = text(&algo);
        let again = read(&written);
        prop_assert_eq!(again.as_ref(), Ok(&algo));
        prop_assert_eq!(text(&algo), text(&again.expect("read")));
    }
}
