//! Flows whose packets cross segments that the kernel writes.

use std::net::IpAddr;

use hocket_control::message::Path;

use super::{AgentOwner, ProgramFlow, State};
use crate::datagrams::Ends;
use crate::srv6::{Counts, Done, Packets, Srv6, Steer};

impl AgentOwner {
    /// Returns the same, with flows steered by segments where their paths have some.
    #[must_use]
    pub fn with_segments(mut self, srv6: Srv6) -> Self {
        self.srv6 = Some(srv6);
        self
    }

    /// Returns what has been done about segments, where flows are steered by them.
    pub fn segments(&self) -> Option<Counts> {
        self.srv6.as_ref().map(Srv6::counts)
    }

    /// Handles the result for a flow that was to cross segments: its program may connect now.
    pub fn done(&self, done: Done) {
        let mut state = self.lock();
        let Some(local) = state.flows.get_mut(&done.flow) else {
            return;
        };
        if local.led != Some(done.turn) {
            return;
        }
        match (done.result, local.port) {
            (Ok(()), Some(port)) => {
                // A program that has the port goes the new way without doing anything.
                if !local.has_port {
                    state.answer(done.flow, Ok(port));
                }
            }
            (Ok(()), None) => {}
            // The kernel is asked again.
            (Err(why), _) => state.answer(done.flow, Err(format!("segments: {why}"))),
        }
    }

    /// Returns whether flows between these ends are steered by segments, where their paths have some.
    pub(super) fn may_lead(&self, ends: &Ends) -> bool {
        self.srv6.is_some() && !self.observes && ends.src.is_ipv6() && ends.dst.is_ipv6()
    }

    /// A flow is to cross the segments of a path; false where it has none, or flows are steered by ports alone.
    pub(super) fn lead(&self, state: &mut State, flow: u64, path: &Path) -> bool {
        let Some(local) = state.flows.get_mut(&flow) else {
            return true;
        };
        let (Some(srv6), IpAddr::V6(src), IpAddr::V6(dst)) =
            (&self.srv6, local.ends.src, local.ends.dst)
        else {
            return false;
        };
        if path.segments.is_empty() {
            return false;
        }
        let leased = local
            .port
            .map_or_else(|| state.ports.lease_back(&local.ends, path), Ok);
        let sport = match leased {
            Ok(port) => *local.port.insert(port),
            Err(why) => {
                state.answer(flow, Err(why.to_string()));
                return true;
            }
        };
        let packets = Packets {
            protocol: local.ends.protocol.number(),
            src,
            dst,
            sport,
            dport: local.ends.dport,
        };
        let segments = path.segments.clone();
        local.led = srv6.want(flow, Steer { packets, segments });
        if local.led.is_none() {
            state.answer(flow, Err("too many flows are led by segments".to_owned()));
        }
        true
    }

    /// A flow crosses no segments any more.
    pub(super) fn unlead(&self, flow: u64, local: &mut ProgramFlow) {
        if local.led.take().is_some()
            && let Some(srv6) = &self.srv6
        {
            srv6.forget(flow);
        }
    }
}
