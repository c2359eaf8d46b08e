//! The service with its agents over loopback, certificates of both ends included.

#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

#[path = "../support/process.rs"]
mod process;

mod command;
mod durable;
mod half_sent;
mod operator;
mod paths;
mod refusals;
mod restart;
mod rotation;
mod standby;
