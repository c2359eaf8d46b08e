//! Messages of the controller.

use std::time::Duration;

use hocket_control::message::{Change, MOST_CHANGES, Terms, ToHost};

use crate::fragments::{
    BadMessage, at_most, job, needed, read_again, read_ends, read_name, read_path, read_reason,
    read_refusal, write_again, write_ends, write_name, write_path, write_reason, write_refusal,
};
use crate::v1::{self, change::Kind as ChangeKind, to_host::Kind};

pub(crate) fn write(message: &ToHost) -> v1::ToHost {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let kind = match message {
        ToHost::Welcome {
            epoch,
            answers,
            revision,
            terms,
        } => Kind::Welcome(v1::Welcome {
            epoch: *epoch,
            answers: *answers,
            revision: *revision,
            lease_us: micros(terms.lease),
            beat_us: micros(terms.beat),
            least_bytes: terms.least_bytes,
        }),
        ToHost::Changes {
            epoch,
            revision,
            changes,
        } => Kind::Changes(v1::Changes {
            epoch: *epoch,
            revision: *revision,
            changes: changes.iter().map(write_change).collect(),
        }),
        &ToHost::Synced { epoch, revision } => Kind::Synced(v1::Synced { epoch, revision }),
        &ToHost::Taken { sequence } => Kind::Taken(sequence),
        &ToHost::Resync { why } => Kind::Again(write_again(why)),
    };
    v1::ToHost { kind: Some(kind) }
}

fn write_change(change: &Change) -> v1::Change {
    let kind = match change {
        Change::Path {
            flow,
            ends,
            path,
            reason,
        } => ChangeKind::Path(v1::PathChange {
            flow: Some(write_name(*flow)),
            ends: ends.map(write_ends),
            path: Some(write_path(path)),
            reason: write_reason(*reason),
        }),
        Change::Ahead {
            job,
            index,
            ends,
            path,
        } => ChangeKind::Ahead(v1::Ahead {
            job: *job,
            index: *index,
            ends: Some(write_ends(*ends)),
            path: Some(write_path(path)),
        }),
        &Change::Rate {
            flow,
            bytes_per_second,
        } => ChangeKind::Rate(v1::Rate {
            flow: Some(write_name(flow)),
            bytes_per_second,
        }),
        &Change::Revoke { flow, reason } => ChangeKind::Revoke(v1::Revoke {
            flow: Some(write_name(flow)),
            reason: write_reason(reason),
        }),
        &Change::JobStops { job } => ChangeKind::JobStops(job),
        &Change::JobGoes { job } => ChangeKind::JobGoes(job),
        &Change::Refuse { flow, why } => ChangeKind::Refuse(v1::Refuse {
            flow,
            why: write_refusal(why),
        }),
        &Change::RefuseJob { job, why } => ChangeKind::RefuseJob(v1::RefuseJob {
            job,
            why: write_refusal(why),
        }),
    };
    v1::Change { kind: Some(kind) }
}

pub(crate) fn read(message: v1::ToHost) -> Result<ToHost, BadMessage> {
    Ok(match needed(message.kind, "a message of the controller")? {
        Kind::Welcome(welcome) => ToHost::Welcome {
            epoch: welcome.epoch,
            answers: welcome.answers,
            revision: welcome.revision,
            terms: Terms {
                lease: Duration::from_micros(welcome.lease_us),
                beat: Duration::from_micros(welcome.beat_us),
                least_bytes: welcome.least_bytes,
            },
        },
        Kind::Changes(changes) => {
            at_most(changes.changes.len(), MOST_CHANGES, "changes in a message")?;
            let read = changes.changes.into_iter().map(read_change);
            ToHost::Changes {
                epoch: changes.epoch,
                revision: changes.revision,
                changes: read.collect::<Result<_, _>>()?,
            }
        }
        Kind::Synced(v1::Synced { epoch, revision }) => ToHost::Synced { epoch, revision },
        Kind::Taken(sequence) => ToHost::Taken { sequence },
        Kind::Again(why) => ToHost::Resync {
            why: read_again(why)?,
        },
    })
}

fn read_change(change: v1::Change) -> Result<Change, BadMessage> {
    Ok(match needed(change.kind, "a change")? {
        ChangeKind::Path(change) => Change::Path {
            flow: read_name(change.flow)?,
            ends: change.ends.as_ref().map(read_ends).transpose()?,
            path: read_path(change.path)?.into(),
            reason: read_reason(change.reason)?,
        },
        ChangeKind::Ahead(ahead) => Change::Ahead {
            job: job(ahead.job)?,
            index: ahead.index,
            ends: read_ends(&needed(ahead.ends, "the ends of a flow")?)?,
            path: read_path(ahead.path)?.into(),
        },
        ChangeKind::Rate(rate) => Change::Rate {
            flow: read_name(rate.flow)?,
            bytes_per_second: rate.bytes_per_second,
        },
        ChangeKind::Revoke(revoke) => Change::Revoke {
            flow: read_name(revoke.flow)?,
            reason: read_reason(revoke.reason)?,
        },
        ChangeKind::JobStops(number) => Change::JobStops { job: job(number)? },
        ChangeKind::JobGoes(number) => Change::JobGoes { job: job(number)? },
        ChangeKind::Refuse(refuse) => Change::Refuse {
            flow: refuse.flow,
            why: read_refusal(refuse.why)?,
        },
        ChangeKind::RefuseJob(refuse) => Change::RefuseJob {
            job: refuse.job,
            why: read_refusal(refuse.why)?,
        },
    })
}
