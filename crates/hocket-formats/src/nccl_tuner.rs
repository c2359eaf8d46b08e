//! Tables for tuners of NCCL: which algorithm, protocol and channels a collective of some size takes.
//!
//! The form is that of the example plugin in NCCL's own repository, so that both that plugin and hocket's read it:
//! `collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks,pipe_ops,registered` a line, the last two
//! optional, -1 for any; the first line that matches counts. That plugin takes what it does not know for `allreduce`,
//! `ring` or `simple`, and for lines of 256 characters what fits; here both are refused.
//!
//! # Source
//! NVIDIA NCCL 2.30.7, `plugins/tuner/example/plugin.c`, `src/include/plugin/nccl_tuner.h`, `src/include/nccl_common.h`.

use std::fmt::Write as _;

use crate::elements::{LARGEST, quoted};
use crate::error::FormatError;

/// Collectives, each at the place of NCCL's number of it.
pub const COLLECTIVES: [&str; 5] = [
    "broadcast",
    "reduce",
    "allgather",
    "reducescatter",
    "allreduce",
];
/// Algorithms, each at the place of NCCL's number of it.
pub const ALGORITHMS: [&str; 7] = [
    "tree",
    "ring",
    "collnet_direct",
    "collnet_chain",
    "nvls",
    "nvls_tree",
    "pat",
];
/// Protocols, each at the place of NCCL's number of it.
pub const PROTOCOLS: [&str; 3] = ["ll", "ll128", "simple"];
/// Characters of a line at most, so that its end is within 256 bytes.
const LONGEST: usize = 254;
const MOST_ROWS: usize = 1 << 16;
/// Channels at most: `MAXCHANNELS`.
const MOST_CHANNELS: i64 = 64;

/// A line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Place in [`COLLECTIVES`].
    pub collective: usize,
    /// From so many bytes on.
    pub least: u64,
    /// To so many, these too.
    pub most: u64,
    /// Place in [`ALGORITHMS`].
    pub algorithm: usize,
    /// Place in [`PROTOCOLS`].
    pub protocol: usize,
    /// Channels; `None`: as NCCL has it.
    pub channels: Option<u32>,
    /// Nodes; `None`: any.
    pub nodes: Option<u32>,
    /// Ranks; `None`: any.
    pub ranks: Option<u32>,
    /// Operations of a group; `None`: any.
    pub pipe_ops: Option<u32>,
    /// Whether buffers are registered; `None`: either.
    pub registered: Option<u32>,
}

/// What a tuner is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Place in [`COLLECTIVES`].
    pub collective: usize,
    /// Size as NCCL counts it.
    pub bytes: u64,
    /// Of the communicator.
    pub nodes: u32,
    /// Of the communicator.
    pub ranks: u32,
    /// Operations of the group.
    pub pipe_ops: u32,
    /// Whether buffers are registered.
    pub registered: u32,
}

impl Row {
    fn answers(&self, asked: &Question) -> bool {
        let any = |wanted: Option<u32>, is: u32| wanted.is_none_or(|wanted| wanted == is);
        self.collective == asked.collective
            && (self.least..=self.most).contains(&asked.bytes)
            && any(self.nodes, asked.nodes)
            && any(self.ranks, asked.ranks)
            && any(self.pipe_ops, asked.pipe_ops)
            && any(self.registered, asked.registered)
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its lines, in order.
    pub rows: Vec<Row>,
    /// Its comments, without their signs.
    pub comments: Vec<String>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// A fault with the line, for a name or number that makes no sense, or a line that is too long.
    ///
    /// # Examples
    /// ```
    /// use hocket_formats::nccl_tuner::{Question, Table};
    ///
    /// let text = "# small\nallreduce,0,65536,tree,ll,2,-1,-1\nallreduce,65537,18446744073709551615,ring,simple,-1,1,8,-1,-1\n";
    /// let table = Table::parse(text.as_bytes())?;
    /// let asked = Question { collective: 4, bytes: 1 << 20, nodes: 1, ranks: 8, pipe_ops: 1, registered: 0 };
    /// assert_eq!(table.pick(&asked).map(|row| row.algorithm), Some(1));
    /// # Ok::<(), hocket_formats::FormatError>(())
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() > LARGEST {
            let why = format!("it has {} bytes", bytes.len());
            return Err(FormatError::new(why).remedy(format!("tables have at most {LARGEST}")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| {
            FormatError::new("it is not text in UTF-8").remedy("give a table of lines")
        })?;
        let mut table = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            if line.len() > LONGEST {
                let why = format!("the line has {} characters", line.len());
                return Err(FormatError::at(number, why).remedy(format!("{LONGEST} at most")));
            }
            if let Some(comment) = line.strip_prefix('#') {
                table.comments.push(comment.trim().to_owned());
            } else if !line.trim().is_empty() {
                table.rows.push(row(number, line)?);
            }
            if table.rows.len() > MOST_ROWS || table.comments.len() > MOST_ROWS {
                return Err(FormatError::at(
                    number,
                    format!("there are more than {MOST_ROWS} lines"),
                ));
            }
        }
        Ok(table)
    }

    /// Writes the table.
    ///
    /// # Errors
    /// A fault for a comment that is too long or has several lines, and sizes that no line answers for a collective
    /// that the table has.
    pub fn write(&self) -> Result<String, FormatError> {
        let mut out = String::new();
        for comment in &self.comments {
            if comment.len() + 2 > LONGEST || comment.contains(['\n', '\r']) {
                return Err(FormatError::new(format!(
                    "the comment {} is too long",
                    quoted(comment)
                ))
                .remedy(format!("{LONGEST} characters at most, in one line")));
            }
            let _ = writeln!(out, "# {comment}");
        }
        if let Some((collective, bytes)) = self.hole() {
            let why = format!("no line answers for {collective} of {bytes} bytes");
            return Err(FormatError::new(why).remedy("cover 0 to 18446744073709551615"));
        }
        for row in &self.rows {
            let any = |value: Option<u32>| value.map_or("-1".to_owned(), |value| value.to_string());
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{}",
                COLLECTIVES[row.collective],
                row.least,
                row.most,
                ALGORITHMS[row.algorithm],
                PROTOCOLS[row.protocol],
                any(row.channels),
                any(row.nodes),
                any(row.ranks),
                any(row.pipe_ops),
                any(row.registered),
            );
        }
        Ok(out)
    }

    /// Returns the line that answers a question.
    pub fn pick(&self, asked: &Question) -> Option<&Row> {
        self.rows.iter().find(|row| row.answers(asked))
    }

    /// Returns the first size for which lines of a collective, nodes and ranks have no answer, of those that the table
    /// has.
    pub fn hole(&self) -> Option<(&'static str, u64)> {
        let key = |row: &Row| (row.collective, row.nodes, row.ranks);
        let mut keys: Vec<_> = self.rows.iter().map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        for (collective, nodes, ranks) in keys {
            let general = |mine: Option<u32>, of: Option<u32>| mine.is_none() || mine == of;
            let mut rows: Vec<(u64, u64)> = self
                .rows
                .iter()
                .filter(|row| row.collective == collective)
                .filter(|row| general(row.nodes, nodes) && general(row.ranks, ranks))
                .filter(|row| row.pipe_ops.is_none() && row.registered.is_none())
                .map(|row| (row.least, row.most))
                .collect();
            rows.sort_unstable();
            let mut next = Some(0u64);
            for (least, most) in rows {
                match next {
                    Some(at) if least <= at => {
                        next = next.max(most.checked_add(1)).filter(|_| most < u64::MAX)
                    }
                    Some(_) => break,
                    None => {}
                }
            }
            if let Some(at) = next {
                return Some((COLLECTIVES[collective], at));
            }
        }
        None
    }
}

fn row(number: u64, line: &str) -> Result<Row, FormatError> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if !(8..=10).contains(&fields.len()) {
        let why = format!("the line has {} fields", fields.len());
        return Err(FormatError::at(number, why).remedy(
            "write collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks,pipe_ops,registered",
        ));
    }
    let name = |place: usize, names: &[&str]| {
        let found = names.iter().position(|name| *name == fields[place]);
        found.ok_or_else(|| {
            let why = format!("there is no {}", quoted(fields[place]));
            FormatError::at(number, why).remedy(format!("known are {}", names.join(", ")))
        })
    };
    let bytes = |place: usize| -> Result<u64, FormatError> {
        fields[place].parse().map_err(|_| {
            let why = format!("{} is no number of bytes", quoted(fields[place]));
            FormatError::at(number, why).remedy("give 0 to 18446744073709551615")
        })
    };
    let any =
        |place: usize, range: std::ops::RangeInclusive<i64>| -> Result<Option<u32>, FormatError> {
            let Some(text) = fields.get(place) else {
                return Ok(None);
            };
            let read: Option<i64> = text.parse().ok();
            match read.filter(|value| *value == -1 || range.contains(value)) {
                Some(value) => Ok(u32::try_from(value).ok()),
                None => {
                    let why = format!("{} is no number of field {}", quoted(text), place + 1);
                    let right = format!("give -1 for any, or {} to {}", range.start(), range.end());
                    Err(FormatError::at(number, why).remedy(right))
                }
            }
        };
    const LARGEST: i64 = (1 << 31) - 1;
    let row = Row {
        collective: name(0, &COLLECTIVES)?,
        least: bytes(1)?,
        most: bytes(2)?,
        algorithm: name(3, &ALGORITHMS)?,
        protocol: name(4, &PROTOCOLS)?,
        channels: any(5, 1..=MOST_CHANNELS)?,
        nodes: any(6, 1..=LARGEST)?,
        ranks: any(7, 1..=LARGEST)?,
        pipe_ops: any(8, 1..=LARGEST)?,
        registered: any(9, 0..=1)?,
    };
    if row.most < row.least {
        let why = format!(
            "max_bytes {} is less than min_bytes {}",
            row.most, row.least
        );
        return Err(FormatError::at(number, why).remedy("exchange them"));
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: u64 = u64::MAX;

    fn table(text: &str) -> Table {
        Table::parse(text.as_bytes()).unwrap()
    }

    fn wrong(text: &str) -> String {
        Table::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_table_is_read_and_written() {
        let text = format!(
            "# by hand\nallreduce,0,1023,tree,ll,2,1,8,-1,-1\nallreduce,1024,{ALL},ring,simple,-1,1,8,-1,-1\n"
        );
        let read = table(&text);
        assert_eq!(read.write().unwrap(), text);
        let ask = |bytes, ranks| Question {
            collective: 4,
            bytes,
            nodes: 1,
            ranks,
            pipe_ops: 3,
            registered: 1,
        };
        assert_eq!(read.pick(&ask(1023, 8)).unwrap().channels, Some(2));
        assert_eq!(read.pick(&ask(ALL, 8)).unwrap().protocol, 2);
        assert_eq!(read.pick(&ask(0, 4)), None);
    }

    #[test]
    fn sizes_that_nobody_answers_are_found() {
        let hole = |text: &str| table(text).hole();
        assert_eq!(
            hole("reduce,0,4294967295,ring,simple,-1,-1,-1\n"),
            Some(("reduce", 1 << 32))
        );
        let two = format!("reduce,0,9,ring,ll,-1,-1,-1\nreduce,11,{ALL},ring,ll,-1,-1,-1\n");
        assert_eq!(hole(&two), Some(("reduce", 10)));
        assert!(
            table(&two)
                .write()
                .unwrap_err()
                .to_string()
                .contains("reduce of 10 bytes")
        );
        let general = format!("reduce,0,9,ring,ll,-1,2,16\nreduce,0,{ALL},ring,ll,-1,-1,-1\n");
        assert_eq!(hole(&general), None);
        let some = format!("reduce,0,{ALL},ring,ll,-1,-1,-1,2,-1\n");
        assert_eq!(hole(&some), Some(("reduce", 0)));
    }

    #[test]
    fn what_the_example_plugin_would_take_for_something_else_is_refused() {
        assert!(
            wrong("\nall-reduce,0,1,ring,ll,1,1,1").contains("line 2: there is no \"all-reduce\"")
        );
        assert!(wrong("allreduce,0,1,Ring,ll,1,1,1").contains("there is no \"Ring\""));
        assert!(wrong("allreduce,0,1,ring,LL,1,1,1").contains("there is no \"LL\""));
        assert!(wrong("allreduce,0,1,ring,ll,1,1").contains("7 fields"));
        assert!(wrong("allreduce,0,-1,ring,ll,1,1,1").contains("\"-1\" is no number of bytes"));
        assert!(wrong("allreduce,2,1,ring,ll,1,1,1").contains("max_bytes 1 is less"));
        assert!(wrong("allreduce,0,1,ring,ll,65,1,1").contains("field 6"));
        assert!(wrong(&"a".repeat(300)).contains("300 characters"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_in_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Err(fault) = Table::parse(&bytes) {
                prop_assert!(!fault.to_string().contains('\n'));
            }
        }

        #[test]
        fn a_hole_is_one(ranges in proptest::collection::vec((0u64..20, 0u64..20), 0..8)) {
            let rows = ranges.iter().map(|&(a, b)| Row {
                collective: 4, least: a.min(b), most: if b > 17 { ALL } else { a.max(b) }, algorithm: 1, protocol: 0,
                channels: None, nodes: None, ranks: None, pipe_ops: None, registered: None,
            });
            let table = Table { rows: rows.collect(), comments: Vec::new() };
            let answers = |bytes| table.pick(&Question {
                collective: 4, bytes, nodes: 1, ranks: 1, pipe_ops: 1, registered: 0,
            }).is_some();
            let slow = (0..25).chain([ALL]).find(|&bytes| !answers(bytes));
            match table.hole() {
                Some((_, at)) => prop_assert_eq!(Some(at), slow),
                None => prop_assert!(slow.is_none() || table.rows.is_empty()),
            }
        }
    }
}
