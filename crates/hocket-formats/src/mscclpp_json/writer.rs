//! The text of operations, block by block.
//!
//! There may be millions, so their text is put together here, without an [`super::Op`] for each. Tests read what is
//! written, and write it again.

use std::fmt;

use hocket_base::id::narrow;
use hocket_program::program::Span;

use super::export::buffer_type;
use super::{ChannelType, limits};

/// A channel of a rank: its type, and its position among those of the type.
pub(super) type Channel = (ChannelType, u32);

/// Writes the operations of blocks, and notes the channels and remote buffers that each block uses.
pub(super) struct Writer {
    text: Vec<u8>,
    /// Whether there is text; otherwise operations are counted alone.
    writes: bool,
    count: usize,
    /// Whether the threads of the block have nothing to wait for each other for.
    is_synced: bool,
    /// Whether its first thread alone has done anything since they waited for each other.
    is_lone: bool,
    /// Whether they wait for each other before the next operation.
    syncs: bool,
    /// Whether no operation stands before the next one, in the block or in a pipeline.
    is_first: bool,
    /// Positions of the channels that the block uses, by type.
    channels: [Vec<u32>; 3],
    /// Positions of the remote buffers that it uses, by the type of channel.
    buffers: [Vec<u32>; 3],
}

impl Writer {
    /// For text of about `room` bytes at once; with none, operations are counted alone.
    pub(super) fn new(room: usize) -> Self {
        Self {
            text: Vec::with_capacity(room + (room >> 1)),
            writes: room > 0,
            count: 0,
            is_synced: true,
            is_lone: true,
            syncs: false,
            is_first: true,
            channels: Default::default(),
            buffers: Default::default(),
        }
    }

    /// Begins a block.
    pub(super) fn begin(&mut self, id: u32) {
        self.count = 0;
        self.is_synced = true;
        self.is_lone = true;
        self.syncs = false;
        self.is_first = true;
        for list in self.channels.iter_mut().chain(&mut self.buffers) {
            list.clear();
        }
        if self.writes {
            self.text.extend_from_slice(b"{\"id\":");
            number(&mut self.text, id);
            self.text.extend_from_slice(b",\"ops\":[");
        }
    }

    /// Operations of the block so far, without a sync at the end.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Ends the block.
    pub(super) fn finish(&mut self) {
        let text = &mut self.text;
        text.extend_from_slice(b"],\"channels\":[");
        lists(text, "channel_type", "channel_ids", &self.channels);
        text.extend_from_slice(b"],\"remote_buffer_refs\":[");
        let kind = "access_channel_type";
        lists(text, kind, "remote_buffer_ids", &self.buffers);
        text.extend_from_slice(b"]}");
    }

    /// A comma between blocks.
    pub(super) fn comma(&mut self) {
        self.text.push(b',');
    }

    /// Returns the bytes that have not been handed on.
    pub(super) fn held(&self) -> usize {
        self.text.len()
    }

    /// Hands the text on.
    pub(super) fn flush(&mut self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(std::str::from_utf8(&self.text).map_err(|_| fmt::Error)?)?;
        self.text.clear();
        Ok(())
    }

    /// Begins an operation, which the first thread of the block does alone or all do; `None` where there is no text.
    fn push(&mut self, name: &str, is_lone: bool) -> Option<&mut Vec<u8>> {
        if std::mem::take(&mut self.syncs) {
            self.is_lone = true;
            self.named("nop");
            if self.writes {
                self.text.push(b'}');
            }
        }
        self.is_synced = false;
        self.is_lone &= is_lone;
        self.named(name);
        self.writes.then_some(&mut self.text)
    }

    fn named(&mut self, name: &str) {
        self.count += 1;
        if self.writes {
            if !self.is_first {
                self.text.push(b',');
            }
            self.text.extend_from_slice(b"{\"name\":\"");
            self.text.extend_from_slice(name.as_bytes());
            self.text.push(b'"');
        }
        self.is_first = false;
    }

    /// Begins a pipeline that goes through a chunk in rounds of `unit` bytes. `is_told` says that a round ends with a
    /// [`tell`](Self::tell), after which the next one has nothing to wait for.
    pub(super) fn begin_rounds(&mut self, unit: u64, is_told: bool) {
        self.named("pipeline");
        self.is_synced &= is_told;
        self.is_lone &= is_told;
        self.is_first = true;
        if self.writes {
            let text = &mut self.text;
            text.extend_from_slice(b",\"iter_context\":{\"unit_size\":");
            number(text, unit);
            text.extend_from_slice(b",\"num_chunks\":1},\"ops\":[");
        }
    }

    /// Ends a pipeline.
    pub(super) fn end_rounds(&mut self) {
        self.is_first = false;
        if self.writes {
            self.text.extend_from_slice(b"]}");
        }
    }

    /// Has the threads of the block wait for each other before what comes next.
    pub(super) fn sync(&mut self) {
        self.syncs |= !self.is_synced;
        self.is_synced = true;
    }

    /// Like [`sync`](Self::sync), before what the first thread does alone.
    pub(super) fn sync_first(&mut self) {
        if !self.is_lone {
            self.sync();
        }
    }

    /// Returns position in a list of the block, which gets it if it has it not.
    fn position(list: &mut Vec<u32>, id: u32) -> u32 {
        let found = list.iter().position(|&known| known == id);
        narrow(found.unwrap_or_else(|| {
            list.push(id);
            list.len() - 1
        }))
    }

    /// Signals or waits on a channel.
    pub(super) fn signal(&mut self, name: &str, (kind, channel): Channel) {
        let channel = Self::position(&mut self.channels[kind as usize], channel);
        if let Some(text) = self.push(name, true) {
            on_channel(text, kind, &[channel]);
            text.push(b'}');
        }
    }

    /// Signals that what the threads have done is done. What comes next need not wait for the one that signals.
    pub(super) fn tell(&mut self, channel: Channel) {
        self.sync();
        self.signal("signal", channel);
        self.is_synced = true;
    }

    /// Writes semaphores that are released or acquired.
    pub(super) fn semaphores(&mut self, name: &str, numbers: &[u32]) {
        for part in numbers.chunks(limits::MAX_OP_SEMAPHORES) {
            if let Some(text) = self.push(name, part.len() == 1) {
                text.extend_from_slice(b",\"semaphore_ids\":");
                list(text, part);
                text.push(b'}');
            }
        }
    }

    /// Moves data within the rank.
    pub(super) fn data(
        &mut self,
        name: &str,
        sources: impl Iterator<Item = Span>,
        targets: impl Iterator<Item = Span>,
    ) {
        if let Some(text) = self.push(name, false) {
            local(text, "src_buff", sources);
            local(text, "dst_buff", targets);
            if name.starts_with("re") {
                text.extend_from_slice(b",\"reduce_op\":\"sum\"");
            }
            text.push(b'}');
        }
    }

    /// Moves parts of a message, from where they are into buffers of another rank, by their positions among those of this rank.
    pub(super) fn put(
        &mut self,
        name: &str,
        (kind, channel): Channel,
        parts: &[(Span, (u32, Span))],
    ) {
        let channel = Self::position(&mut self.channels[kind as usize], channel);
        let buffers = &mut self.buffers[kind as usize];
        let targets: Vec<(u32, Span)> = parts
            .iter()
            .map(|&(_, (buffer, to))| (Self::position(buffers, buffer), to))
            .collect();
        if let Some(text) = self.push(name, false) {
            local(text, "src_buff", parts.iter().map(|part| part.0));
            text.extend_from_slice(b",\"dst_buff\":[");
            for (i, (buffer, to)) in targets.into_iter().enumerate() {
                if i > 0 {
                    text.push(b',');
                }
                text.extend_from_slice(b"{\"buffer_id\":");
                number(text, buffer);
                chunks(text, to);
            }
            text.push(b']');
            // Over ports, each part is moved by a thread and a channel of its own.
            let threads = if kind == ChannelType::Port {
                parts.len()
            } else {
                1
            };
            on_channel(text, kind, &vec![channel; threads]);
            text.push(b'}');
        }
    }
}

fn number(text: &mut Vec<u8>, number: impl itoa::Integer) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn list(text: &mut Vec<u8>, numbers: &[u32]) {
    text.push(b'[');
    for (i, &each) in numbers.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        number(text, each);
    }
    text.push(b']');
}

/// The positions that a block uses, by type of channel.
fn lists(text: &mut Vec<u8>, kind: &str, ids: &str, lists: &[Vec<u32>; 3]) {
    let kinds = [ChannelType::Memory, ChannelType::Port, ChannelType::Switch];
    let used = kinds
        .into_iter()
        .filter(|&kind| !lists[kind as usize].is_empty());
    for (i, each) in used.enumerate() {
        if i > 0 {
            text.push(b',');
        }
        for part in ["{\"", kind, "\":\"", each.name(), "\",\"", ids, "\":"] {
            text.extend_from_slice(part.as_bytes());
        }
        list(text, &lists[each as usize]);
        text.push(b'}');
    }
}

fn on_channel(text: &mut Vec<u8>, kind: ChannelType, channels: &[u32]) {
    text.extend_from_slice(b",\"channel_ids\":");
    list(text, channels);
    text.extend_from_slice(b",\"channel_type\":\"");
    text.extend_from_slice(kind.name().as_bytes());
    text.push(b'"');
}

/// The end of a buffer: which chunks of it.
fn chunks(text: &mut Vec<u8>, span: Span) {
    text.extend_from_slice(b",\"index\":");
    number(text, span.offset());
    text.extend_from_slice(b",\"size\":");
    number(text, span.count());
    text.push(b'}');
}

/// Chunks of the block's own rank; nothing for none.
fn local(text: &mut Vec<u8>, key: &str, spans: impl Iterator<Item = Span>) {
    let mut is_first = true;
    for span in spans {
        if std::mem::take(&mut is_first) {
            for part in [",\"", key, "\":["] {
                text.extend_from_slice(part.as_bytes());
            }
        } else {
            text.push(b',');
        }
        text.extend_from_slice(b"{\"type\":\"");
        text.extend_from_slice(buffer_type(span.buffer()).name().as_bytes());
        text.push(b'"');
        chunks(text, span);
    }
    if !is_first {
        text.push(b']');
    }
}
