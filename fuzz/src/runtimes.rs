//! Any text as a file of MSCCL or MSCCL++: read, written, read again, and judged.

use hocket_core::program::check::CheckOptions;
use hocket_core::progress::Progress;
use hocket_formats::{FormatError, msccl_xml, mscclpp_json};

/// Stops a check that reports too often.
struct Patience(u32);

impl Progress for Patience {
    fn report(&mut self, _stage: &'static str, _done: u64, _total: u64) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// Reads any bytes as MSCCL's XML.
pub fn msccl(bytes: &[u8]) {
    let Some(algo) = read(bytes, msccl_xml::read) else {
        return;
    };
    let mut text = String::new();
    msccl_xml::write(&algo, &mut text).expect("a string takes all");
    assert_eq!(msccl_xml::read(&text).as_ref(), Ok(&algo));
    let chunks: u64 = algo
        .gpus
        .iter()
        .flat_map(|gpu| gpu.sizes)
        .map(u64::from)
        .sum();
    if chunks + u64::from(algo.chunks) * u64::from(algo.ranks) < 1 << 20 {
        let judged = msccl_xml::check(&algo, &CheckOptions::default(), &mut Patience(1_000));
        judged
            .ok()
            .into_iter()
            .flat_map(|verdict| verdict.findings)
            .for_each(one_line);
    }
}

/// Reads any bytes as MSCCL++'s JSON.
pub fn mscclpp(bytes: &[u8]) {
    let Some(mut plan) = read(bytes, mscclpp_json::read) else {
        return;
    };
    let text = mscclpp_json::write(&plan).expect("a string takes all");
    plan.ignored.clear(); // what no executor reads is not written
    assert_eq!(mscclpp_json::read(&text).as_ref(), Ok(&plan));
    let sizes = |gpu: &mscclpp_json::Gpu| [gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks];
    let chunks: u64 = plan.gpus.iter().flat_map(sizes).map(u64::from).sum();
    if chunks * plan.gpus.len() as u64 <= 1 << 16 {
        let judged = mscclpp_json::check(&plan, &CheckOptions::default(), &mut Patience(1_000));
        judged
            .ok()
            .into_iter()
            .flat_map(|verdict| verdict.findings)
            .for_each(one_line);
    }
}

fn read<T>(bytes: &[u8], reader: impl Fn(&str) -> Result<T, FormatError>) -> Option<T> {
    let text = std::str::from_utf8(bytes).ok()?;
    reader(text)
        .map_err(|error| assert!(!error.to_string().contains('\n'), "{error}"))
        .ok()
}

fn one_line(finding: hocket_formats::Finding) {
    assert!(!finding.to_string().contains('\n'), "{finding}");
}
