//! Hamiltonian cycles of large sparse graphs: cover all ranks by cycles, then merge the cycles.

/// One successor for each rank, each rank once: a perfect matching of ranks to successors. `None`
/// where there is none, and so no Hamiltonian cycle either.
///
/// # Source
/// Kuhn's augmenting paths, with an explicit stack.
pub(super) fn cycle_cover(out: &[Vec<u32>]) -> Option<Vec<u32>> {
    const FREE: u32 = u32::MAX;
    let n = out.len();
    let mut owner = vec![FREE; n];
    for (rank, ends) in out.iter().enumerate() {
        if let Some(&end) = ends.iter().find(|&&end| owner[end as usize] == FREE) {
            owner[end as usize] = rank as u32;
        }
    }
    let mut served = vec![false; n];
    owner
        .iter()
        .filter(|&&rank| rank != FREE)
        .for_each(|&rank| served[rank as usize] = true);
    let mut seen = vec![usize::MAX; n];
    for rank in (0..n).filter(|&rank| !served[rank]) {
        let mut stack = vec![(rank as u32, 0usize)];
        while let Some((here, next)) = stack.last_mut() {
            let Some(&end) = out[*here as usize].get(*next) else {
                stack.pop();
                continue;
            };
            *next += 1;
            if std::mem::replace(&mut seen[end as usize], rank) == rank {
                continue;
            }
            match owner[end as usize] {
                FREE => break,
                other => stack.push((other, 0)),
            }
        }
        if stack.is_empty() {
            return None;
        }
        for (here, next) in stack {
            owner[out[here as usize][next - 1] as usize] = here;
        }
    }
    let mut successor = vec![0; n];
    for (end, &rank) in owner.iter().enumerate() {
        successor[rank as usize] = end as u32;
    }
    Some(successor)
}

/// Merges the cycles of a cover by exchanging the successors of two ranks of different cycles, until
/// one is left; `None` where no exchange is left before.
///
/// # Source
/// Karp, A patching algorithm for the nonsymmetric traveling-salesman problem, 1979.
pub(super) fn merged(out: &[Vec<u32>], mut successor: Vec<u32>) -> Option<Vec<u32>> {
    let n = out.len();
    let mut cycle = vec![0u32; n];
    let mut predecessor = vec![0u32; n];
    loop {
        let count = label(&successor, &mut cycle);
        if count == 1 {
            break;
        }
        for (rank, &end) in successor.iter().enumerate() {
            predecessor[end as usize] = rank as u32;
        }
        let mut merged_with = vec![false; count];
        let mut any = false;
        for rank in 0..n {
            for &end in &out[rank] {
                let other = predecessor[end as usize];
                let (own, its) = (cycle[rank] as usize, cycle[end as usize] as usize);
                if own == its || merged_with[own] || merged_with[its] {
                    continue;
                }
                let old = successor[rank];
                if out[other as usize].binary_search(&old).is_ok() {
                    (successor[rank], successor[other as usize]) = (end, old);
                    (merged_with[own], merged_with[its]) = (true, true);
                    any = true;
                }
            }
        }
        if !any {
            return None;
        }
    }
    let mut order = vec![0u32];
    while order.len() < n {
        order.push(successor[order[order.len() - 1] as usize]);
    }
    Some(order)
}

/// Numbers the cycles; how many there are.
fn label(successor: &[u32], cycle: &mut [u32]) -> usize {
    cycle.fill(u32::MAX);
    let mut count = 0;
    for start in 0..successor.len() {
        if cycle[start] != u32::MAX {
            continue;
        }
        let mut rank = start;
        while cycle[rank] == u32::MAX {
            cycle[rank] = count;
            rank = successor[rank] as usize;
        }
        count += 1;
    }
    count as usize
}
