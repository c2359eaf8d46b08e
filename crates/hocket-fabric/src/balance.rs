//! Paths by balanced colourings: flows are edges between ToRs, once as sources and once as
//! destinations, and spines are colours. On three levels planes are, and then, in each plane, flows
//! between pods are edges between these and cores are colours.
//!
//! # What is proved
//! For flows of one weight on a complete fabric of equal links:
//!
//! - Two levels: ceil(d / S) on any link of a ToR with d flows and S spines. That is the certificate.
//! - Three levels, A planes of C cores: ceil(d / A) on any link of a ToR. With M the largest of these
//!   and E ToRs in a pod, at most E M flows leave a pod in one plane, and the second colouring puts
//!   ceil(E M / C) on a link to a core. Where E <= C, as in `fat_tree`, that is M or less: the
//!   certificate again.
//! - Three levels with E > C, no flow staying in its pod: the first colouring is evened out until
//!   D flows that leave a pod are spread by ceil(D / A) on planes, and then by
//!   ceil(ceil(D / A) / C) = ceil(D / (A C)) on cores: the certificate. Evening out takes all flows of
//!   two planes, pairs them up within each ToR and what is left over within each pod, at both ends,
//!   and gives the two of each pair to different planes; pairs form paths and even tours, so that this
//!   can be done. Every ToR and pod then has as many in one plane as in the other, give or take one.
//!   The sum of squares of all these counts falls each time, so that this ends.
//!
//! Where flows stay in their pods and E > C the two shares of a ToR's flows pull apart, and the
//! optimum itself can be above the certificate.

use super::coloring::balanced;
use super::fabric::Upper;
use super::{Fabric, Flow};
use crate::id::narrow;

const NONE: u32 = u32::MAX;

/// Rounds of evening out where it need not end.
const ROUNDS: usize = 8;

/// Colours the flows of a complete fabric.
///
/// Where colours are not used alike the first are used most: `turn` is how far the colours are turned round
/// among the switches that they stand for.
pub(super) fn color(fabric: &Fabric, flows: &[Flow], turn: usize) -> Vec<u32> {
    // A fabric without flows may have lost every plane.
    if flows.is_empty() {
        return Vec::new();
    }
    let edges: Vec<[u32; 2]> = flows.iter().map(|flow| [flow.src, flow.dst]).collect();
    let order = heaviest_first(flows, (0..narrow(flows.len())).collect());
    let Some(upper) = &fabric.upper else {
        let colors = balanced(&edges, order, fabric.tor_count(), fabric.tops().len());
        let spine = |&color: &u32| turned(fabric.tops(), color, turn);
        return colors.iter().map(spine).collect();
    };
    let mut planes = planes(fabric, upper);
    let further = turn / planes.len().max(1);
    let by = turn % planes.len().max(1);
    planes.rotate_left(by);
    let mut plane_of = balanced(&edges, order, fabric.tor_count(), planes.len());
    even_out(upper, flows, &mut plane_of, &planes);
    let mut choices = vec![0; flows.len()];
    for (color, (plane, cores)) in planes.iter().enumerate() {
        let (mut edges, mut of) = (Vec::new(), Vec::new());
        for (i, flow) in flows.iter().enumerate() {
            let pods = pods(upper, flow);
            if plane_of[i] as usize != color {
                continue;
            }
            if pods[0] == pods[1] {
                choices[i] = agg_at(upper, pods[0], *plane);
            } else {
                edges.push(pods);
                of.push(narrow(i));
            }
        }
        let among: Vec<Flow> = of.iter().map(|&i| flows[i as usize]).collect();
        let order = heaviest_first(&among, (0..narrow(among.len())).collect());
        let colors = balanced(&edges, order, upper.pods, cores.len().max(1));
        for (&i, &color) in of.iter().zip(&colors) {
            choices[i as usize] = turned(cores, color, further);
        }
    }
    choices
}

fn turned(switches: &[u32], color: u32, turn: usize) -> u32 {
    switches[(color as usize + turn) % switches.len()]
}

fn heaviest_first(flows: &[Flow], mut order: Vec<u32>) -> Vec<u32> {
    if flows
        .windows(2)
        .any(|pair| pair[0].weight != pair[1].weight)
    {
        order.sort_by_key(|&i| std::cmp::Reverse(flows[i as usize].weight));
    }
    order
}

fn pods(upper: &Upper, flow: &Flow) -> [u32; 2] {
    [flow.src, flow.dst].map(|tor| upper.pod_of[tor as usize])
}

/// Returns the planes that ToRs reach, each with its working cores.
fn planes(fabric: &Fabric, upper: &Upper) -> Vec<(u32, Vec<u32>)> {
    let mut found: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut used: Vec<u32> = upper.aggs.iter().flatten().map(|at| at[1]).collect();
    used.sort_unstable();
    used.dedup();
    let reached = |plane: &u32| {
        let columns = fabric.columns;
        (0..fabric.tors).any(|tor| fabric.links[tor * columns + *plane as usize].is_some())
    };
    for plane in used.into_iter().filter(reached) {
        let of = |&core: &u32| upper.plane_of.get(core as usize) == Some(&plane);
        found.push((plane, fabric.tops().iter().copied().filter(of).collect()));
    }
    found
}

fn agg_at(upper: &Upper, pod: u32, plane: u32) -> u32 {
    let [lowest, highest] = upper.aggs_of[pod as usize];
    let mut aggs = lowest..=highest;
    let found = aggs.find(|&agg| upper.aggs[agg as usize] == Some([pod, plane]));
    found.expect("a complete fabric has an agg of every plane in every pod")
}

/// Moves flows between planes until each pod's are spread evenly, where cores would not carry them
/// otherwise.
fn even_out(upper: &Upper, flows: &[Flow], plane_of: &mut [u32], planes: &[(u32, Vec<u32>)]) {
    let count = planes.len();
    let pods_of: Vec<[u32; 2]> = flows.iter().map(|flow| pods(upper, flow)).collect();
    let stays = pods_of.iter().any(|[from, to]| from == to);
    for round in 0.. {
        let mut sent = vec![0u32; 2 * upper.pods * count];
        for (&[from, to], &plane) in pods_of.iter().zip(plane_of.iter()) {
            if from != to {
                sent[from as usize * count + plane as usize] += 1;
                sent[(upper.pods + to as usize) * count + plane as usize] += 1;
            }
        }
        let load =
            |(i, &flows): (usize, &u32)| flows.div_ceil(narrow(planes[i % count].1.len().max(1)));
        let largest = sent.iter().enumerate().map(load).max().unwrap_or(0);
        let share = |row: &[u32]| {
            let cores: usize = planes.iter().map(|plane| plane.1.len()).sum();
            row.iter().sum::<u32>().div_ceil(narrow(cores.max(1)))
        };
        let least = sent.chunks(count).map(share).max().unwrap_or(0);
        let uneven = |row: &[u32]| {
            let (low, high) = (row.iter().min()?, row.iter().max()?);
            let at = |wanted| row.iter().position(|each| each == wanted);
            (high - low > 1).then_some([narrow(at(low)?), narrow(at(high)?)])
        };
        let worst = sent
            .chunks(count)
            .max_by_key(|row| row.iter().max().copied());
        let pair = worst
            .and_then(uneven)
            .or_else(|| sent.chunks(count).find_map(uneven));
        let Some(pair) = pair.filter(|_| largest > least && !(stays && round > ROUNDS * count))
        else {
            return;
        };
        let among: Vec<u32> = (0..narrow(flows.len()))
            .filter(|&i| pair.contains(&plane_of[i as usize]))
            .collect();
        for (&i, half) in among
            .iter()
            .zip(halves(flows, &pods_of, &among, upper.pods))
        {
            plane_of[i as usize] = pair[half];
        }
    }
}

/// Half of the flows of every ToR, and of every pod, for each of two planes.
fn halves(flows: &[Flow], pods_of: &[[u32; 2]], among: &[u32], pods: usize) -> Vec<usize> {
    let tors = among
        .iter()
        .map(|&i| flows[i as usize].src.max(flows[i as usize].dst));
    let tors = tors.max().map_or(0, |last| last as usize + 1);
    let mut partners = vec![[NONE; 2]; among.len()];
    for side in 0..2 {
        let mut open = vec![[NONE; 2]; tors];
        let mut pair = |open: &mut u32, edge: u32| match std::mem::replace(open, NONE) {
            NONE => *open = edge,
            other => {
                partners[edge as usize][side] = other;
                partners[other as usize][side] = edge;
            }
        };
        for (edge, &i) in among.iter().enumerate() {
            let Flow { src, dst, .. } = flows[i as usize];
            let [from, to] = pods_of[i as usize];
            let tor = [src, dst][side] as usize;
            pair(&mut open[tor][usize::from(from == to)], narrow(edge));
        }
        let mut left = vec![NONE; pods];
        for [between, within] in open {
            if between != NONE && within != NONE {
                let mut slot = between;
                pair(&mut slot, within);
            } else if between != NONE {
                let pod = pods_of[among[between as usize] as usize][side] as usize;
                pair(&mut left[pod], between);
            }
        }
    }
    let mut half = vec![usize::MAX; among.len()];
    for start in 0..among.len() {
        if half[start] != usize::MAX {
            continue;
        }
        half[start] = 0;
        for first in 0..2 {
            let (mut side, mut at, mut current) = (first, start, 0);
            loop {
                let next = partners[at][side];
                if next == NONE || half[next as usize] != usize::MAX {
                    break;
                }
                (side, at, current) = (1 - side, next as usize, 1 - current);
                half[at] = current;
            }
        }
    }
    half
}
