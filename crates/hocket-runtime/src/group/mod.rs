//! A group of ranks, and the calls that it makes.

mod join;
#[cfg(target_os = "linux")]
mod shared;

use hocket_base::id::fit;
use hocket_plan::collective::CollectiveKind;
use std::collections::{BTreeSet, HashMap};

use crate::agreement::{Agreement, Way};
use crate::control::Control;
use crate::error::{Code, Failure};
use crate::execute::{Call, Execution, buffers};
use crate::links::Links;
use crate::number::{Dtype, Reduction, divide};
use crate::options::GroupOptions;
use crate::script::{Loaded, Script, parts};
#[cfg(target_os = "linux")]
pub use crate::window::Board;
#[cfg(target_os = "linux")]
use crate::window::{Exchange, Window};
use crate::wire::Frame;

const NO_MEMORY: &str = "the ranks of the group share no memory";

/// What is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Type of the numbers.
    pub dtype: Dtype,
    /// What is done to them.
    pub op: Reduction,
    /// Numbers of the whole vector: that of a rank, or the gathered or scattered one.
    pub elements: u64,
    /// Whether messages of a program go through shared memory.
    pub by_memory: bool,
}

/// A place in the caller's memory.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Where it starts.
    pub start: *mut u8,
    /// Its bytes.
    pub bytes: usize,
}

// SAFETY: a place is a number; whoever uses it says that it is there.
unsafe impl Send for Area {}
// SAFETY: likewise.
unsafe impl Sync for Area {}

/// A group of ranks that has come together.
#[derive(Debug)]
pub struct Group {
    options: GroupOptions,
    control: Control,
    links: Links,
    #[cfg(target_os = "linux")]
    window: Option<Window>,
    scripts: HashMap<(u64, u64, Dtype), Script>,
    scratch: Vec<u8>,
    calls: u64,
    failure: Option<Failure>,
    /// Ranks that these were in the group that failed.
    old_ranks: Vec<u32>,
    /// Forks that led to the process that joined.
    forks: u64,
}

impl Group {
    /// This rank.
    pub fn rank(&self) -> u32 {
        self.options.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.options.size
    }

    /// Returns how it was made, with this rank and the number of ranks as they are now.
    pub fn options(&self) -> &GroupOptions {
        &self.options
    }

    /// Returns the number of the group in its store.
    pub fn id(&self) -> u64 {
        self.links.group
    }

    /// Returns whether all ranks share memory.
    pub fn shares(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.window.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Rank that each of these ranks had in the group that failed; their own in a first group.
    pub fn old_ranks(&self) -> &[u32] {
        &self.old_ranks
    }

    /// Returns why the group is dead, if it is.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Runs a program in a call; in place, input and output are one area. `stop` is asked now and then whether the caller
    /// wants to stop, which ends the group.
    ///
    /// # Errors
    /// [`Failure`]; the group is dead then, except after [`Code::Invalid`].
    ///
    /// # Safety
    /// Both areas are there, the input can be read, and in place or as output written, until the call ends.
    pub unsafe fn run(
        &mut self,
        loaded: &Loaded,
        request: &Request,
        input: Area,
        output: Area,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        let task = *loaded.program().task();
        if task.ranks != self.size() {
            let (plan, size) = (task.ranks, self.size());
            let why = format!("the plan is for {plan} ranks, the group has {size}");
            return Err(Failure::new(Code::Invalid, why));
        }
        average_is_of_floats(request)?;
        if request.by_memory && !self.shares() {
            return Err(Failure::new(Code::Invalid, NO_MEMORY));
        }
        let script = self.script(loaded, request)?;
        let (part, padded) = script.part;
        let width = request.dtype.bytes();
        let sizes = script.sizes;
        let len = |elements: u64| fit::<usize, _>(elements) * width;
        let parts_of = |bytes: usize| match padded {
            0 => 0,
            _ => bytes / len(padded),
        };
        // What the caller has of each buffer, whose parts are shorter than padded ones.
        let fits = |area: Area, size: usize| area.bytes >= parts_of(size) * len(part);
        if !fits(input, sizes[0]) || !fits(output, sizes[1]) {
            let why = format!(
                "the plan has {} bytes of input and {} of output here; the arrays have {} and {}",
                parts_of(sizes[0]) * len(part),
                parts_of(sizes[1]) * len(part),
                input.bytes,
                output.bytes
            );
            return Err(Failure::new(Code::Invalid, why));
        }
        let way = if request.by_memory {
            Way::Memory
        } else {
            Way::Tcp
        };
        let agreement = self.open(loaded.hash(), (task.kind, task.root), request, way)?;
        let call = Call {
            agreement,
            dtype: request.dtype,
            op: request.op,
            timeout: self.options.timeout,
        };
        let is_padded = part != padded;
        let repack = |from: *const u8, to: *mut u8, parts: usize, lens: (u64, u64)| {
            let (from_len, to_len) = (len(lens.0), len(lens.1));
            for part in 0..parts {
                // SAFETY: both have that many parts of that length.
                unsafe {
                    let (from, to) = (from.add(part * from_len), to.add(part * to_len));
                    to.copy_from_nonoverlapping(from, from_len.min(to_len));
                }
            }
        };
        let mut filled = [Vec::new(), Vec::new()];
        let mut places = [input.start, output.start];
        if is_padded {
            for (index, filled) in filled.iter_mut().enumerate() {
                *filled = vec![0; sizes[index]];
                if index == 0 {
                    repack(
                        input.start,
                        filled.as_mut_ptr(),
                        parts_of(sizes[0]),
                        (part, padded),
                    );
                }
                places[index] = filled.as_mut_ptr();
            }
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(sizes[2].max(scratch.len()), 0);
        let key = (loaded.hash(), request.elements, request.dtype);
        let channels = loaded.channels(self.rank());
        let ended = self
            .connect_links(&channels, request.by_memory, &agreement, stop)
            .map_err(|failure| match (failure.code, failure.culprit) {
                // What this rank says itself is of no call yet; the store may know why.
                (Code::Lost, Some(peer)) if failure.call == 0 => {
                    self.control.lost(agreement.call, peer, &failure.why)
                }
                (Code::Stalled, Some(peer)) if failure.call == 0 => {
                    self.control.stalled(agreement.call, &[peer])
                }
                _ => failure,
            })
            .and_then(|()| {
                let at = buffers(places[0], places[1], &mut scratch);
                let (links, control) = (&mut self.links, &mut self.control);
                #[cfg(target_os = "linux")]
                let window = self.window.as_ref();
                let mut look = || {
                    #[cfg(target_os = "linux")]
                    window.map_or(Ok(()), |window| window.meets_others(&agreement))?;
                    goes_on(stop)
                };
                Execution::new(&self.scripts[&key], at, call, links, control).run(&mut look)
            });
        self.scratch = scratch;
        self.settle(ended)?;
        if is_padded {
            let (index, area) = if loaded.is_in_place() {
                (0, input)
            } else {
                (1, output)
            };
            repack(
                filled[index].as_ptr(),
                area.start,
                parts_of(sizes[index]),
                (padded, part),
            );
        }
        if request.op == Reduction::Average && task.kind.reduces() {
            let area = if loaded.is_in_place() { input } else { output };
            // SAFETY: as of this function.
            unsafe { divide(request.dtype, area.start, area.bytes, self.size()) };
        }
        Ok(())
    }

    /// Runs a collective through shared memory.
    ///
    /// # Errors
    /// [`Failure`]; the group is dead then, except after [`Code::Invalid`].
    ///
    /// # Safety
    /// As of [`Group::run`].
    pub unsafe fn exchange(
        &mut self,
        kind: CollectiveKind,
        root: u32,
        request: &Request,
        input: Area,
        output: Area,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        let refuse = |why: String| Err(Failure::new(Code::Invalid, why));
        if !self.shares() {
            return refuse(NO_MEMORY.to_owned());
        }
        if root >= self.size() {
            return refuse(format!("rank {root} is not in a group of {}", self.size()));
        }
        average_is_of_floats(request)?;
        let (n, is_root) = (self.size(), self.rank() == root);
        let whole = fit::<usize, _>(request.elements) * request.dtype.bytes();
        if !request.elements.is_multiple_of(parts(kind, n).into()) {
            return refuse(format!(
                "{} numbers are not {n} equal parts",
                request.elements
            ));
        }
        let part = whole / n as usize;
        use CollectiveKind::*;
        let (reads, writes) = match kind {
            AllReduce | AllToAll => (whole, whole),
            Broadcast => (if is_root { whole } else { 0 }, whole),
            Reduce => (whole, if is_root { whole } else { 0 }),
            AllGather => (part, whole),
            ReduceScatter => (whole, part),
            Gather => (part, if is_root { whole } else { 0 }),
            Scatter => (if is_root { whole } else { 0 }, part),
            Custom => return refuse("a custom collective needs a plan".to_owned()),
        };
        if input.bytes < reads || output.bytes < writes {
            let (has, room) = (input.bytes, output.bytes);
            return refuse(format!(
                "{kind} reads {reads} bytes and writes {writes} here; the arrays have {has} and {room}"
            ));
        }
        let agreement = self.open(0, (kind, root), request, Way::Window)?;
        #[cfg(target_os = "linux")]
        {
            let exchange = Exchange {
                kind,
                rank: self.rank() as usize,
                root: root as usize,
                dtype: request.dtype,
                op: request.op,
                input: input.start,
                output: output.start,
                bytes: whole,
                agreement,
                timeout: self.options.timeout,
            };
            let window = self.window.as_mut().expect("the group shares memory");
            let ended = window.run(&exchange, &mut self.control, stop);
            self.settle(ended)?;
        }
        Ok(())
    }

    /// Sees to it that ranks are connected by what this call's messages go through.
    fn connect_links(
        &mut self,
        channels: &BTreeSet<(u32, u32)>,
        by_memory: bool,
        agreement: &Agreement,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        #[cfg(target_os = "linux")]
        {
            let pipes = self.window.as_ref().map(Window::pipes);
            self.links.memory = pipes.filter(|_| by_memory);
            if by_memory {
                return self.links.connect_by_memory(channels);
            }
        }
        let _ = (by_memory, agreement);
        #[cfg(target_os = "linux")]
        let window = self.window.as_ref();
        let mut look = || {
            #[cfg(target_os = "linux")]
            window.map_or(Ok(()), |window| window.meets_others(agreement))?;
            goes_on(stop)
        };
        let (timeout, control) = (self.options.timeout, &mut self.control);
        self.links.connect(channels, timeout, control, &mut look)
    }

    /// Refuses a process that was forked off after the group was made: its connections are those of its parent.
    fn belongs_here(&self) -> Result<(), Failure> {
        if self.forks == crate::fork::generation() {
            return Ok(());
        }
        let why =
            "the process that joined the group has forked this one; let it join a group of its own";
        Err(Failure::new(Code::Invalid, why))
    }

    /// Opens a call.
    fn open(
        &mut self,
        plan: u64,
        (kind, root): (CollectiveKind, u32),
        request: &Request,
        way: Way,
    ) -> Result<Agreement, Failure> {
        self.belongs_here()?;
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if let Some(failure) = self.control.poll().unwrap_or_else(Some) {
            self.settle(Err(failure))?;
        }
        self.calls += 1;
        let agreement = Agreement {
            call: self.calls,
            plan,
            elements: request.elements,
            dtype: request.dtype as u8,
            op: request.op as u8,
            kind: kind as u8,
            way: way as u8,
            root: if kind.is_rooted() { root } else { 0 },
        };
        #[cfg(target_os = "linux")]
        if let Some(window) = &self.window {
            window.announce(&agreement);
        }
        Ok(agreement)
    }

    /// Ends a call; after a failure the others are told, and the group is dead.
    fn settle(&mut self, ended: Result<(), Failure>) -> Result<(), Failure> {
        let Err(failure) = ended else { return Ok(()) };
        let call = if failure.call > 0 {
            failure.call
        } else {
            self.calls
        };
        let failure = Failure { call, ..failure };
        let told = match failure.code {
            Code::Interrupted => {
                let why = format!("rank {} was interrupted", self.rank());
                Failure::new(Code::Aborted, why).of(Some(self.rank()), call)
            }
            _ => failure.clone(),
        };
        self.control.say(&Frame::Failed(told));
        self.links.open.clear();
        self.failure = Some(failure.clone());
        Err(failure)
    }

    /// Ends the group: calls of other ranks fail and name this rank.
    pub fn abort(&mut self, why: &str) {
        if self.failure.is_none() {
            let why = format!("rank {} gave up: {why}", self.rank());
            let failure = Failure::new(Code::Aborted, why).of(Some(self.rank()), self.calls);
            let _ = self.settle(Err(failure));
        }
    }

    fn script(&mut self, loaded: &Loaded, request: &Request) -> Result<&Script, Failure> {
        // A program is small beside its data, but callers may use any number of sizes.
        const MOST: usize = 256;
        let key = (loaded.hash(), request.elements, request.dtype);
        if !self.scripts.contains_key(&key) {
            let script = Script::of(loaded, self.rank(), request.elements, request.dtype)?;
            if self.scripts.len() >= MOST {
                self.scripts.clear();
            }
            self.scripts.insert(key, script);
        }
        Ok(&self.scripts[&key])
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A connection that is closed with something unread is reset, and some systems then forget what was sent.
        let _ = self.control.poll();
        self.control.say(&Frame::Bye);
    }
}

/// Returns an error if the caller wants to stop.
fn goes_on(stop: &mut dyn FnMut() -> bool) -> Result<(), Failure> {
    match stop() {
        true => Err(Failure::new(Code::Interrupted, "the call was interrupted")),
        false => Ok(()),
    }
}

fn average_is_of_floats(request: &Request) -> Result<(), Failure> {
    if request.op == Reduction::Average && request.dtype.is_integer() {
        let why = format!(
            "an average of {} is not defined; sum and divide",
            request.dtype
        );
        return Err(Failure::new(Code::Invalid, why));
    }
    Ok(())
}
