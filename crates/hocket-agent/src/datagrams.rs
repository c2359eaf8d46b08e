//! The protocol between programs and the agent, version 1: one line of text a datagram.
//!
//! ```text
//! port tcp SRC DST DPORT              -> port 50123 | none WHY
//! open tcp SRC DST DPORT BYTES JOB    -> flow ID port 50123 | flow ID none WHY
//! progress ID LEFT
//! measured ID LOSS_PPM RTT_US
//! close ID
//! watch                               -> path ID port 50123 | path ID none WHY, whenever a path changes
//!                                        rate ID BYTES_PER_SECOND, whenever what a flow may send changes
//! job JOB [SRC DST BYTES]...          -> job JOB registered
//! start JOB, stop JOB, go JOB
//! ```
//!
//! `SRC` may be `-`: the address that the host sends from; in a job's pattern, which has flows of any host, it may not.
//! A pattern whose line ends with `...` goes on with the next line of the same job, and has no answer until it is whole.
//! Lines without an answer have one where they are wrong: `error WHY`. What the controller does not take is told later:
//! `job JOB none WHY`. Flows and jobs end with the connection that opened them; flows of `port` when their socket is gone.

use std::fmt;
use std::net::IpAddr;
use std::str::{FromStr, SplitWhitespace};

use hocket_control::directory::read_address;
use hocket_control::message::PatternFlow;

/// Most bytes of a line.
pub const MOST_BYTES: usize = 8_192;

/// A protocol that has ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Returns its number in packets.
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// Where a flow goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends<Source = IpAddr> {
    /// Its protocol.
    pub protocol: Protocol,
    /// The address that it is sent from. A program may leave it out: `None`: as the host sends there.
    pub src: Source,
    /// The address of the receiver.
    pub dst: IpAddr,
    /// The receiver's port.
    pub dport: u16,
}

impl fmt::Display for Ends<Option<IpAddr>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.protocol {
            Protocol::Tcp => "tcp ",
            Protocol::Udp => "udp ",
        })?;
        match self.src {
            Some(src) => write!(f, "{src} {} {}", self.dst, self.dport),
            None => write!(f, "- {} {}", self.dst, self.dport),
        }
    }
}

/// What a program says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A socket is about to be connected.
    Port(Ends<Option<IpAddr>>),
    /// A flow begins.
    Open {
        /// Where it goes.
        ends: Ends<Option<IpAddr>>,
        /// Bytes to send.
        bytes: u64,
        /// Its job; 0: none.
        job: u32,
    },
    /// How many bytes a flow has left.
    Progress {
        /// The flow.
        flow: u64,
        /// Its bytes left.
        left: u64,
    },
    /// What was measured of a flow.
    Measured {
        /// The flow.
        flow: u64,
        /// Packets of a million that were lost.
        loss_ppm: u32,
        /// The round-trip time in us.
        rtt_us: u64,
    },
    /// A flow ends.
    Close {
        /// The flow.
        flow: u64,
    },
    /// Changes of paths and rates are to be told.
    Watch,
    /// A job registers flows of its iterations.
    Job {
        /// The job.
        job: u32,
        /// The flows, or some of them.
        pattern: Vec<PatternFlow>,
        /// Whether these are the last.
        is_whole: bool,
    },
    /// An iteration's communication begins.
    Start {
        /// The job.
        job: u32,
    },
    /// An iteration's communication ends.
    Stop {
        /// The job.
        job: u32,
    },
    /// A job is over.
    Go {
        /// The job.
        job: u32,
    },
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A source port, or why there is none.
    Port(Result<u16, String>),
    /// A flow's number, and its port or why it has none.
    Flow(u64, Result<u16, String>),
    /// A flow's path has changed.
    Path(u64, Result<u16, String>),
    /// What a flow may send has changed [bytes/s].
    Rate(u64, u64),
    /// A job is registered, or is none any more.
    Job(u32, Result<(), String>),
    /// A line that is none.
    Error(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = match self {
            Self::Port(port) => port,
            Self::Flow(flow, port) => {
                write!(f, "flow {flow} ")?;
                port
            }
            Self::Path(flow, port) => {
                write!(f, "path {flow} ")?;
                port
            }
            Self::Rate(flow, rate) => return write!(f, "rate {flow} {rate}"),
            Self::Job(job, Ok(())) => return write!(f, "job {job} registered"),
            Self::Job(job, Err(why)) => return write!(f, "job {job} none {why}"),
            Self::Error(why) => return write!(f, "error {why}"),
        };
        match port {
            Ok(port) => write!(f, "port {port}"),
            Err(why) => write!(f, "none {why}"),
        }
    }
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let odd = || format!("the agent answers {text:?}");
        let port = |text: &str| match text.split_once(' ').unwrap_or((text, "")) {
            ("port", number) => number.parse().map(Ok).map_err(|_| odd()),
            ("none", why) => Ok(Err(why.to_owned())),
            _ => Err(odd()),
        };
        let named = |text: &str| {
            let (flow, rest) = text.split_once(' ').ok_or_else(odd)?;
            let flow = flow.parse().map_err(|_| odd())?;
            Ok::<_, String>((flow, port(rest)?))
        };
        match text.split_once(' ').unwrap_or((text, "")) {
            ("flow", rest) => named(rest).map(|(flow, port)| Self::Flow(flow, port)),
            ("path", rest) => named(rest).map(|(flow, port)| Self::Path(flow, port)),
            ("rate", rest) => {
                let (flow, rate) = rest.split_once(' ').ok_or_else(odd)?;
                let rate = rate.parse().map_err(|_| odd())?;
                Ok(Self::Rate(flow.parse().map_err(|_| odd())?, rate))
            }
            ("job", rest) => {
                let (job, rest) = rest.split_once(' ').ok_or_else(odd)?;
                let job = job.parse().map_err(|_| odd())?;
                match rest.split_once(' ').unwrap_or((rest, "")) {
                    ("registered", "") => Ok(Self::Job(job, Ok(()))),
                    ("none", why) => Ok(Self::Job(job, Err(why.to_owned()))),
                    _ => Err(odd()),
                }
            }
            ("error", why) => Ok(Self::Error(why.to_owned())),
            _ => port(text).map(Self::Port),
        }
    }
}

/// What is said to a line that begins otherwise.
const NONE: &str = "say port, open, progress, measured, close, watch, job, start, stop or go";

impl FromStr for Request {
    type Err = String;

    /// # Errors
    /// What is wrong with the line.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let request = match words.next().unwrap_or_default() {
            "port" => Self::Port(ends(&mut words)?),
            "open" => Self::Open {
                ends: ends(&mut words)?,
                bytes: next(&mut words, "a number of bytes")?,
                job: next(&mut words, "a job's number")?,
            },
            "progress" => Self::Progress {
                flow: next(&mut words, "a flow's number")?,
                left: next(&mut words, "a number of bytes")?,
            },
            "measured" => Self::Measured {
                flow: next(&mut words, "a flow's number")?,
                loss_ppm: next(&mut words, "lost packets of a million")?,
                rtt_us: next(&mut words, "a time in microseconds")?,
            },
            "close" => Self::Close {
                flow: next(&mut words, "a flow's number")?,
            },
            "watch" => Self::Watch,
            "job" => return job(&mut words),
            "start" => Self::Start {
                job: next(&mut words, "a job's number")?,
            },
            "stop" => Self::Stop {
                job: next(&mut words, "a job's number")?,
            },
            "go" => Self::Go {
                job: next(&mut words, "a job's number")?,
            },
            _ => return Err(NONE.to_owned()),
        };
        match words.next() {
            None => Ok(request),
            Some(word) => Err(format!("{word:?} is one word too many")),
        }
    }
}

const MIXED: &str = "both addresses are to be IPv4, or both IPv6";

fn ends(words: &mut SplitWhitespace<'_>) -> Result<Ends<Option<IpAddr>>, String> {
    let protocol = match words.next() {
        Some("tcp") => Protocol::Tcp,
        Some("udp") => Protocol::Udp,
        _ => return Err("say tcp or udp".to_owned()),
    };
    let src = match words.next() {
        Some("-") => None,
        Some(text) => Some(address(text)?),
        None => return Err("an address or - is missing".to_owned()),
    };
    let ends = Ends {
        protocol,
        src,
        dst: next_address(words)?,
        dport: next(words, "a port")?,
    };
    let is_mixed = ends
        .src
        .is_some_and(|src| src.is_ipv4() != ends.dst.is_ipv4());
    match () {
        () if is_mixed => Err(MIXED.to_owned()),
        () if ends.dport == 0 => Err("0 is no port".to_owned()),
        () => Ok(ends),
    }
}

fn job(words: &mut SplitWhitespace<'_>) -> Result<Request, String> {
    let number: u32 = next(words, "a job's number")?;
    let (mut pattern, mut is_whole) = (Vec::new(), true);
    while let Some(word) = words.next() {
        if word == "..." {
            is_whole = false;
            break;
        }
        let flow = PatternFlow {
            src: address(word)?,
            dst: next_address(words)?,
            bytes: next(words, "a number of bytes")?,
        };
        if flow.src.is_ipv4() != flow.dst.is_ipv4() {
            return Err(MIXED.to_owned());
        }
        pattern.push(flow);
    }
    match words.next() {
        None => Ok(Request::Job {
            job: number,
            pattern,
            is_whole,
        }),
        Some(word) => Err(format!("{word:?} is one word too many")),
    }
}

fn address(word: &str) -> Result<IpAddr, String> {
    read_address(word).map_err(|why| format!("{word:?} {why}"))
}

fn next_address(words: &mut SplitWhitespace<'_>) -> Result<IpAddr, String> {
    address(words.next().ok_or("an address is missing")?)
}

fn next<T: FromStr>(words: &mut SplitWhitespace<'_>, what: &str) -> Result<T, String> {
    let word = words.next().ok_or_else(|| format!("{what} is missing"))?;
    word.parse().map_err(|_| format!("{word:?} is not {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let ends = Ends {
            protocol: Protocol::Tcp,
            src: None,
            dst: [10, 0, 0, 1].into(),
            dport: 80,
        };
        assert_eq!(ends.to_string(), "tcp - 10.0.0.1 80");
        assert_eq!(format!("port {ends}").parse(), Ok(Request::Port(ends)));
        let open = "open udp fd00::1 fd00::2 4791 1000000 7\n".parse();
        assert!(matches!(
            open,
            Ok(Request::Open {
                bytes: 1_000_000,
                job: 7,
                ..
            })
        ));
        assert_eq!("close 9".parse(), Ok(Request::Close { flow: 9 }));
        let [src, dst] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let flow = PatternFlow { src, dst, bytes: 5 };
        for (line, count, is_whole) in [
            ("job 7 10.0.0.1 10.0.0.2 5", 1, true),
            (
                "job 7 10.0.0.1 10.0.0.2 5 10.0.0.1 10.0.0.2 5 ...",
                2,
                false,
            ),
            ("job 7", 0, true),
        ] {
            let pattern = vec![flow; count];
            let request = Request::Job {
                job: 7,
                pattern,
                is_whole,
            };
            assert_eq!(line.parse(), Ok(request));
        }
        // However an address is written, it is one.
        let one = "open tcp fd00::a 10.0.0.1 80 1 0".parse::<Request>();
        assert_eq!(one, Err(MIXED.to_owned()));
        for [src, dst, as_read] in [
            ["::ffff:10.0.0.2", "10.0.0.1", "10.0.0.2 10.0.0.1"],
            ["10.0.0.2", "::FFFF:0a00:0001", "10.0.0.2 10.0.0.1"],
            ["[FD00:0:0::00b]", "fd00::A", "fd00::b fd00::a"],
        ] {
            let request = |ends: &str| format!("port tcp {ends} 80").parse::<Request>();
            let pattern = |ends: &str| format!("job 7 {ends} 1").parse::<Request>();
            let ends = format!("{src} {dst}");
            assert!(request(as_read).is_ok());
            assert_eq!(request(&ends), request(as_read), "{ends}");
            assert_eq!(pattern(&ends), pattern(as_read), "{ends}");
        }
        assert_eq!("start 7".parse(), Ok(Request::Start { job: 7 }));
        for (line, why) in [
            ("", NONE),
            ("jobs 7", NONE),
            ("job", "a job's number is missing"),
            ("job 7 10.0.0.1", "an address is missing"),
            ("job 7 - 10.0.0.1 80", "\"-\" is not an IP address"),
            (
                "job 7 10.0.0.1 10.0.0.2 -1",
                "\"-1\" is not a number of bytes",
            ),
            ("job 7 10.0.0.1 fd00::1 1", MIXED),
            ("job 7 ... 10.0.0.1", "\"10.0.0.1\" is one word too many"),
            ("start", "a job's number is missing"),
            ("port sctp - 10.0.0.1 80", "say tcp or udp"),
            ("port tcp - 10.0.0.1 0", "0 is no port"),
            (
                "port tcp - [10.0.0.1] 80",
                "\"[10.0.0.1]\" is not an IP address",
            ),
            (
                "port tcp - fe80::1%eth0 80",
                "\"fe80::1%eth0\" has a zone, which no other host knows",
            ),
            ("port tcp - 10.0.0.1 65536", "\"65536\" is not a port"),
            ("port tcp fd00::1 10.0.0.1 80", MIXED),
            ("close 9 9", "\"9\" is one word too many"),
            ("open tcp - 10.0.0.1 80", "a number of bytes is missing"),
        ] {
            assert_eq!(line.parse::<Request>(), Err(why.to_owned()), "{line}");
        }
    }

    #[test]
    fn answers_are_read_as_they_are_written() {
        for answer in [
            Answer::Port(Ok(50_123)),
            Answer::Port(Err("no answer".to_owned())),
            Answer::Flow(7, Ok(1024)),
            Answer::Path(7, Err("refused".to_owned())),
            Answer::Rate(7, 12_500_000),
            Answer::Job(7, Ok(())),
            Answer::Job(7, Err("refused: not a job of this host".to_owned())),
            Answer::Error("say tcp or udp".to_owned()),
        ] {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        assert!("flow x port 1".parse::<Answer>().is_err());
        assert!("port x".parse::<Answer>().is_err());
        assert!("job 7 perhaps".parse::<Answer>().is_err());
        assert!("rate 7".parse::<Answer>().is_err());
    }
}
