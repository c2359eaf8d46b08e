//! Transfers that run together on different paths.

use super::loads::Loads;
use super::{Choice, steps::steps};
use crate::id::{NpuId, TransferId, narrow};
use crate::plan::Plan;
use crate::routing::{self, Fabric, Flow};
use crate::topology::Topology;
use crate::topology::equal::EqualPaths;

/// For each choice, a path of its set, step by step.
///
/// Within a step those with fewest paths go first, then the largest, each to the path whose busiest link
/// carries least in this step; of equals to the one that carries least in all steps. Where that leaves a link
/// busier than it need be on a whole Clos or fat tree, the step is coloured instead.
///
/// # Source
/// Cohen et al., Routing for large ML models: algorithm 1 (greedy), and what [`routing`] says of
/// [`EdgeColoring`](routing::Scheme::EdgeColoring).
pub(super) fn choose(
    plan: &Plan,
    topology: &Topology,
    equal: &EqualPaths,
    choices: &[Choice],
) -> Vec<u32> {
    let steps = steps(plan);
    let step = |choice: &Choice| steps[choice.transfer as usize];
    let bytes = |choice: &Choice| plan.bytes(TransferId(choice.transfer));
    let mut order: Vec<u32> = (0..narrow(choices.len())).collect();
    order.sort_by_cached_key(|&i| {
        let choice = &choices[i as usize];
        (
            step(choice),
            equal.count(choice.set),
            u64::MAX - bytes(choice),
            i,
        )
    });
    let mut balancer = Balancer {
        plan,
        equal,
        fabric: Fabric::new(topology).ok(),
        loads: Loads::new(topology),
        turn: 0,
        chosen: vec![0; choices.len()],
    };
    let same = |&a: &u32, &b: &u32| step(&choices[a as usize]) == step(&choices[b as usize]);
    for together in order.chunk_by(same) {
        balancer.step(choices, together);
    }
    balancer.chosen
}

struct Balancer<'a> {
    plan: &'a Plan,
    equal: &'a EqualPaths,
    fabric: Option<Fabric>,
    loads: Loads<'a>,
    /// How many steps were coloured.
    turn: usize,
    chosen: Vec<u32>,
}

impl Balancer<'_> {
    fn step(&mut self, choices: &[Choice], together: &[u32]) {
        self.loads.begin();
        for &i in together {
            let Choice { transfer, set } = choices[i as usize];
            let bytes = self.plan.bytes(TransferId(transfer));
            let best = self.loads.best(self.equal, set, bytes);
            self.loads.add(self.equal.middle(set, best), bytes);
            self.chosen[i as usize] = narrow(best);
        }
        let Some(colored) = self.colored(choices, together) else {
            return;
        };
        let greedy: Vec<u32> = together.iter().map(|&i| self.chosen[i as usize]).collect();
        let before = self.loads.busiest();
        self.turn += 1;
        self.again(choices, together, &colored);
        if self.loads.busiest() >= before {
            self.again(choices, together, &greedy);
        }
    }

    /// Puts the transfers of this step on other paths.
    fn again(&mut self, choices: &[Choice], together: &[u32], paths: &[u32]) {
        self.loads.take_back();
        for (&i, &path) in together.iter().zip(paths) {
            let Choice { transfer, set } = choices[i as usize];
            let bytes = self.plan.bytes(TransferId(transfer));
            self.loads.add(self.equal.middle(set, path as usize), bytes);
            self.chosen[i as usize] = path;
        }
    }

    /// Returns the paths by a balanced colouring; `None` where greedy is as good, and where none can be made.
    fn colored(&self, choices: &[Choice], together: &[u32]) -> Option<Vec<u32>> {
        let fabric = self.fabric.as_ref()?;
        let ends = together.iter().map(|&i| {
            let Choice { transfer, set } = choices[i as usize];
            let middle = self.equal.middle(set, 0);
            let bytes = self.plan.bytes(TransferId(transfer));
            ([middle[0], middle[middle.len() - 1]], bytes)
        });
        if !self.loads.could_be_less(ends) {
            return None;
        }
        let flow = |&i: &u32| {
            let i = choices[i as usize].transfer as usize;
            let tor = |npu: u32| fabric.tor_of(NpuId(npu));
            Some(Flow {
                src: tor(self.plan.src()[i])?,
                dst: tor(self.plan.dst()[i])?,
                weight: self.plan.bytes(TransferId(narrow(i))),
            })
        };
        let flows: Vec<Flow> = together.iter().map(flow).collect::<Option<_>>()?;
        let colors = routing::colored(fabric, &flows, self.turn)?;
        let mut links = Vec::new();
        let path = |((&i, flow), &color): ((&u32, &Flow), &u32)| {
            links.clear();
            fabric.route(flow.src, flow.dst, color, &mut links);
            let set = choices[i as usize].set;
            let mut paths = 0..self.equal.count(set);
            let found = paths.find(|&path| self.equal.middle(set, path) == links)?;
            Some(narrow(found))
        };
        let colored = together.iter().zip(&flows).zip(&colors);
        colored.map(path).collect()
    }
}
