//! The socket that local programs speak to.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hocket_control::agent::Input;
use hocket_control::message::{JOB_IDS, MOST_FLOWS, PatternFlow};
use hocket_wire::setup::SetupError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::agent_owner::{AgentOwner, Owner, Port};
use crate::datagrams::{Answer, Ends, MOST_BYTES, Request};
use crate::ports::source;
use crate::seqpacket::{Connection, Listener, connect_to};

/// Most connections of programs.
const MOST: usize = 1_024;
/// Most answers that a program may leave unread.
const UNREAD: usize = 1_024;

/// How programs are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// An `open` has its answer after so long at the latest.
    pub open: Duration,
    /// A `port` likewise: a program waits to connect.
    pub port: Duration,
    /// The bytes of a flow of `port`, which are not known.
    pub port_bytes: u64,
}

/// Listens on a path; a socket that nobody listens on any more is replaced.
///
/// # Errors
/// [`SetupError`] where another agent listens, or the path cannot be made.
pub fn listen(path: &Path, mode: u32) -> Result<ProgramSocket, SetupError> {
    let wrong =
        |why: String, remedy: &str| SetupError::new(path.display().to_string(), why, remedy);
    if connect_to(path).is_ok() {
        return Err(wrong(
            "another agent listens there".to_owned(),
            "stop it, or set another socket",
        ));
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Ok(there) if !there.file_type().is_socket() => {
            return Err(wrong(
                "it is there, and no socket".to_owned(),
                "set another socket",
            ));
        }
        there => {
            let removed = there.and_then(|_| std::fs::remove_file(path));
            removed.map_err(|error| wrong(error.to_string(), "set another socket"))?;
        }
    }
    let remedy = "set a socket in a folder that is there and can be written";
    let listener = Listener::bind(path).map_err(|error| wrong(error.to_string(), remedy))?;
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).map_err(|error| wrong(error.to_string(), remedy))?;
    Ok(ProgramSocket(listener))
}

/// The socket that listens for programs.
#[derive(Debug)]
pub struct ProgramSocket(Listener);

impl ProgramSocket {
    /// Serves programs.
    pub async fn serve(self, agent_owner: Arc<AgentOwner>, patience: Patience) {
        let turns = Arc::new(Semaphore::new(MOST));
        for connection in 1.. {
            let turn = turns.clone().acquire_owned().await;
            match self.0.accept().await {
                Ok(socket) => {
                    let mut program = Program {
                        agent_owner: agent_owner.clone(),
                        connection,
                        patience,
                        parts: BTreeMap::new(),
                    };
                    tokio::spawn(async move {
                        program.serve(socket).await;
                        drop(turn);
                    });
                }
                Err(error) => {
                    warn!(%error, "no program could be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// A program's connection.
struct Program {
    agent_owner: Arc<AgentOwner>,
    connection: u64,
    patience: Patience,
    /// Patterns of jobs that are not whole.
    parts: BTreeMap<u32, Vec<PatternFlow>>,
}

/// An answer that may still have to come.
enum Coming {
    Now(Answer),
    Port(u64, oneshot::Receiver<Port>, Instant, bool),
}

impl Program {
    async fn serve(&mut self, socket: Connection) {
        let socket = Arc::new(socket);
        let (answers, coming) = mpsc::channel(UNREAD);
        let (watch, news) = mpsc::channel(UNREAD);
        let said = tokio::spawn(say(socket.clone(), self.agent_owner.clone(), coming, news));
        let mut buffer = vec![0; MOST_BYTES + 1];
        let mut received = socket.receive(&mut buffer).await;
        while let Ok(count @ 1..) = received {
            if let Some(answer) = self.answer(&buffer[..count], &watch)
                && answers.try_send(answer).is_err()
            {
                // It asks and does not read.
                break;
            }
            // What was said at once is announced at once.
            received = match socket.receive_now(&mut buffer) {
                Some(received) => received,
                None => {
                    self.agent_owner.handle(Input::Flush);
                    socket.receive(&mut buffer).await
                }
            };
        }
        drop(answers);
        let _ = said.await;
        self.agent_owner.gone(self.connection);
    }

    fn answer(&mut self, line: &[u8], watch: &mpsc::Sender<Answer>) -> Option<Coming> {
        let wrong = |why: String| Some(Coming::Now(Answer::Error(why)));
        if line.len() > MOST_BYTES {
            return wrong(format!("a line has {MOST_BYTES} bytes at most"));
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return wrong("a line is text".to_owned());
        };
        let unknown = |flow: u64| wrong(format!("flow {flow} is not open on this connection"));
        match text.parse() {
            Err(why) => wrong(why),
            Ok(Request::Port(ends)) => {
                let owner = Owner::Socket(false, Instant::now());
                Some(self.open(ends, self.patience.port_bytes, 0, owner))
            }
            Ok(Request::Open { ends, bytes, job }) => {
                let owner = Owner::Connection(self.connection);
                Some(self.open(ends, bytes, job, owner))
            }
            Ok(Request::Progress { flow, left }) => {
                let input = Input::Progress { flow, left };
                match self.agent_owner.tell(self.connection, flow, input) {
                    true => None,
                    false => unknown(flow),
                }
            }
            Ok(Request::Measured {
                flow,
                loss_ppm,
                rtt_us,
            }) => {
                let rtt = Duration::from_micros(rtt_us);
                let input = Input::Measured {
                    flow,
                    loss_ppm,
                    rtt,
                };
                match self.agent_owner.tell(self.connection, flow, input) {
                    true => None,
                    false => unknown(flow),
                }
            }
            Ok(Request::Close { flow }) => {
                self.agent_owner.close(self.connection, flow);
                None
            }
            Ok(Request::Watch) => {
                self.agent_owner.watch(self.connection, watch.clone());
                None
            }
            Ok(Request::Job {
                job,
                pattern,
                is_whole,
            }) => match self.register(job, pattern, is_whole, watch) {
                Ok(()) => is_whole.then(|| Coming::Now(Answer::Job(job, Ok(())))),
                Err(why) => wrong(why),
            },
            Ok(Request::Start { job }) => self.tell_job(job, Input::JobStarts { job }),
            Ok(Request::Stop { job }) => self.tell_job(job, Input::JobStops { job }),
            Ok(Request::Go { job }) => self.tell_job(job, Input::JobGoes { job }),
        }
    }

    /// A job's pattern is registered once it is whole.
    fn register(
        &mut self,
        job: u32,
        pattern: Vec<PatternFlow>,
        is_whole: bool,
        tell: &mpsc::Sender<Answer>,
    ) -> Result<(), String> {
        if !(1..JOB_IDS).contains(&job) {
            return Err(format!(
                "job {job}: give a number from 1 to {}",
                JOB_IDS - 1
            ));
        }
        let count: usize = self.parts.values().map(Vec::len).sum();
        if count + pattern.len() > MOST_FLOWS {
            self.parts.remove(&job);
            return Err(format!("a pattern has {MOST_FLOWS} flows at most"));
        }
        let mut whole = self.parts.remove(&job).unwrap_or_default();
        whole.extend(pattern);
        if is_whole {
            return self
                .agent_owner
                .register(self.connection, job, whole, tell.clone());
        }
        self.parts.insert(job, whole);
        Ok(())
    }

    fn tell_job(&self, job: u32, input: Input) -> Option<Coming> {
        let is_of = self.agent_owner.tell_job(self.connection, job, input);
        let why = || format!("job {job} is not registered on this connection");
        (!is_of).then(|| Coming::Now(Answer::Error(why())))
    }

    fn open(&self, ends: Ends<Option<IpAddr>>, bytes: u64, job: u32, owner: Owner) -> Coming {
        let is_port = matches!(owner, Owner::Socket(..));
        let src = ends.src.map_or_else(|| source(ends.dst, ends.dport), Ok);
        let src = match src {
            Ok(src) => src,
            Err(error) => {
                let why = format!("no way to {}: {error}", ends.dst);
                return Coming::Now(Answer::Error(why));
            }
        };
        let ends = Ends {
            protocol: ends.protocol,
            src,
            dst: ends.dst,
            dport: ends.dport,
        };
        let patience = match is_port {
            true => self.patience.port,
            false => self.patience.open,
        };
        let (flow, waits) = self.agent_owner.open(ends, bytes, job, owner);
        Coming::Port(flow, waits, Instant::now() + patience, is_port)
    }
}

/// Sends answers in the order of the questions, and news between them.
async fn say(
    socket: Arc<Connection>,
    agent_owner: Arc<AgentOwner>,
    mut coming: mpsc::Receiver<Coming>,
    mut news: mpsc::Receiver<Answer>,
) {
    loop {
        let answer = tokio::select! {
            biased;
            next = coming.recv() => match next {
                None => return,
                Some(Coming::Now(answer)) => answer,
                Some(Coming::Port(flow, waits, until, is_port)) => {
                    let port = match timeout_at(until, waits).await {
                        Ok(Ok(port)) => port,
                        Ok(Err(_)) => Err("the agent forgot it".to_owned()),
                        Err(_) => {
                            agent_owner.give_up(flow);
                            Err("no answer in time".to_owned())
                        }
                    };
                    match is_port {
                        true => Answer::Port(port),
                        false => Answer::Flow(flow, port),
                    }
                }
            },
            Some(news) = news.recv() => news,
        };
        if socket.send(answer.to_string().as_bytes()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_socket_is_refused_and_left() {
        let path = std::env::temp_dir().join(format!("hocket-no-socket-{}", std::process::id()));
        std::fs::write(&path, "mine").unwrap();
        let error = listen(&path, 0o666).unwrap_err().to_string();
        assert!(
            error.ends_with(": it is there, and no socket; set another socket"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
    }
}
