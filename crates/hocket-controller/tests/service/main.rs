//! The service with its agents over loopback, certificates of both ends included.

#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

mod command;
mod paths;
mod refusals;
mod restart;
mod rotation;
