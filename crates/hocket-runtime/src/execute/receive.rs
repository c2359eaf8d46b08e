//! How messages come: to where their step wants them, or into an inbox until it has come.

use std::io;

use hocket_program::program::Op;

use super::{Execution, Phase};
use crate::agreement::Agreement;
use crate::error::{Code, Failure};
use crate::links::Reading;
use crate::script::Step;
use crate::wire::Header;
use std::time::Instant;

impl Execution<'_> {
    /// Puts what a receive adds to where the sum will be.
    pub(super) fn prepare(&mut self, block: u32, step: Step) {
        if matches!(step.op, Op::Recv | Op::RecvSend) {
            return;
        }
        let source = self.script.sources(step)[0];
        match self.script.targets(step).first() {
            Some(&target) if source != target => self.copy(source, target),
            Some(_) => {}
            None => {
                let mut own = vec![0u8; source.len];
                // SAFETY: the place has that many bytes.
                unsafe {
                    self.pointer(source)
                        .copy_to_nonoverlapping(own.as_mut_ptr(), source.len)
                };
                self.states[block as usize].own = Some(own);
            }
        }
    }

    /// Where bytes of the message that a block waits for go.
    fn target(&mut self, block: u32) -> (*mut u8, bool) {
        let script = self.script;
        let state = &mut self.states[block as usize];
        let step = script.blocks[block as usize].steps[state.at as usize];
        let sums = !matches!(step.op, Op::Recv | Op::RecvSend);
        match (&mut state.own, script.targets(step).first()) {
            (Some(own), None) => (own.as_mut_ptr(), sums),
            (_, Some(&target)) => (self.pointer(target), sums),
            (None, None) => unreachable!("prepared before"),
        }
    }

    /// Uses a message that came before its step; if none has, the next goes where the step wants it.
    pub(super) fn take_kept(&mut self, block: u32) -> bool {
        let inbox = self.states[block as usize].inbox.expect("it receives") as usize;
        let Some(kept) = self.inboxes[inbox].kept.pop_front() else {
            self.inboxes[inbox].wanted = true;
            self.states[block as usize].phase = Phase::Receiving;
            return false;
        };
        let (target, sums) = self.target(block);
        if sums {
            self.sum(target, kept.as_ptr(), kept.len());
        } else {
            // SAFETY: the message is as long as its place, which was checked when it came.
            unsafe { target.copy_from_nonoverlapping(kept.as_ptr(), kept.len()) };
        }
        self.states[block as usize].phase = Phase::Received;
        true
    }

    /// Reads what a socket has.
    pub(super) fn read(&mut self, key: (u32, u32)) -> Result<(), Failure> {
        // Not for ever: others wait.
        for _ in 0..16 {
            let came = match self.read_direct(key) {
                Some(read) => read,
                None => self.stream(key).fill(),
            };
            match came {
                Ok(false) => return Ok(()),
                Ok(true) => self.moved = Instant::now(),
                Err(error) => return Err(self.broken(key.0, &crate::says(&error))),
            }
            self.take(key)?;
            if !self.stream(key).can_come() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads a long message to where it belongs, if it is only copied; `None` if it must be read otherwise.
    fn read_direct(&mut self, key: (u32, u32)) -> Option<io::Result<bool>> {
        let stream = &self.links.open[&key];
        let Reading::Body {
            inbox,
            direct: true,
            done,
        } = stream.reading
        else {
            return None;
        };
        if !stream.waiting().is_empty() {
            return None;
        }
        let (block, len) = {
            let inbox = &self.inboxes[inbox as usize];
            (inbox.block, inbox.lengths[inbox.begun - 1])
        };
        let (target, sums) = self.target(block);
        if sums || len - done < crate::links::BUFFER {
            return None;
        }
        // SAFETY: the place has `len` bytes, and nobody else uses it before the step has ended.
        let rest = unsafe { std::slice::from_raw_parts_mut(target.add(done), len - done) };
        let read = match self.stream(key).read(rest)? {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        self.came(key, inbox, true, done + read, len);
        Some(Ok(read > 0))
    }

    /// Notes that bytes of a message have come.
    fn came(&mut self, key: (u32, u32), inbox: u32, direct: bool, done: usize, len: usize) {
        if done < len {
            self.stream(key).reading = Reading::Body {
                inbox,
                direct,
                done,
            };
            return;
        }
        let stream = self.stream(key);
        stream.reading = Reading::Header;
        stream.awaited -= 1;
        let slot = &mut self.inboxes[inbox as usize];
        let block = slot.block;
        if direct {
            self.states[block as usize].phase = Phase::Received;
            self.wake(block);
            return;
        }
        let whole = std::mem::take(&mut slot.coming);
        slot.kept.push_back(whole);
        if std::mem::take(&mut slot.wanted) {
            self.take_kept(block);
            self.wake(block);
        }
    }

    /// Uses what has been read.
    pub(super) fn take(&mut self, key: (u32, u32)) -> Result<(), Failure> {
        loop {
            match self.stream(key).reading {
                Reading::Parked => return Ok(()),
                Reading::Header => {
                    if !self.begin(key)? {
                        return Ok(());
                    }
                }
                Reading::Body {
                    inbox,
                    direct,
                    done,
                } => {
                    let slot = &self.inboxes[inbox as usize];
                    let (block, len) = (slot.block, slot.lengths[slot.begun - 1]);
                    let has = self.links.open[&key].waiting().len().min(len - done);
                    let width = self.call.dtype.bytes();
                    let (target, sums) = match direct {
                        true => self.target(block),
                        false => (std::ptr::null_mut(), false),
                    };
                    // Of a number that is summed, all bytes must have come.
                    let usable = if sums { has / width * width } else { has };
                    if usable == 0 && len > done {
                        return Ok(());
                    }
                    let stream = &self.links.open[&key];
                    let bytes = &stream.waiting()[..usable];
                    if !direct {
                        self.inboxes[inbox as usize].coming.extend_from_slice(bytes);
                    } else if sums {
                        // SAFETY: the place has `len` bytes.
                        self.sum(unsafe { target.add(done) }, bytes.as_ptr(), usable);
                    } else {
                        // SAFETY: the place has `len` bytes.
                        unsafe {
                            target
                                .add(done)
                                .copy_from_nonoverlapping(bytes.as_ptr(), usable)
                        };
                    }
                    self.stream(key).take(usable);
                    self.came(key, inbox, direct, done + usable, len);
                }
            }
        }
    }

    /// Reads a header; whether it was there.
    fn begin(&mut self, key: (u32, u32)) -> Result<bool, Failure> {
        let (peer, ours, number) = (key.0, self.call.agreement, self.call.agreement.call);
        let garbled = || {
            let why = format!("rank {peer} sends what is no message");
            Failure::new(Code::Mismatch, why).of(Some(peer), number)
        };
        let stream = self.stream(key);
        let Some(bytes) = stream.header() else {
            return Ok(false);
        };
        let header = Header::decode(bytes).ok_or_else(garbled)?;
        if header.opens {
            let Some(theirs) = stream.waiting()[Header::BYTES..].first_chunk() else {
                return Ok(false);
            };
            let theirs = Agreement::decode(theirs);
            let finished = stream.opened.1 && theirs.call > ours.call;
            if finished {
                stream.reading = Reading::Parked;
                return Ok(false);
            }
            if theirs != ours {
                let why = ours.differences(&theirs, peer);
                return Err(Failure::new(Code::Mismatch, why).of(Some(peer), number));
            }
            stream.opened.1 = true;
            stream.take(Header::BYTES + Agreement::BYTES);
            if self.asks.remove(&key) {
                self.stream(key).awaited -= 1;
            }
            return Ok(true);
        }
        if !stream.opened.1 {
            return Err(garbled());
        }
        stream.take(Header::BYTES);
        let known = self.inbox_of.get(&(peer, header.channel)).copied();
        let inbox = known.ok_or_else(garbled)?;
        let slot = &mut self.inboxes[inbox as usize];
        if slot.lengths.get(slot.begun).map(|&len| len as u64) != Some(header.bytes) {
            return Err(garbled());
        }
        let len = slot.lengths[slot.begun];
        slot.begun += 1;
        let direct = std::mem::take(&mut slot.wanted);
        if !direct {
            slot.coming.reserve_exact(len);
        }
        self.came(key, inbox, direct, 0, len);
        Ok(true)
    }

    /// Returns whether something must still come over a stream.
    pub(super) fn needs(&self, key: &(u32, u32)) -> bool {
        let comes = self.inboxes.iter().any(|inbox| {
            inbox.peer == key.0 && (inbox.begun < inbox.lengths.len() || inbox.wanted)
        });
        let cut = matches!(self.links.open[key].reading, Reading::Body { .. });
        comes || cut || self.asks.contains(key)
    }

    /// An error if a rank that is still needed has closed its connection.
    pub(super) fn check_ended(&mut self) -> Result<(), Failure> {
        for &key in &self.reads {
            if self.links.open[&key].ended && self.needs(&key) {
                return Err(self.broken(key.0, "it ended"));
            }
        }
        Ok(())
    }
}
