//! Where ranks meet: it lets in who knows the secret, tells each where the others are, and passes on who has failed.
//!
//! A rank keeps its connection as long as it is in the group. If that ends without a farewell, the rank has died, and
//! the store says so to the others. A store holds any number of groups, and outlives ranks if it runs in
//! a process of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hocket_base::id::narrow;

use crate::error::{Code, Failure};
use crate::fork::{self, Kept};
use crate::wire::{self, Frame, Member};

/// How long a stranger may take to greet.
const GREETING_TIME: Duration = Duration::from_secs(2);
/// Connections that may be greeting at once; more are closed.
const MAX_STRANGERS: usize = 256;
/// How long reports of ranks that wait are collected before one is blamed.
const COLLECTING: Duration = Duration::from_millis(250);
/// How long the store may take to hear of a death, after a rank has lost a connection.
const HEARING: Duration = Duration::from_secs(1);

/// A store that serves in threads of its own until it is dropped.
#[derive(Debug)]
pub struct Store {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
    /// Forks that led to the process in which it listens.
    forks: u64,
}

impl Store {
    /// Listens at an address; with port 0 at a free one.
    ///
    /// # Errors
    /// [`Code::Join`] if the address is not of this host or in use.
    pub fn listen(address: &str, secret: &[u8]) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            let why = format!("{address}: cannot listen there: {}", crate::says(&error));
            Failure::new(Code::Join, why)
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let stop = Arc::new(AtomicBool::new(false));
        let state = Arc::new(State::new(secret));
        let listening = {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || serve(&listener, &state, &stop))
        };
        Ok(Self {
            address,
            stop,
            listening: Some(listening),
            forks: fork::generation(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.forks != fork::generation() {
            return; // it is the parent's, and so is its thread
        }
        self.stop.store(true, Ordering::Release);
        // A connection wakes the thread, which then sees that it is to stop.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let woken = TcpStream::connect_timeout(&own, GREETING_TIME);
        if let Some(listening) = self.listening.take()
            && woken.is_ok()
        {
            let _ = listening.join();
        }
    }
}

/// A group as the store knows it.
struct Room {
    id: u64,
    size: usize,
    members: BTreeMap<u32, Guest>,
    /// Ranks that came, waited in vain and left.
    gone: BTreeSet<u32>,
    /// Whether all are there and each has been told.
    is_full: bool,
    failed: bool,
    /// Who waits for whom, by rank.
    waiting: BTreeMap<u32, Vec<u32>>,
    /// Of a group of survivors: the group that failed.
    old: Option<u64>,
    opened: Instant,
}

struct Guest {
    member: Member,
    _kept: Kept,
    socket: TcpStream,
    is_alive: bool,
}

#[derive(Default)]
struct Rooms {
    by_id: HashMap<u64, Room>,
    /// The newest group of each name.
    by_name: HashMap<String, u64>,
    /// The group of the survivors of each that failed.
    by_old: HashMap<u64, u64>,
}

struct State {
    secret: Vec<u8>,
    rooms: Mutex<Rooms>,
    changed: Condvar,
    next: AtomicU64,
    strangers: AtomicUsize,
}

impl State {
    fn new(secret: &[u8]) -> Self {
        Self {
            secret: secret.to_vec(),
            rooms: Mutex::default(),
            changed: Condvar::new(),
            next: AtomicU64::new(1),
            strangers: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rooms> {
        self.rooms
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn serve(listener: &TcpListener, state: &Arc<State>, stop: &AtomicBool) {
    let _kept = fork::keep(listener);
    for socket in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let Ok(socket) = socket else { continue };
        if state.strangers.fetch_add(1, Ordering::AcqRel) >= MAX_STRANGERS {
            state.strangers.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            let _kept = fork::keep(&socket);
            let greeted = greet(&socket, &state.secret);
            state.strangers.fetch_sub(1, Ordering::AcqRel);
            if greeted.is_ok() {
                let _ = receive(&socket, &state);
            }
        });
    }
    let rooms = state.lock();
    let sockets = rooms.by_id.values().flat_map(|room| room.members.values());
    for guest in sockets {
        let _ = guest.socket.shutdown(std::net::Shutdown::Both);
    }
}

/// Admits those that know the secret, and proves to know it.
fn greet(mut socket: &TcpStream, secret: &[u8]) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(GREETING_TIME))?;
    let mut greeting = [0; 8];
    socket.read_exact(&mut greeting)?;
    // Whoever speaks another version is told so.
    socket.write_all(&wire::GREETING)?;
    if greeting != wire::GREETING {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut theirs = [0; wire::PROOF];
    socket.read_exact(&mut theirs)?;
    let ours = wire::challenge();
    let proof = wire::prove(secret, "store", &[&theirs, &ours]);
    socket.write_all(&[ours, proof].concat())?;
    let mut answer = [0; wire::PROOF];
    socket.read_exact(&mut answer)?;
    if !wire::proves(secret, "rank", &[&ours, &theirs], &answer) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    socket.set_read_timeout(None)
}

/// Serves one rank until it leaves.
fn receive(socket: &TcpStream, state: &State) -> io::Result<()> {
    let joined = match Frame::receive(socket)? {
        Frame::Join {
            group,
            size,
            patience,
            member,
        } => join(socket, state, &group, size, member).and_then(|(id, rank)| {
            wait(state, id, rank, Duration::from_millis(patience)).map(|()| (id, rank))
        }),
        Frame::Rejoin {
            id,
            patience,
            member,
        } => rejoin(socket, state, id, member).and_then(|(id, rank)| {
            wait(state, id, rank, Duration::from_millis(patience)).map(|()| (id, rank))
        }),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let (id, old_rank) = match joined {
        Ok(joined) => joined,
        Err(failure) => return Frame::Failed(failure).send(socket),
    };
    let rank = state.lock().by_id[&id].rank_of(old_rank);
    let said_bye = loop {
        match Frame::receive(socket) {
            Ok(Frame::Bye) => break true,
            Ok(Frame::Failed(failure)) => {
                fail(&mut state.lock(), id, rank, &failure);
                state.changed.notify_all();
            }
            Ok(Frame::Stalled { call, awaited }) => stalled(state, id, rank, call, awaited),
            Ok(Frame::Lost { call, peer, how }) => lost(state, id, (rank, peer), call, &how),
            Ok(_) | Err(_) => break false,
        }
    };
    let mut rooms = state.lock();
    let room = rooms.by_id.get_mut(&id).expect("kept while one is in it");
    if let Some(guest) = room.members.get_mut(&old_rank) {
        guest.is_alive = false;
    }
    if said_bye {
        room.tell_others(rank, &Frame::Left { rank });
    } else {
        let why = format!("rank {rank} has died: its connection to the store ended");
        let failure = Failure::new(Code::Died, why).of(Some(rank), 0);
        fail(&mut rooms, id, rank, &failure);
    }
    rooms.forget(id);
    state.changed.notify_all();
    Ok(())
}

impl Rooms {
    /// Forgets a group that all have left without a complaint; survivors of others may still come.
    fn forget(&mut self, id: u64) {
        let room = &self.by_id[&id];
        if room.failed || room.members.values().any(|guest| guest.is_alive) {
            return;
        }
        self.by_id.remove(&id);
        self.by_name.retain(|_, named| *named != id);
        self.by_old.retain(|_, next| *next != id);
    }
}

impl Room {
    fn new(id: u64, size: usize, old: Option<u64>) -> Self {
        Self {
            id,
            size,
            members: BTreeMap::new(),
            gone: BTreeSet::new(),
            is_full: false,
            failed: false,
            waiting: BTreeMap::new(),
            old,
            opened: Instant::now(),
        }
    }

    /// Tells something to all who are there but one.
    fn tell_others(&self, but: u32, frame: &Frame) {
        for (rank, guest) in self.members.values().enumerate() {
            if narrow(rank) != but && guest.is_alive {
                let _ = frame.send(&guest.socket);
            }
        }
    }

    /// Returns a rank, as it was when it joined.
    fn guest(&self, rank: u32) -> Option<&Guest> {
        self.members.values().nth(rank as usize)
    }

    /// Returns the rank in this group of who joined with another.
    fn rank_of(&self, joined_as: u32) -> u32 {
        narrow(self.members.range(..joined_as).count())
    }
}

/// Puts a rank into the group that a name stands for; gives the group's number.
fn join(
    socket: &TcpStream,
    state: &State,
    group: &str,
    size: u32,
    member: Member,
) -> Result<(u64, u32), Failure> {
    let refuse = |why: String| Err(Failure::new(Code::Join, why));
    let rank = member.rank;
    if rank >= size {
        return refuse(format!(
            "rank {rank} of a group of {size}: ranks are 0 to {}",
            size - 1
        ));
    }
    let rooms = &mut *state.lock();
    let newest = rooms.by_name.get(group).copied();
    // Who joins again under a name means the next group of that name.
    let open = newest.filter(|id| !rooms.by_id[id].is_full);
    let id = open.unwrap_or_else(|| {
        let id = state.next.fetch_add(1, Ordering::Relaxed);
        rooms.by_id.insert(id, Room::new(id, size as usize, None));
        rooms.by_name.insert(group.to_owned(), id);
        id
    });
    let room = rooms.by_id.get_mut(&id).expect("just found");
    if room.members.is_empty() {
        // Whoever came before has given up, and may have been told another number of ranks.
        (room.size, room.opened) = (size as usize, Instant::now());
    }
    if room.size != size as usize {
        let others: Vec<u32> = room.members.keys().copied().collect();
        let expected = room.size;
        return refuse(format!(
            "rank {rank} says that there are {size} ranks, {} that there are {expected}",
            crate::ranks(&others)
        ));
    }
    if room.members.contains_key(&rank) {
        return refuse(format!(
            "rank {rank} has joined already; give each process a rank of its own"
        ));
    }
    enter(socket, room, member)?;
    state.changed.notify_all();
    Ok((id, rank))
}

/// Puts a survivor into the group of those that are left.
fn rejoin(
    socket: &TcpStream,
    state: &State,
    old: u64,
    member: Member,
) -> Result<(u64, u32), Failure> {
    let refuse = |why: &str| Err(Failure::new(Code::Join, why));
    let rank = member.rank;
    let rooms = &mut *state.lock();
    if !rooms.by_id.contains_key(&old) {
        return refuse("the store does not know the group that failed");
    }
    let next = rooms.by_old.get(&old).copied();
    if next.is_some_and(|id| rooms.by_id[&id].is_full) {
        return refuse("the survivors have made a group already, without this rank");
    }
    let id = next.unwrap_or_else(|| {
        let id = state.next.fetch_add(1, Ordering::Relaxed);
        rooms.by_id.insert(id, Room::new(id, usize::MAX, Some(old)));
        rooms.by_old.insert(old, id);
        id
    });
    let room = rooms.by_id.get_mut(&id).expect("just found");
    enter(socket, room, member)?;
    state.changed.notify_all();
    Ok((id, rank))
}

fn enter(socket: &TcpStream, room: &mut Room, member: Member) -> Result<(), Failure> {
    let socket = socket.try_clone().map_err(|error| {
        let why = format!(
            "the store cannot keep the connection: {}",
            crate::says(&error)
        );
        Failure::new(Code::Join, why)
    })?;
    let guest = Guest {
        member,
        _kept: fork::keep(&socket),
        socket,
        is_alive: true,
    };
    room.gone.remove(&guest.member.rank);
    room.members.insert(guest.member.rank, guest);
    Ok(())
}

/// Waits until all of a group are there and have been told, at most for a time.
fn wait(state: &State, id: u64, rank: u32, patience: Duration) -> Result<(), Failure> {
    let until = Instant::now() + patience;
    let mut rooms = state.lock();
    loop {
        let room = &rooms.by_id[&id];
        if room.is_full {
            return Ok(());
        }
        let expected = match room.old.and_then(|old| rooms.by_id.get(&old)) {
            Some(old) => old
                .members
                .iter()
                .filter(|(_, guest)| guest.is_alive)
                .map(|(&old_rank, _)| old.rank_of(old_rank))
                .collect(),
            None => (0..narrow(room.size)).collect::<Vec<_>>(),
        };
        let is_there = |rank: &u32| room.members.contains_key(rank);
        let missing: Vec<u32> = expected
            .into_iter()
            .filter(|rank| !is_there(rank))
            .collect();
        let left = until.saturating_duration_since(Instant::now());
        // Survivors do not wait for ever for one that is alive but stands still.
        let enough = room.old.is_some() && room.opened.elapsed() >= patience;
        if missing.is_empty() || enough {
            tell(rooms.by_id.get_mut(&id).expect("just found"));
            state.changed.notify_all();
            return Ok(());
        }
        if left.is_zero() {
            let time = crate::seconds(patience);
            let (gone, missing): (Vec<u32>, Vec<u32>) = missing
                .into_iter()
                .partition(|rank| room.gone.contains(rank));
            let (who, why) = match missing.as_slice() {
                [] => (
                    &gone,
                    format!("left again within {time}, as others were not there"),
                ),
                _ => (&missing, format!("did not join within {time}")),
            };
            let why = format!("{} {why}", crate::ranks(who));
            let failure = Failure::new(Code::Join, why).of(who.first().copied(), 0);
            let room = rooms.by_id.get_mut(&id).expect("just found");
            room.members.remove(&rank);
            room.gone.insert(rank);
            return Err(failure);
        }
        let (guard, _) = state
            .changed
            .wait_timeout(rooms, left)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        rooms = guard;
    }
}

/// Tells each member of a group where the others are.
fn tell(room: &mut Room) {
    room.is_full = true;
    room.size = room.members.len();
    let members = room.members.values().map(|guest| guest.member.clone());
    let table = Frame::Table {
        id: room.id,
        members: members.collect(),
    };
    for guest in room.members.values() {
        let _ = table.send(&guest.socket);
    }
}

/// Tells the others of a group, once, why it failed.
fn fail(rooms: &mut Rooms, id: u64, by: u32, failure: &Failure) {
    let Some(room) = rooms.by_id.get_mut(&id) else {
        return;
    };
    if !room.is_full || std::mem::replace(&mut room.failed, true) {
        return;
    }
    room.tell_others(by, &Frame::Failed(failure.clone()));
}

/// Finds out why a rank has lost its connection to another. The store hears of a death by the end of a connection of its
/// own; until then nobody is known to be dead, and the other may well live.
fn lost(state: &State, id: u64, (rank, peer): (u32, u32), call: u64, how: &str) {
    let since = Instant::now();
    let mut rooms = state.lock();
    let failure = loop {
        let room = rooms.by_id.get(&id).filter(|room| !room.failed);
        let Some(guest) = room.and_then(|room| room.guest(peer)) else {
            return; // who asks has been told
        };
        if !guest.is_alive {
            break Failure::left(peer, call);
        }
        // What the other has said last may still wait for the thread that reads it.
        let hears = match crate::poll::is_readable(&guest.socket) {
            true => 3 * HEARING,
            false => HEARING,
        };
        let Some(rest) = hears.checked_sub(since.elapsed()) else {
            let why = format!("rank {rank}: {how}; rank {peer} is still there");
            break Failure::new(Code::Lost, why).of(None, call);
        };
        let rest = rest.min(Duration::from_millis(100));
        let waited = state.changed.wait_timeout(rooms, rest);
        rooms = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
    };
    fail(&mut rooms, id, u32::MAX, &failure);
    state.changed.notify_all();
}

/// Takes down who waits for whom; after a moment, the rank that others wait for and that does not wait itself is
/// to blame.
fn stalled(state: &State, id: u64, rank: u32, call: u64, awaited: Vec<u32>) {
    let mut rooms = state.lock();
    let Some(room) = rooms.by_id.get_mut(&id) else {
        return;
    };
    room.waiting.insert(rank, awaited);
    if room.waiting.len() > 1 || room.failed {
        return;
    }
    drop(rooms);
    std::thread::sleep(COLLECTING);
    let mut rooms = state.lock();
    let Some(room) = rooms.by_id.get_mut(&id) else {
        return;
    };
    let mut named: BTreeMap<u32, usize> = BTreeMap::new();
    for &other in room.waiting.values().flatten() {
        *named.entry(other).or_default() += 1;
    }
    let silent = named
        .iter()
        .filter(|(rank, _)| !room.waiting.contains_key(rank));
    let culprit = silent
        .max_by_key(|(_, count)| **count)
        .map(|(&rank, _)| rank);
    let why = match culprit {
        Some(rank) => format!("rank {rank} stands still: others wait for it"),
        None => {
            let waiting: Vec<u32> = room.waiting.keys().copied().collect();
            match waiting.as_slice() {
                [one] => format!("rank {one} waits, and nobody says for whom"),
                _ => format!("{} wait for each other", crate::ranks(&waiting)),
            }
        }
    };
    let gone = culprit.filter(|&rank| room.guest(rank).is_some_and(|guest| !guest.is_alive));
    let failure = match gone {
        Some(rank) => Failure::left(rank, call),
        None => Failure::new(Code::Stalled, why).of(culprit, call),
    };
    // The rank that reported hears of it as well.
    fail(&mut rooms, id, u32::MAX, &failure);
    state.changed.notify_all();
}
