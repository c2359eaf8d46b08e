#![no_main]

#[path = "../src/files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| files::runtimes::mscclpp(bytes));
