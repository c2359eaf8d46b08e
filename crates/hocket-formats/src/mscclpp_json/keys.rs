//! Keys of a plan that the executor never reads: it looks up those that it knows, and passes over all others.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A key that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The key.
    pub key: String,
    /// Where it is for the first time.
    pub place: String,
    /// How often such an object has it.
    pub count: u64,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() {
            "the plan"
        } else {
            &self.place
        };
        write!(f, "the executor does not read {:?} of {place}", self.key)?;
        match self.count {
            1 => Ok(()),
            count => write!(f, " and {} more", count - 1),
        }
    }
}

/// Objects of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plan,
    Gpu,
    Channels,
    RankGroup,
    RemoteBuffer,
    Semaphore,
    Threadblock,
    ChannelRefs,
    BufferRefs,
    Op,
    BlockGroup,
    IterContext,
    Buffer,
}

impl Kind {
    /// Keys with what is not an object.
    const fn plain(self) -> &'static [&'static str] {
        match self {
            Kind::Plan => &[
                "name",
                "collective",
                "protocol",
                "inplace",
                "reuse_resources",
                "num_threads_per_block",
                "use_double_scratch_buffer",
                "buffer_alignment",
                "min_message_size",
                "max_message_size",
            ],
            Kind::Gpu => &["id", "input_chunks", "output_chunks", "scratch_chunks"],
            Kind::Channels => &["channel_type", "connected_to", "buffer_type"],
            Kind::RankGroup => &["size", "ranks"],
            Kind::RemoteBuffer => &["rank", "type", "access_channel_types"],
            Kind::Semaphore => &["init_value"],
            Kind::Threadblock => &["id"],
            Kind::ChannelRefs => &["channel_type", "channel_ids"],
            Kind::BufferRefs => &["access_channel_type", "remote_buffer_ids"],
            Kind::Op => &[
                "name",
                "channel_ids",
                "channel_type",
                "barrier_id",
                "num_threadblocks",
                "semaphore_ids",
                "reduce_op",
            ],
            Kind::BlockGroup => &["tb_id", "tbg_size"],
            Kind::IterContext => &["unit_size", "num_chunks"],
            Kind::Buffer => &["type", "buffer_id", "switch_channel_id", "index", "size"],
        }
    }

    /// Keys with objects, or lists of them.
    const fn nested(self) -> &'static [(&'static str, Kind)] {
        match self {
            Kind::Plan => &[("gpus", Kind::Gpu)],
            Kind::Gpu => &[
                ("threadblocks", Kind::Threadblock),
                ("channels", Kind::Channels),
                ("remote_buffers", Kind::RemoteBuffer),
                ("semaphores", Kind::Semaphore),
            ],
            Kind::Channels => &[("rank_groups", Kind::RankGroup)],
            Kind::Threadblock => &[
                ("ops", Kind::Op),
                ("channels", Kind::ChannelRefs),
                ("remote_buffer_refs", Kind::BufferRefs),
            ],
            Kind::Op => &[
                ("src_buff", Kind::Buffer),
                ("dst_buff", Kind::Buffer),
                ("tbg_info", Kind::BlockGroup),
                ("iter_context", Kind::IterContext),
                ("ops", Kind::Op),
            ],
            _ => &[],
        }
    }
}

/// A part of a path.
enum Part {
    Key(&'static str),
    Index(usize),
}

#[derive(Default)]
struct Found {
    path: Vec<Part>,
    ignored: BTreeMap<(Kind, String), (String, u64)>,
}

impl Found {
    /// Different keys that are kept.
    const MOST: usize = 20;

    fn add(&mut self, kind: Kind, key: &str) {
        let key: String = key.chars().take(40).collect();
        if let Some((_, count)) = self.ignored.get_mut(&(kind, key.clone())) {
            *count += 1;
        } else if self.ignored.len() < Self::MOST {
            let place = self.place();
            self.ignored.insert((kind, key), (place, 1));
        }
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for part in &self.path {
            match part {
                Part::Key(key) if place.is_empty() => place += key,
                Part::Key(key) => place += &format!(".{key}"),
                Part::Index(at) => place += &format!("[{at}]"),
            }
        }
        place
    }
}

/// One object, or a list of them.
struct Walk<'a> {
    kind: Kind,
    found: &'a mut Found,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list of objects")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Walk { kind, found } = self;
        while let Some(key) = map.next_key::<String>()? {
            if let Some(&(key, kind)) = kind.nested().iter().find(|(known, _)| *known == key) {
                found.path.push(Part::Key(key));
                map.next_value_seed(Walk { kind, found })?;
                found.path.pop();
                continue;
            }
            if !kind.plain().contains(&key.as_str()) {
                found.add(kind, &key);
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        let Walk { kind, found } = self;
        for at in 0.. {
            found.path.push(Part::Index(at));
            let next = list.next_element_seed(Walk { kind, found })?;
            found.path.pop();
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the keys of a plan that are not read; none of what is no plan.
pub(super) fn ignored(text: &str) -> Vec<Ignored> {
    let mut found = Found::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let walk = Walk {
        kind: Kind::Plan,
        found: &mut found,
    };
    if walk.deserialize(&mut reader).is_err() {
        return Vec::new();
    }
    let ignored = found.ignored.into_iter();
    ignored
        .map(|((_, key), (place, count))| Ignored { key, place, count })
        .collect()
}
