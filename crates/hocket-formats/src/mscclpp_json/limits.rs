//! What the executor of MSCCL++ 0.9.0 holds. The rules of files, the export and planning read these numbers.

/// Operations of a block; a pipeline counts as one more than what is in it.
pub const MAX_OPS: usize = 64;
/// Thread blocks of a rank: they all run at once, each on a processor of its own. This is an H20's number, the least among current GPUs.
pub const MAX_BLOCKS: usize = 78;
/// Channels of one type, or remote buffers of one type, of a block.
pub(super) const MAX_REFS: usize = 16;
/// Channels of an operation.
pub(super) const MAX_OP_CHANNELS: usize = 8;
/// Buffers that an operation reads, or writes.
pub(super) const MAX_OP_BUFFERS: usize = 10;
/// Barriers of a rank.
pub(super) const MAX_BARRIERS: u32 = 16;
/// Semaphores of an operation.
pub(super) const MAX_OP_SEMAPHORES: usize = 16;
