//! The service with its agents over loopback, certificates of both ends included.

#![allow(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is drawn is small"
)]

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
