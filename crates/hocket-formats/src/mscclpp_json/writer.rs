//! The operations of a block under construction.

use std::collections::BTreeMap;

use hocket_core::program::Span;

use super::export::buffer_type;
use super::{Buffer, BufferRefs, ChannelRefs, ChannelType, Op, Threadblock, rules};

/// A chunk of the block's own rank.
pub(super) fn local(span: Span) -> Buffer {
    Buffer {
        r#type: Some(buffer_type(span.buffer())),
        index: span.offset(),
        size: span.count(),
        ..Buffer::default()
    }
}

/// The operations of a block, and the channels and remote buffers that they use.
pub(super) struct Writer {
    /// Whether operations are kept, or counted alone.
    keeps: bool,
    count: usize,
    is_synced: bool,
    ops: Vec<Op>,
    channels: BTreeMap<ChannelType, Vec<u32>>,
    buffers: BTreeMap<ChannelType, Vec<u32>>,
}

impl Writer {
    /// A block without operations, of which only the number is wanted unless it `keeps` them.
    pub(super) fn new(keeps: bool) -> Self {
        Self {
            keeps,
            count: 0,
            is_synced: true,
            ops: Vec::new(),
            channels: BTreeMap::new(),
            buffers: BTreeMap::new(),
        }
    }

    /// Operations so far, without a sync at the end.
    pub(super) fn count(&self) -> usize {
        self.count - usize::from(self.is_synced && self.count > 0)
    }

    /// The block.
    pub(super) fn finish(mut self, id: u32) -> Threadblock {
        if self.ops.last().is_some_and(|op| op.name == "nop") {
            self.ops.pop();
        }
        let channels = self.channels.into_iter().map(|(kind, ids)| ChannelRefs {
            channel_type: kind,
            channel_ids: ids,
        });
        let buffers = self.buffers.into_iter().map(|(kind, ids)| BufferRefs {
            access_channel_type: kind,
            remote_buffer_ids: ids,
        });
        Threadblock {
            id,
            channels: channels.collect(),
            remote_buffer_refs: buffers.collect(),
            ops: self.ops,
        }
    }

    fn push(&mut self, name: &'static str, op: impl FnOnce() -> Op) {
        self.count += 1;
        self.is_synced = name == "nop";
        if self.keeps {
            self.ops.push(Op {
                name: name.into(),
                ..op()
            });
        }
    }

    /// Has the threads of the block wait for each other.
    pub(super) fn sync(&mut self) {
        if !self.is_synced {
            self.push("nop", Op::default);
        }
    }

    fn position(list: &mut Vec<u32>, id: u32) -> u32 {
        let found = list.iter().position(|&known| known == id);
        found.unwrap_or_else(|| {
            list.push(id);
            list.len() - 1
        }) as u32
    }

    /// Signals or waits on a channel.
    pub(super) fn signal(&mut self, name: &'static str, kind: ChannelType, channel: u32) {
        let channel = match self.keeps {
            true => Self::position(self.channels.entry(kind).or_default(), channel),
            false => 0,
        };
        self.push(name, || Op {
            channel_ids: vec![channel],
            channel_type: Some(kind),
            ..Op::default()
        });
    }

    /// Gives or takes semaphores.
    pub(super) fn semaphores(&mut self, name: &'static str, numbers: &[u32]) {
        for part in numbers.chunks(rules::MAX_OP_SEMAPHORES) {
            self.push(name, || Op {
                semaphore_ids: part.to_vec(),
                ..Op::default()
            });
        }
    }

    /// Moves data within the rank.
    pub(super) fn data(
        &mut self,
        name: &'static str,
        sources: impl Iterator<Item = Span>,
        targets: impl Iterator<Item = Span>,
    ) {
        self.push(name, || Op {
            src_buff: sources.map(local).collect(),
            dst_buff: targets.map(local).collect(),
            reduce_op: name.starts_with("re").then(|| "sum".to_owned()),
            ..Op::default()
        });
    }

    /// Moves data into a buffer of another rank.
    pub(super) fn put(
        &mut self,
        name: &'static str,
        (kind, channel, remote): (ChannelType, u32, u32),
        sources: impl Iterator<Item = Span>,
        to: Span,
    ) {
        let channel = match self.keeps {
            true => Self::position(self.channels.entry(kind).or_default(), channel),
            false => 0,
        };
        let buffer = match self.keeps {
            true => Self::position(self.buffers.entry(kind).or_default(), remote),
            false => 0,
        };
        self.push(name, || Op {
            src_buff: sources.map(local).collect(),
            dst_buff: vec![Buffer {
                buffer_id: Some(buffer),
                index: to.offset(),
                size: to.count(),
                ..Buffer::default()
            }],
            channel_ids: vec![channel],
            channel_type: Some(kind),
            ..Op::default()
        });
    }
}
