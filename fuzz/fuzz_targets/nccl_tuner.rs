#![no_main]

#[path = "../src/nccl.rs"]
mod nccl;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nccl::tuner(bytes));
