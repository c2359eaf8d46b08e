//! How a group comes together, and those that are left of one again.

use std::collections::HashMap;
use std::time::Duration;

use hocket_base::id::narrow;

use super::Group;
use crate::control::{Control, listen};
use crate::error::{Code, Failure};
use crate::links::{Links, Ways};
#[cfg(target_os = "linux")]
use crate::memory;
use crate::options::{GroupOptions, check};
#[cfg(target_os = "linux")]
use crate::window::Window;
use crate::wire::{self, Frame, Member};

impl Group {
    /// Joins a group, and waits for the others.
    ///
    /// # Errors
    /// [`Code::Invalid`] for options without meaning, [`Code::Join`] if the group does not come together.
    pub fn connect(options: &GroupOptions) -> Result<Self, Failure> {
        check(options)?;
        Self::join(options, |member, options| Frame::Join {
            group: options.group.clone(),
            size: options.size,
            patience: millis(options.patience),
            member,
        })
    }

    fn join(
        options: &GroupOptions,
        frame: impl FnOnce(Member, &GroupOptions) -> Frame,
    ) -> Result<Self, Failure> {
        let mut control = Control::connect(&options.address, &options.secret, options.patience)?;
        let (listener, address) = listen(&control, options.local, !options.ways.is_empty())?;
        let challenge = wire::challenge();
        #[cfg(target_os = "linux")]
        let file = options.shares.then(memory::file).flatten();
        #[cfg(target_os = "linux")]
        let number = file.as_ref().map_or(0, |file| {
            std::os::fd::AsRawFd::as_raw_fd(file).unsigned_abs()
        });
        #[cfg(not(target_os = "linux"))]
        let number = 0;
        let member = Member {
            rank: options.rank,
            address: address.to_string(),
            challenge,
            host: host(),
            process: if number > 0 { std::process::id() } else { 0 },
            file: number,
            table: options.table,
            streams: options.streams,
            shares: options.shares,
            outward: options.outward,
        };
        let (id, members) = control.join(&frame(member, options), options.patience)?;
        let own = members
            .iter()
            .position(|member| member.challenge == challenge);
        let rank = own.ok_or_else(|| Failure::new(Code::Join, "the store left this rank out"))?;
        same_options(&members, options)?;
        let old_ranks = members.iter().map(|member| member.rank).collect();
        #[cfg(target_os = "linux")]
        let window = file.and_then(|file| {
            let first = &members[0];
            let shared = members
                .iter()
                .all(|each| each.process > 0 && each.host == first.host);
            let place = (first.process, first.file);
            shared.then(|| Window::open(file, place, rank, members.len()))?
        });
        let size = narrow(members.len());
        let links = Links::new(
            (id, members),
            narrow(rank),
            &options.secret,
            challenge,
            listener,
            Ways {
                streams: options.streams,
                outward: options.outward,
                to: options.ways.clone(),
                pace: options.pace.clone(),
            },
        );
        let mut group = Self {
            options: GroupOptions {
                rank: narrow(rank),
                size,
                ..options.clone()
            },
            control,
            links,
            #[cfg(target_os = "linux")]
            window,
            scripts: HashMap::new(),
            scratch: Vec::new(),
            calls: 0,
            failure: None,
            old_ranks,
            forks: crate::fork::generation(),
        };
        group.settle_window()?;
        Ok(group)
    }

    /// All ranks use the window, or none: they meet once more to say whether each has mapped it.
    #[cfg(target_os = "linux")]
    fn settle_window(&mut self) -> Result<(), Failure> {
        if !self.options.shares {
            return Ok(());
        }
        let options = &self.options;
        let mut control = Control::connect(&options.address, &options.secret, options.patience)?;
        let own = &self.links.members[options.rank as usize];
        let vote = Frame::Join {
            group: format!("{} {}: window", options.group, self.links.group),
            size: options.size,
            patience: millis(options.patience),
            member: Member {
                rank: options.rank,
                file: self.window.is_some().into(),
                ..own.clone()
            },
        };
        let (_, votes) = control.join(&vote, options.patience)?;
        control.say(&Frame::Bye);
        if votes.iter().any(|vote| vote.file == 0) {
            self.window = None;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn settle_window(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Makes a group of those ranks that are left after a failure. A rank that is alive but does not come is left
    /// out after the patience of the group.
    ///
    /// # Errors
    /// [`Code::Join`] if the store is gone or no group comes together.
    pub fn shrink(&self, patience: Duration) -> Result<Self, Failure> {
        self.belongs_here()?;
        let options = GroupOptions {
            patience,
            ..self.options.clone()
        };
        let id = self.id();
        Self::join(&options, |member, options| Frame::Rejoin {
            id,
            patience: millis(options.patience),
            member,
        })
    }
}

/// Refuses a group whose ranks would choose plans by different tables, or would not meet on the same ways.
fn same_options(members: &[Member], options: &GroupOptions) -> Result<(), Failure> {
    same(
        members,
        options.outward,
        |member| member.outward,
        |&outward| match outward {
            true => "connects one way".to_owned(),
            false => "connects both ways".to_owned(),
        },
    )?;
    same(
        members,
        options.table,
        |member| member.table,
        |&table| match table {
            0 => "has no table of plans".to_owned(),
            _ => format!("has the table of plans {table:016x}"),
        },
    )?;
    same(
        members,
        options.streams,
        |member| member.streams,
        |streams| match streams {
            1 => "has 1 stream per link".to_owned(),
            _ => format!("has {streams} streams per link"),
        },
    )?;
    same(
        members,
        options.shares,
        |member| member.shares,
        |&shares| match shares {
            true => "would share memory".to_owned(),
            false => "goes over TCP alone".to_owned(),
        },
    )
}

/// Refuses a group whose ranks have not all the same of something.
fn same<T: PartialEq>(
    members: &[Member],
    own: T,
    of: impl Fn(&Member) -> T,
    says: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let first = of(&members[0]);
    let Some(other) = members.iter().position(|member| of(member) != first) else {
        return Ok(());
    };
    let (hers, his) = (says(&of(&members[other])), says(&first));
    let why = format!("rank {other} {hers}, rank 0 {his}; give all ranks the same");
    let culprit = if first == own { other } else { 0 };
    Err(Failure::new(Code::Mismatch, why).of(Some(narrow(culprit)), 0))
}

/// Returns the host and its namespace of processes: equal where memory can be shared.
fn host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), space.display())
}

/// Returns a time as messages have it.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
