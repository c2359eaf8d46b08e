#![no_main]

#[path = "../src/protocol.rs"]
mod protocol;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| protocol::wire::run(bytes));
