//! What must hold at every step, kept beside the machines: it knows only what was said, and what hosts use.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use hocket_control::agent::Agent;
use hocket_control::directory::HostId;
use hocket_control::message::{
    Change, FlowName, FromHost, HostFlow, HostJob, PatternFlow, Reason, ToHost,
};
use hocket_control::server::Server;
use hocket_control::store::Saved;

use super::faults::{HOSTS, Millis};
use super::site::RECOVERY;
use super::story::Story;

#[derive(Clone, Debug, Default)]
struct HostCheck {
    epoch: u64,
    welcomes: u64,
    /// The welcome that came last: session, and number of what it answers. And the one that counts.
    came: (u64, u64),
    came_epoch: u64,
    newest: (u64, u64),
    current: (u64, u64),
    acknowledged: u64,
    /// What flows had been given when the host came last, whether they used it or had left it for a while.
    said_held: BTreeMap<FlowName, u32>,
    /// What flows had when the welcome came, and what they use now.
    before: BTreeMap<FlowName, u32>,
    uses: BTreeMap<FlowName, u32>,
    /// The last numbered message: session and number.
    said: (u64, u64),
    /// Registrations that were not taken: session, number, job.
    jobs: Vec<(u64, u64, u32, Vec<PatternFlow>)>,
}

#[derive(Default)]
pub(crate) struct Checks {
    wrong: Option<String>,
    /// Open at the server: session, its host, the server.
    open: BTreeMap<u64, (u32, u32)>,
    /// By session: numbers of what the host heard, and of what the server heard.
    heard: BTreeMap<u64, [BTreeSet<u64>; 2]>,
    stories: BTreeMap<(u64, u64), Story>,
    /// The last welcome of each session.
    welcomed: BTreeMap<u64, u64>,
    hosts: Vec<HostCheck>,
    /// Time, and when the last election was with the hosts that were welcomed since.
    pub now: Millis,
    elected: Millis,
    epoch: u64,
    came: BTreeSet<u32>,
    /// Flows that a controller has told of, by epoch.
    told: BTreeSet<(u64, u32, FlowName)>,
    /// How often a host has come to a server since that started, by host and server.
    arrivals: BTreeMap<(u32, u32), u32>,
    /// Jobs whose registration was taken.
    kept: BTreeMap<u32, (u32, Vec<PatternFlow>)>,
    /// What operators said of links: by link, the number of what they said last; and by number, what it was.
    last_said: BTreeMap<u32, u64>,
    said: Vec<(u32, bool)>,
    /// Whether links have failed, as operators were told that it is kept.
    promised: BTreeMap<u32, bool>,
    /// How often each thing happened, to see that runs are no idle ones.
    pub tally: BTreeMap<&'static str, u64>,
}

impl Checks {
    pub(crate) fn wrong(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    pub(crate) fn verdict(&self, now: Millis) -> Result<(), String> {
        match &self.wrong {
            Some(why) => Err(format!("at {now} ms: {why}")),
            None => Ok(()),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn host(&mut self, host: u32) -> &mut HostCheck {
        self.hosts.resize(HOSTS as usize, HostCheck::default());
        &mut self.hosts[host as usize]
    }

    pub(crate) fn is_open(&self, session: u64) -> bool {
        self.open.contains_key(&session)
    }

    pub(crate) fn opened(&mut self, host: u32, session: u64, server: u32) {
        self.open.insert(session, (host, server));
    }

    pub(crate) fn closed(&mut self, session: u64) {
        self.open.remove(&session);
    }

    pub(crate) fn close_all(&mut self, server: u32) -> Vec<u64> {
        let of = self.open.iter().filter(|(_, (_, at))| *at == server);
        let of: Vec<u64> = of.map(|(&session, _)| session).collect();
        of.iter().for_each(|session| self.closed(*session));
        self.arrivals.retain(|(_, at), _| *at != server);
        of
    }

    pub(crate) fn active(&mut self, epoch: u64) {
        self.count("elections");
        (self.elected, self.epoch) = (self.now, epoch);
        self.came.clear();
    }

    /// Open sessions of a host.
    pub(crate) fn sessions_of(&self, host: u32) -> Vec<u64> {
        let of = self.open.iter().filter(|(_, (of, _))| *of == host);
        of.map(|(&session, _)| session).collect()
    }

    /// A controller starts with what was stored: no registration that was taken is missing.
    pub(crate) fn recovered(&mut self, saved: &Saved, server: &Server) {
        let jobs: BTreeSet<u32> = server.jobs().map(|(job, ..)| job).collect();
        let has_failed = |link: &&u32| server.has_failed()[**link as usize];
        if !saved.jobs.keys().all(|job| jobs.contains(job))
            || !saved.failed.iter().all(|link| has_failed(&link))
        {
            self.wrong(format!(
                "a server starts without what was stored: {saved:?}"
            ));
        }
        for (link, &has_failed) in &self.promised {
            if saved.failed.contains(link) != has_failed {
                let why = format!("what operators were told is kept of link {link} is forgotten");
                self.wrong.get_or_insert(why);
            }
        }
        let kept = std::mem::take(&mut self.kept);
        for (job, (_, pattern)) in &kept {
            if saved.jobs.get(job).map(|saved| &saved.pattern) != Some(pattern) {
                self.wrong(format!("job {job} was taken and is not stored"));
            }
        }
        self.kept = kept;
    }

    /// Operators say something of a link: gives its number. Until they are answered, either may be kept.
    pub(crate) fn operators_say(&mut self, link: u32, has_failed: bool) -> u64 {
        let number = self.said.len() as u64;
        self.said.push((link, has_failed));
        self.last_said.insert(link, number);
        if self.promised.get(&link) != Some(&has_failed) {
            self.promised.remove(&link);
        }
        number
    }

    /// Operators are told that what they said is kept: gives it, unless they have said something else since.
    pub(crate) fn answered(&mut self, number: u64) -> Option<(u32, bool)> {
        let (link, has_failed) = self.said[number as usize];
        if self.last_said[&link] != number {
            return None;
        }
        self.count("answers to operators");
        self.promised.insert(link, has_failed);
        Some((link, has_failed))
    }

    pub(crate) fn host_gone(&mut self, host: u32) {
        self.kept.retain(|_, (leader, _)| *leader != host);
        let epoch = self.host(host).epoch;
        *self.host(host) = HostCheck {
            epoch,
            ..HostCheck::default()
        };
    }

    pub(crate) fn said_by_host(&mut self, host: u32, session: u64, message: &FromHost) {
        if let Some(sequence) = message.sequence() {
            let row = self.host(host);
            if (session, sequence) <= row.said {
                // Said again; what was said since is not undone by it.
                return;
            }
            row.said = (session, sequence);
        }
        match message {
            FromHost::Acknowledged { epoch, revision } => {
                let newest = self.host(host).newest;
                let story = self.stories.get(&newest);
                let first = story.map_or(*revision, |story| story.first);
                self.has_heard(session, 0, first + 1..=*revision);
                let row = self.host(host);
                row.acknowledged = row.acknowledged.max(*revision);
                if *epoch != row.epoch {
                    let seen = row.epoch;
                    self.wrong(format!("host {host} obeys epoch {epoch} after {seen}"));
                }
            }
            FromHost::JobComes {
                sequence,
                job,
                pattern,
            } => {
                if self.kept.get(job).is_some_and(|(_, kept)| kept != pattern) {
                    self.kept.remove(job);
                }
                let said = (session, *sequence, *job, pattern.clone());
                self.host(host).jobs.push(said);
            }
            FromHost::JobGoes { job, .. } => self.forget_job(host, *job),
            FromHost::Hello(hello) => {
                let has = |job: u32, pattern: &Vec<PatternFlow>| {
                    let of = |each: &HostJob| each.job == job && each.pattern == *pattern;
                    hello.jobs.iter().any(of)
                };
                self.kept
                    .retain(|&job, (leader, pattern)| *leader != host || has(job, pattern));
                let held = hello.flows.iter().filter_map(|flow| {
                    let choice = flow.held?;
                    Some((FlowName::Own(flow.id), choice))
                });
                let row = self.host(host);
                row.said_held = held.collect();
                row.jobs.clear();
                self.count("hellos");
            }
            _ => {}
        }
    }

    fn forget_job(&mut self, host: u32, job: u32) {
        self.kept.remove(&job);
        self.host(host).jobs.retain(|(_, _, id, _)| *id != job);
    }

    /// Gives the jobs whose registration is taken now.
    pub(crate) fn heard_by_host(
        &mut self,
        host: u32,
        session: u64,
        message: &ToHost,
    ) -> Vec<(u32, Vec<PatternFlow>)> {
        let mut taken = Vec::new();
        if let Some((_, revision)) = message.revision() {
            self.heard.entry(session).or_default()[0].insert(revision);
        }
        match message {
            ToHost::Welcome { epoch, answers, .. } => {
                let row = self.host(host);
                (row.came, row.came_epoch) = ((session, *answers), *epoch);
                row.newest = row.newest.max(row.came);
            }
            ToHost::Taken { sequence } => {
                let jobs = std::mem::take(&mut self.host(host).jobs);
                for (of, number, job, pattern) in jobs {
                    if of == session && number <= *sequence && job < 3 {
                        self.count("jobs taken");
                        self.kept.insert(job, (host, pattern.clone()));
                        taken.push((job, pattern));
                    } else {
                        self.host(host).jobs.push((of, number, job, pattern));
                    }
                }
            }
            ToHost::Resync { .. } => self.count("resyncs"),
            ToHost::Changes { changes, .. } => {
                for change in changes {
                    if let Change::RefuseJob { job, .. } = change {
                        self.forget_job(host, *job);
                    }
                }
            }
            ToHost::Synced { .. } => {}
        }
        taken
    }

    /// Either side says that it has taken only what it has heard, each message from the first to the last.
    fn has_heard(&mut self, session: u64, by: usize, numbers: RangeInclusive<u64>) {
        let heard = &self.heard.entry(session).or_default()[by];
        if let Some(number) = numbers.clone().find(|number| !heard.contains(number)) {
            self.wrong(format!(
                "session {session} has {numbers:?} taken, and {number} was never heard"
            ));
        }
    }

    /// A host is gone for a server: nothing that it sends has a path.
    pub(crate) fn lost(&mut self, host: HostId, server: &Server) {
        self.count("hosts lost");
        for (job, _, count, _) in server.jobs() {
            for index in (0..count as u32).filter(|&index| index == host.0) {
                let id = server.id(host, FlowName::Pattern { job, index });
                if server.policy().choice(id).is_some() {
                    self.wrong(format!(
                        "{host:?} is gone, and its flow of job {job} has a path"
                    ));
                }
            }
        }
    }

    /// Links have failed: the policy leads no flow of a host over them.
    pub(crate) fn links_failed(&mut self, server: &Server) {
        let (policy, directory) = (server.policy(), server.directory());
        for (host, said, _) in server.flows() {
            let choice = policy.choice(server.id(host, FlowName::Own(said.id)));
            let (Some(choice), Some((dst, _))) = (choice, directory.at(said.opened.dst)) else {
                continue;
            };
            let mut links = Vec::new();
            let fabric = policy.fabric();
            fabric.route(host.0 / 2, dst.0 / 2, choice, &mut links);
            if links.iter().any(|link| server.has_failed()[link.index()]) {
                self.wrong(format!("{} of {host:?} stays on a failed link", said.id));
            }
        }
    }

    pub(crate) fn heard_by_server(&mut self, session: u64, message: &FromHost) {
        if let Some(sequence) = message.sequence() {
            self.heard.entry(session).or_default()[1].insert(sequence);
        }
        match message {
            FromHost::Hello(_) => {
                if let Some(&arrival) = self.open.get(&session) {
                    *self.arrivals.entry(arrival).or_default() += 1;
                }
            }
            FromHost::Starts { .. } => self.count("starts"),
            FromHost::Ends { .. } => self.count("ends"),
            FromHost::JobStarts { .. } => self.count("iterations"),
            FromHost::Links { .. } => self.count("link reports"),
            _ => {}
        }
    }

    pub(crate) fn said_by_server(&mut self, session: u64, message: &ToHost, server: &Server) {
        let Some(&arrival) = self.open.get(&session) else {
            return;
        };
        let host = arrival.0;
        if let ToHost::Welcome {
            answers, revision, ..
        } = message
        {
            let story = Story {
                first: *revision,
                last: *revision,
                ..Story::default()
            };
            self.stories.insert((session, *answers), story);
            self.welcomed.insert(session, *answers);
            if server.epoch() == self.epoch {
                self.came.insert(host);
            }
        }
        if let ToHost::Taken { sequence } = message {
            let answered = self.welcomed.get(&session).copied();
            let first = answered.map_or(*sequence, |answered| answered + 1);
            self.has_heard(session, 1, first..=*sequence);
        }
        let Some((epoch, revision)) = message.revision() else {
            return;
        };
        let key = (session, self.welcomed.get(&session).copied().unwrap_or(0));
        let Some(story) = self.stories.get_mut(&key) else {
            return self.wrong(format!("host {host} is told {revision} without a welcome"));
        };
        if revision <= story.last {
            // Said again.
            return;
        }
        if revision != story.last + 1 {
            let last = story.last;
            self.wrong(format!("host {host} is told {revision} after {last}"));
        }
        let Some(story) = self.stories.get_mut(&key) else {
            return;
        };
        story.last = revision;
        match message {
            ToHost::Synced { .. } => {
                story.synced = Some(revision);
                let is_late = self.now - self.elected >= RECOVERY.as_millis() as u64 * 98 / 100;
                if epoch == self.epoch && !is_late && self.came.len() < HOSTS as usize {
                    self.wrong(format!(
                        "epoch {epoch} knows all from {:?} alone",
                        self.came
                    ));
                }
            }
            ToHost::Changes { changes, .. } => {
                let moved = changes.iter().filter_map(|change| story.moves(change));
                let moved: Vec<_> = moved.collect();
                for change in changes {
                    story.note(revision, change);
                }
                for (flow, reason) in moved {
                    self.may_move(host, flow, reason, server);
                }
                for change in changes {
                    self.judge(arrival, epoch, change, server);
                }
            }
            _ => {}
        }
    }

    /// A flow that is fixed has another path only where its path failed.
    fn may_move(&mut self, host: u32, flow: u64, reason: Reason, server: &Server) {
        let mut flows = server.flows();
        let is_fixed =
            flows.any(|(of, said, _)| of.0 == host && said.id == flow && said.opened.is_fixed);
        match reason {
            _ if !is_fixed => {}
            Reason::Failure | Reason::Failover | Reason::Return => self.count("fixed and failed"),
            // A host that stopped and started has given another flow the number.
            Reason::New => {}
            _ => self.wrong(format!(
                "{flow} of host {host} is fixed and moves for {reason:?}"
            )),
        }
    }

    /// No path leads over a link that has failed, and a controller that starts anew moves nothing without need.
    fn judge(&mut self, arrival: (u32, u32), epoch: u64, change: &Change, server: &Server) {
        let host = arrival.0;
        if let Change::Refuse { .. } = change {
            self.count("refusals");
        }
        let (Change::Path { path, .. } | Change::Ahead { path, .. }) = change else {
            return;
        };
        let has_failed = |link: &u32| server.has_failed()[*link as usize];
        if path.links.iter().any(has_failed) && matches!(change, Change::Path { .. }) {
            self.wrong(format!("host {host} is led over a failed link: {change:?}"));
        }
        let Change::Path {
            flow,
            path,
            reason,
            ends,
        } = change
        else {
            return;
        };
        let is_first = self.told.insert((epoch, host, *flow));
        if server.is_synced() {
            return;
        }
        if matches!(reason, Reason::Room | Reason::Balance) {
            self.wrong(format!("a controller that recovers moves for {reason:?}"));
        }
        let used = self.host(host).uses.get(flow).copied();
        // A host that comes again may have been with an older controller since, and told of another path.
        let is_known = *reason == Reason::Held && self.arrivals.get(&arrival) > Some(&1);
        let Some(used) = used.filter(|&used| is_first && !is_known && used != path.choice) else {
            self.count("kept by a new controller");
            return;
        };
        let dst = receiver(host, *flow, *ends, server);
        let dst = dst.and_then(|dst| server.directory().at(dst));
        let Some((dst, _)) = dst else { return };
        let mut links = Vec::new();
        server
            .policy()
            .fabric()
            .route(host / 2, dst.0 / 2, used, &mut links);
        if !links.iter().any(|link| has_failed(&link.0)) {
            self.wrong(format!(
                "a new controller moves a flow of host {host} from {used}: {change:?}"
            ));
        }
        self.count("moved by a new controller");
    }

    /// Notes what a host's flows use, and whether it was welcomed.
    fn look(&mut self, host: u32, agent: &Agent) {
        let row = self.host(host);
        let before = std::mem::take(&mut row.uses);
        for (id, name, _) in agent.flows() {
            if let (Some(name), Some(path)) = (name, agent.path(id)) {
                row.uses.insert(name, path.choice);
            }
        }
        for ((job, index), path) in agent.patterns() {
            if let Some(path) = path {
                row.uses
                    .insert(FlowName::Pattern { job, index }, path.choice);
            }
        }
        if agent.metrics().welcomes != row.welcomes {
            let open: BTreeSet<FlowName> = agent.flows().filter_map(|(_, name, _)| name).collect();
            let mut left = before.keys().filter(|name| open.contains(name));
            if let Some(name) = left.find(|name| !row.uses.contains_key(name)) {
                let why = format!("host {host} drops the path of {name:?} as it is welcomed");
                return self.wrong(why);
            }
            if row.came_epoch < row.epoch {
                let (epoch, seen) = (row.came_epoch, row.epoch);
                return self.wrong(format!("host {host} is with epoch {epoch} after {seen}"));
            }
            row.welcomes = agent.metrics().welcomes;
            row.current = row.came;
            let held = agent.held().map(|held| {
                let (job, index) = (held.job, held.index);
                (FlowName::Pattern { job, index }, held.choice)
            });
            let mut before = std::mem::take(&mut row.said_held);
            before.extend(row.uses.clone().into_iter().chain(held));
            row.before = before;
            row.acknowledged = 0;
        }
    }

    /// Whether a host has been welcomed since this was looked at.
    pub(crate) fn is_welcomed(&mut self, host: u32, agent: &Agent) -> bool {
        agent.metrics().welcomes != self.host(host).welcomes
    }

    /// A host's flows use what the revision that it acknowledged says, or something said later, or nothing.
    pub(crate) fn uses(&mut self, host: u32, agent: &Agent) {
        let epoch = agent.epoch();
        let seen = std::mem::replace(&mut self.host(host).epoch, epoch);
        if epoch < seen {
            self.wrong(format!(
                "host {host} goes from epoch {seen} back to {epoch}"
            ));
        }
        self.look(host, agent);
        let Some(story) = self.stories.get(&self.hosts[host as usize].current) else {
            if !self.hosts[host as usize].uses.is_empty() {
                self.wrong(format!("host {host} uses paths that nobody gave"));
            }
            return;
        };
        let row = &self.hosts[host as usize];
        let bad = row.uses.iter().find(|(flow, choice)| {
            !story.allows(
                **flow,
                **choice,
                row.acknowledged,
                row.before.get(flow).copied(),
            )
        });
        if let Some((flow, choice)) = bad {
            let told = story.told.get(flow);
            let why = format!(
                "host {host} uses {choice} for {flow:?}, acknowledged {}, before {:?}, told {told:?}, synced {:?}",
                row.acknowledged,
                row.before.get(flow),
                story.synced,
            );
            self.wrong(why);
        }
    }
}

/// Address of the receiver of a flow.
fn receiver(
    host: u32,
    flow: FlowName,
    ends: Option<[IpAddr; 2]>,
    server: &Server,
) -> Option<IpAddr> {
    match flow {
        FlowName::Own(id) => {
            let mut flows = server.flows();
            let of = |(at, said, _): &(HostId, &HostFlow, _)| at.0 == host && said.id == id;
            flows.find(of).map(|(_, said, _)| said.opened.dst)
        }
        FlowName::Pattern { .. } => ends.map(|ends| ends[1]),
    }
}
