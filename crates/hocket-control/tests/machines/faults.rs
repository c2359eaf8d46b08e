//! What goes wrong, and when: a list that is drawn from a seed, so that a failing one can be made shorter.

use super::disk::Random;

pub(crate) const HOSTS: u32 = 8;
pub(crate) const SERVERS: u32 = 2;

/// Milliseconds of a run.
pub(crate) type Millis = u64;

/// Programs start and stop flows, and faults begin, before this; all faults are over four seconds later.
pub(crate) const BUSY: Millis = 3_500;

/// Something that goes wrong from one time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub from: Millis,
    pub to: Millis,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Of a hundred messages between a host and all servers, so many are lost, doubled, and late.
    Lossy {
        host: u32,
        lost: u32,
        doubled: u32,
        late: u32,
    },
    /// Nothing passes between a host and a server: to the host, to the server.
    Parted {
        host: u32,
        server: u32,
        ways: [bool; 2],
    },
    /// All connections of a host are cut.
    Cut { host: u32 },
    /// A host stops, and starts with what its agent remembers.
    HostDown { host: u32 },
    /// A server stops, and starts with what its disk has.
    ServerDown { server: u32 },
    /// The active server loses its lease, and does not know.
    Deposed,
    /// Operators say that a link has failed.
    LinkDown { link: u32 },
    /// Probes of hosts say that a link has failed.
    LinkSeen { link: u32, hosts: [u32; 2] },
    /// The servers' disk has so much room.
    DiskFull { room: usize },
    /// The servers' disk loses what it should sync.
    DiskBad,
}

impl What {
    /// Faults that cannot be at once with this one: of one machine, or one thing.
    fn key(&self) -> (u32, u32) {
        match *self {
            Self::Lossy { host, .. } => (0, host),
            Self::Parted { host, server, .. } => (1, host * SERVERS + server),
            Self::HostDown { host } => (2, host),
            Self::ServerDown { .. } | Self::Deposed => (3, 0),
            Self::LinkDown { link } | Self::LinkSeen { link, .. } => (4, link),
            Self::DiskFull { .. } | Self::DiskBad => (5, 0),
            Self::Cut { host } => (6, host),
        }
    }
}

/// The faults of a seed.
pub(crate) fn draw(random: &mut Random, links: &[u32]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for _ in 0..4 + random.below(10) {
        let from = 200 + random.below(BUSY - 200);
        let to = from + [30, 300, 1_000][random.below(3) as usize] + random.below(300);
        let what = one(random, links);
        // The other server takes over before it is over.
        let least = if matches!(what, What::ServerDown { .. }) {
            300
        } else {
            0
        };
        // Longer than a lease and its grace.
        let is_long =
            matches!(what, What::HostDown { .. } | What::Parted { .. }) && random.one_in(2);
        let to = to.max(from + least) + if is_long { 2_000 } else { 0 };
        let overlaps = |other: &Fault| {
            other.what.key() == what.key() && other.from <= to + 100 && from <= other.to + 100
        };
        if faults.iter().any(overlaps) {
            continue;
        }
        faults.push(Fault { from, to, what });
        if what == What::Deposed {
            // Hosts go from one server to the other and back.
            for _ in 0..6 {
                let host = random.below(2) as u32 * 5;
                let at = from + random.below(to - from);
                let what = What::Cut { host };
                faults.push(Fault {
                    from: at,
                    to: at + 1,
                    what,
                });
            }
        }
    }
    faults
}

fn one(random: &mut Random, links: &[u32]) -> What {
    let host = random.below(HOSTS.into()) as u32;
    let server = random.below(SERVERS.into()) as u32;
    let link = links[random.below(links.len() as u64) as usize];
    match random.below(18) {
        0..4 => What::Lossy {
            host,
            lost: random.below(30) as u32,
            doubled: random.below(20) as u32,
            late: random.below(30) as u32,
        },
        4 | 5 => What::Parted {
            host,
            server,
            ways: [[true, true], [true, false], [false, true]][random.below(3) as usize],
        },
        6 => What::HostDown { host },
        7 | 8 => What::ServerDown { server },
        9 => What::Deposed,
        10 => What::LinkDown { link },
        11 => What::LinkSeen {
            link,
            hosts: [host, (host + 1 + random.below(7) as u32) % HOSTS],
        },
        12 => What::DiskFull {
            room: random.below(400) as usize,
        },
        13 => What::DiskBad,
        _ => What::Cut { host },
    }
}
