//! Connections between ranks: who connects to whom, and how they recognise each other.
//!
//! Of two ranks the higher one connects, or who sends if that is asked for. It shows at once that it knows the secret,
//! by the challenge that the other has published through the store, and which no other pair of ranks shares. So the
//! lower one never waits for a stranger or for a rank that itself waits.

#[cfg(target_os = "linux")]
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::control::Control;
use crate::error::{Code, Failure};
use crate::pace::{Pace, Turns};
#[cfg(target_os = "linux")]
use crate::pipes::{Pipe, Pipes};
use crate::wire::{self, Header, Member, Proof};

/// Bytes that are read from a connection at once; they stay in the second cache until they are summed.
pub(crate) const BUFFER: usize = 256 << 10;

/// How long a stranger may take to greet.
const GREETING_TIME: Duration = Duration::from_secs(2);

/// Strangers that may be greeting at once; more wait.
const MAX_STRANGERS: usize = 64;

/// Bytes of a greeting: who it is, the group, from, to, stream, and the answer to the challenge.
const GREETING: usize = 8 + 8 + 4 + 4 + 4 + wire::PROOF;

/// A message that is on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Header, and before it what opens the call.
    pub head: Vec<u8>,
    pub data: *const u8,
    pub len: usize,
    pub sent: usize,
    /// Block that goes on when it is out.
    pub block: Option<u32>,
    /// Where the data is, if not in a buffer of the call.
    pub _own: Option<Vec<u8>>,
}

impl Outgoing {
    /// Returns the bytes that are still to go.
    fn left(&self) -> usize {
        self.head.len() + self.len - self.sent
    }
}

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A header comes next.
    Header,
    /// Bytes of a message: its inbox, whether they go where the step wants them, and how many have come.
    Body {
        inbox: u32,
        direct: bool,
        done: usize,
    },
    /// What comes next belongs to a later call.
    Parked,
}

/// Number of the stream to a rank that goes through memory.
#[cfg(target_os = "linux")]
pub(crate) const BY_MEMORY: u32 = u32::MAX;

/// What carries the bytes of a stream.
#[derive(Debug)]
enum Carrier {
    /// A connection, and what has been read from it and not yet used.
    Tcp {
        socket: TcpStream,
        buffer: Box<[u8]>,
        used: usize,
        filled: usize,
    },
    #[cfg(target_os = "linux")]
    Memory(Pipe),
}

/// One way to a rank and back.
#[derive(Debug)]
pub(crate) struct Stream {
    carrier: Carrier,
    /// When it may write, if it is to keep to links.
    turns: Option<Turns>,
    pub out: VecDeque<Outgoing>,
    pub reading: Reading,
    /// Messages of this call that have not come as a whole.
    pub awaited: usize,
    /// Whether this side, and the other, have opened the call.
    pub opened: (bool, bool),
    pub ended: bool,
}

// SAFETY: the pointers in `out` are used by the thread only that runs a call, which empties it.
unsafe impl Send for Stream {}

impl Stream {
    fn new(socket: TcpStream, turns: Option<Turns>) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(None)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            turns,
            ..Self::over(Carrier::Tcp {
                socket,
                buffer: vec![0; BUFFER].into_boxed_slice(),
                used: 0,
                filled: 0,
            })
        })
    }

    fn over(carrier: Carrier) -> Self {
        Self {
            carrier,
            turns: None,
            out: VecDeque::new(),
            reading: Reading::Header,
            awaited: 0,
            opened: (false, false),
            ended: false,
        }
    }

    /// Returns whether something of this call can still come.
    pub(crate) fn can_come(&self) -> bool {
        self.awaited > 0 && self.reading != Reading::Parked
    }

    /// Returns the connection; a way through memory has none.
    pub(crate) fn socket(&self) -> Option<&TcpStream> {
        match &self.carrier {
            Carrier::Tcp { socket, .. } => Some(socket),
            #[cfg(target_os = "linux")]
            Carrier::Memory(_) => None,
        }
    }

    /// Returns what has come and is not yet used; of much, the first part.
    pub(crate) fn waiting(&self) -> &[u8] {
        match &self.carrier {
            Carrier::Tcp {
                buffer,
                used,
                filled,
                ..
            } => &buffer[*used..*filled],
            #[cfg(target_os = "linux")]
            Carrier::Memory(pipe) => pipe.waiting(),
        }
    }

    /// Notes that so many bytes are used.
    pub(crate) fn take(&mut self, len: usize) {
        match &mut self.carrier {
            Carrier::Tcp { used, .. } => *used += len,
            #[cfg(target_os = "linux")]
            Carrier::Memory(pipe) => pipe.take(len),
        }
    }

    /// Returns the header that comes next, if it is there as a whole.
    pub(crate) fn header(&self) -> Option<&[u8; Header::BYTES]> {
        self.waiting().first_chunk()
    }

    /// Looks for more; whether anything came.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        match &mut self.carrier {
            Carrier::Tcp {
                socket,
                buffer,
                used,
                filled,
            } => {
                if used == filled {
                    (*used, *filled) = (0, 0);
                } else if *filled == buffer.len() {
                    buffer.copy_within(*used..*filled, 0);
                    *filled -= *used;
                    *used = 0;
                }
                let read = read(socket, &mut buffer[*filled..], &mut self.ended)?;
                *filled += read;
                Ok(read > 0)
            }
            #[cfg(target_os = "linux")]
            Carrier::Memory(pipe) => Ok(pipe.look()),
        }
    }

    /// Reads from the connection to where the bytes belong; `None` if there is none.
    pub(crate) fn read(&mut self, to: &mut [u8]) -> Option<io::Result<usize>> {
        match &self.carrier {
            Carrier::Tcp { socket, .. } => Some(read(socket, to, &mut self.ended)),
            #[cfg(target_os = "linux")]
            Carrier::Memory(_) => None,
        }
    }

    /// Writes what the way takes of the first message that waits to go.
    pub(crate) fn write(&mut self) -> io::Result<usize> {
        let Some(first) = self.out.front() else {
            return Ok(0);
        };
        let most = match &mut self.turns {
            Some(turns) => turns.allow(self.out.iter().map(Outgoing::left), Instant::now()),
            None => usize::MAX,
        };
        if most == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let head = &first.head[first.sent.min(first.head.len())..];
        let head = &head[..head.len().min(most)];
        let from = first.sent.saturating_sub(first.head.len());
        let len = (first.len - from).min(most - head.len());
        // SAFETY: the place that is sent is not written before the step has ended, and has that many bytes.
        let data = unsafe { std::slice::from_raw_parts(first.data.add(from), len) };
        let parts = [IoSlice::new(head), IoSlice::new(data)];
        let written = match &self.carrier {
            Carrier::Tcp { socket, .. } => (&*socket).write_vectored(&parts),
            #[cfg(target_os = "linux")]
            Carrier::Memory(pipe) => pipe.write(&parts),
        }?;
        if let Some(turns) = &mut self.turns {
            turns.wrote(written);
        }
        Ok(written)
    }

    /// When it may write what waits to go, if it has to wait for its turn.
    pub(crate) fn due(&self) -> Option<Instant> {
        let turns = self.turns.as_ref().filter(|_| !self.out.is_empty())?;
        turns.due(self.out.iter().map(Outgoing::left))
    }

    /// Returns whether something has come through memory that was not looked at.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_more(&self) -> bool {
        match &self.carrier {
            Carrier::Tcp { .. } => false,
            Carrier::Memory(pipe) => self.can_come() && pipe.has_more(),
        }
    }

    /// Returns whether there is room in memory for what waits to go.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_room(&self) -> bool {
        match &self.carrier {
            Carrier::Tcp { .. } => false,
            Carrier::Memory(pipe) => !self.out.is_empty() && pipe.has_room(),
        }
    }
}

/// Reads what is there; 0 if nothing is, or the other side has ended, which is noted.
fn read(mut socket: &TcpStream, to: &mut [u8], ended: &mut bool) -> io::Result<usize> {
    loop {
        match socket.read(to) {
            Ok(0) => {
                *ended = !to.is_empty();
                return Ok(0);
            }
            Ok(read) => return Ok(read),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// How ranks connect.
#[derive(Debug)]
pub(crate) struct Ways {
    /// Streams that lead to each rank.
    pub streams: u32,
    /// Whether odd ones are opened by the lower of two ranks.
    pub outward: bool,
    /// Where some of them connect instead.
    pub to: BTreeMap<(u32, u32), IpAddr>,
    pub pace: Option<Pace>,
}

impl Ways {
    /// Returns whether the first of two ranks opens a stream to the second.
    fn opens(&self, rank: u32, peer: u32, stream: u32) -> bool {
        (rank > peer) != (self.outward && stream % 2 == 1)
    }
}

/// All connections of a rank.
#[derive(Debug)]
pub(crate) struct Links {
    pub group: u64,
    pub rank: u32,
    pub members: Vec<Member>,
    secret: Vec<u8>,
    challenge: Proof,
    listener: TcpListener,
    ways: Ways,
    /// Ways to ranks, by rank and number.
    pub open: BTreeMap<(u32, u32), Stream>,
    /// What the messages of this call go through, if not through connections.
    #[cfg(target_os = "linux")]
    pub memory: Option<Arc<Pipes>>,
    strangers: Vec<Stranger>,
}

impl Links {
    pub(crate) fn new(
        (group, members): (u64, Vec<Member>),
        rank: u32,
        secret: &[u8],
        challenge: Proof,
        listener: TcpListener,
        ways: Ways,
    ) -> Self {
        Self {
            group,
            rank,
            members,
            secret: secret.to_vec(),
            challenge,
            listener,
            ways,
            open: BTreeMap::new(),
            #[cfg(target_os = "linux")]
            memory: None,
            strangers: Vec::new(),
        }
    }

    /// Returns the stream that a channel to a rank goes over.
    pub(crate) fn stream_of(&self, peer: u32, channel: u32) -> (u32, u32) {
        #[cfg(target_os = "linux")]
        if self.memory.is_some() {
            return (peer, BY_MEMORY);
        }
        (peer, channel % self.ways.streams)
    }

    /// Opens the ways through memory that are missing.
    #[cfg(target_os = "linux")]
    pub(crate) fn connect_by_memory(
        &mut self,
        channels: &BTreeSet<(u32, u32)>,
    ) -> Result<(), Failure> {
        let pipes = self.memory.clone().expect("the call goes through memory");
        for &(peer, _) in channels {
            if let Entry::Vacant(place) = self.open.entry((peer, BY_MEMORY)) {
                let pipe = pipes.to(peer).ok_or_else(|| {
                    let why = format!("cannot map the memory that is shared with rank {peer}");
                    Failure::new(Code::Aborted, why).of(Some(self.rank), 0)
                })?;
                place.insert(Stream::over(Carrier::Memory(pipe)));
            }
        }
        Ok(())
    }

    /// Connects to ranks that are not connected yet; they do the same at the same time.
    ///
    /// `look` is asked now and then whether there is a reason to stop.
    pub(crate) fn connect(
        &mut self,
        channels: &BTreeSet<(u32, u32)>,
        patience: Duration,
        control: &mut Control,
        look: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let all = channels
            .iter()
            .map(|&(peer, channel)| self.stream_of(peer, channel));
        let missing: BTreeSet<(u32, u32)> =
            all.filter(|key| !self.open.contains_key(key)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let until = Instant::now() + patience;
        let mut greeted = Vec::new();
        let opens = |key: &&(u32, u32)| self.ways.opens(self.rank, key.0, key.1);
        let (ours, theirs): (Vec<_>, Vec<_>) = missing.iter().partition(opens);
        for &(peer, stream) in ours {
            // Others greet this rank meanwhile, and wait for its answer.
            self.admit();
            let socket = self.greet(peer, stream, patience);
            let socket = socket.map_err(|error| self.lost(peer, &error))?;
            greeted.push((peer, stream, socket));
        }
        for &key in theirs {
            while !self.open.contains_key(&key) {
                look()?;
                if control.has_left(key.0) {
                    return Err(Failure::left(key.0, 0));
                }
                self.await_others(None, until, control)
                    .map_err(|failure| failure.awaiting(key.0))?;
            }
        }
        for (peer, stream, mut socket) in greeted {
            self.await_answer(&socket, until, control, look)
                .map_err(|failure| failure.awaiting(peer))?;
            let mut answer = [0; wire::PROOF];
            let answered = socket
                .set_read_timeout(Some(GREETING_TIME))
                .and_then(|()| socket.read_exact(&mut answer));
            answered.map_err(|error| self.lost(peer, &error))?;
            let parts = self.parts(self.rank, peer, stream);
            let challenge = self.challenge;
            if !wire::proves(&self.secret, "accept", &[&challenge, &parts], &answer) {
                let why = format!("rank {peer} does not know the secret");
                return Err(Failure::new(Code::Join, why).of(Some(peer), 0));
            }
            let turns = self.turns((peer, stream));
            let ready = Stream::new(socket, turns).map_err(|error| self.lost(peer, &error))?;
            self.open.insert((peer, stream), ready);
        }
        Ok(())
    }

    fn turns(&self, stream: (u32, u32)) -> Option<Turns> {
        Turns::of(self.ways.pace.as_ref()?, stream)
    }

    fn lost(&self, peer: u32, error: &io::Error) -> Failure {
        let address = &self.members[peer as usize].address;
        let says = crate::says(error);
        let why = format!("cannot connect to rank {peer} at {address}: {says}");
        Failure::new(Code::Lost, why).of(Some(peer), 0)
    }

    /// Returns what both sides prove: the group, who connects to whom, and which stream it is.
    fn parts(&self, from: u32, to: u32, stream: u32) -> Vec<u8> {
        let mut parts = self.group.to_le_bytes().to_vec();
        for number in [from, to, stream] {
            parts.extend_from_slice(&number.to_le_bytes());
        }
        parts
    }

    fn greet(&self, peer: u32, stream: u32, patience: Duration) -> io::Result<TcpStream> {
        let member = &self.members[peer as usize];
        let address = member.address.parse::<SocketAddr>();
        let mut address = address.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if let Some(&way) = self.ways.to.get(&(peer, stream)) {
            address.set_ip(way);
        }
        let mut socket = TcpStream::connect_timeout(&address, patience)?;
        let parts = self.parts(self.rank, peer, stream);
        let proof = wire::prove(&self.secret, "connect", &[&member.challenge, &parts]);
        socket.write_all(&[&wire::LINK_GREETING[..], &parts, &proof].concat())?;
        Ok(socket)
    }

    /// Sockets on which ranks may come.
    pub(crate) fn doors(&self) -> impl Iterator<Item = PollFd<'_>> {
        // While there are too many, others wait in the kernel.
        let has_room = self.strangers.len() < MAX_STRANGERS;
        let listener = has_room.then(|| PollFd::new(&self.listener, PollFlags::IN));
        let strangers = self.strangers.iter().map(|each| &each.socket);
        let strangers = strangers.map(|socket| PollFd::new(socket, PollFlags::IN));
        listener.into_iter().chain(strangers)
    }

    /// Waits until a rank that was greeted answers.
    fn await_answer(
        &mut self,
        socket: &TcpStream,
        until: Instant,
        control: &mut Control,
        look: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            look()?;
            let mut sockets = [PollFd::new(socket, PollFlags::IN)];
            crate::poll::wait(&mut sockets, Duration::ZERO);
            if !sockets[0].revents().is_empty() {
                return Ok(());
            }
            self.await_others(Some(socket), until, control)?;
        }
    }

    /// Waits until ranks come, or a socket has something, for a moment.
    fn await_others(
        &mut self,
        socket: Option<&TcpStream>,
        until: Instant,
        control: &mut Control,
    ) -> Result<(), Failure> {
        if let Some(failure) = control.poll()? {
            return Err(failure);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let why = "a rank that the plan connects with this one did not connect";
            return Err(Failure::new(Code::Stalled, why));
        }
        let mut sockets: Vec<PollFd<'_>> = self.doors().collect();
        sockets.push(PollFd::new(control.socket(), PollFlags::IN));
        sockets.extend(socket.map(|socket| PollFd::new(socket, PollFlags::IN)));
        crate::poll::wait(&mut sockets, left.min(Duration::from_millis(50)));
        self.admit();
        Ok(())
    }

    /// Admits ranks of the group that have come and know the secret; closes others. It never waits.
    pub(crate) fn admit(&mut self) {
        for stranger in std::mem::take(&mut self.strangers) {
            self.hear(stranger);
        }
        while self.strangers.len() < MAX_STRANGERS
            && let Ok((socket, _)) = self.listener.accept()
        {
            if socket.set_nonblocking(true).is_ok() {
                self.hear(Stranger {
                    socket,
                    said: Vec::new(),
                    since: Instant::now(),
                });
            }
        }
    }

    /// Listens to a stranger, who is let in, closed, or waited for.
    fn hear(&mut self, mut stranger: Stranger) {
        match stranger.listen() {
            Ok(false) if stranger.since.elapsed() < GREETING_TIME => self.strangers.push(stranger),
            Ok(true) => {
                let _ = self.welcome(stranger);
            }
            _ => {}
        }
    }

    /// Admits a rank of the group that knows the secret.
    fn welcome(&mut self, stranger: Stranger) -> io::Result<()> {
        let (said, proof) = stranger
            .said
            .split_last_chunk::<{ wire::PROOF }>()
            .expect("it has said all");
        let (name, parts) = said.split_first_chunk::<8>().expect("longer");
        let short = |at: usize| u32::from_le_bytes(parts[at..at + 4].try_into().expect("4 bytes"));
        let (from, to, stream) = (short(8), short(12), short(16));
        let right = *name == wire::LINK_GREETING
            && parts == self.parts(from, to, stream)
            && to == self.rank
            && from != to
            && self.ways.opens(from, to, stream)
            && (from as usize) < self.members.len()
            && stream < self.ways.streams
            && !self.open.contains_key(&(from, stream))
            && wire::proves(&self.secret, "connect", &[&self.challenge, parts], proof);
        if !right {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let challenge = self.members[from as usize].challenge;
        let answer = wire::prove(&self.secret, "accept", &[&challenge, parts]);
        (&stranger.socket).write_all(&answer)?;
        let turns = self.turns((from, stream));
        self.open
            .insert((from, stream), Stream::new(stranger.socket, turns)?);
        Ok(())
    }
}

/// A connection of somebody who has not said who it is.
#[derive(Debug)]
struct Stranger {
    socket: TcpStream,
    said: Vec<u8>,
    since: Instant,
}

impl Stranger {
    /// Reads what it says; whether that is all.
    fn listen(&mut self) -> io::Result<bool> {
        let mut buffer = [0; GREETING];
        let mut ended = false;
        let wanted = GREETING - self.said.len();
        let read = read(&self.socket, &mut buffer[..wanted], &mut ended)?;
        self.said.extend_from_slice(&buffer[..read]);
        if ended {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.said.len() == GREETING)
    }
}
