//! Execution traces: any bytes as files, or well-framed files of drawn nodes; read, matched and replayed.

use hocket_core::iteration::{Order, Shape};
use hocket_core::replay::{Rates, Replay};
use hocket_core::trace::{File, Follow, NONE, Trace};

use super::draw::{Draw, Patience};
use super::protobuf;
use super::runs::one_line;

/// Reads a trace of up to four ranks and replays it.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let ranks = 1 + draw.below(4);
    let follow = draw.one_of(&[Follow::All, Follow::Data]);
    let groups: Vec<(u64, Vec<u32>)> = (0..draw.below(4))
        .map(|_| group(&mut draw, ranks))
        .collect();
    let seed = Draw::new(draw.take(8)).word();
    let files: Vec<Vec<u8>> = match draw.yes() {
        true => (0..ranks)
            .map(|_| protobuf::trace(&mut draw, ranks))
            .collect(),
        false => split(draw.rest(), ranks),
    };
    let files: Vec<File<'_>> = files
        .iter()
        .map(|bytes| File {
            name: "file",
            bytes,
        })
        .collect();
    match Trace::read(&files, follow, &groups) {
        Ok(trace) => replay(&trace, seed),
        Err(error) => one_line(&error.to_string()),
    }
}

fn group(draw: &mut Draw<'_>, ranks: usize) -> (u64, Vec<u32>) {
    let id = draw.near(4).into();
    (id, (0..draw.below(5)).map(|_| draw.near(ranks)).collect())
}

/// Parts of about one length; the second and later ones begin where a length in the bytes says.
fn split(bytes: &[u8], parts: usize) -> Vec<Vec<u8>> {
    let mut draw = Draw::new(bytes);
    let files = (1..parts).map(|_| {
        let length = usize::from(draw.byte()) << 8 | usize::from(draw.byte());
        draw.take(length).to_vec()
    });
    let mut files: Vec<Vec<u8>> = files.collect();
    files.push(draw.rest().to_vec());
    files
}

fn replay(trace: &Trace, seed: u64) {
    let mut order = trace.order.clone();
    order.sort_unstable();
    assert!(order.into_iter().eq(0..trace.len() as u32));
    for (row, &partner) in (0..).zip(&trace.partner) {
        assert!(partner == NONE || trace.partner[partner as usize] == row);
    }
    let bytes = (seed & 1 == 1).then_some(seed >> 32);
    let rates = Rates {
        operations: (seed >> 1).max(1),
        bytes: bytes.map(|bytes| bytes.max(1)),
    };
    let replay = Replay::new(trace, rates);
    let kinds = replay.collectives.kind.len() + replay.messages.size.len();
    let shapes = [Shape::timed(seed >> 20, 0), Shape::timed(1, 1)].map(Result::ok);
    let shapes: Vec<Shape> = shapes.into_iter().flatten().collect();
    let shape_of: Vec<u32> = (0..kinds as u32)
        .map(|kind| kind % shapes.len().max(1) as u32)
        .collect();
    let made = replay.run(trace, &shape_of, &shapes, Order::Fifo, &mut Patience(1_000));
    if let Err(error) = made {
        one_line(&error.to_string());
    }
}
