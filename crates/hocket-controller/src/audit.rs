//! What operators may want to read later, as structured lines.

use hocket_control::directory::HostId;
use hocket_control::message::Refusal;
use hocket_control::server::{Audit, Close, Server};
use tracing::{info, warn};

use crate::cluster::{Network, some};

/// How many links or hosts a line names.
pub(crate) const NAMED: usize = 20;

/// Returns a reason to end a session, in words.
pub(crate) fn close(why: Close) -> &'static str {
    match why {
        Close::Replaced => "the host opened another",
        Close::Silent => "the host was silent",
        Close::Version => "the host speaks another version",
        Close::NewerEpoch => "the host has obeyed a later controller",
        Close::TooLarge => "a message was too large",
        Close::Nonsense => "the host acknowledged what was not said",
        Close::Flood => "the host said far more than it may",
        Close::Slow => "the host does not keep up",
    }
}

/// Returns a reason to refuse a flow or a job, in words.
pub(crate) fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::BadNumber => "bad number",
        Refusal::NotItsAddress => "not its address",
        Refusal::UnknownAddress => "unknown address",
        Refusal::NotItsJob => "not its job",
        Refusal::TooMany => "too many",
        Refusal::TooFast => "too fast",
        Refusal::Full => "full",
    }
}

/// One line of the audit log.
pub(crate) fn write(audit: &Audit, server: &Server, network: &Network) {
    let name = |host: HostId| server.directory().entry(host).name.as_str();
    match audit {
        &Audit::Came(host) => info!(target: "audit", host = name(host), "host came"),
        &Audit::Went(host, flows) => {
            info!(target: "audit", host = name(host), flows, "host is gone");
        }
        &Audit::Closed(host, why) => {
            info!(target: "audit", host = name(host), why = close(why), "session of host ended");
        }
        &Audit::FlowsRefused(host, why, flows) => {
            info!(target: "audit", host = name(host), why = refusal(why), flows, "flows refused");
        }
        &Audit::JobRefused(host, job, why) => {
            info!(target: "audit", host = name(host), why = refusal(why), job, "job refused");
        }
        &Audit::JobCame(host, job, flows) => {
            info!(target: "audit", host = name(host), job, flows, "job registered");
        }
        &Audit::JobWent(job) => info!(target: "audit", job, "job forgotten"),
        Audit::LinksFailed(links) => {
            info!(target: "audit", links = network.by_ends(links, NAMED), "links failed");
        }
        Audit::LinksReturned(links) => {
            info!(target: "audit", links = network.by_ends(links, NAMED), "links returned");
        }
        Audit::Synced => match server.missing().count() {
            0 => info!(target: "audit", "every host is known"),
            missing => {
                let hosts: Vec<&str> = server.missing().map(name).collect();
                let hosts = some(&hosts, NAMED);
                warn!(target: "audit", missing, hosts, "the time of recovery is over, and hosts have not come");
            }
        },
    }
}
