//! Real files, where a folder of them is given, and the rules.

use std::time::Instant;

use hocket_core::program::check::CheckOptions;
use hocket_core::progress::Silent;

use super::{check, read, write};
use crate::files::files;

#[test]
fn published_plans_are_right_and_survive_a_round() {
    for file in files("HOCKET_MSCCLPP_FILES", "json") {
        let source = std::fs::read_to_string(&file).expect("readable");
        let name = file
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        if name == "allreduce_pipeline.json" {
            let error = read(&source).expect_err("its keys are of an older version");
            assert!(
                error.to_string().contains("unknown field `buff`"),
                "{error}"
            );
            continue;
        }
        let plan = read(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = read(&write(&plan).expect("written"));
        assert_eq!(again.as_ref(), Ok(&plan), "{name}");
        let start = Instant::now();
        let verdict = check(&plan, &CheckOptions::default(), &mut Silent).expect("not stopped");
        println!(
            "{name}: {:?} {:?}",
            start.elapsed(),
            verdict.findings.first()
        );
        if name == "reduce_tbg.json" {
            // The executor cuts the bytes of both chunks of a copy between two blocks, one chunk each, and the other rank
            // reads halves of each chunk after a signal of one block alone.
            assert!(
                verdict
                    .findings
                    .iter()
                    .all(|finding| finding.code == "race")
            );
            assert!(!verdict.is_right());
            continue;
        }
        assert!(verdict.is_right(), "{name}: {:?}", verdict.findings);
    }
}
