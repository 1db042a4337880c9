//! The sending end: an owner on the thread of the event loop, and the handle by which a program
//! runs it.

use crate::close::{CloseCode, goodbye};
use crate::disk::file_reader::TreeDone;
use crate::endpoint::endpoint;
use crate::error::{Error, TransferError};
use crate::event_loop::news_channel::{NewsSender, hung_up, news_channel};
use crate::event_loop::{EventLoop, Requests};
use crate::events::TransferEvent;
use crate::hello_preamble::{ConnectionPurpose, Preamble};
use crate::identity::Identity;
use crate::limits::send_limit::SendLimit;
use crate::marking::default_dscp;
use crate::outbound_transfer::Outbound;
use crate::progress::PathCounters;
use crate::progress::cost_to_others::CostToOthers;
use crate::progress::limiting_factor::Circumstances;
use crate::registry::FindPlan;
use crate::sender_start::{Payload, start_outbound};
use crate::session::connect_attempts::AttemptResult;
use crate::session::dialers::TcpUse;
use crate::session::keeper::{LostSession, SessionEvent, SessionKeeper, SessionPlan};
use crate::session::relay_outcomes::RelayOutcome;
use crate::session::ticket_destinations::looked_up_destinations;
use crate::session::uplinks::Uplinks;
use crate::sockets;
use crate::ticket::Ticket;
use crate::units::RateLimits;
use byway_control::{Class, Controller};
use byway_engine::{Config, Endpoint};
use byway_files::{NotCopied, Subdirectory, TrashName};
use byway_net::{Carrier, Clock, Control, LoopControl, Owner, Ready, Socket, TcpCongestion, TcpLimits};
use byway_wire::relay::Word;
use byway_wire::{Duration, Input, Instant, Machine as _};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Events that wait for the program.
const MAX_QUEUED_EVENTS: usize = 256;
/// Time to stay after the end, so that a lost CLOSE can be sent again.
const LINGER_TIME: Duration = Duration::from_millis(200);

/// The settings of a sender: the data, the receiver and the options.
pub struct SendingPlan {
    /// The key pair of this host.
    pub identity: Identity,
    /// The ticket of the receiver.
    pub ticket: Ticket,
    /// Relays in addition to those that the ticket names.
    pub relays: Vec<Word>,
    /// A registry to ask for more.
    pub registry: Option<FindPlan>,
    /// The data to send.
    pub payload: Payload,
    /// The directory for a tree, below the receiver's directory. `None`: the receiver's directory
    /// itself.
    pub below: Option<Subdirectory>,
    /// The directory for the data with which another run continues a tree. `None`: nothing is
    /// saved.
    pub journals: Option<PathBuf>,
    /// The controller of all paths.
    pub controller: Box<dyn Controller>,
    /// Whether data wait for what this host itself sends by the same uplink. It takes a controller
    /// that yields.
    pub yields_to_host: bool,
    /// To send from: each adds paths.
    pub sockets: Vec<Socket>,
    /// To use addresses that this host gets later, too, where they may lead to one of these
    /// addresses. `None`: not to.
    pub follow: Option<Vec<IpAddr>>,
    /// Whether TCP takes the place of UDP where that brings no answer.
    pub tcp: bool,
    /// The kernel's congestion control for the sender's TCP connections.
    pub tcp_congestion: TcpCongestion,
    /// The most payload bytes that are sent; the last piece may exceed it. Bytes that the receiver
    /// already has do not count. `None`: no limit.
    pub byte_limit: Option<u64>,
    /// The configuration of the session. [`Config::cap`] applies until
    /// [`set_limits`](EventLoop::set_limits).
    pub config: Config,
}

impl SendingPlan {
    /// A plan to send `payload` to the receiver that printed `ticket`, in the background class,
    /// from every address that reaches the receiver. A transfer that breaks off cannot be resumed,
    /// because the plan has no directory for `journals`.
    ///
    /// # Errors
    /// The system gives no socket or no randomness.
    pub fn new(identity: Identity, ticket: Ticket, payload: Payload) -> Result<Self, Error> {
        let destinations = looked_up_destinations(&ticket, &[], None);
        let controller = Class::Background.controller(u64::from_be_bytes(byway_net::seed()?));
        Ok(Self {
            identity,
            relays: Vec::new(),
            registry: None,
            yields_to_host: true,
            payload,
            below: None,
            journals: None,
            sockets: sockets::sending(&[], &destinations)?,
            follow: Some(destinations),
            tcp: true,
            tcp_congestion: TcpCongestion::Cubic,
            byte_limit: None,
            config: Config { dscp: default_dscp(controller.name()), ..Config::default() },
            controller,
            ticket,
        })
    }
}

/// The result of a transfer at a sender.
#[derive(Debug)]
pub struct SentTransfer {
    /// Whether the receiver has everything. Files that failed are counted separately.
    pub outcome: Result<(), TransferError>,
    /// Payload bytes that the receiver verified.
    pub bytes: u64,
    /// Payload bytes that were taken to be sent. If the transfer broke off, not all have arrived.
    pub taken: u64,
    /// Bytes that were not sent, because the receiver had them.
    pub kept: u64,
    /// Number of files that were not sent, because the receiver reports files of the same size and
    /// time.
    pub unchanged: u64,
    /// Number of files that were not sent, because the receiver keeps its newer ones, as the sender
    /// expected. Unexpected ones count as failed.
    pub newer: u64,
    /// Number of files, directories and links in place.
    pub entries: u64,
    /// Number of entries that the receiver refused or found damaged.
    pub failed: u64,
    /// Number of entries that could not be read.
    pub unsent: u64,
    /// Number of entries that patterns excluded. A directory counts as one, with all that it holds.
    pub excluded: u64,
    /// Number of entries that the receiver moved to its trash, because they no longer exist here.
    pub deleted: u64,
    /// Number of entries that the receiver failed to move to its trash.
    pub undeleted: u64,
    /// The folder of the trash with the deleted entries. `None`: none was moved.
    pub trash: Option<TrashName>,
    /// Whether a hash disagreed.
    pub damaged: bool,
    /// Metadata of the tree that is not copied.
    pub not_copied: NotCopied,
    /// Seconds from the start of the session to the receiver's last message.
    pub seconds: f64,
    /// The transfer's cost to others.
    pub cost: CostToOthers,
    /// Every path that was used.
    pub paths: Vec<PathCounters>,
    /// The final state of each relay that was tried, and its bytes.
    pub relays: Vec<RelayOutcome>,
    /// Whether relays helped, and if not why, in a sentence for a person. `None`: there was no
    /// relay.
    pub verdict: Option<String>,
    /// The reply on each path, if the receiver did not answer.
    pub tried: Vec<AttemptResult>,
}

impl SentTransfer {
    /// Whether the receiver of a tree no longer knows the session. Sending the same again goes on
    /// from there.
    #[must_use]
    pub const fn can_go_on(&self) -> bool {
        matches!(self.outcome, Err(TransferError::SessionForgotten))
    }
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
        let (news, inbox) = news_channel(MAX_QUEUED_EVENTS);
        let journals = plan.journals.as_deref().map(|directory| (directory, &plan.ticket));
        let (mut outbound, kind, transfer, reader) =
            start_outbound((plan.payload, plan.below), &plan.identity, journals, &control, &news)?;
        outbound.limit_bytes(plan.byte_limit.unwrap_or(u64::MAX));
        let locals: Vec<SocketAddr> = plan.sockets.iter().map(Socket::address).collect();
        let uplinks = plan.follow.map(|destinations| Uplinks::new(&locals, destinations));
        let limits = RateLimits { up: plan.config.cap, down: None };
        let endpoint = endpoint(&plan.identity, plan.config, None)?;
        let permission = plan.ticket.permission.clone();
        let hello = Preamble { kind, permission: permission.clone(), transfer };
        let question = Preamble { kind: ConnectionPurpose::Ping, permission, transfer };
        let mut controller = Some(plan.controller);
        // The keeper has one session: it is left when that is lost.
        let once = move |seed| controller.take().unwrap_or_else(|| Class::Background.controller(seed));
        let session = SessionPlan {
            registry: plan.registry,
            tcp: if plan.tcp { TcpUse::BesideUdp } else { TcpUse::Never },
            restart_question: Some(question.to_bytes()),
            yields_to_host: plan.yields_to_host,
            ..SessionPlan::new(&plan.ticket, plan.relays, hello.to_bytes(), Box::new(once))
        };
        let requests = Arc::new(Requests::new(limits));
        let owner = Sender {
            keeper: SessionKeeper::new(session, &locals, &control),
            outbound,
            news,
            requests: Arc::clone(&requests),
            send_limit: SendLimit::new(limits.up),
            locals,
            uplinks,
            tcp_congestion: plan.tcp_congestion,
            acknowledged: 0,
            ending: None,
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
    pub fn join(self) -> Result<SentTransfer, Error> {
        let finished = self.finish()?;
        let mut owner = finished.owner;
        finished.outcome?;
        // The journals are another run's once this one's thread has put them down.
        if let Some(reader) = owner.reader.take() {
            // Had it panicked, it was said.
            let _ = reader.join();
        }
        let ending = owner.ending.unwrap_or(SendEnd {
            outcome: Err(TransferError::Unfinished),
            done: TreeDone::default(),
            seconds: 0.0,
            tried: Vec::new(),
            leave_at: None,
        });
        let TreeDone { bytes, kept, unchanged, entries, failed, unsent, excluded, damaged, .. } = ending.done;
        let TreeDone { newer, deleted, undeleted, trash, not_copied, .. } = ending.done;
        let SendEnd { outcome, seconds, tried, .. } = ending;
        let paths = owner.keeper.counter().paths();
        let relays = owner.keeper.log().tallies(&paths, &owner.locals);
        let verdict = owner.keeper.log().verdict(&paths);
        Ok(SentTransfer {
            outcome,
            bytes,
            taken: owner.outbound.taken_bytes(),
            kept,
            unchanged,
            newer,
            entries,
            failed,
            unsent,
            excluded,
            deleted,
            undeleted,
            trash,
            damaged,
            not_copied,
            seconds,
            cost: owner.keeper.counter().cost(),
            paths,
            relays,
            verdict,
            tried,
        })
    }
}

/// How a transfer ends.
struct SendEnd {
    outcome: Result<(), TransferError>,
    done: TreeDone,
    seconds: f64,
    /// The reply on each path, if the receiver did not answer.
    tried: Vec<AttemptResult>,
    /// The time at which the sender leaves at the latest. `None`: it has not sent the receiver the
    /// CLOSE yet.
    leave_at: Option<Instant>,
}

/// The owner of a sending endpoint.
pub struct Sender {
    keeper: SessionKeeper,
    outbound: Outbound,
    news: NewsSender<TransferEvent>,
    requests: Arc<Requests>,
    send_limit: SendLimit,
    locals: Vec<SocketAddr>,
    uplinks: Option<Uplinks>,
    tcp_congestion: TcpCongestion,
    /// Payload bytes that the receiver has.
    acknowledged: u64,
    ending: Option<SendEnd>,
    reader: Option<JoinHandle<()>>,
}

impl Owner for Sender {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        self.keeper.ready(ready);
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        for change in self.uplinks.iter_mut().filter(|it| it.is_due(now)).flat_map(|it| it.look(now)) {
            endpoint.handle(now, Input::Link(change));
        }
        if self.ending.is_none() {
            self.keeper.turn(endpoint, &self.locals, now);
            if let Some(uplinks) = &mut self.uplinks {
                uplinks.lead_to(self.keeper.named_destinations());
            }
            self.take_session_events(now);
            self.drive(endpoint, now);
        }
        if self.ending.is_none() && self.requests.is_cancelled() {
            self.fail(TransferError::Cancelled, now);
        }
        if self.ending.as_ref().is_some_and(|ending| ending.leave_at.is_none()) {
            self.keeper.settle(endpoint, &self.locals, now);
        }
        let Some(ending) = &mut self.ending else { return LoopControl::Continue };
        let leave_at = *ending.leave_at.get_or_insert_with(|| {
            let (code, reason) = match &ending.outcome {
                Ok(()) if ending.done.unsent > 0 => {
                    (CloseCode::Partial.number(), format!("{} entries could not be read", ending.done.unsent))
                }
                outcome => goodbye(outcome),
            };
            self.keeper.close(endpoint, code, &reason, now);
            now + LINGER_TIME
        });
        if self.keeper.is_gone(endpoint) || now >= leave_at {
            LoopControl::Stop
        } else {
            LoopControl::Continue
        }
    }

    fn depth(&self) -> TcpLimits {
        TcpLimits { congestion: self.tcp_congestion, ..TcpLimits::default() }
    }

    fn deadline(&self) -> Option<Instant> {
        self.ending.as_ref()?.leave_at
    }

    fn ended(&mut self) {
        self.outbound.hang_up();
        self.news = hung_up();
    }

    fn opened(&mut self) -> Vec<Carrier> {
        let opened = self.uplinks.as_mut().map(Uplinks::opened).unwrap_or_default();
        self.locals.extend(opened.iter().map(Socket::address));
        opened.into_iter().map(Carrier::from).chain(self.keeper.opened()).collect()
    }
}

impl Sender {
    fn take_session_events(&mut self, now: Instant) {
        while let Some(event) = self.keeper.next_event() {
            match event {
                SessionEvent::Connected => self.tell(TransferEvent::Begun),
                SessionEvent::Lost(LostSession { error, tried, .. }) => {
                    let error = match (error, &self.outbound) {
                        // What standard input gave is gone: who made it must begin again.
                        (TransferError::SessionForgotten, Outbound::Pipe(_)) => {
                            TransferError::StreamForgotten
                        }
                        (error, _) => error,
                    };
                    self.end(Err(error), self.done_so_far(), tried, now);
                }
                SessionEvent::Refused(LostSession { error, tried, .. }) => {
                    self.end(Err(error), self.done_so_far(), tried, now);
                }
                SessionEvent::RelayTrouble(.., warning) => {
                    warning.into_iter().for_each(|warning| self.tell(TransferEvent::Warning(warning)));
                }
                SessionEvent::Warning(warning) => self.tell(TransferEvent::Warning(warning)),
                SessionEvent::News(news) => self.tell(news),
            }
        }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.keeper.session(endpoint).filter(|_| self.ending.is_none()) else {
            return;
        };
        self.outbound.drive(connection.outgoing(), now);
        self.outbound.take(connection.incoming());
        if self.send_limit.update(self.outbound.take_limit(), self.requests.limits().up) {
            connection.set_cap(now, self.send_limit.bytes_per_second());
        }
        if self.outbound.is_sent() {
            connection.finishing();
        }
        let ending = self.outbound.ending().or_else(|| {
            self.outbound.is_at_byte_limit(connection.outgoing()).then_some(Err(TransferError::ByteLimit))
        });
        let amount = self.outbound.progress(connection.outgoing());
        self.acknowledged = amount.bytes;
        if ending.is_some() || self.keeper.counter().is_due(now) {
            let circumstances = Circumstances {
                receivers_limit: self.send_limit.is_receivers(),
                sent: self.outbound.is_sent() && amount.total == Some(amount.bytes),
                ..Circumstances::default()
            };
            if let Some(tally) = self.keeper.progress(endpoint, &self.locals, circumstances, amount, now) {
                self.tell(TransferEvent::Progress(tally));
            }
        }
        if ending.is_some() {
            self.keeper.look_at_relays(endpoint, &self.locals, now);
            self.take_session_events(now);
        }
        match ending {
            Some(Ok(done)) => self.end(Ok(()), done, Vec::new(), now),
            Some(Err(error)) => self.fail(error, now),
            None => {}
        }
    }

    fn fail(&mut self, error: TransferError, now: Instant) {
        self.end(Err(error), self.done_so_far(), Vec::new(), now);
    }

    fn done_so_far(&self) -> TreeDone {
        TreeDone { bytes: self.acknowledged, ..TreeDone::default() }
    }

    /// Sets the result of the transfer, unless it is set already.
    fn end(
        &mut self,
        outcome: Result<(), TransferError>,
        done: TreeDone,
        tried: Vec<AttemptResult>,
        now: Instant,
    ) {
        let seconds = self.keeper.counter().seconds(now);
        self.ending.get_or_insert(SendEnd { outcome, done, seconds, tried, leave_at: None });
    }

    /// Sends an event to the program. If the program does not read its events, this one is lost.
    fn tell(&self, news: TransferEvent) {
        let _ = self.news.try_send(news);
    }
}
