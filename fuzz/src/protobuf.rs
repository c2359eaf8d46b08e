//! Chakra traces written field by field, so that what a node says is drawn and not its framing.

use super::draw::Draw;

/// The bytes of a rank's file.
pub fn trace(draw: &mut Draw<'_>, ranks: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut metadata = Vec::new();
    text(&mut metadata, 1, "0.0.4");
    message(&mut file, None, &metadata);
    for id in 0..draw.below(9) as u64 {
        let node = node(draw, id, ranks);
        message(&mut file, None, &node);
    }
    file
}

fn node(draw: &mut Draw<'_>, id: u64, ranks: usize) -> Vec<u8> {
    let mut node = Vec::new();
    number(
        &mut node,
        1,
        if draw.below(16) == 1 {
            draw.below(9) as u64
        } else {
            id
        },
    );
    text(&mut node, 2, draw.one_of(&["a", "b", "all reduce"]));
    number(&mut node, 3, draw.near(9).into());
    for field in [4, 5] {
        for _ in 0..draw.below(3) {
            number(&mut node, field, draw.near(id as usize).into());
        }
    }
    number(&mut node, 7, if draw.yes() { 0 } else { draw.size() });
    for _ in 0..draw.below(9) {
        let attribute = attribute(draw, ranks);
        message(&mut node, Some(10), &attribute);
    }
    node
}

fn attribute(draw: &mut Draw<'_>, ranks: usize) -> Vec<u8> {
    const NAMES: [&str; 12] = [
        "comm_type",
        "comm_size",
        "pg_name",
        "comm_src",
        "comm_dst",
        "comm_tag",
        "is_cpu_op",
        "num_ops",
        "tensor_size",
        "comm_priority",
        "involved_dim",
        "other",
    ];
    const VARINTS: [u32; 6] = [7, 9, 11, 13, 17, 27];
    let name = draw.below(NAMES.len());
    let mut attribute = Vec::new();
    text(&mut attribute, 1, NAMES[name]);
    let value = match name {
        0 => draw.near(11).into(),
        1 | 7 | 8 => draw.size(),
        3 | 4 => draw.near(ranks).into(),
        _ => draw.near(4).into(),
    };
    match draw.below(16) {
        0 => text(
            &mut attribute,
            29,
            draw.one_of(&["", "0", "1", "all_reduce", "BARRIER", "x"]),
        ),
        1 => message(
            &mut attribute,
            Some(28),
            &[8, draw.byte() & 1, 8, draw.byte() & 1],
        ),
        2 => {
            varint(&mut attribute, 3 << 3 | 1);
            attribute.extend(value.to_le_bytes());
        }
        _ => number(&mut attribute, draw.one_of(&VARINTS), value),
    }
    attribute
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, value);
}

fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    message(out, Some(field), value.as_bytes());
}

/// A field of some length, or without a field a message of a file.
fn message(out: &mut Vec<u8>, field: Option<u32>, bytes: &[u8]) {
    if let Some(field) = field {
        varint(out, u64::from(field) << 3 | 2);
    }
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}
