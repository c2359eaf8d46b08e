//! The routing controller's service and its host agents, without input and output: state machines that are
//! told what happened and when, and say what is to be done.
//!
//! Nothing here has a clock, a thread, a socket or a file, so that each fault is one more thing that a machine is
//! told, and the same input gives the same output.

#![forbid(unsafe_code)]

pub mod message;
