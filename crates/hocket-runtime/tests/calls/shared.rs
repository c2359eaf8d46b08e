//! Arrays in memory that all ranks see.

use super::*;

/// A rank's array in memory that all see, as numbers.
fn board(group: &mut Group, count: usize) -> (std::sync::Arc<Board>, &'static mut [i32]) {
    let made = group.allocate(4 * count, &mut || false).expect("all ask");
    let board = made.expect("all can map it");
    assert_eq!(board.bytes(), 4 * count);
    // SAFETY: the board is returned beside them and outlives every use here.
    let numbers = unsafe { std::slice::from_raw_parts_mut(board.own().cast(), count) };
    (board, numbers)
}

#[test]
fn arrays_that_all_see_are_used_where_they_are() {
    for size in [1, 2, 3, 5] {
        with_group(size, true, PATIENT, |mut group| {
            let rank = group.rank();
            let whole = 60_000 * size as usize;
            let part = whole / size as usize;
            let (kept, first) = board(&mut group, whole);
            let (others, second) = board(&mut group, 2 * whole);
            let mut own = vec![0; whole];
            for kind in KINDS {
                let root = if kind.is_rooted() { size - 1 } else { 0 };
                let gathers = matches!(kind, CollectiveKind::AllGather | CollectiveKind::Gather);
                let len = if gathers { part } else { whole };
                let expected = after(kind, rank, size, root, whole);
                // Both arrays where all see them; the output at a rank's own offset; at some ranks not at all.
                for way in 0..4 {
                    let offset = if way == 0 { 0 } else { 16 * rank as usize };
                    let output: &mut [i32] = match way {
                        3 if rank == 0 => &mut own,
                        _ => &mut second[offset..][..whole],
                    };
                    output.fill(-1);
                    for (i, number) in first[..len].iter_mut().enumerate() {
                        *number = before(rank, i);
                    }
                    let request = Request {
                        dtype: Dtype::I32,
                        op: Reduction::Sum,
                        elements: whole as u64,
                        by_memory: true,
                    };
                    let mut copied = first[..len].to_vec();
                    let input = if way == 2 && rank == size - 1 {
                        &mut copied[..]
                    } else {
                        &mut first[..len]
                    };
                    let (from, to) = (area(input), area(output));
                    // SAFETY: the arrays are there until the call ends.
                    unsafe { group.exchange(kind, root, &request, from, to, &mut || false) }
                        .expect("the call works");
                    if let Some(expected) = &expected {
                        let got = &output[..expected.len()];
                        assert_eq!(got, expected, "{kind} at {rank} of {size}, {way}");
                    }
                }
            }
            // In place.
            for (i, number) in first.iter_mut().enumerate() {
                *number = before(rank, i);
            }
            let request = Request {
                dtype: Dtype::I32,
                op: Reduction::Sum,
                elements: whole as u64,
                by_memory: true,
            };
            let kind = CollectiveKind::AllReduce;
            let both = area(first);
            // SAFETY: as above.
            unsafe { group.exchange(kind, 0, &request, both, both, &mut || false) }
                .expect("the call works");
            assert_eq!(
                first,
                after(kind, rank, size, 0, whole).expect("all get it")
            );
            drop((kept, others));
        });
    }
}

#[test]
fn ranks_that_ask_for_different_memory_are_told() {
    let failures = with_group(3, true, PATIENT, |mut group| {
        let bytes = if group.rank() == 1 { 4096 } else { 8192 };
        group
            .allocate(bytes, &mut || false)
            .expect_err("they differ")
    });
    for failure in failures {
        assert_eq!(failure.code, Code::Mismatch);
        assert!(failure.why.contains("asks for"), "{failure}");
    }
}
