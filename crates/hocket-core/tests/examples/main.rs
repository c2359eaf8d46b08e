//! Every example prints what lies beside it.

#[path = "../../examples/all_reduce.rs"]
#[expect(dead_code, reason = "an example has a main")]
mod all_reduce;
#[path = "../../examples/own_plan.rs"]
#[expect(dead_code, reason = "an example has a main")]
mod own_plan;
#[path = "../../examples/watched.rs"]
#[expect(dead_code, reason = "an example has a main")]
mod watched;

use std::error::Error;
use std::io::Write;

type Example = fn(&mut dyn Write) -> Result<(), Box<dyn Error>>;

/// Name, program, expected output.
const EXAMPLES: [(&str, Example, &str); 3] = [
    (
        "all_reduce",
        all_reduce::run,
        include_str!("../../examples/all_reduce.txt"),
    ),
    (
        "own_plan",
        own_plan::run,
        include_str!("../../examples/own_plan.txt"),
    ),
    (
        "watched",
        watched::run,
        include_str!("../../examples/watched.txt"),
    ),
];

#[test]
fn examples_print_what_lies_beside_them() {
    for (name, run, expected) in EXAMPLES {
        let mut printed = Vec::new();
        run(&mut printed).unwrap_or_else(|error| panic!("{name}: {error}"));
        let printed = String::from_utf8(printed).expect("text");
        assert_eq!(printed, expected, "{name}");
    }
}

#[test]
fn no_example_is_left_out() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let files = std::fs::read_dir(folder).expect("a folder of examples");
    let names = files.map(|file| file.expect("a file").path());
    let mut programs: Vec<_> = names
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("a name").to_owned())
        .collect();
    programs.sort();
    assert_eq!(programs, EXAMPLES.map(|(name, ..)| name));
}
