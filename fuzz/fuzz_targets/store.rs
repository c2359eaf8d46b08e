#![no_main]

#[path = "../src/service.rs"]
#[allow(dead_code, reason = "tests run every target")]
mod service;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::store::run(bytes));
