//! Why nothing moves: links whose buffers wait for each other.

use super::ports::{NONE, Ports};
use crate::id::{LinkId, narrow};
use crate::topology::Topology;

/// Finds links in a circle, each with a packet in its buffers that waits for the next one's.
///
/// # Complexity
/// O(links x channels).
pub(super) fn cycle(ports: &Ports, topology: &Topology) -> Option<String> {
    let links = ports.links as usize;
    // What each link waits for: the link that a head in its buffers wants and does not get.
    let mut waits = vec![Vec::new(); links];
    for (link, output) in ports.outputs.iter().enumerate() {
        for &requester in &output.waiting {
            if ports.as_queue(requester).is_none() {
                waits[ports.port(requester) as usize].push(narrow(link));
            }
        }
        for number in 0..ports.channels {
            // A packet that holds a channel waits for the rest of itself.
            let holder = ports.channel[link * ports.channels as usize + number as usize].holder;
            if holder != NONE && ports.as_queue(holder).is_none() {
                waits[ports.port(holder) as usize].push(narrow(link));
            }
        }
    }
    let found = find_cycle(&waits)?;
    let names = found.iter().chain(found.first()).map(|&link| {
        let link = topology.link(LinkId(link));
        let name = |device| &topology.device(device).name;
        format!("{}→{}", name(link.src), name(link.dst))
    });
    const MAX_NAMED: usize = 8;
    let names: Vec<String> = names.collect();
    Some(match names.len() {
        ..=MAX_NAMED => names.join(" waits for "),
        more => format!(
            "{} and on through {} more links back to {}",
            names[..MAX_NAMED - 1].join(" waits for "),
            more - MAX_NAMED,
            names[0]
        ),
    })
}

/// Returns a circle in a graph, by depth-first search.
fn find_cycle(edges: &[Vec<u32>]) -> Option<Vec<u32>> {
    // 0 not seen, 1 on the way, 2 done.
    let mut state = vec![0u8; edges.len()];
    for root in 0..edges.len() {
        if state[root] != 0 {
            continue;
        }
        let mut way: Vec<(u32, usize)> = vec![(narrow(root), 0)];
        state[root] = 1;
        while let Some((node, next)) = way.last_mut() {
            let Some(&target) = edges[*node as usize].get(*next) else {
                state[*node as usize] = 2;
                way.pop();
                continue;
            };
            *next += 1;
            match state[target as usize] {
                0 => {
                    state[target as usize] = 1;
                    way.push((target, 0));
                }
                1 => {
                    let from = way.iter().position(|&(node, _)| node == target)?;
                    return Some(way[from..].iter().map(|&(node, _)| node).collect());
                }
                _ => {}
            }
        }
    }
    None
}
