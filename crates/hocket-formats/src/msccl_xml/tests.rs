//! Real files, where a folder of them is given, and the rules.

use std::time::Instant;

use hocket_core::program::check::CheckOptions;
use hocket_core::progress::Silent;

use super::{Algo, check, read, write};
use crate::files::files;

fn text(algo: &Algo) -> String {
    let mut out = String::new();
    write(algo, &mut out).expect("a string takes all");
    out
}

#[test]
fn published_files_are_right_and_survive_a_round() {
    for file in files("HOCKET_MSCCL_FILES", "xml") {
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
