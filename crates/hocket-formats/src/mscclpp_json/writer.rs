//! The operations of a block, written one by one.

use std::collections::BTreeMap;
use std::fmt;

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

/// Writes the operations of a block, and notes the channels and remote buffers that they use.
pub(super) struct Writer<'a> {
    /// Where they are written; nothing if they are counted alone.
    text: Option<&'a mut Vec<u8>>,
    id: u32,
    count: usize,
    /// Whether the threads of the block have nothing to wait for each other for.
    is_synced: bool,
    /// Whether they wait for each other before the next operation.
    syncs: bool,
    channels: BTreeMap<ChannelType, Vec<u32>>,
    buffers: BTreeMap<ChannelType, Vec<u32>>,
}

impl<'a> Writer<'a> {
    /// A block of which only the number of operations is wanted.
    pub(super) fn counting() -> Self {
        Self {
            text: None,
            id: 0,
            count: 0,
            is_synced: true,
            syncs: false,
            channels: BTreeMap::new(),
            buffers: BTreeMap::new(),
        }
    }

    /// A block without operations.
    pub(super) fn new(text: &'a mut Vec<u8>, id: u32) -> Self {
        text.extend_from_slice(format!("{{\"id\":{id},\"ops\":[").as_bytes());
        Self {
            text: Some(text),
            id,
            ..Self::counting()
        }
    }

    /// Operations so far, without a sync at the end.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Ends the block.
    pub(super) fn finish(self) -> fmt::Result {
        let Some(text) = self.text else {
            return Ok(());
        };
        let channels = self.channels.into_iter().map(|(kind, ids)| ChannelRefs {
            channel_type: kind,
            channel_ids: ids,
        });
        let buffers = self.buffers.into_iter().map(|(kind, ids)| BufferRefs {
            access_channel_type: kind,
            remote_buffer_ids: ids,
        });
        let rest = serde_json::to_string(&Threadblock {
            id: self.id,
            channels: channels.collect(),
            remote_buffer_refs: buffers.collect(),
            ops: Vec::new(),
        });
        let rest = rest.map_err(|_| fmt::Error)?;
        let (_, rest) = rest.split_once("\"ops\":[").ok_or(fmt::Error)?;
        text.extend_from_slice(rest.as_bytes());
        Ok(())
    }

    fn push(&mut self, name: &'static str, op: impl FnOnce() -> Op) -> fmt::Result {
        if std::mem::take(&mut self.syncs) {
            self.add("nop", Op::default)?;
        }
        self.is_synced = false;
        self.add(name, op)
    }

    fn add(&mut self, name: &'static str, op: impl FnOnce() -> Op) -> fmt::Result {
        self.count += 1;
        let Some(text) = &mut self.text else {
            return Ok(());
        };
        if self.count > 1 {
            text.push(b',');
        }
        let op = Op {
            name: name.into(),
            ..op()
        };
        serde_json::to_writer(&mut **text, &op).map_err(|_| fmt::Error)
    }

    /// Has the threads of the block wait for each other before what comes next.
    pub(super) fn sync(&mut self) {
        self.syncs |= !self.is_synced;
        self.is_synced = true;
    }

    fn position(list: &mut Vec<u32>, id: u32) -> u32 {
        let found = list.iter().position(|&known| known == id);
        found.unwrap_or_else(|| {
            list.push(id);
            list.len() - 1
        }) as u32
    }

    /// Signals or waits on a channel.
    pub(super) fn signal(
        &mut self,
        name: &'static str,
        kind: ChannelType,
        channel: u32,
    ) -> fmt::Result {
        let channel = match self.text.is_some() {
            true => Self::position(self.channels.entry(kind).or_default(), channel),
            false => 0,
        };
        self.push(name, || Op {
            channel_ids: vec![channel],
            channel_type: Some(kind),
            ..Op::default()
        })
    }

    /// Gives or takes semaphores.
    pub(super) fn semaphores(&mut self, name: &'static str, numbers: &[u32]) -> fmt::Result {
        for part in numbers.chunks(rules::MAX_OP_SEMAPHORES) {
            self.push(name, || Op {
                semaphore_ids: part.to_vec(),
                ..Op::default()
            })?;
        }
        Ok(())
    }

    /// Moves data within the rank.
    pub(super) fn data(
        &mut self,
        name: &'static str,
        sources: impl Iterator<Item = Span>,
        targets: impl Iterator<Item = Span>,
    ) -> fmt::Result {
        self.push(name, || Op {
            src_buff: sources.map(local).collect(),
            dst_buff: targets.map(local).collect(),
            reduce_op: name.starts_with("re").then(|| "sum".to_owned()),
            ..Op::default()
        })
    }

    /// Moves data into a buffer of another rank.
    pub(super) fn put(
        &mut self,
        name: &'static str,
        (kind, channel, remote): (ChannelType, u32, u32),
        sources: impl Iterator<Item = Span>,
        to: Span,
    ) -> fmt::Result {
        let channel = match self.text.is_some() {
            true => Self::position(self.channels.entry(kind).or_default(), channel),
            false => 0,
        };
        let buffer = match self.text.is_some() {
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
        })
    }
}
