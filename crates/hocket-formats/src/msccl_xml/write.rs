//! [`Algo`] to text.

use std::fmt::{self, Write};

use hocket_program::program::Buffer;

use super::{Algo, Gpu, Step, Tb};

/// Writes an algorithm, in the form that all runtimes read: no declaration, one space before each attribute.
///
/// # Errors
/// Those of `out`.
pub fn write(algo: &Algo, out: &mut dyn Write) -> fmt::Result {
    write_head(algo, out)?;
    for (rank, gpu) in algo.gpus.iter().enumerate() {
        write_gpu(rank, gpu, out)?;
    }
    out.write_str("</algo>\n")
}

/// Writes the start of `<algo>`.
pub(super) fn write_head(algo: &Algo, out: &mut dyn Write) -> fmt::Result {
    write!(
        out,
        "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" inplace=\"{}\"",
        algo.name,
        algo.protocol.name(),
        algo.channels,
        algo.chunks,
        algo.ranks,
        algo.collective,
        u8::from(algo.in_place),
    )?;
    if let Some(out_of_place) = algo.out_of_place {
        write!(out, " outofplace=\"{}\"", u8::from(out_of_place))?;
    }
    for (name, bytes) in [("minBytes", algo.min_bytes), ("maxBytes", algo.max_bytes)] {
        if let Some(bytes) = bytes {
            write!(out, " {name}=\"{bytes}\"")?;
        }
    }
    if let Some(threads) = algo.threads {
        write!(out, " nthreads=\"{threads}\"")?;
    }
    out.write_str(">\n")
}

/// Writes a `<gpu>`.
pub(super) fn write_gpu(rank: usize, gpu: &Gpu, out: &mut dyn Write) -> fmt::Result {
    let [input, output, scratch] = gpu.sizes;
    writeln!(
        out,
        "  <gpu id=\"{rank}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{scratch}\">"
    )?;
    for (id, tb) in gpu.blocks.iter().enumerate() {
        write_block(id, tb, out)?;
    }
    out.write_str("  </gpu>\n")
}

fn write_block(id: usize, tb: &Tb, out: &mut dyn Write) -> fmt::Result {
    let peer = |peer: Option<u32>| peer.map_or(-1, i64::from);
    let (send, recv, channel) = (peer(tb.send), peer(tb.recv), tb.channel);
    writeln!(
        out,
        "    <tb id=\"{id}\" send=\"{send}\" recv=\"{recv}\" chan=\"{channel}\">"
    )?;
    for step in &tb.steps {
        write_step(step, out)?;
    }
    out.write_str("    </tb>\n")
}

fn write_step(step: &Step, out: &mut dyn Write) -> fmt::Result {
    let letter = |buffer| match buffer {
        Buffer::Input => 'i',
        Buffer::Output => 'o',
        Buffer::Scratch => 's',
    };
    let (block, target) = match step.dependency {
        Some((block, target)) => (i64::from(block), i64::from(target)),
        None => (-1, -1),
    };
    writeln!(
        out,
        "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" depid=\"{block}\" deps=\"{target}\" hasdep=\"{}\"/>",
        step.position,
        step.kind.name(),
        letter(step.src.buffer),
        step.src.offset,
        letter(step.dst.buffer),
        step.dst.offset,
        step.count,
        u8::from(step.awaited),
    )
}
