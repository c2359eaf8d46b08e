//! What flows may send.
//!
//! # Source
//! Cohen et al., Routing for large ML models, section 8: the controller computes the bandwidth share of
//! each flow, and hosts keep to (1 + slack) times that. The share is here the equal one of the fullest link
//! between switches, which is the least that a flow gets.

use super::Controller;
use super::event::Command;
use super::flows::NONE;

impl Controller {
    /// Commands for the flows whose share has changed in this event.
    pub(super) fn tell_rates(&mut self, commands: &mut Vec<Command>) {
        let Some(slack) = self.options.rate_slack_ppm else {
            return;
        };
        self.fullness.sort_unstable();
        self.fullness.dedup();
        let mut flows: Vec<u32> = Vec::new();
        for &slot in &self.fullness {
            flows.extend(self.flows.on(slot as usize));
        }
        flows.sort_unstable();
        flows.dedup();
        for flow in flows {
            let share = self.rate(flow);
            let most = u128::from(share) * (1_000_000 + u128::from(slack)) / 1_000_000;
            let most = u64::try_from(most).unwrap_or(u64::MAX).max(1);
            let row = self.flows.row_mut(flow);
            if std::mem::replace(&mut row.rate, most) != most {
                commands.push(Command::Rate {
                    flow: row.id,
                    bytes_per_second: most,
                });
            }
        }
    }

    /// Returns a flow's equal share of the fullest link on its path, rounded down; 0 without one [bytes/s].
    pub(super) fn rate(&self, flow: u32) -> u64 {
        let row = self.flows.row(flow);
        if row.choice == NONE {
            return 0;
        }
        let slots = self.fabric.slots_of(row.src, row.dst, row.choice);
        let reference = self.fabric.reference().bytes_per_second();
        let share = |slot: usize| {
            let flows = u64::from(self.loads.count(slot).max(1));
            reference / self.fabric.scale(slot) / flows
        };
        slots.iter().map(share).min().unwrap_or(0)
    }
}
