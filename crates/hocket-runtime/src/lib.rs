//! Runs plans of collective communication between processes.
//!
//! ```text
//! Store  <- control -  Group::connect -> Group
//!                                          |  run(Loaded)     a program, over TCP links
//!                                          |  exchange(kind)  through shared memory, on one host
//!                                          +- shrink          a new group of those that are left
//! ```
//!
//! A [`Store`](store::Store) is where ranks meet. A [`Group`](group::Group) runs a [`Loaded`](script::Loaded) program, lowered from a
//! proved plan: `script` turns steps into places in bytes, `links` connects ranks, `execute` moves and sums. On one
//! host, `pipes` carry messages through memory that both ranks map, and `window` does whole collectives there.
//!
//! # What holds
//! - Before a byte of a call is used, both ends of a link, or all ranks of a window, have agreed on its number, kind,
//!   root, plan, type, operation and size; who sends and receives nothing returns when those that it sends to have said so.
//! - A rank that dies, stands still or does something else is an error of all ranks within the timeout. Then the group is
//!   dead, and what the call has written is undefined.

pub mod number;
pub mod agreement;
pub mod error;
mod fork;
mod poll;
pub mod wire;
mod control;
pub mod pace;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod pipes;
mod links;
pub mod script;
mod execute;
pub mod options;
#[cfg(target_os = "linux")]
mod window;
pub mod group;
#[cfg(target_os = "linux")]
pub mod delay_line;
pub mod store;

/// Returns an error of the system, as users know it.
pub(crate) fn says(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Returns a time, as users write it.
pub(crate) fn seconds(time: std::time::Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// "rank 3", "ranks 3 and 5", "ranks 0, 1, ... and 7 more": in messages.
pub(crate) fn ranks(ranks: &[u32]) -> String {
    const MOST: usize = 8;
    let texts: Vec<String> = ranks.iter().take(MOST).map(u32::to_string).collect();
    match texts.as_slice() {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        _ if ranks.len() > MOST => {
            format!("ranks {} and {} more", texts.join(", "), ranks.len() - MOST)
        }
        [first @ .., last] => format!("ranks {} and {last}", first.join(", ")),
    }
}
