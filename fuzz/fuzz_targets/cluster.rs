#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hocket_fuzz::cluster::run(bytes));
