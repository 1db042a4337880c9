//! A relay that runs: the machine of `byway-relay` on sockets, and the handle by which a program
//! runs it.

mod checked_lines;
mod counters_reader;
mod file_notice;
mod named_words;
mod run_event;
mod saved_state;
mod state_writer;
mod uplink_counters;
mod word_operator;
mod words_watch;

pub use counters_reader::{CountersReader, RelayReport, WordUse};
pub use named_words::{
    MAX_NAMED_WORDS, NamedRelayWord, NamedRelayWords, NoWordList, WordName, WordNameError,
};
pub use run_event::{RelayRunEvent, RelaySummary};
pub use saved_state::{KeptRange, NotKept, SavedState};
pub use word_operator::{
    ListedWord, NAMED_WORD_LIFETIME, WORD_CHANGE_TIME, WordLimits, WordOperator, WordOperatorError,
};

use crate::error::Error;
use crate::event_loop::news_channel::{Interrupter, NewsReceiver, NewsSender, news_channel};
use crate::secret::Secret;
use crate::tcp_entrance::Entrance;
use byway_net::{
    Carrier, Clock, Control, Listener, LoopControl, Owner, Ready, Socket, TcpCongestion, TcpLimits, Waker,
    unix_millis, unix_seconds,
};
use byway_relay::{
    COUNTER_READ_DEADLINE, COUNTER_READ_INTERVAL, Config, LendingConfig, LendingTrouble, NamedWord, Policy,
    Relay,
};
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{Grant, GrantId, QuotaClass, RangeKey, RateClass, RelayKey, Scope, Terms, Word};
use byway_wire::{Duration, Instant, Machine as _};
use counters_reader::ReportDesk;
use named_words::end_of;
use state_writer::{ReserveOffer, Snapshot, StateWriter};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use uplink_counters::UplinkCounters;
use words_watch::{WordsFile, WordsWatch};

/// The default of the bytes that wait in this process for each TCP connection. If the next hop is
/// full, the bytes of one read still find room.
const DEFAULT_TCP_LIMITS: TcpLimits = TcpLimits {
    read: 8 << 10,
    longest: 9 << 10,
    parked: 16 << 10,
    unsent: 16 << 10,
    kernel: None,
    congestion: TcpCongestion::Cubic,
};
/// Bytes of a packet, where buffers are given in packets.
const BUFFER_PACKET_BYTES: usize = 1_500;
/// TCP connections that are taken at once. The relay itself opens at most as many.
const MAX_TCP_CONNECTIONS: usize = 4_096;

/// Events that wait for the program.
const MAX_QUEUED_EVENTS: usize = 64;
/// Orders of the program that wait for the relay.
const MAX_QUEUED_ORDERS: usize = 16;
/// Snapshots that wait for the disk.
const MAX_QUEUED_SNAPSHOTS: usize = 4;
/// Time between two checks of the system's date. The date may be wrong until the network is up, and
/// the monotonic clock stops while the host is suspended.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// The gap between the heartbeat number that a relay saved last and its first number after a
/// restart. No number may be used twice. The relay may have sent heartbeats since it saved, for up
/// to a minute, but fewer than this.
const RESTART_HEARTBEAT_GAP: u64 = 1 << 16;
/// The most seconds that an epoch that is over is believed to hold after a restart, since the clock
/// may be wrong.
const MAX_LAST_EPOCH_SECONDS: u64 = 3_600;

/// How to relay.
pub struct RelayingPlan {
    /// The secret from which all relay words of the relay are derived.
    pub key: Secret<[u8; 32]>,
    /// The destinations that the relay sends to.
    pub policy: Policy,
    /// The sockets to listen on, one for each address family.
    pub sockets: Vec<Socket>,
    /// To listen on for TCP connections that carry the same datagrams: [`listeners`].
    pub listeners: Vec<Listener>,
    /// The kernel's congestion control for the relay's TCP connections.
    pub tcp_congestion: TcpCongestion,
    /// Buffer per TCP connection, as a count of packets of 1,500 bytes, in this process and in each
    /// kernel buffer. `None`: at most 16 KiB in this process, and the kernel chooses its buffers'
    /// sizes. The rate is at most one buffer per round trip.
    pub tcp_buffer: Option<usize>,
    /// The addresses at which senders reach the relay: one to four.
    pub addresses: Vec<SocketAddr>,
    /// How long the relay word is valid.
    pub expires: Duration,
    /// The most bytes per second that the relay word may use. `None`: no limit.
    pub rate: Option<u64>,
    /// The most bytes per day that the relay word may use. `None`: no limit.
    pub quota: Option<u64>,
    /// The most bytes that the relay forwards per day for all relay words together. `None`: no
    /// limit.
    pub per_day: Option<u64>,
    /// The most bytes that the relay forwards per month for all relay words together. `None`: no
    /// limit.
    pub per_month: Option<u64>,
    /// The most accounts that the relay keeps: [`Config::accounts`].
    pub accounts: Option<usize>,
    /// The file for counts that survive a restart, see
    /// [`StateDir::relay_kept_path`](crate::state_directory::StateDir::relay_kept_path). `None`: no
    /// counts are saved.
    pub keep: Option<PathBuf>,
    /// The file of named relay words, see
    /// [`StateDir::relay_words_path`](crate::state_directory::StateDir::relay_words_path). `None`:
    /// no named word is valid.
    pub words: Option<PathBuf>,
    /// The public keys of the registries that may make relay words for this relay.
    pub registries: Vec<[u8; 32]>,
    /// The line that an end host lends as a relay. `None`: the relay is not an end host's.
    pub lend: Option<LendLine>,
}

/// TCP listeners at the addresses and ports of a relay's sockets, for senders and receivers whose
/// networks drop UDP.
///
/// # Errors
/// Another program has an address and port, or this user may not listen there. The error names the
/// address.
pub fn listeners(sockets: &[Socket]) -> Result<Vec<Listener>, Error> {
    let bind = |socket: &Socket| {
        let address = socket.address();
        let listener = Listener::bind(address).map_err(|source| Error::Listen { address, source })?;
        Ok(listener.with_seats(MAX_TCP_CONNECTIONS))
    };
    sockets.iter().map(bind).collect()
}

/// The line that an end host lends, and the rate that it lends of it.
#[derive(Clone, Copy, Debug)]
pub struct LendLine {
    /// Bytes per second of either direction; `None`: as many as the line has shown.
    pub rate: Option<u64>,
    /// An address to which the line leads.
    pub towards: IpAddr,
}

/// The data for a registry when the relay enrols.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// The relay's name at registries.
    pub relay: RelayId,
    /// The number of the range of grants that this registry gets, 0 to 127.
    pub range: u8,
    /// The key of that range.
    pub key: RangeKey,
}

/// An order of the program to the relay's thread.
enum RelayCommand {
    Enrolled { range: u8, epoch: u32, last_holds: Duration },
    Watch { range: u8, addresses: Vec<SocketAddr>, first: Duration },
    Drain,
    Busy(bool),
    NamedWords(Vec<NamedWord>),
}

/// A relay that runs.
pub struct Relaying {
    driver: byway_net::Handle<Operator>,
    state_writer: Option<JoinHandle<StateWriter>>,
    news: NewsReceiver<RelayRunEvent>,
    commands: SyncSender<RelayCommand>,
    flags: Arc<RelayFlags>,
    enrolments: Vec<([u8; 32], Enrolment)>,
    word: Word,
    /// The key from which relay words for others are made.
    issuer: RelayKey,
    clock: Clock,
    /// Ends the thread that watches the file of named relay words when it is dropped.
    _watch: Option<file_notice::NoticeEnd>,
}

/// Flags that the program's thread and the relay's thread share.
#[derive(Default)]
struct RelayFlags {
    /// Whether the program requested the counters.
    report: AtomicBool,
    /// Whether the state writer requested the counts to save.
    snapshot: Arc<AtomicBool>,
    /// The reserve that the relay may use, because its count is on the disk.
    reserve: Arc<ReserveOffer>,
    /// The time at which the relay last forwarded anything, in nanoseconds of its clock. 0: never.
    carried: AtomicU64,
    not_kept: Arc<AtomicU64>,
    /// The place at which reports are left for [`CountersReader`]s.
    desk: Arc<ReportDesk>,
}

impl Relaying {
    /// Starts.
    ///
    /// # Errors
    /// The addresses make no word; what was kept cannot be read; the system gives no thread.
    pub fn start(plan: RelayingPlan) -> Result<Self, Error> {
        let clock = Clock::new();
        let mut kept = plan.keep.as_deref().map_or_else(|| Ok(SavedState::default()), state_writer::read)?;
        let mut config = Config::new(*plan.key.expose(), unix_millis());
        config.policy = plan.policy;
        (config.per_day, config.per_month, config.used) = (plan.per_day, plan.per_month, kept.used);
        config.accounts = plan.accounts.unwrap_or(config.accounts);
        config.lend = plan.lend.map(|lend| LendingConfig {
            rate: lend.rate,
            measured: uplink_counters::is_elsewhere(lend.towards),
        });
        config.beat_counter = config.beat_counter.max(kept.beats.saturating_add(RESTART_HEARTBEAT_GAP));
        let mut relay = Relay::new(&config, clock.now());
        let issuer = RelayKey::new(plan.key.expose());
        if kept.relay != Some(relay.id()) {
            // Another key: registries know this relay no more.
            (kept.relay, kept.ranges, kept.words) = (Some(relay.id()), Vec::new(), Vec::new());
        }
        kept.addresses.clone_from(&plan.addresses);
        let flags = Arc::new(RelayFlags::default());
        let open = |path| WordsFile::open(path, relay.id(), Arc::clone(&flags.desk));
        let words = plan.words.map(open).transpose()?;
        let words = words.map(|(file, words)| {
            relay.set_named_words(words.into_iter().map(|word| {
                let known = kept.words.iter().find(|(grant, _)| *grant == word.grant);
                NamedWord { carried: known.map_or(0, |(_, bytes)| *bytes), ..word }
            }));
            file
        });
        let enrolments = enrolments(&mut relay, &mut kept, &plan.registries, clock.now())?;
        let terms = Terms {
            expiry: end_of(unix_seconds(), plan.expires),
            rate: plan.rate.map_or(RateClass::UNLIMITED, RateClass::at_most),
            quota: plan.quota.map_or(QuotaClass::UNLIMITED, QuotaClass::at_most),
            scope: Scope::ALL,
        };
        let grant = Grant { id: GrantId::own(u32::from_be_bytes(byway_net::seed()?)), terms };
        let word = relay.issue(grant, plan.addresses).map_err(Error::RelayWord)?;
        let (news, inbox) = news_channel(MAX_QUEUED_EVENTS);
        let (orders, ordered) = sync_channel(MAX_QUEUED_ORDERS);
        let told = (orders.clone(), news.clone());
        let (snapshots, to_keep) = sync_channel(MAX_QUEUED_SNAPSHOTS);
        let keeper = plan.keep.map(|path| {
            let (not_kept, reserve) = (Arc::clone(&flags.not_kept), Arc::clone(&flags.reserve));
            let mut keeper = StateWriter::new(path, kept, news.clone(), not_kept, reserve);
            keeper.keep(&Snapshot::of(&mut relay, clock.now()));
            keeper
        });
        flags.reserve.give(&mut relay, clock.now());
        let control = Control::new().map_err(Error::Descriptor)?;
        let limits = plan.sockets.iter().map(Socket::send_limit).collect();
        let owner = Operator {
            entrance: Entrance::new(control.watch(), plan.listeners).map_err(Error::Descriptor)?,
            tcp_limits: depth(plan.tcp_congestion, plan.tcp_buffer),
            waker: control.waker().clone(),
            news,
            commands: ordered,
            snapshots: keeper.is_some().then_some(snapshots),
            flags: Arc::clone(&flags),
            packets: 0,
            changes: relay.epoch_changes(),
            uplink_counters: plan
                .lend
                .filter(|lend| uplink_counters::is_elsewhere(lend.towards))
                .map(|lend| UplinkCounters::new(lend.towards, limits)),
            trouble: None,
            clock_at: clock.now() + CLOCK_CHECK_INTERVAL,
        };
        let driver = byway_net::spawn_with(control, "byway relay", relay, owner, plan.sockets, clock)
            .map_err(Error::Thread)?;
        let keep = |keeper: StateWriter| {
            let (ask, waker) = (Arc::clone(&flags.snapshot), driver.waker().clone());
            let thread = std::thread::Builder::new().name("relay keeper".into());
            thread.spawn(move || keeper.run(&to_keep, &ask, &waker)).map_err(Error::Thread)
        };
        let keeper = keeper.map(keep).transpose()?;
        let watch = |file: WordsFile| {
            let (notice, end) = WordsFile::notice(&file).map_err(Error::Descriptor)?;
            let waker = driver.waker().clone();
            let tell = move |words| {
                let is_told = told.0.try_send(RelayCommand::NamedWords(words)).is_ok();
                waker.wake();
                is_told
            };
            let watch = WordsWatch { file, tell, news: told.1 };
            let thread = std::thread::Builder::new().name("relay words".into());
            thread.spawn(move || watch.run(&notice)).map_err(Error::Thread).map(|_| end)
        };
        let watch = words.map(watch).transpose()?;
        Ok(Self {
            driver,
            state_writer: keeper,
            news: inbox,
            commands: orders,
            flags,
            enrolments,
            word,
            issuer,
            clock,
            _watch: watch,
        })
    }

    /// Returns the relay's own relay word, for senders.
    #[must_use]
    pub const fn word(&self) -> &Word {
        &self.word
    }

    /// Makes a relay word for another host, with the rate and quota of the first. All words for one
    /// `name` share them, also after a restart.
    #[must_use]
    pub fn word_for(&self, name: &[u8; 32], expires: Duration) -> Option<Word> {
        let [a, b, c, d, ..] = blake3::derive_key("byway relay v1 grant of a peer", name);
        let expiry = end_of(unix_seconds(), expires);
        let terms = Terms { expiry, ..self.word.grant().terms };
        let grant = Grant { id: GrantId::own(u32::from_be_bytes([a, b, c, d])), terms };
        self.issuer.issue(grant, self.word.relays().to_vec()).ok()
    }

    /// Returns the data for the registry with this key at enrolment. `None`: the plan does not name
    /// the registry.
    #[must_use]
    pub fn enrolment(&self, registry: &[u8; 32]) -> Option<&Enrolment> {
        Some(&self.enrolments.iter().find(|(key, _)| key == registry)?.1)
    }

    /// Tells the relay that a registry enrolled it. `range`, 0 to 127: the part of the relay's
    /// grant numbers that this registry issues. `epoch`: the period of its grants; the previous
    /// period's grants hold for `last_holds`. False if the relay ended or too many commands wait.
    pub fn enrolled(&self, range: u8, epoch: u32, last_holds: Duration) -> bool {
        self.order(RelayCommand::Enrolled { range, epoch, last_holds })
    }

    /// Beats for the registry that has `range`, in `first` for the first time. False as above.
    pub fn watch(&self, range: u8, addresses: Vec<SocketAddr>, first: Duration) -> bool {
        self.order(RelayCommand::Watch { range, addresses, first })
    }

    /// Sets whether the host has a transfer of its own. Registries then offer other relays first.
    /// Returns false if the order could not be queued.
    pub fn set_busy(&self, busy: bool) -> bool {
        self.order(RelayCommand::Busy(busy))
    }

    /// Refuses new relay words from now on, and tells registries that the relay ends soon. Returns
    /// false if the order could not be queued.
    pub fn drain(&self) -> bool {
        self.order(RelayCommand::Drain)
    }

    fn order(&self, order: RelayCommand) -> bool {
        let sent = self.commands.try_send(order).is_ok();
        self.driver.waker().wake();
        sent
    }

    /// Returns the time for which the relay has forwarded nothing. `Duration::MAX`: it never
    /// forwarded anything.
    #[must_use]
    pub fn idle(&self) -> Duration {
        match self.flags.carried.load(Ordering::Acquire) {
            0 => Duration::MAX,
            nanos => self.clock.now().since(Instant::from_nanos(nanos)),
        }
    }

    /// Asks for [`RelayRunEvent::Relayed`].
    pub fn ask(&self) {
        self.flags.report.store(true, Ordering::Release);
        self.driver.waker().wake();
    }

    /// [`ask`](Self::ask) for other threads.
    pub fn asker(&self) -> impl Fn() + Send + Sync + use<> {
        let (flags, waker) = (Arc::clone(&self.flags), self.driver.waker().clone());
        move || {
            flags.report.store(true, Ordering::Release);
            waker.wake();
        }
    }

    /// Returns a handle by which other threads read the counters.
    #[must_use]
    pub fn counters_reader(&self) -> CountersReader {
        CountersReader::new(Arc::clone(&self.flags.desk), self.driver.waker().clone())
    }

    /// Returns a handle with which other threads end the wait of [`next`](Self::next).
    #[must_use]
    pub fn interrupter(&self) -> Interrupter<RelayRunEvent> {
        self.news.interrupter()
    }

    /// The next thing that happened; `None` if nothing did within `patience`, or the wait was
    /// [interrupted](Self::interrupter).
    pub fn next(&self, patience: Duration) -> Option<RelayRunEvent> {
        self.news.next(patience)
    }

    /// Whether the relay ended by itself, because its event loop failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Stops the relay, saves its counts, and returns its counters.
    ///
    /// # Errors
    /// The event loop broke before.
    pub fn stop(self) -> Result<RelaySummary, Error> {
        self.driver.stop();
        let mut finished = self.driver.join()?;
        drop(finished.owner); // the keeper's inbox ends with it
        let now = self.clock.now();
        if let Some(Ok(mut keeper)) = self.state_writer.map(JoinHandle::join) {
            keeper.keep(&Snapshot::last(&mut finished.machine, now));
        }
        finished.outcome?;
        Ok(RelaySummary::of(&mut finished.machine, now, self.flags.not_kept.load(Ordering::Relaxed)))
    }
}

/// Returns the enrolment data for each registry. The relay continues with the epochs of the saved
/// state.
fn enrolments(
    relay: &mut Relay,
    kept: &mut SavedState,
    registries: &[[u8; 32]],
    now: Instant,
) -> Result<Vec<([u8; 32], Enrolment)>, Error> {
    let enrol = |registry: &[u8; 32]| {
        let range = kept.range_of(registry).ok_or(Error::NoRange)?;
        if range.epoch > 0 {
            let holds = range.last_until.saturating_sub(unix_seconds()).min(MAX_LAST_EPOCH_SECONDS);
            relay.set_epoch(now, range.number, range.epoch, Duration::from_secs(holds));
        }
        let range = range.number;
        Ok((*registry, Enrolment { relay: relay.id(), range, key: relay.range_key(range) }))
    };
    registries.iter().map(enrol).collect()
}

/// The limits of a relay's TCP connections. `packets`: packets that a buffer holds.
fn depth(congestion: TcpCongestion, packets: Option<usize>) -> TcpLimits {
    let Some(bytes) = packets.map(|packets| packets.saturating_mul(BUFFER_PACKET_BYTES)) else {
        return TcpLimits { congestion, ..DEFAULT_TCP_LIMITS };
    };
    TcpLimits {
        read: bytes.min(DEFAULT_TCP_LIMITS.read),
        parked: bytes.max(1),
        unsent: u32::try_from(bytes).unwrap_or(u32::MAX),
        kernel: Some(bytes),
        congestion,
        ..DEFAULT_TCP_LIMITS
    }
}

/// The owner of a relay.
struct Operator {
    /// The listener for TCP connections.
    entrance: Entrance,
    tcp_limits: TcpLimits,
    waker: Waker,
    news: NewsSender<RelayRunEvent>,
    commands: Receiver<RelayCommand>,
    snapshots: Option<SyncSender<Snapshot>>,
    flags: Arc<RelayFlags>,
    /// The number of packets carried at the last turn.
    packets: u64,
    /// Epochs known until the last snapshot.
    changes: u64,
    /// The counters of the lent line. `None`: the line cannot be measured.
    uplink_counters: Option<UplinkCounters>,
    /// The last reported reason for lending nothing.
    trouble: Option<LendingTrouble>,
    /// The time of the next check of the system's date.
    clock_at: Instant,
}

impl Operator {
    fn obey(relay: &mut Relay, now: Instant, order: RelayCommand) {
        match order {
            RelayCommand::Enrolled { range, epoch, last_holds } => {
                relay.set_epoch(now, range, epoch, last_holds);
            }
            RelayCommand::Watch { range, addresses, first } => {
                relay.watch(now, range, addresses, first);
            }
            RelayCommand::Busy(busy) => relay.set_busy(now, busy),
            RelayCommand::NamedWords(words) => relay.set_named_words(words),
            RelayCommand::Drain => {
                relay.drain(now);
                relay.wake(now); // the last beat leaves in this turn, which may be the last
            }
        }
    }
}

impl Owner for Operator {
    type Machine = Relay;

    fn ready(&mut self, _: &mut Relay, ready: Ready, _: Instant) {
        self.entrance.ready(ready);
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.entrance.opened().collect()
    }

    fn depth(&self) -> TcpLimits {
        self.tcp_limits
    }

    fn before(&mut self, relay: &mut Relay, now: Instant) {
        if let (Some(line), Some(lending)) = (&mut self.uplink_counters, relay.lending()) {
            line.look(lending, now, COUNTER_READ_DEADLINE);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.entrance.deadline()
    }

    fn turn(&mut self, relay: &mut Relay, now: Instant) -> LoopControl {
        if self.entrance.turn(now) {
            self.waker.wake();
        }
        if now >= self.clock_at {
            self.clock_at = now + CLOCK_CHECK_INTERVAL;
            relay.set_clock(now, unix_millis());
        }
        self.flags.reserve.give(relay, now);
        while let Ok(order) = self.commands.try_recv() {
            Self::obey(relay, now, order);
        }
        if let (Some(line), Some(lending)) = (&mut self.uplink_counters, relay.lending()) {
            line.look(lending, now, COUNTER_READ_INTERVAL);
        }
        relay.make_room();
        let packets = relay.counters().forwarded_packets + relay.counters().returned_packets;
        if std::mem::replace(&mut self.packets, packets) != packets {
            self.flags.carried.store(now.as_nanos(), Ordering::Release);
        }
        if let Some(snapshots) = &self.snapshots {
            // An epoch that ended must not come back with a restart.
            let changed = relay.epoch_changes() != self.changes;
            let wanted = self.flags.snapshot.swap(false, Ordering::AcqRel) || relay.wants_to_keep();
            if wanted || changed {
                if snapshots.try_send(Snapshot::of(relay, now)).is_ok() {
                    self.changes = relay.epoch_changes();
                } else {
                    self.flags.snapshot.store(true, Ordering::Release); // in the next turn
                }
            }
        }
        // News that nobody takes are not worth waiting for; every drop is counted too.
        while let Some(event) = relay.next_event() {
            let _ = self.news.try_send(RelayRunEvent::Dropped(event));
        }
        let trouble = relay.lending().and_then(|lending| lending.state().trouble);
        if trouble != self.trouble && self.news.try_send(RelayRunEvent::Lends(trouble)).is_ok() {
            self.trouble = trouble;
        }
        let not_kept = self.flags.not_kept.load(Ordering::Relaxed);
        self.flags.desk.turn(relay, now, not_kept);
        if self.flags.report.swap(false, Ordering::AcqRel) {
            let relayed = RelaySummary::of(relay, now, not_kept);
            let _ = self.news.try_send(RelayRunEvent::Relayed(Box::new(relayed)));
        }
        LoopControl::Continue
    }
}

#[cfg(test)]
mod tests;
