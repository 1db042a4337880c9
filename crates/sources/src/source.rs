//! The source: takes records of an input, and has each written by a sink, over paths whose rates it
//! sets.

use crate::checkpoint::RunHistory;
use crate::endpoint::{
    FAULT_CODE, NAME_BOUND_CODE, NAME_TAKEN_CODE, OTHER_VERSION_CODE, RECONNECT_CODE, SINK_STREAM,
    SOURCE_STREAM, session_config,
};
use crate::error::SourceError;
use crate::input_limit::Intake;
use crate::message::{FromSink, FromSource, Message as _, SourceHeartbeat, record_head};
use crate::numbering::Numbering;
use crate::rate::{RateState, SourceRates};
use crate::rate_limiter::Bucket;
use crate::record_buffer::{NextMessage, RecordBuffer};
use crate::record_input::Feed;
use crate::relay_choice::draw;
use crate::relay_warnings::RelayWarnings;
use crate::session_writer::{ActiveSession, piece_length};
use crate::source_event::SourceEvent;
use crate::source_name::Name;
use crate::source_plan::{OverflowPolicy, SourcePlan};
use crate::source_status::{Overhead, SourceStatus, path_standings, slow_because};
use byway_control::Controller;
use byway_engine::connection::close;
use byway_engine::{Config, Endpoint};
use byway_net::{Carrier, Clock, Control, LoopControl, Owner, Ready, TcpLimits};
use byway_transfer::application_protocol::Application;
use byway_transfer::close::CloseCode;
use byway_transfer::{
    Error, EventLoop, LostSession, NewsSender, NotConnected, Requests, RetryDelays, SessionClose,
    SessionEvent, SessionKeeper, SessionPlan, TcpUse, TransferError, TransferEvent, endpoint, hung_up,
    news_channel,
};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

/// Events that wait for the program.
const MAX_QUEUED_EVENTS: usize = 64;
/// The number of relays that a source draws by default.
const DEFAULT_RELAY_COUNT: usize = 2;
/// Bytes of unwritten records that a source keeps by default.
const DEFAULT_KEPT_BYTES: usize = 8 << 20;
/// Time between two heartbeats to the sink, with a report to the program.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// The silence of a sink after which the source connects again. A live one is heard every second.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(6);
/// The pause before a session is begun again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Time for which an earlier run, which has just ended, may still hold the name.
const NAME_TAKEN_TIMEOUT: Duration = Duration::from_secs(12);
/// Time that a stopped source waits until the sink has written its records.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to stay after the end, so that a lost CLOSE can be sent again.
const LINGER_TIME: Duration = Duration::from_millis(200);

/// A source that runs.
pub struct Source(EventLoop<SourceOwner, SourceEvent>);

impl Deref for Source {
    type Target = EventLoop<SourceOwner, SourceEvent>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Source {
    /// Starts.
    ///
    /// # Errors
    /// The system gives no thread or descriptor.
    pub fn start(plan: SourcePlan) -> Result<Self, Error> {
        let control = Control::new().map_err(Error::Descriptor)?;
        let (news, inbox) = news_channel(MAX_QUEUED_EVENTS);
        let mut config = session_config(Config::default());
        config.idle_timeout = Duration::from_secs(20);
        config.outgoing.memory = 8 << 20;
        config.incoming.memory = 64 << 10;
        let endpoint = endpoint(&plan.identity, config, None)?;
        let seed = u64::from_be_bytes(byway_net::seed()?);
        let relays = draw(&plan.ticket, &plan.relays, plan.paths.unwrap_or(DEFAULT_RELAY_COUNT), seed);
        let (is_relayed, paths) = (!relays.is_empty(), relays.len().max(1) * plan.bind.len().max(1));
        let demand = plan.demand.load(Ordering::Relaxed);
        let application = Application {
            permission: plan.ticket.permission.clone(),
            protocol: crate::PROTOCOL_NAME.parse().unwrap_or_default(),
        };
        let rate_state = RateState::new((demand as f64 * Overhead::default().factor()) as u64);
        let (rates, rule) = (Arc::clone(&rate_state), plan.rule);
        let controller = move |seed| -> Box<dyn Controller> {
            Box::new(SourceRates::new(Arc::clone(&rates), rule, paths, is_relayed, seed))
        };
        let session = SessionPlan {
            relays,
            tcp: TcpUse::Alone(plan.bind),
            seed: seed.wrapping_add(1),
            retry: RetryDelays { first: RETRY_DELAY, max: RETRY_DELAY },
            ..SessionPlan::new(&plan.ticket, Vec::new(), application.to_bytes(), Box::new(controller))
        };
        let requests = Arc::new(Requests::default());
        let owner = SourceOwner {
            name: plan.name,
            keeper: SessionKeeper::new(session, &[], &control),
            active: None,
            rate_state,
            overhead: Overhead::default(),
            renewed: plan.renewed,
            paths,
            warnings: RelayWarnings::default(),
            demand: plan.demand,
            bucket: Bucket::new(demand),
            leave_at: None,
            intake: (plan.keep.is_none() && plan.held == OverflowPolicy::Back).then(|| Intake::new(demand)),
            overflow: plan.held,
            record_buffer: RecordBuffer::new(plan.keep.unwrap_or(DEFAULT_KEPT_BYTES)),
            numbering: Numbering::new(byway_net::seed()?, plan.replay),
            feed: plan.feed,
            taken_since: None,
            refusal: None,
            report: (0, Instant::ZERO),
            beat_at: Instant::ZERO,
            stopped_at: None,
            ending: None,
            news,
            requests: Arc::clone(&requests),
        };
        let driver =
            byway_net::spawn_with(control, "byway source", endpoint, owner, Vec::new(), Clock::new())
                .map_err(Error::Thread)?;
        Ok(Self(EventLoop::new(driver, inbox, requests)))
    }

    /// Waits until the source ends. Returns the number of records that the sink has written.
    /// Records that this source gave up unsent for lack of room are counted as written. Also
    /// returns the reason if the source ended before its input did.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn finish(self) -> Result<(u64, Result<(), SourceError>), Error> {
        let owner = self.0.into_owner()?;
        let stopped = || Err(SourceError::Stopped(owner.record_buffer.count()));
        Ok((owner.numbering.written(), owner.ending.map_or_else(stopped, |ending| ending.outcome)))
    }
}

/// How a source ends.
struct SourceEnd {
    outcome: Result<(), SourceError>,
    leave_at: Option<Instant>,
}

/// The owner of a source's endpoint.
pub struct SourceOwner {
    name: Name,
    keeper: SessionKeeper,
    /// The present session. `None`: the source is not connected.
    active: Option<Box<ActiveSession>>,
    rate_state: Arc<RateState>,
    overhead: Overhead,
    renewed: Receiver<Vec<Word>>,
    /// The number of paths once all connections are open.
    paths: usize,
    warnings: RelayWarnings,
    demand: Arc<AtomicU64>,
    bucket: Bucket,
    /// When the next records may leave at the wanted rate. `None`: none wait for that.
    leave_at: Option<Instant>,
    intake: Option<Intake>,
    overflow: OverflowPolicy,
    record_buffer: RecordBuffer,
    numbering: Numbering,
    feed: Feed,
    taken_since: Option<Instant>,
    /// The sink's reason for not accepting records now. `None`: it accepts them.
    refusal: Option<String>,
    /// Bytes that had arrived at the last report, and the time.
    report: (u64, Instant),
    beat_at: Instant,
    stopped_at: Option<Instant>,
    ending: Option<SourceEnd>,
    news: NewsSender<SourceEvent>,
    requests: Arc<Requests>,
}

impl Owner for SourceOwner {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        self.keeper.ready(ready);
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.keeper.opened().collect()
    }

    fn depth(&self) -> TcpLimits {
        // What a connection takes beyond its rate would only wait there.
        TcpLimits { parked: 64 << 10, unsent: 4 << 10, ..TcpLimits::default() }
    }

    fn deadline(&self) -> Option<Instant> {
        self.leave_at
    }

    fn ended(&mut self) {
        self.news = hung_up();
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        self.leave_at = None;
        if self.ending.is_none() {
            self.take_input(now);
            while let Ok(words) = self.renewed.try_recv() {
                self.keeper.renew(&words);
            }
            self.keeper.turn(endpoint, &[], now);
            while let Some(event) = self.keeper.next_event() {
                self.on_session_event(endpoint, event, now);
            }
            self.talk(endpoint, now);
            self.look_at_the_end(now);
        }
        let Some(ending) = &mut self.ending else { return LoopControl::Continue };
        let leave_at = *ending.leave_at.get_or_insert_with(|| {
            let (code, reason) = match &ending.outcome {
                Ok(()) => (close::DONE_CODE, String::from("done")),
                Err(error) => (CloseCode::Failed.number(), error.to_string()),
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
}

impl SourceOwner {
    fn end(&mut self, outcome: Result<(), SourceError>) {
        self.ending.get_or_insert(SourceEnd { outcome, leave_at: None });
    }

    fn tell(&self, news: SourceEvent) {
        // What the program does not take is not worth waiting for.
        let _ = self.news.try_send(news);
    }

    fn on_session_event(&mut self, endpoint: &mut Endpoint, event: SessionEvent, now: Instant) {
        match event {
            SessionEvent::Connected => {
                let mut active = ActiveSession::new(now);
                let (name, run) = (self.name.clone(), self.numbering.run());
                let has_lines = self.feed.has_lines();
                FromSource::Hello { name, run, has_lines }.write(&mut active.out);
                self.active = Some(Box::new(active));
                if let Some(connection) = self.keeper.session(endpoint) {
                    connection.outgoing().open_stream(SOURCE_STREAM);
                }
            }
            SessionEvent::Lost(lost) | SessionEvent::Refused(lost) => self.on_lost(lost, now),
            SessionEvent::RelayTrouble(relay, trouble, _) => {
                if let Some(warning) = self.warnings.on_trouble(relay, trouble) {
                    self.tell(SourceEvent::Warning(warning));
                }
            }
            SessionEvent::Warning(warning) => self.tell(SourceEvent::Warning(warning)),
            SessionEvent::News(TransferEvent::Name(step)) => self.tell(SourceEvent::Name(step)),
            SessionEvent::News(_) => {}
        }
    }

    fn on_lost(&mut self, LostSession { error, close, .. }: LostSession, now: Instant) {
        let Some(SessionClose { code, reason, by_peer }) = close else {
            return match error {
                TransferError::NotConnected(NotConnected::OtherKey) => self.end(Err(SourceError::OtherKey)),
                TransferError::NotConnected(NotConnected::OtherVersion) => {
                    self.end(Err(SourceError::OtherVersion));
                }
                error => self.away(now, &error.to_string()),
            };
        };
        let refused = [CloseCode::NotAdmitted, CloseCode::OtherKind].map(CloseCode::number);
        if by_peer && refused.contains(&code) || [FAULT_CODE, NAME_BOUND_CODE].contains(&code) {
            self.end(Err(SourceError::Refused(reason)));
        } else if by_peer && code == OTHER_VERSION_CODE {
            self.end(Err(SourceError::OtherVersion));
        } else if by_peer && code == NAME_TAKEN_CODE {
            let since = *self.taken_since.get_or_insert(now);
            if now.since(since) >= NAME_TAKEN_TIMEOUT {
                self.end(Err(SourceError::NameTaken(reason)));
            } else {
                self.away(now, &reason);
            }
        } else {
            if by_peer && code == CloseCode::Failed.number() {
                if self.refusal.as_ref() != Some(&reason) {
                    self.tell(SourceEvent::Warning(format!("the sink refuses this source: {reason}")));
                }
                self.refusal = Some(reason.clone());
            }
            self.away(now, &reason);
        }
    }

    /// There is no session for now.
    fn away(&mut self, now: Instant, why: &str) {
        self.active = None;
        self.overhead = self.overhead.anew();
        self.report = (0, now);
        if self.ending.is_none() {
            self.tell(SourceEvent::Away(why.to_owned()));
        }
    }

    /// Reads records from the input while there is room for them.
    fn take_input(&mut self, now: Instant) {
        let came_ms = millis(now);
        while self.stopped_at.is_none()
            && let Some(length) = self.feed.peek()
        {
            if self.numbering.passes_over() {
                self.feed.take();
                continue;
            }
            let room = match self.overflow {
                OverflowPolicy::Back => self.record_buffer.has_room(length) && self.may_take(now),
                OverflowPolicy::GivenUp => self.record_buffer.make_room(length),
            };
            if !room {
                return;
            }
            if let Some(record) = self.feed.take() {
                if let Some(intake) = &mut self.intake {
                    intake.take(length);
                }
                self.record_buffer.push(record, came_ms);
            }
        }
    }

    fn may_take(&mut self, now: Instant) -> bool {
        let Some(intake) = &mut self.intake else { return true };
        let outage = self.bucket.is_full(now);
        intake.may_take(now, self.demand.load(Ordering::Relaxed), self.record_buffer.unsaid(), outage)
    }

    fn talk(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let demand = self.demand.load(Ordering::Relaxed);
        self.bucket.set_rate(demand);
        self.rate_state.set_demand((demand as f64 * self.overhead.factor()) as u64);
        if let Some(mut active) = self.active.take() {
            let outcome = self.hear(endpoint, &mut active, now);
            if let Ok(()) = outcome {
                self.say(endpoint, &mut active, now);
            }
            let is_silent = now.since(active.heard_at) >= SILENCE_TIMEOUT;
            self.active = Some(active);
            match outcome {
                Err(error) => self.end(Err(error)),
                Ok(()) if is_silent => {
                    let reason = "nothing was heard of the sink";
                    self.keeper.leave(endpoint, RECONNECT_CODE, reason, now + RETRY_DELAY, now);
                    self.away(now, reason);
                }
                Ok(()) => {}
            }
        }
        if now >= self.beat_at {
            self.beat_at = now + STATUS_INTERVAL;
            for warning in self.warnings.on_time(self.keeper.relays(), byway_net::unix_seconds()) {
                self.tell(SourceEvent::Warning(warning));
            }
            let standing = self.standing(endpoint, now);
            self.tell(SourceEvent::Report(standing));
        }
    }

    fn hear(
        &mut self,
        endpoint: &mut Endpoint,
        active: &mut ActiveSession,
        now: Instant,
    ) -> Result<(), SourceError> {
        let Some(connection) = self.keeper.session(endpoint) else { return Ok(()) };
        while connection.incoming().next_event().is_some() || connection.outgoing().next_event().is_some() {}
        let mut buffer = [0; 1024];
        let mut heard = Vec::new();
        while let Some(read) = connection.incoming().read(SINK_STREAM, &mut buffer) {
            let bytes = buffer.get(..read.length).unwrap_or_default();
            if active.messages.push(bytes, |message: FromSink| heard.push(message)).is_err() {
                return Err(SourceError::Refused(String::from("what the sink says makes no sense")));
            }
            if read.length == 0 || read.finished {
                break;
            }
        }
        for message in heard {
            active.heard_at = now;
            match message {
                FromSink::Welcome(number, runs) if !active.welcome => {
                    self.on_welcome(active, number, runs)?
                }
                FromSink::Written(number) if active.welcome => {
                    self.numbering.on_written(&mut self.record_buffer, number)?;
                }
                FromSink::Welcome(..) | FromSink::Written(_) => {
                    return Err(SourceError::Refused(String::from("what the sink says makes no sense")));
                }
            }
        }
        Ok(())
    }

    fn on_welcome(
        &mut self,
        active: &mut ActiveSession,
        number: u64,
        runs: RunHistory,
    ) -> Result<(), SourceError> {
        active.welcome = true;
        self.taken_since = None;
        self.refusal = None;
        let start = self.numbering.welcome(&mut self.record_buffer, number, runs)?;
        FromSource::From(start.first).write(&mut active.out);
        self.beat_at = Instant::ZERO;
        self.tell(SourceEvent::Connected(number));
        if start.foreign > 0 {
            self.tell(SourceEvent::ForeignRecords(start.foreign));
        }
        Ok(())
    }

    /// Passes the session the messages that it can send soon.
    fn say(&mut self, endpoint: &mut Endpoint, active: &mut ActiveSession, now: Instant) {
        let Some(connection) = self.keeper.session(endpoint) else { return };
        if active.welcome && now >= self.beat_at {
            let oldest = self.record_buffer.oldest_ms();
            let beat = SourceHeartbeat {
                produced: self.record_buffer.end(),
                age_ms: oldest.map_or(0, |came| millis(now).saturating_sub(came)),
                demand: self.demand.load(Ordering::Relaxed),
                given_up: self.record_buffer.given_up(),
            };
            FromSource::Beat(beat).write(&mut active.out);
        }
        let out = connection.outgoing();
        let may_leave = active.welcome && self.bucket.ready_at(now).is_none();
        let piece = piece_length(self.demand.load(Ordering::Relaxed));
        loop {
            let more = active.welcome && self.record_buffer.next_length().is_some();
            if !active.write(out, if more { piece } else { 1 }) {
                break;
            }
            if !may_leave || self.bucket.available(now) == 0 {
                break;
            }
            match self.record_buffer.say() {
                Some(NextMessage::Record(record)) => {
                    self.bucket.spend(record.len());
                    active.out.extend_from_slice(&record_head(record.len()));
                    active.out.extend_from_slice(&record);
                }
                Some(NextMessage::Skipped(count)) => FromSource::Skipped(count).write(&mut active.out),
                None => break,
            }
        }
        if active.welcome && self.record_buffer.unsaid() > 0 {
            self.leave_at = self.bucket.ready_at(now);
        }
        if active.given == out.progress().sent {
            self.rate_state.is_idle();
        }
        if active.welcome && self.record_buffer.is_empty() && self.is_input_over() && !active.end_said {
            active.end_said = true;
            FromSource::End.write(&mut active.out);
        }
    }

    fn is_input_over(&self) -> bool {
        self.stopped_at.is_some() || self.feed.ended().is_some()
    }

    fn look_at_the_end(&mut self, now: Instant) {
        if self.requests.is_cancelled() {
            self.stopped_at.get_or_insert(now);
        }
        let is_sent = self.numbering.is_numbered() && self.record_buffer.is_empty();
        let missing = self.numbering.missing();
        match (self.stopped_at, self.feed.ended()) {
            (Some(_), _) if is_sent || self.record_buffer.count() == 0 => self.end(Ok(())),
            (Some(stopped), _) if now.since(stopped) >= FLUSH_TIMEOUT => {
                self.end(Err(SourceError::Stopped(self.record_buffer.count())));
            }
            (None, Some(Ok(()))) if is_sent && missing > 0 => {
                let sink = self.record_buffer.end();
                self.end(Err(SourceError::InputTooShort { sink, here: sink.saturating_sub(missing) }));
            }
            (None, Some(Ok(()))) if is_sent => self.end(Ok(())),
            (None, Some(Err(error))) if self.record_buffer.is_empty() => {
                self.end(Err(SourceError::Input(error)))
            }
            _ => {}
        }
    }

    fn standing(&mut self, endpoint: &mut Endpoint, now: Instant) -> SourceStatus {
        let talking = self.active.as_ref().is_some_and(|active| active.welcome);
        let mut standing = SourceStatus {
            connected: talking,
            demand: self.demand.load(Ordering::Relaxed),
            lag: self.record_buffer.count(),
            lag_seconds: self
                .record_buffer
                .oldest_ms()
                .map_or(0.0, |came| millis(now).saturating_sub(came) as f64 / 1e3),
            given_up: self.record_buffer.given_up(),
            long_lines: self.feed.long_lines(),
            refusal: self.refusal.clone(),
            written: self.numbering.written(),
            held_back: self.intake.as_mut().is_some_and(Intake::was_held_back),
            ..SourceStatus::default()
        };
        if let Some(connection) = self.keeper.session(endpoint).filter(|_| talking) {
            let status = connection.status();
            let progress = connection.outgoing().progress();
            let acked = progress.acked;
            standing.repeated = progress.repeated;
            self.overhead
                .look(status.paths.iter().map(|path| (path.id, path.totals.acked_bytes)).collect(), acked);
            let (before, at) = std::mem::replace(&mut self.report, (acked, now));
            standing.rate = acked.saturating_sub(before) as f64 / now.since(at).as_secs_f64().max(1e-3);
            let several = self.paths > self.keeper.relays().len().max(1);
            standing.paths = path_standings(&status.paths, &self.rate_state.paths(), several);
        }
        standing.why = slow_because(&standing);
        standing
    }
}

fn millis(now: Instant) -> u64 {
    u64::try_from(now.since(Instant::ZERO).as_millis()).unwrap_or(u64::MAX)
}
