//! What is stored.

use std::collections::{BTreeMap, BTreeSet};

use super::codec::{Reader, Writer};
use crate::message::PatternFlow;

/// A change of what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A job registers its pattern, in place of the one before.
    JobComes {
        /// The job.
        job: u32,
        /// Name of the host that registered it.
        leader: String,
        /// The flows of each of its iterations.
        pattern: Vec<PatternFlow>,
    },
    /// A job is forgotten.
    JobGoes {
        /// The job.
        job: u32,
    },
    /// Operators say that links have failed.
    LinksFail {
        /// The links.
        links: Vec<u32>,
    },
    /// Operators say that links work again.
    LinksReturn {
        /// The links.
        links: Vec<u32>,
    },
}

/// A job that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedJob {
    /// Name of the host that registered it.
    pub leader: String,
    /// The flows of each of its iterations.
    pub pattern: Vec<PatternFlow>,
}

/// All that is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Registered jobs.
    pub jobs: BTreeMap<u32, SavedJob>,
    /// Links that operators said have failed.
    pub failed: BTreeSet<u32>,
}

impl Saved {
    /// Puts a change into effect.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::JobComes {
                job,
                leader,
                pattern,
            } => {
                let (leader, pattern) = (leader.clone(), pattern.clone());
                self.jobs.insert(*job, SavedJob { leader, pattern });
            }
            Record::JobGoes { job } => {
                self.jobs.remove(job);
            }
            Record::LinksFail { links } => self.failed.extend(links),
            Record::LinksReturn { links } => links.iter().for_each(|link| {
                self.failed.remove(link);
            }),
        }
    }

    /// Changes that make all this of nothing.
    pub(super) fn records(&self) -> Vec<Record> {
        let jobs = self.jobs.iter().map(|(&job, saved)| Record::JobComes {
            job,
            leader: saved.leader.clone(),
            pattern: saved.pattern.clone(),
        });
        let links = self.failed.iter().copied().collect();
        let failed = Record::LinksFail { links };
        jobs.chain((!self.failed.is_empty()).then_some(failed))
            .collect()
    }
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::JobComes {
                job,
                leader,
                pattern,
            } => {
                writer.byte(1);
                writer.small(*job);
                writer.text(leader);
                writer.list(pattern, |writer, flow| {
                    writer.address(flow.src);
                    writer.address(flow.dst);
                    writer.word(flow.bytes);
                });
            }
            Self::JobGoes { job } => {
                writer.byte(2);
                writer.small(*job);
            }
            Self::LinksFail { links } => {
                writer.byte(3);
                writer.list(links, |writer, link| writer.small(*link));
            }
            Self::LinksReturn { links } => {
                writer.byte(4);
                writer.list(links, |writer, link| writer.small(*link));
            }
        }
        writer.0
    }

    /// Returns `None` for bytes that no record is.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let record = match reader.byte()? {
            1 => Self::JobComes {
                job: reader.small()?,
                leader: reader.text()?,
                pattern: reader.list(|reader| {
                    Some(PatternFlow {
                        src: reader.address()?,
                        dst: reader.address()?,
                        bytes: reader.word()?,
                    })
                })?,
            },
            2 => Self::JobGoes {
                job: reader.small()?,
            },
            3 => Self::LinksFail {
                links: reader.list(Reader::small)?,
            },
            4 => Self::LinksReturn {
                links: reader.list(Reader::small)?,
            },
            _ => return None,
        };
        reader.0.is_empty().then_some(record)
    }
}
