#![no_main]

#[path = "../src/between.rs"]
mod between;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| between::frames::run(bytes));
