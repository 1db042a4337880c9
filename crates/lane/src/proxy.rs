//! Listens on loopback, dials the targets of programs, and joins their connections.

use crate::interface_watch::{Departure, InterfaceWatch};
use crate::paced_target::{PacedStream, PacedTarget, WriteLimit};
use crate::program_dialog::{AnswerLanguage, ProgramDialog, answer};
use crate::uplink::{TargetAcknowledged, Uplink, UplinkFigures};
use byway_forward::allow_rules::{Allow, AllowRule, DialDecision};
use byway_forward::forward_target::{Target, TargetHost};
use byway_forward::splice::{Local as _, Splice, SpliceStatus, WaitsFor};
use byway_forward::stream_request::Refusal;
use byway_forward_host::connection_slots::{Number, Slots};
use byway_forward_host::nonblocking_tcp::Tcp;
use byway_forward_host::resolver::Resolver;
use byway_forward_host::socks_dialog::ProgramRequest;
use byway_forward_host::target_dial::{Dial, Dialled, is_out_of_descriptors};
use byway_forward_host::{ByteCounts, Listener, Listening};
use byway_net::{Control, LedgerNews, LoopControl, Owner, Ready, Token, UplinkLedger, Watch};
use byway_uplink::OtherSessions;
use byway_wire::{Duration, Input, Instant, Machine, Transmit, TransmitBuffer};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

/// Bytes of a segment at most: those of Ethernet, 1,500 less the headers of IPv4 and TCP. A run of
/// larger ones, as of jumbo frames or loopback, would take long on a thin line.
const MAX_SEGMENT_LEN: u32 = 1_460;
/// How long a program may take to say its target, and then a name to be looked up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long listeners rest after a failure for want of descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The most connections that each listener accepts in one turn.
const MAX_ACCEPTS_PER_TURN: usize = 64;
/// Bytes read at once.
const SCRATCH_LEN: usize = 64 << 10;
/// Time between two updates of the figures for people.
const FIGURES_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two looks at the interface's counters while somebody waits for a lease.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Time between two looks if the counters cannot be read, or are several interfaces'.
const BLIND_LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Added to the numbers of listeners, so that their tokens differ from those of connections.
const LISTENER_TOKEN_BASE: u32 = 1 << 31;
/// All names are asked for by one host: this one.
const ASKER_KEY: [u8; 32] = [0; 32];

/// Something that happened, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneEvent {
    /// A target was not connected to.
    Refused(Target, Refusal),
    /// A connection to this target was reset, by its program or by the target.
    Reset(Target),
    /// The kernel does not stamp what a connection to this target sends, so it cannot be paced.
    NoStamps(Target),
    /// There are as many connections as may be: further ones wait.
    Full,
    /// The system gives no more descriptors.
    NoDescriptors,
}

/// What the lane has done and does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaneFigures {
    /// The number of present connections.
    pub open: usize,
    /// Connections that reached their target, so far.
    pub opened: u64,
    /// Bytes of all connections so far.
    pub moved: ByteCounts,
    /// What the uplink does.
    pub uplink: UplinkFigures,
}

/// The lane's driver has no protocol of its own.
#[derive(Debug)]
pub struct NoProtocol;

impl Machine for NoProtocol {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}

    fn wake(&mut self, _: Instant) {}

    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        None
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// How far a program's connection is.
enum LaneState {
    /// The program names its target.
    Asking(ProgramDialog),
    /// The target's name is being looked up.
    Resolving(Target),
    /// The target is being dialled.
    Dialling(Target, Dial),
    /// The program and the target are connected.
    Open(Target, Box<PacedTarget>, Splice),
    /// Both directions have ended, and the target's socket has yet to take the rest.
    Flushing(Box<PacedTarget>),
}

/// A connection of a program.
struct Connection {
    /// A number that no other connection ever gets, unlike the slot's number.
    serial: u64,
    program: Tcp,
    /// Whether the program names its target, rather than who started the lane.
    names_target: bool,
    /// The language in which the program waits for an answer. `None`: it waits for none.
    awaits: Option<AnswerLanguage>,
    state: LaneState,
    /// Whether the connection is in the queue of those that wait for a lease.
    waits_for_lease: bool,
    /// How the connection to the target leaves, once there is one.
    departure: Option<Departure>,
    /// Bytes that were counted among all.
    counted: [u64; 2],
}

/// Serves programs. Runs on a driver without sockets of its own.
pub struct Proxy {
    listeners: Vec<(TcpListener, Listener)>,
    /// What programs may name.
    allow: Allow,
    watch: Watch,
    resolver: Resolver,
    uplink: Uplink,
    interfaces: InterfaceWatch,
    /// The ledger of the interface by which connections leave.
    ledger: Option<UplinkLedger>,
    next_look: Instant,
    slots: Slots<Connection>,
    /// Connections that wait for a lease, in the order of their turns.
    lease_queue: VecDeque<Number>,
    /// Connections at most.
    most: usize,
    /// When listeners are tried again, after the system refused to accept.
    accept_at: Option<Instant>,
    /// Whether some may have more to accept.
    accepts: bool,
    is_full: bool,
    scratch: Vec<u8>,
    runs: Vec<TargetAcknowledged>,
    serial: u64,
    figures: LaneFigures,
    shown: Arc<Mutex<LaneFigures>>,
    shown_at: Instant,
    events: SyncSender<LaneEvent>,
    next_turn: Option<Instant>,
}

/// What a proxy is made of.
pub struct ProxyPlan {
    /// The listening sockets.
    pub listening: Listening,
    /// The most connections at once.
    pub most: usize,
    /// Where events go. What its queue does not take is lost.
    pub events: SyncSender<LaneEvent>,
    /// Where the figures are put, several times a second.
    pub shown: Arc<Mutex<LaneFigures>>,
}

impl Proxy {
    /// A proxy that the driver of `control` will run.
    ///
    /// # Errors
    /// A listening socket cannot be watched.
    pub fn new(plan: ProxyPlan, control: &Control, now: Instant) -> io::Result<Self> {
        let listeners = plan.listening.into_sockets();
        for (number, (listener, _)) in listeners.iter().enumerate() {
            control.watch().add(listener, Token(LISTENER_TOKEN_BASE | number as u32))?;
        }
        Ok(Self {
            listeners,
            allow: Allow::new("any".parse::<AllowRule>().into_iter().collect()),
            watch: control.watch().clone(),
            resolver: Resolver::new(control.waker().clone()),
            uplink: Uplink::new(now),
            interfaces: InterfaceWatch::default(),
            ledger: None,
            next_look: now,
            slots: Slots::default(),
            lease_queue: VecDeque::new(),
            most: plan.most,
            accept_at: None,
            accepts: true,
            is_full: false,
            scratch: vec![0; SCRATCH_LEN],
            runs: Vec::new(),
            serial: 0,
            figures: LaneFigures::default(),
            shown: plan.shown,
            shown_at: now,
            events: plan.events,
            next_turn: None,
        })
    }

    fn tell(&self, event: LaneEvent) {
        // Who does not listen misses it; nobody waits for a person.
        let _ = self.events.try_send(event);
    }

    fn accept(&mut self, now: Instant) {
        if !self.accepts || self.accept_at.is_some_and(|at| now < at) {
            return;
        }
        (self.accepts, self.accept_at) = (false, None);
        for index in 0..self.listeners.len() {
            for taken in 0.. {
                if taken == MAX_ACCEPTS_PER_TURN || self.slots.len() >= self.most {
                    self.accepts = true;
                    if taken < MAX_ACCEPTS_PER_TURN && !std::mem::replace(&mut self.is_full, true) {
                        self.tell(LaneEvent::Full);
                    }
                    break;
                }
                let Some((listener, leads)) = self.listeners.get(index) else { break };
                let target = leads.target.clone();
                match listener.accept().and_then(|(stream, _)| Tcp::accepted(stream)) {
                    Ok(program) => self.take(program, target, now),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_out_of_descriptors(&error) => {
                        (self.accepts, self.accept_at) = (true, Some(now + ACCEPT_RETRY_DELAY));
                        self.tell(LaneEvent::NoDescriptors);
                        return;
                    }
                    // One that has gone again: the next may do.
                    Err(_) => {}
                }
            }
        }
    }

    fn take(&mut self, program: Tcp, target: Option<Target>, now: Instant) {
        self.serial += 1;
        let number = self.slots.insert(Connection {
            serial: self.serial,
            program,
            names_target: target.is_none(),
            awaits: None,
            state: LaneState::Asking(ProgramDialog::default()),
            waits_for_lease: false,
            departure: None,
            counted: [0; 2],
        });
        let watched = self.slots.get_mut(number).map(|it| self.watch.add(&it.program, Token(number)));
        if !matches!(watched, Some(Ok(()))) {
            self.slots.remove(number);
            return;
        }
        self.slots.set_end(number, Some(now + REQUEST_TIMEOUT));
        match target {
            Some(target) => self.resolve(number, target, now),
            None => self.slots.hurry(number),
        }
    }

    /// The id of the question that resolves the name of a connection's target.
    const fn question(serial: u64, number: Number) -> u64 {
        serial << 32 | number as u64
    }

    fn resolve(&mut self, number: Number, target: Target, now: Instant) {
        let addresses = match &target.host {
            TargetHost::Address(address) => vec![*address],
            TargetHost::Name(name) => match Resolver::known(name) {
                Some(known) => known.to_vec(),
                None => {
                    let name = name.clone();
                    let Some(connection) = self.slots.get_mut(number) else { return };
                    let question = Self::question(connection.serial, number);
                    connection.state = LaneState::Resolving(target.clone());
                    self.slots.set_end(number, Some(now + REQUEST_TIMEOUT));
                    if !self.resolver.ask(ASKER_KEY, question, &name) {
                        self.resolver.forget(ASKER_KEY, question);
                        self.refuse(number, target, Refusal::Full);
                    }
                    return;
                }
            },
        };
        self.dial(number, target, &addresses, now);
    }

    /// Takes the resolver's answers, and dials the addresses.
    fn take_names(&mut self, now: Instant) {
        while let Some((question, addresses)) = self.resolver.next() {
            let number = Number::try_from(question & u64::from(u32::MAX)).unwrap_or(Number::MAX);
            let Some(connection) = self.slots.get_mut(number) else { continue };
            let LaneState::Resolving(target) = &connection.state else { continue };
            if Self::question(connection.serial, number) != question {
                continue;
            }
            let target = target.clone();
            if addresses.is_empty() {
                self.refuse(number, target, Refusal::Name);
            } else {
                self.dial(number, target, &addresses, now);
            }
        }
    }

    fn dial(&mut self, number: Number, target: Target, addresses: &[IpAddr], now: Instant) {
        let Some(connection) = self.slots.get_mut(number) else { return };
        // Where the system does not tell, an address may be the host's own.
        let is_own = |address| byway_net::is_own(address).unwrap_or(true);
        // Who starts the lane names its fixed targets; programs may name no near address.
        let named = (!connection.names_target).then(|| target.to_string().parse::<AllowRule>().ok());
        let rule = named.flatten().map(|rule| Allow::new(vec![rule]));
        match rule.as_ref().unwrap_or(&self.allow).choose(&target, addresses, &is_own) {
            Ok(addresses) => {
                let mut dial = Dial::new(addresses).with_max_segment(MAX_SEGMENT_LEN);
                let dialled = dial.begin(&self.watch, Token(number), now);
                connection.state = LaneState::Dialling(target, dial);
                self.on_dialled(number, dialled, now);
            }
            Err(DialDecision::Near) => self.refuse(number, target, Refusal::Near),
            Err(_) => self.refuse(number, target, Refusal::Forbidden),
        }
    }

    fn on_dialled(&mut self, number: Number, dialled: Dialled, now: Instant) {
        let Some(connection) = self.slots.get_mut(number) else { return };
        let LaneState::Dialling(target, _) = &connection.state else { return };
        let target = target.clone();
        match dialled {
            Dialled::Goes(until) => self.slots.set_end(number, Some(until)),
            Dialled::Failed(refusal) => self.refuse(number, target, refusal),
            Dialled::Connected(tcp) => {
                let Ok(paced) = PacedTarget::new(tcp) else {
                    self.tell(LaneEvent::NoStamps(target.clone()));
                    return self.refuse(number, target, Refusal::Failed);
                };
                if let Some(language) = connection.awaits.take() {
                    answer(&mut connection.program, language, Ok(()));
                }
                connection.departure = Some(self.interfaces.on_opened(paced.address()));
                connection.state = LaneState::Open(target, Box::new(paced), Splice::default());
                self.figures.opened += 1;
                self.slots.set_end(number, None);
                self.pump(number, false, now);
            }
        }
    }

    /// Ends a connection whose target cannot be reached.
    fn refuse(&mut self, number: Number, target: Target, refusal: Refusal) {
        self.tell(LaneEvent::Refused(target, refusal));
        let Some(mut connection) = self.end(number) else { return };
        if let Some(language) = connection.awaits {
            answer(&mut connection.program, language, Err(refusal));
            connection.program.leave();
        } else {
            connection.program.abort();
        }
    }

    fn end(&mut self, number: Number) -> Option<Connection> {
        let mut connection = self.slots.remove(number)?;
        self.accepts |= std::mem::take(&mut self.is_full);
        if let Some(departure) = connection.departure {
            self.interfaces.on_over(departure);
        }
        match std::mem::replace(&mut connection.state, LaneState::Asking(ProgramDialog::default())) {
            LaneState::Open(_, target, _) | LaneState::Flushing(target) => target.leave(&mut self.uplink),
            LaneState::Resolving(_) => {
                self.resolver.forget(ASKER_KEY, Self::question(connection.serial, number));
            }
            LaneState::Asking(_) | LaneState::Dialling(..) => {}
        }
        Some(connection)
    }

    fn time_is_up(&mut self, number: Number, now: Instant) {
        let Some(connection) = self.slots.get_mut(number) else { return };
        match &mut connection.state {
            LaneState::Asking(_) => {
                self.end(number);
            }
            LaneState::Resolving(target) => {
                let target = target.clone();
                self.refuse(number, target, Refusal::Name);
            }
            LaneState::Dialling(_, dial) => {
                let dialled = dial.time_is_up(&self.watch, Token(number), now);
                self.on_dialled(number, dialled, now);
            }
            LaneState::Open(_, target, _) | LaneState::Flushing(target) => {
                target.on_time(&mut self.uplink, now);
                self.slots.hurry(number);
            }
        }
    }

    /// Serves a connection that has a turn.
    fn drive(&mut self, number: Number, now: Instant) {
        let Some(connection) = self.slots.get_mut(number) else { return };
        match &mut connection.state {
            LaneState::Asking(dialog) => match dialog.speak(&mut connection.program) {
                ProgramRequest::Waits => {}
                ProgramRequest::Asks(target) => {
                    connection.awaits = dialog.language();
                    self.resolve(number, target, now);
                }
                ProgramRequest::Over => {
                    self.end(number);
                }
            },
            LaneState::Resolving(_) => {}
            LaneState::Dialling(_, dial) => {
                if let Some(dialled) = dial.look(&self.watch, Token(number), now) {
                    self.on_dialled(number, dialled, now);
                }
            }
            LaneState::Open(..) => {
                // Whoever waits for a lease gets the next; none is overtaken.
                let may_lease = self.lease_queue.is_empty();
                self.pump(number, may_lease, now);
            }
            LaneState::Flushing(target) => {
                if target.flush(&mut self.uplink, now) || target.is_broken() {
                    self.end(number);
                }
            }
        }
    }

    /// Moves bytes of a connection, both ways.
    fn pump(&mut self, number: Number, may_lease: bool, now: Instant) {
        let Some(connection) = self.slots.get_mut(number) else { return };
        let LaneState::Open(name, target, splice) = &mut connection.state else { return };
        let mut stream = PacedStream::new(target, &mut self.uplink, may_lease, now);
        let status = splice.pump(&mut connection.program, &mut stream, &mut self.scratch);
        let limit = stream.settle();
        // What was written may be sent already: then the next run may follow.
        target.read_stamps(&mut self.uplink, &mut self.runs, now);
        let silent_at = target.silent_at();
        let [forth, back] = splice.moved;
        self.figures.moved.forth += forth - connection.counted[0];
        self.figures.moved.back += back - connection.counted[1];
        connection.counted = splice.moved;
        match status {
            SpliceStatus::Open(waits) => {
                self.slots.set_end(number, silent_at);
                self.wait(number, waits, limit);
            }
            SpliceStatus::Over if target.is_flushed() => {
                self.end(number);
            }
            SpliceStatus::Over => {
                if let Some(connection) = self.slots.get_mut(number)
                    && let LaneState::Open(_, target, _) =
                        std::mem::replace(&mut connection.state, LaneState::Asking(ProgramDialog::default()))
                {
                    connection.state = LaneState::Flushing(target);
                }
            }
            SpliceStatus::Broken => {
                let name = name.clone();
                self.tell(LaneEvent::Reset(name));
                self.end(number);
            }
        }
    }

    fn wait(&mut self, number: Number, waits: WaitsFor, limit: WriteLimit) {
        if waits.turn {
            self.slots.hurry(number);
        }
        let Some(connection) = self.slots.get_mut(number) else { return };
        // It is not read meanwhile, and so does not tell that it broke.
        if waits.room && connection.program.is_broken() {
            if let LaneState::Open(target, ..) = &connection.state {
                let target = target.clone();
                self.tell(LaneEvent::Reset(target));
            }
            // Dropped before its end, the connection to the target is reset.
            self.end(number);
            return;
        }
        // A turn that is used up waits for the next lease, as one that got none.
        if waits.room && limit == WriteLimit::Uplink && !connection.waits_for_lease {
            connection.waits_for_lease = true;
            match &connection.state {
                LaneState::Open(_, target, _) if target.is_mid_pair() => self.lease_queue.push_front(number),
                _ => self.lease_queue.push_back(number),
            }
        }
    }

    /// Reads the counters of the uplink's interface, if somebody waits for a lease.
    fn look(&mut self, now: Instant) {
        if self.lease_queue.is_empty() || now < self.next_look {
            return;
        }
        let look = self.interfaces.look(now);
        if look.is_new {
            self.uplink.move_on(now);
        }
        self.share(look.is_new, now);
        self.uplink.look(look.shown, now);
        self.next_look = now + if look.shown.is_some() { LOOK_INTERVAL } else { BLIND_LOOK_INTERVAL };
    }

    /// Enters in the uplink's ledger what the lane sent, and learns what other sessions did.
    fn share(&mut self, is_new: bool, now: Instant) {
        if let Some(interface) = self.interfaces.interface().filter(|_| is_new) {
            self.ledger = UplinkLedger::open(interface).ok();
        }
        let sent = self.uplink.take_wire_sent();
        if let Some(Ok(news)) = self.ledger.as_mut().map(|ledger| ledger.exchange(sent)) {
            let LedgerNews { sent, active, before } = news;
            self.uplink.on_others(OtherSessions { sent, active, before }, now);
        }
    }

    /// Gives leases to those who wait, in turn.
    fn lease_out(&mut self, now: Instant) {
        while let Some(number) = self.lease_queue.front().copied() {
            // The number may be another connection's by now.
            if let Some(segment) = self.waiting_segment(number) {
                if !self.uplink.may_write(segment, now) {
                    break;
                }
                if let Some(connection) = self.slots.get_mut(number) {
                    connection.waits_for_lease = false;
                }
                self.lease_queue.pop_front();
                self.pump(number, true, now);
            } else {
                self.lease_queue.pop_front();
            }
        }
    }

    /// The bytes of a full segment of a connection that waits for a lease.
    fn waiting_segment(&mut self, number: Number) -> Option<usize> {
        let connection = self.slots.get_mut(number).filter(|it| it.waits_for_lease)?;
        match &connection.state {
            LaneState::Open(_, target, _) => Some(target.segment()),
            _ => None,
        }
    }

    /// When whoever waits for a lease gets one, as far as time decides it.
    fn next_lease(&mut self) -> Option<Instant> {
        let number = *self.lease_queue.front()?;
        let segment = self.waiting_segment(number)?;
        self.uplink.next_lease(segment)
    }

    fn show(&mut self, now: Instant) {
        if now.since(self.shown_at) < FIGURES_INTERVAL {
            return;
        }
        self.shown_at = now;
        self.figures.open = self.slots.len();
        self.publish();
    }

    fn publish(&mut self) {
        self.figures.uplink = self.uplink.figures();
        if let Ok(mut shown) = self.shown.lock() {
            *shown = self.figures;
        }
    }
}

impl Owner for Proxy {
    type Machine = NoProtocol;

    fn ready(&mut self, _: &mut NoProtocol, ready: Ready, now: Instant) {
        let number = ready.token.0;
        if number >= LISTENER_TOKEN_BASE {
            self.accepts = true;
            return;
        }
        if let Some(Connection { state: LaneState::Open(_, target, _), .. }) = self.slots.get_mut(number) {
            target.read_stamps(&mut self.uplink, &mut self.runs, now);
        }
        self.slots.hurry(number);
    }

    fn turn(&mut self, _: &mut NoProtocol, now: Instant) -> LoopControl {
        self.uplink.on_acknowledged(&mut self.runs, now);
        self.runs.clear();
        self.take_names(now);
        self.accept(now);
        while let Some(number) = self.slots.next_end(now) {
            self.time_is_up(number, now);
        }
        self.look(now);
        self.lease_out(now);
        for _ in 0..self.slots.count_due() {
            let Some(number) = self.slots.next_due() else { break };
            self.drive(number, now);
        }
        self.lease_out(now);
        self.uplink.on_turn_over(!self.lease_queue.is_empty(), now);
        let timeout = self.uplink.on_time(now);
        self.show(now);
        let lease = self.next_lease();
        let soon = (self.slots.count_due() > 0 || !self.runs.is_empty()).then_some(now);
        let shown = (!self.slots.is_empty()).then_some(self.shown_at + FIGURES_INTERVAL);
        let accept = self.accept_at.or_else(|| (self.accepts && self.slots.len() < self.most).then_some(now));
        let look = (!self.lease_queue.is_empty()).then_some(self.next_look);
        let all = [timeout, lease, soon, shown, accept, look, self.slots.first_end()];
        self.next_turn = all.into_iter().flatten().min();
        LoopControl::Continue
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_turn
    }

    fn ended(&mut self) {
        self.figures.open = 0;
        self.publish();
    }
}
