//! The sending end: an owner on the thread of the event loop, and the handle by which a program runs it.

use crate::close::{code_of, error_of};
use crate::endpoint::endpoint;
use crate::error::{Error, TransferError};
use crate::event_loop::{EventLoop, Requests};
use crate::identity::Identity;
use crate::marking::default_dscp;
use crate::names::route_name;
use crate::news::News;
use crate::outbound::Outbound;
use crate::pause_reason::Circumstances;
use crate::preamble::{Kind, Preamble};
use crate::probe::{Move, Probe, Question};
use crate::reader::TreeDone;
use crate::sockets;
use crate::start::{Payload, start_outbound};
use crate::tally::{Counter, PathTally, state_name};
use crate::ticket::{GreetedRelay, Ticket};
use crate::unreached::not_connected;
use crate::uplinks::Uplinks;
use crate::ways::{Tried, Ways};
use byway_control::{Class, Controller};
use byway_engine::connection::{Event, close};
use byway_engine::handshake::PublicKey;
use byway_engine::{Config, Connect, ConnectError, Endpoint, EndpointEvent, Handle, Reach};
use byway_net::{Clock, Control, Flow, Owner, Socket};
use byway_wire::relay::{Reason, Word};
use byway_wire::{Duration, Input, Instant, Machine as _, PathId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Events that wait for the program.
const NEWS: usize = 256;
/// How long to stay after the end, so that a CLOSE that is lost can be said again.
const LINGER: Duration = Duration::from_millis(200);

/// What to send, whom to, and how.
pub struct SendingPlan {
    /// This host.
    pub identity: Identity,
    /// The receiver.
    pub ticket: Ticket,
    /// Relays besides those that the ticket names.
    pub relays: Vec<Word>,
    /// What to send.
    pub payload: Payload,
    /// Where to keep what another run needs in order to go on with a tree; `None`: nowhere.
    pub journals: Option<PathBuf>,
    /// Governs all paths.
    pub controller: Box<dyn Controller>,
    /// To send from: each adds paths.
    pub sockets: Vec<Socket>,
    /// To send from addresses of this host that come meanwhile, too, where they may lead to one of these.
    pub follow: Option<Vec<IpAddr>>,
    /// How the session behaves.
    pub config: Config,
}

impl SendingPlan {
    /// Sends `payload` to the receiver that printed `ticket`, in the background class and from every address of this host that leads
    /// there. It keeps no notes for another run.
    ///
    /// # Errors
    /// The system gives no socket or no randomness.
    pub fn new(identity: Identity, ticket: Ticket, payload: Payload) -> Result<Self, Error> {
        let destinations = ticket.destinations(&[]);
        let controller = Class::Background.controller(u64::from_be_bytes(byway_net::seed()?));
        Ok(Self {
            identity,
            relays: Vec::new(),
            payload,
            journals: None,
            sockets: sockets::sending(&[], &destinations)?,
            follow: Some(destinations),
            config: Config { dscp: default_dscp(controller.name()), ..Config::default() },
            controller,
            ticket,
        })
    }
}

/// How it ended.
#[derive(Debug)]
pub struct Sent {
    /// `Ok`: the receiver has it all, except what is counted here.
    pub outcome: Result<(), TransferError>,
    /// Payload bytes that the receiver verified.
    pub bytes: u64,
    /// How many of them did not travel, since an earlier try had brought them.
    pub kept: u64,
    /// Files, directories and links in place.
    pub entries: u64,
    /// Entries that the receiver refused, or that were found damaged.
    pub failed: u64,
    /// Entries that could not be read.
    pub unsent: u64,
    /// Whether a hash disagreed.
    pub damaged: bool,
    /// From the connection to the receiver's last word.
    pub seconds: f64,
    /// Every path that there was.
    pub paths: Vec<PathTally>,
    /// The receiver was started anew meanwhile: the same again goes on from there.
    pub renewed: bool,
    /// If the receiver did not answer: what came back on each way.
    pub tried: Vec<Tried>,
}

/// A transfer that runs.
pub type Sending = EventLoop<Sender>;

impl Sending {
    /// Starts.
    ///
    /// # Errors
    /// What is to be sent does not exist or cannot be read; the system gives no thread.
    pub fn start(plan: SendingPlan) -> Result<Self, Error> {
        let control = Control::new().map_err(Error::Descriptor)?;
        let (news, inbox) = sync_channel(NEWS);
        let journals = plan.journals.as_deref().map(|directory| (directory, &plan.ticket));
        let (outbound, kind, transfer, reader) =
            start_outbound(plan.payload, &plan.identity, journals, &control, &news)?;
        let locals: Vec<SocketAddr> = plan.sockets.iter().map(Socket::address).collect();
        let uplinks = plan.follow.map(|destinations| Uplinks::new(&locals, destinations));
        let cap = plan.config.cap;
        let endpoint = endpoint(&plan.identity, plan.config, None)?;
        let permission = plan.ticket.permission.clone();
        let preamble = Preamble { kind, permission: permission.clone(), transfer };
        let ping = Preamble { kind: Kind::Ping, permission, transfer: [0; 16] };
        let reach = |relay: &GreetedRelay| Reach {
            word: relay.word.clone(),
            destination: relay.address,
            consent: relay.consent,
        };
        let question = Question {
            peer: PublicKey(plan.ticket.key.0),
            addresses: plan.ticket.addresses.clone(),
            relays: plan.ticket.relays.iter().map(reach).collect(),
            application: ping.to_bytes().to_vec(),
        };
        let connect = Connect {
            peer: PublicKey(plan.ticket.key.0),
            addresses: plan.ticket.addresses.clone(),
            application: preamble.to_bytes().to_vec(),
            controller: plan.controller,
        };
        let told = question.relays.iter().map(|reach| (reach.word.clone(), Some(reach.clone())));
        let relays: Vec<_> = told.chain(plan.relays.into_iter().map(|word| (word, None))).collect();
        let met = relays.iter().filter(|(_, reach)| reach.is_some()).map(|(word, _)| word.clone());
        let ways = Ways::new(&question.addresses, met, &locals);
        let requests = Arc::new(Requests::default());
        let owner = Sender {
            connect: Some(connect),
            relays,
            handle: None,
            connected: false,
            outbound,
            news,
            requests: Arc::clone(&requests),
            lifted: false,
            wanted: 0,
            counter: Counter::default(),
            names: BTreeMap::new(),
            relays_known: BTreeSet::new(),
            notices: BTreeSet::new(),
            used_up: BTreeSet::new(),
            locals,
            uplinks,
            ending: None,
            leave_at: None,
            cap,
            question,
            probe: Probe::default(),
            probing: None,
            renewed: false,
            ways,
            tried: Vec::new(),
            reader,
        };
        let driver =
            byway_net::spawn_with(control, "byway send", endpoint, owner, plan.sockets, Clock::new())
                .map_err(Error::Thread)?;
        Ok(Self::new(driver, inbox, requests))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn join(self) -> Result<Sent, Error> {
        let finished = self.finish()?;
        let mut owner = finished.owner;
        finished.outcome?;
        // The journals are another run's once this one's thread has put them down.
        owner.outbound.hang_up();
        if let Some(reader) = owner.reader.take() {
            // Had it panicked, it was said.
            let _ = reader.join();
        }
        let ending = owner.ending.unwrap_or(Ending {
            outcome: Err(TransferError::Unfinished),
            done: TreeDone::default(),
            seconds: 0.0,
        });
        let TreeDone { bytes, kept, entries, failed, unsent, damaged } = ending.done;
        let (outcome, seconds, paths) = (ending.outcome, ending.seconds, owner.counter.paths());
        let (renewed, tried) = (owner.renewed, owner.tried);
        Ok(Sent { outcome, bytes, kept, entries, failed, unsent, damaged, seconds, paths, renewed, tried })
    }
}

struct Ending {
    outcome: Result<(), TransferError>,
    done: TreeDone,
    seconds: f64,
}

/// The owner of a sending endpoint.
pub struct Sender {
    connect: Option<Connect>,
    relays: Vec<(Word, Option<Reach>)>,
    handle: Option<Handle>,
    connected: bool,
    outbound: Outbound,
    news: SyncSender<News>,
    requests: Arc<Requests>,
    /// Whether this side's limit does not hold for now.
    lifted: bool,
    /// Bytes per second that the receiver wants at most; 0: as many as there are.
    wanted: u64,
    counter: Counter,
    /// What to call the paths that are up, and where they go first.
    names: BTreeMap<PathId, (String, SocketAddr)>,
    /// Relays that work, or of which it was said that they do not.
    relays_known: BTreeSet<SocketAddr>,
    /// What which relays said, by name: once is enough, though each is asked again now and then.
    notices: BTreeSet<(String, u8)>,
    /// Relays that say that their quota is used up; `None`: one on a path that was never of use.
    used_up: BTreeSet<Option<SocketAddr>>,
    locals: Vec<SocketAddr>,
    uplinks: Option<Uplinks>,
    ending: Option<Ending>,
    leave_at: Option<Instant>,
    /// What this side sends at most, in bytes per second.
    cap: Option<u64>,
    /// Whether the receiver is there.
    question: Question,
    probe: Probe,
    probing: Option<Handle>,
    /// The receiver is there, but not the one that the connection is with.
    renewed: bool,
    /// While it has not answered yet.
    ways: Ways,
    tried: Vec<Tried>,
    reader: Option<JoinHandle<()>>,
}

impl Owner for Sender {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> Flow {
        if let Some(connect) = self.connect.take() {
            self.begin(endpoint, now, connect);
        }
        while let Some(event) = endpoint.next_event() {
            self.on_event(event, now);
        }
        self.ask(endpoint, now);
        if !self.connected && self.ending.is_none() {
            self.ways.look(now);
            if self.ways.are_hopeless(now) {
                self.give_up(ConnectError::NoAnswer, now);
            }
        }
        for change in self.uplinks.iter_mut().filter(|it| it.is_due(now)).flat_map(|it| it.look(now)) {
            endpoint.handle(now, Input::Link(change));
        }
        if let (Some(handle), true) = (self.handle, self.connected) {
            self.drive(endpoint, handle, now);
        }
        if self.ending.is_none() && self.requests.is_cancelled() {
            self.fail(TransferError::Cancelled, now);
        }
        let Some(ending) = &self.ending else { return Flow::Continue };
        let leave_at = *self.leave_at.get_or_insert_with(|| {
            let (code, reason) = match &ending.outcome {
                Ok(()) => (close::DONE, String::from("done")),
                Err(error) => (code_of(error).number(), error.to_string()),
            };
            if let Some(handle) = self.handle {
                endpoint.close(now, handle, code, &reason);
            }
            now + LINGER
        });
        let gone = self.handle.and_then(|handle| endpoint.connection(handle)).is_none_or(|it| it.is_closed());
        if gone || now >= leave_at { Flow::Stop } else { Flow::Continue }
    }

    fn opened(&mut self) -> Vec<Socket> {
        let opened = self.uplinks.as_mut().map(Uplinks::opened).unwrap_or_default();
        self.locals.extend(opened.iter().map(Socket::address));
        opened
    }
}

impl Sender {
    fn begin(&mut self, endpoint: &mut Endpoint, now: Instant, connect: Connect) {
        match endpoint.connect(now, connect) {
            Ok(handle) => {
                self.handle = Some(handle);
                for (word, reach) in std::mem::take(&mut self.relays) {
                    endpoint.add_relay(now, handle, &word, reach.as_ref());
                }
            }
            Err(error) => self.give_up(error, now),
        }
    }

    /// Finds out whether a receiver that fell silent was started anew.
    fn ask(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if !self.connected || self.ending.is_some() {
            return;
        }
        match self.probe.judge(now, self.counter.silence(now)) {
            Move::Wait => {}
            Move::Ask => {
                if let Some(before) = self.probing.take() {
                    endpoint.close(now, before, close::DONE, "done");
                }
                self.probing = self.question.ask(endpoint, now);
            }
            Move::Renew => {
                // What standard input gave is gone: who made it must begin again.
                self.renewed = matches!(self.outbound, Outbound::Tree(_));
                let error = match self.renewed {
                    true => TransferError::ReceiverRestarted,
                    false => TransferError::StreamReceiverRestarted,
                };
                self.fail(error, now);
            }
        }
        if let Some(handle) = self.probing.filter(|_| self.counter.silence(now).is_zero()) {
            self.probing = None;
            endpoint.close(now, handle, close::DONE, "done");
        }
    }

    fn on_event(&mut self, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Connected(handle) if Some(handle) == self.probing => self.probe.answered(now),
            EndpointEvent::Failed(handle, _) if Some(handle) == self.probing => self.probing = None,
            EndpointEvent::Connected(handle)
            | EndpointEvent::Failed(handle, _)
            | EndpointEvent::RelayTrouble(handle, ..)
                if Some(handle) != self.handle => {}
            EndpointEvent::Connected(_) => {
                self.connected = true;
                self.counter.begin(now);
                self.tell(News::Begun);
            }
            EndpointEvent::Failed(_, error) => {
                self.handle = None;
                self.give_up(error, now);
            }
            EndpointEvent::RelayTrouble(_, relay, trouble) => {
                self.ways.on_relay(relay, trouble);
                self.tell(News::Warning(format!(
                    "relay {relay}: {trouble}; the transfer goes on without it"
                )));
            }
            EndpointEvent::Accepted(_)
            | EndpointEvent::Closed(_)
            | EndpointEvent::Reachable { .. }
            | EndpointEvent::StandingTrouble(..) => {}
        }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        while let Some(event) = connection.next_event() {
            let find = |path: PathId| connection.status().paths.into_iter().find(|it| it.id == path);
            let name = |path: PathId| find(path).map(|it| route_name(&it.route, &self.locals));
            match event {
                Event::Closed { code, reason, by_peer } => {
                    self.fail(error_of(code, &reason, by_peer), now);
                }
                Event::PathUp(path) => {
                    if let Some(status) = find(path) {
                        let name = route_name(&status.route, &self.locals);
                        let remote = status.route.remote;
                        if status.route.is_proxied() {
                            self.relays_known.insert(remote);
                            self.used_up.retain(|relay| relay.is_some_and(|relay| relay != remote));
                        }
                        self.names.insert(path, (name.clone(), remote));
                        let state = state_name(status.state);
                        self.tell(News::Path { path: path.0, name, state, reason: None });
                    }
                }
                // Of a path that never worked, a notice told why.
                Event::PathDown { path, reason } => {
                    if let Some((name, _)) = self.names.remove(&path) {
                        let reason = Some(reason.to_owned());
                        self.tell(News::Path { path: path.0, name, state: "closed", reason });
                    }
                }
                Event::Notice { path, reason, proven } => {
                    // A path that was refused at once is gone by now.
                    let name = self.names.get(&path).map(|(name, _)| name.clone()).or_else(|| name(path));
                    let said = name.is_none() && self.notices.iter().any(|(_, other)| *other == reason as u8);
                    let name = name.unwrap_or_else(|| String::from("a relay"));
                    if proven && reason == Reason::OverQuota {
                        self.used_up.insert(self.names.get(&path).map(|(_, relay)| *relay));
                    }
                    if !said && self.notices.insert((name.clone(), reason as u8)) {
                        let says = if proven { "says" } else { "seems to say" };
                        self.tell(News::Warning(format!("{name} {says}: {reason}")));
                    }
                }
                Event::Confirmed => {}
            }
        }
        if self.ending.is_some() || connection.is_closing() {
            return;
        }
        self.outbound.drive(connection.outgoing(), now);
        self.outbound.take(connection.incoming());
        let (wanted, lifted) = (self.outbound.take_limit().unwrap_or(self.wanted), self.requests.is_lifted());
        if (wanted, lifted) != (self.wanted, self.lifted) {
            (self.wanted, self.lifted) = (wanted, lifted);
            connection.set_cap(now, least(self.own_cap(), wanted));
        }
        if self.outbound.is_sent() {
            connection.finishing();
        }
        let ending = self.outbound.ending();
        if ending.is_some() || self.counter.is_due(now) {
            let amount = self.outbound.progress(connection.outgoing());
            let circumstances = Circumstances {
                used_up: !self.used_up.is_empty(),
                receivers_limit: self.wanted > 0 && least(self.own_cap(), self.wanted) == Some(self.wanted),
                sent: self.outbound.is_sent() && amount.total == Some(amount.bytes),
                ..Circumstances::default()
            };
            let tally = self.counter.look(now, connection, &self.locals, circumstances, amount);
            self.tell(News::Progress(tally));
        }
        match ending {
            Some(Ok(done)) => {
                let seconds = self.counter.seconds(now);
                self.ending = Some(Ending { outcome: Ok(()), done, seconds });
            }
            Some(Err(error)) => self.fail(error, now),
            None => {}
        }
    }

    /// The receiver does not answer.
    fn give_up(&mut self, error: ConnectError, now: Instant) {
        self.tried = self.ways.tried();
        self.fail(not_connected(error, &self.tried).into(), now);
    }

    /// What this side sends at most for now, in bytes per second.
    fn own_cap(&self) -> Option<u64> {
        self.cap.filter(|_| !self.lifted)
    }

    fn fail(&mut self, error: TransferError, now: Instant) {
        if self.ending.is_none() {
            let done = TreeDone { bytes: self.counter.bytes(), ..TreeDone::default() };
            self.ending = Some(Ending { outcome: Err(error), done, seconds: self.counter.seconds(now) });
        }
    }

    /// Progress that nobody takes is not worth waiting for, and warnings neither.
    fn tell(&self, news: News) {
        let _ = self.news.try_send(news);
    }
}

/// The lower of what this side sends at most and what the receiver `wanted`, where 0 is no limit.
fn least(own: Option<u64>, wanted: u64) -> Option<u64> {
    let wanted = Some(wanted).filter(|wanted| *wanted > 0);
    own.into_iter().chain(wanted).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_limit_counts() {
        assert_eq!((least(None, 0), least(Some(5), 0)), (None, Some(5)));
        assert_eq!((least(None, 7), least(Some(5), 7), least(Some(9), 7)), (Some(7), Some(5), Some(7)));
    }
}
