#![no_main]

#[path = "../src/service.rs"]
mod service;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| service::control::run(bytes));
