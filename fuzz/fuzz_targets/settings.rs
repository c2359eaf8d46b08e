#![no_main]

#[path = "../src/host.rs"]
mod host;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| host::settings::run(bytes));
