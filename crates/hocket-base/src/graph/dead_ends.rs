//! Nodes that lead nowhere.

use super::Lists;

/// Returns which nodes no way between two kept ones needs: those that are not kept, and that no more than one other
/// node joins to the rest, again and again. Directions do not count.
///
/// # Complexity
/// O(nodes + edges x log(edges)); O(nodes) if all are kept.
///
/// # Examples
/// ```
/// use hocket_base::graph::dead_ends;
///
/// // 0 and 1 are kept; 2 joins them; 3 hangs on 2, and 4 on 3.
/// let edges = [(0, 2), (2, 1), (2, 3), (3, 2), (3, 4)];
/// let kept = [true, true, false, false, false];
/// assert_eq!(dead_ends(&kept, edges), [false, false, false, true, true]);
/// ```
pub fn dead_ends(kept: &[bool], edges: impl IntoIterator<Item = (u32, u32)>) -> Vec<bool> {
    let mut dead = vec![false; kept.len()];
    if kept.iter().all(|&is_kept| is_kept) {
        return dead;
    }
    let edges = edges.into_iter().filter(|(a, b)| a != b);
    let mut pairs: Vec<(u32, u32)> = edges.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let near = Lists::grouped(kept.len(), pairs.iter().map(|&(a, b)| (a as usize, b)));
    let mut degree: Vec<usize> = near.iter().map(<[u32]>::len).collect();
    let mut left: Vec<usize> = (0..kept.len())
        .filter(|&node| !kept[node] && degree[node] < 2)
        .collect();
    while let Some(node) = left.pop() {
        dead[node] = true;
        for &other in near.get(node) {
            let other = other as usize;
            degree[other] -= 1;
            if degree[other] == 1 && !kept[other] && !dead[other] {
                left.push(other);
            }
        }
    }
    dead
}
