//! What probes are to look at, and what they found.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use std::time::Duration;

use hocket_control::agent::Input;
use hocket_control::message::Path;

use super::AgentOwner;
use crate::datagrams::Ends;
use crate::ports::NoPort;

/// A path between two addresses that local flows were given.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The path.
    pub path: Arc<Path>,
    /// The flows.
    pub flows: Vec<u64>,
}

impl AgentOwner {
    /// Returns the paths that flows were given, whether they take them now or not: by sender, receiver and choice.
    pub fn paths(&self) -> BTreeMap<(IpAddr, IpAddr, u32), Wanted> {
        let state = self.lock();
        let mut paths = BTreeMap::new();
        for (flow, _, opened) in state.agent.flows() {
            if let Some(path) = state.agent.given(flow) {
                let key = (opened.src, opened.dst, path.choice);
                let wanted = paths.entry(key).or_insert_with(|| Wanted {
                    path: path.clone(),
                    flows: Vec::new(),
                });
                wanted.flows.push(flow);
            }
        }
        paths
    }

    /// Returns a port for probes of a path.
    ///
    /// # Errors
    /// [`NoPort`] if there is none.
    pub fn lease(&self, ends: &Ends, path: &Path) -> Result<u16, NoPort> {
        self.lock().ports.lease(ends, path)
    }

    /// Takes such a port back.
    pub fn release(&self, ends: &Ends, port: u16) {
        self.lock().ports.release(ends, port);
    }

    /// Returns what probes found of the path of these flows; how many of them leave it.
    pub fn probed(&self, flows: &[u64], loss_ppm: u32, rtt: Option<Duration>) -> u64 {
        let mut state = self.lock();
        let before = state.agent.metrics().worse;
        for &flow in flows {
            let input = Input::PathMeasured {
                flow,
                loss_ppm,
                rtt,
            };
            self.drive(&mut state, input);
        }
        state.agent.metrics().worse - before
    }
}
