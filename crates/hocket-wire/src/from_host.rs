//! Messages of hosts.

use hocket_control::message::{
    FromHost, HeldPattern, Hello, HostFlow, HostJob, MOST_FLOWS, MOST_JOBS, MOST_LINKS, NewFlow,
    PatternFlow,
};

use crate::fragments::{
    BadMessage, at_most, needed, read_address, read_pattern, write_address, write_pattern,
};
use crate::v1::{self, from_host::Kind};

pub(crate) fn write(message: &FromHost) -> v1::FromHost {
    let event = |&sequence: &u64, &job: &u32| v1::JobEvent { sequence, job };
    let kind = match message {
        FromHost::Hello(hello) => Kind::Hello(write_hello(hello)),
        FromHost::Starts { sequence, flows } => Kind::Starts(v1::Starts {
            sequence: *sequence,
            flows: flows.iter().map(write_flow).collect(),
        }),
        FromHost::Progress { left } => Kind::Progress(v1::Progress {
            left: left.iter().flat_map(|&(flow, left)| [flow, left]).collect(),
        }),
        FromHost::Ends { sequence, flows } => Kind::Ends(v1::Ends {
            sequence: *sequence,
            flows: flows.clone(),
        }),
        FromHost::JobComes {
            sequence,
            job,
            pattern,
        } => Kind::JobComes(v1::JobComes {
            sequence: *sequence,
            job: *job,
            pattern: pattern.iter().map(write_pattern).collect(),
        }),
        FromHost::JobStarts { sequence, job } => Kind::JobStarts(event(sequence, job)),
        FromHost::JobStops { sequence, job } => Kind::JobStops(event(sequence, job)),
        FromHost::JobGoes { sequence, job } => Kind::JobGoes(event(sequence, job)),
        FromHost::Links {
            sequence,
            failed,
            returned,
        } => Kind::Links(v1::Links {
            sequence: *sequence,
            failed: failed.clone(),
            returned: returned.clone(),
        }),
        FromHost::Acknowledged { epoch, revision } => Kind::Acknowledged(v1::Acknowledged {
            epoch: *epoch,
            revision: *revision,
        }),
        FromHost::Beat {
            sequence,
            flows,
            digest,
        } => Kind::Beat(v1::Beat {
            sequence: *sequence,
            flows: *flows,
            digest: *digest,
        }),
    };
    v1::FromHost { kind: Some(kind) }
}

fn write_flow(HostFlow { id, opened, held }: &HostFlow) -> v1::HostFlow {
    v1::HostFlow {
        id: *id,
        job: opened.job,
        src: write_address(opened.src),
        dst: write_address(opened.dst),
        bytes: opened.bytes,
        held: *held,
        is_fixed: opened.is_fixed,
    }
}

fn write_hello(hello: &Hello) -> v1::Hello {
    let held = |held: &HeldPattern| v1::HeldPattern {
        job: held.job,
        index: held.index,
        choice: held.choice,
    };
    let job = |job: &HostJob| v1::HostJob {
        job: job.job,
        pattern: job.pattern.iter().map(write_pattern).collect(),
        is_live: job.is_live,
    };
    v1::Hello {
        version: hello.version,
        epoch: hello.epoch,
        sequence: hello.sequence,
        flows: hello.flows.iter().map(write_flow).collect(),
        patterns: hello.patterns.iter().map(held).collect(),
        jobs: hello.jobs.iter().map(job).collect(),
        failed: hello.failed.clone(),
        takes_segments: hello.takes_segments,
    }
}

pub(crate) fn read(message: v1::FromHost) -> Result<FromHost, BadMessage> {
    Ok(match needed(message.kind, "a message of a host")? {
        Kind::Hello(hello) => FromHost::Hello(read_hello(hello)?),
        Kind::Starts(starts) => FromHost::Starts {
            sequence: starts.sequence,
            flows: read_flows(&starts.flows)?,
        },
        Kind::Progress(progress) => FromHost::Progress {
            left: read_left(&progress.left)?,
        },
        Kind::Ends(ends) => {
            at_most(ends.flows.len(), MOST_FLOWS, "flows in a message")?;
            FromHost::Ends {
                sequence: ends.sequence,
                flows: ends.flows,
            }
        }
        Kind::JobComes(comes) => FromHost::JobComes {
            sequence: comes.sequence,
            job: comes.job,
            pattern: read_patterns(&comes.pattern)?,
        },
        Kind::JobStarts(v1::JobEvent { sequence, job }) => FromHost::JobStarts { sequence, job },
        Kind::JobStops(v1::JobEvent { sequence, job }) => FromHost::JobStops { sequence, job },
        Kind::JobGoes(v1::JobEvent { sequence, job }) => FromHost::JobGoes { sequence, job },
        Kind::Links(links) => {
            let count = links.failed.len() + links.returned.len();
            at_most(count, MOST_LINKS, "links in a message")?;
            FromHost::Links {
                sequence: links.sequence,
                failed: links.failed,
                returned: links.returned,
            }
        }
        Kind::Acknowledged(v1::Acknowledged { epoch, revision }) => {
            FromHost::Acknowledged { epoch, revision }
        }
        Kind::Beat(v1::Beat {
            sequence,
            flows,
            digest,
        }) => FromHost::Beat {
            sequence,
            flows,
            digest,
        },
    })
}

fn read_left(left: &[u64]) -> Result<Vec<(u64, u64)>, BadMessage> {
    let (pairs, rest) = left.as_chunks::<2>();
    at_most(pairs.len(), MOST_FLOWS, "flows in a message")?;
    match rest.is_empty() {
        true => Ok(pairs.iter().map(|&[flow, left]| (flow, left)).collect()),
        false => {
            let what = "bytes left after a flow";
            Err(BadMessage::UnknownKind { what })
        }
    }
}

fn read_flows(flows: &[v1::HostFlow]) -> Result<Vec<HostFlow>, BadMessage> {
    at_most(flows.len(), MOST_FLOWS, "flows in a message")?;
    flows.iter().map(read_flow).collect()
}

/// Numbers out of range are refused flow by flow by who takes the message.
fn read_flow(flow: &v1::HostFlow) -> Result<HostFlow, BadMessage> {
    let opened = NewFlow {
        job: flow.job,
        src: read_address(&flow.src)?,
        dst: read_address(&flow.dst)?,
        bytes: flow.bytes,
        is_fixed: flow.is_fixed,
    };
    Ok(HostFlow {
        id: flow.id,
        opened,
        held: flow.held,
    })
}

fn read_patterns(pattern: &[v1::PatternFlow]) -> Result<Vec<PatternFlow>, BadMessage> {
    at_most(pattern.len(), MOST_FLOWS, "flows in a pattern")?;
    pattern.iter().map(read_pattern).collect()
}

fn read_hello(hello: v1::Hello) -> Result<Hello, BadMessage> {
    let patterns: usize = hello.jobs.iter().map(|job| job.pattern.len()).sum();
    let flows = hello.flows.len() + hello.patterns.len() + patterns;
    at_most(flows, MOST_FLOWS, "flows in a message")?;
    at_most(hello.jobs.len(), MOST_JOBS, "jobs in a message")?;
    at_most(hello.failed.len(), MOST_LINKS, "links in a message")?;
    let held = |held: &v1::HeldPattern| HeldPattern {
        job: held.job,
        index: held.index,
        choice: held.choice,
    };
    let read_job = |job: &v1::HostJob| {
        Ok(HostJob {
            job: job.job,
            pattern: read_patterns(&job.pattern)?,
            is_live: job.is_live,
        })
    };
    Ok(Hello {
        version: hello.version,
        epoch: hello.epoch,
        sequence: hello.sequence,
        flows: read_flows(&hello.flows)?,
        patterns: hello.patterns.iter().map(held).collect(),
        jobs: hello.jobs.iter().map(read_job).collect::<Result<_, _>>()?,
        failed: hello.failed,
        takes_segments: hello.takes_segments,
    })
}
