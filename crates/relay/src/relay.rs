//! The machine.

mod requests;

use crate::config::Config;
use crate::destination_policy::Policy;
use crate::grant_accounts::{Accounts, Caps};
use crate::heartbeats::{Heartbeats, RegistryStatus};
use crate::lending_control::LendingControl;
use crate::log::Log;
use crate::mailboxes::Mailboxes;
use crate::named_words::NamedWord;
use crate::operator_report::{Dropped, LogEvent, RelayCounters};
use crate::outgoing_carrier::Carriers;
use crate::per_second_limit::Limiter;
use crate::quota_usage::{Load, Reserve, Usage, Used};
use crate::receiver_locations::ReceiverLocations;
use crate::relay_keys::{KeyOrigin, Keys};
use crate::send_queue::size;
use crate::verified_packets::{KeyTime, PacketClaims, VerifiedPacket};
use alloc::vec::Vec;
use byway_wire::heartbeat::{ANSWERED_TYPE, BEAT_LEN, HeartbeatAnswer, RelayId};
use byway_wire::relay::{
    Delivered, Forward, Grant, MAILBOX_TYPE, MacKey, MessageType, NOTICE_LEN, Notice, RANGE_COUNT, RangeKey,
    Reason, RelayWordError, Return, ReturnTag, ReturnedPacket, Scope, TIME_WINDOW, Word, canonical,
};
use byway_wire::{
    Datagram, Dscp, Duration, Input, Instant, Local, Machine, TcpRequest, Transmit, TransmitBuffer, Writer,
};
use core::net::SocketAddr;

/// Seconds for which a return tag is good. A receiver gets a new one with every packet.
const RETURN_LIFE: u64 = 600;

/// A relay. The driver uses it as a [`Machine`]. Senders need a relay word, a secret text from
/// [`issue`](Self::issue). Give the relay one port, with one socket per address family. A
/// receiver's NAT lets in packets only from the socket that the receiver greeted.
#[derive(Debug)]
pub struct Relay {
    keys: Keys,
    heart: Heartbeats,
    usage: Usage,
    unix_millis: u64,
    started: Instant,
    policy: Policy,
    caps: Caps,
    carriers: Carriers,
    accounts: Accounts,
    locations: ReceiverLocations,
    mailboxes: Mailboxes,
    lending: Option<LendingControl>,
    counters: RelayCounters,
    greetings: Limiter,
    notices: Limiter,
    hints: Limiter,
    log: Log,
}

/// The account and the key for a packet's relay word.
struct WordHolder {
    key: MacKey,
    origin: KeyOrigin,
    /// The place of the relay word's account. `None`: there is no account yet.
    place: Option<usize>,
    /// The sender's cookie, found good; 0: it did not show that it receives where it sends from.
    cookie: u64,
}

impl Relay {
    /// A relay whose machine clock shows `now` when the Unix time is the configuration's.
    #[must_use]
    pub fn new(config: &Config, now: Instant) -> Self {
        let keys = Keys::new(&config.key, config.previous_key.as_ref());
        let accounts = Accounts::new(config.accounts, keys.current().salt());
        let heart = Heartbeats::new(keys.current().id(), config.beat_counter);
        let quota = (config.per_day, config.per_month);
        Self {
            keys,
            heart,
            usage: Usage::new(quota.0, quota.1, config.used, config.unix_millis / 1_000),
            unix_millis: config.unix_millis,
            started: now,
            policy: config.policy.clone(),
            caps: Caps { rate: config.rate_cap, quota: config.quota_cap },
            carriers: Carriers::new(config.queue_bytes, config.queue_datagrams),
            accounts,
            locations: ReceiverLocations::new(config.receivers),
            mailboxes: Mailboxes::default(),
            lending: config.lend.map(LendingControl::new),
            counters: RelayCounters::default(),
            greetings: Limiter::new(config.greetings_per_second),
            notices: Limiter::new(config.notices_per_second),
            hints: Limiter::new(config.hints_per_second),
            log: Log::new(),
        }
    }

    /// The relay word for a grant: a secret text that lets a sender use this relay. `relays`: the
    /// addresses at which this relay is reached from outside, one to four. The relay stores
    /// nothing: the same grant gives the same word, also after a restart.
    pub fn issue(&self, grant: Grant, relays: Vec<SocketAddr>) -> Result<Word, RelayWordError> {
        self.keys.current().issue(grant, relays)
    }

    /// Replaces the relay's key. Relay words (secret texts for senders) made under the replaced key
    /// stay valid. Words of older keys become invalid. Registries know the relay by its key, so the
    /// relay has to enrol with them again.
    pub fn roll(&mut self, key: &[u8; 32]) {
        self.keys.roll(key);
        self.heart = Heartbeats::new(self.keys.current().id(), self.heart.counter());
    }

    /// Replaces the operator's named relay words. Any other word with [`Scope::NAMED`] is invalid.
    /// A word that was among them before keeps its count.
    pub fn set_named_words(&mut self, words: impl IntoIterator<Item = NamedWord>) {
        self.keys.named_words_mut().replace(words);
    }

    /// Returns the operator's named relay words, with the bytes carried for each.
    #[must_use]
    pub fn named_words(&self) -> &[NamedWord] {
        self.keys.named_words().as_slice()
    }

    /// The relay's name at registries.
    #[must_use]
    pub const fn id(&self) -> RelayId {
        self.keys.current().id()
    }

    /// The key with which one registry makes relay words (permissions to use this relay). `range`
    /// (0 to 127) selects the registry's own block of account ids. The relay accepts the words
    /// after [`set_epoch`](Self::set_epoch). A new key of the relay changes this key too.
    #[must_use]
    pub fn range_key(&self, range: u8) -> RangeKey {
        self.keys.current().range_key(range)
    }

    /// Accepts the relay words (permissions to use this relay) that a registry makes in `epoch`. An
    /// increase revokes older words. Those of the previous epoch stay valid for `last_holds`.
    /// `range` selects the registry's own block of account ids. False if `epoch` decreases, or
    /// `range` exceeds 127.
    pub fn set_epoch(&mut self, now: Instant, range: u8, epoch: u32, last_holds: Duration) -> bool {
        self.keys.set_epoch(now, range, epoch, last_holds)
    }

    /// The epoch of a range, and for how long the one before holds; `None` if no registry may mint
    /// there.
    #[must_use]
    pub fn epoch(&self, now: Instant, range: u8) -> Option<(u32, Duration)> {
        Some((self.keys.epoch(range)?, self.keys.last_holds(range, now)?))
    }

    /// Returns all ranges of grants that were given to registries, each with its
    /// [epoch](Self::epoch).
    pub fn epochs(&self, now: Instant) -> impl Iterator<Item = (u8, u32, Duration)> {
        (0..RANGE_COUNT as u8)
            .filter_map(move |range| self.epoch(now, range).map(|(epoch, holds)| (range, epoch, holds)))
    }

    /// Returns a number that grows with each change in [`epochs`](Self::epochs). The owner compares
    /// it to see when to save them.
    #[must_use]
    pub const fn epoch_changes(&self) -> u64 {
        self.keys.changes()
    }

    /// Stops forwarding for grants of this range, and heartbeats to its registry.
    pub fn close_range(&mut self, range: u8) {
        self.keys.close(range);
        self.heart.unwatch(range);
    }

    /// Sends heartbeats to a registry, which issues permissions to use the relay. The first leaves
    /// at `now + first`. Each goes to the first four `addresses`. `range`: the registry's number, 0
    /// to 127. False if the relay sends heartbeats to eight other registries already.
    pub fn watch(&mut self, now: Instant, range: u8, addresses: Vec<SocketAddr>, first: Duration) -> bool {
        let key = self.range_key(range).heartbeat_key();
        self.heart.watch(range, key, addresses, now + first)
    }

    /// The relay's status at the registry that has `range`. `None`: no heartbeats go to it.
    #[must_use]
    pub fn standing(&self, range: u8) -> Option<RegistryStatus> {
        self.heart.standing(range)
    }

    /// The counter of the last heartbeat. The owner saves it, because
    /// [`Config::beat_counter`](crate::Config::beat_counter) must begin above it.
    #[must_use]
    pub const fn beat_counter(&self) -> u64 {
        self.heart.counter()
    }

    /// Prepares to end: refuses relay words that are not in use, and tells registries that the
    /// relay ends soon. All else continues.
    pub fn drain(&mut self, now: Instant) {
        self.heart.drain(now);
    }

    /// The control of the lent line. `None`: this relay is not on an end host that lends its line.
    pub const fn lending(&mut self) -> Option<&mut LendingControl> {
        self.lending.as_mut()
    }

    /// Sets whether the host has a transfer of its own, which heartbeats report to registries.
    pub fn set_busy(&mut self, now: Instant, busy: bool) {
        self.heart.set_busy(now, busy);
    }

    /// Replaces the Unix time: it is `unix_millis` at `now`.
    pub const fn set_clock(&mut self, now: Instant, unix_millis: u64) {
        (self.unix_millis, self.started) = (unix_millis, now);
    }

    /// The counters since the relay's start.
    #[must_use]
    pub const fn counters(&self) -> &RelayCounters {
        &self.counters
    }

    /// Returns the bytes forwarded on this day and in this month. The owner saves them for
    /// [`Config::used`] at the next start.
    pub fn used(&mut self, now: Instant) -> Used {
        self.usage.go_on(self.unix(now));
        self.usage.used()
    }

    /// Whether the owner should save counts with a new reserve now (see
    /// [`to_keep`](Self::to_keep)).
    #[must_use]
    pub fn wants_to_keep(&self) -> bool {
        self.usage.wants_reserve()
    }

    /// Returns the counts that the owner is to save for [`Config::used`] of the next start: the
    /// bytes forwarded when the reserve is used up. A relay with a quota carries no more than that
    /// before the next [`kept`](Self::kept), so that a kill never gives it anything twice. One
    /// whose owner never called that carries all that its quota allows.
    pub fn to_keep(&mut self, now: Instant) -> (Used, Reserve) {
        self.usage.go_on(self.unix(now));
        self.usage.reserve()
    }

    /// Notes that the counts with this reserve are saved, so the reserve may be carried.
    pub fn kept(&mut self, now: Instant, reserve: Reserve) {
        self.usage.go_on(self.unix(now));
        self.usage.kept(reserve);
    }

    /// The recent rate of the relay, and the grants in use.
    pub fn load(&mut self, now: Instant) -> Load {
        self.usage.go_on(self.unix(now));
        self.usage.load()
    }

    /// The number of open TCP connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.carriers.connections()
    }

    /// The number of accounts in memory.
    #[must_use]
    pub fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// The number of receivers whose addresses are remembered.
    #[must_use]
    pub fn remembered_receivers(&self) -> usize {
        self.locations.len()
    }

    /// The number of mailboxes that are open.
    #[must_use]
    pub fn mailboxes(&self) -> usize {
        self.mailboxes.len()
    }

    /// Allocates memory for more accounts before they are needed: for at most 2,048 accounts per
    /// call, up to [`Config::accounts`] in all. Call this between packets, because handling a
    /// packet never allocates.
    pub fn make_room(&mut self) {
        self.accounts.make_room();
    }

    /// The next thing for the log.
    pub fn next_event(&mut self) -> Option<LogEvent> {
        self.log.next()
    }

    fn millis(&self, now: Instant) -> u64 {
        self.unix_millis.saturating_add_signed(now.signed_nanos_since(self.started) / 1_000_000)
    }

    fn unix(&self, now: Instant) -> u64 {
        self.millis(now) / 1_000
    }

    const fn moment(&self, unix: u64) -> KeyTime {
        KeyTime { generation: self.keys.generation(), unix }
    }

    fn allows(&self, destination: SocketAddr) -> bool {
        self.policy.allows(destination) && !self.carriers.are_at(destination)
    }

    /// Whether the host's own traffic leaves room for a stranger's datagram.
    fn lend(&mut self, now: Instant, length: usize) -> Result<(), Dropped> {
        let lends = self.lending.as_mut().is_none_or(|lending| lending.admit(now, length as u64));
        lends.then_some(()).ok_or(Dropped::Yielded)
    }

    fn drop(&mut self, now: Instant, why: Dropped, grant: u32, from: SocketAddr) {
        self.counters.drop(why);
        self.log.note(now, why, grant, from);
    }

    fn notice(&mut self, datagram: &Datagram<'_>, notice: &Notice) {
        let mut bytes = [0; NOTICE_LEN];
        notice.write(&mut Writer::new(&mut bytes));
        if self.carriers.answer(datagram, &bytes) {
            self.counters.notices += 1;
        }
    }

    fn forward(&mut self, now: Instant, datagram: &mut Datagram<'_>) {
        let from = canonical(datagram.remote);
        let Ok(forward) = Forward::read(datagram.payload) else {
            return self.drop(now, Dropped::Malformed, 0, from);
        };
        let (id, unix) = (forward.grant.id, self.unix(now));
        let echo = forward.consent.tag.to_be_bytes();
        let holder = match self.holder(&forward, datagram.payload, from, unix) {
            Ok(holder) => holder,
            Err(key) => {
                let reason = match &key {
                    Some(_) => Reason::StaleCookie,
                    None if self.keys.is_foreign(id) => Reason::UnknownRange,
                    None => Reason::UnknownWord,
                };
                self.drop(now, Dropped::Refused(reason), id, from);
                // An observer can repeat a packet from many addresses: each would bring an answer.
                if self.hints.allows(now) {
                    self.notice(datagram, &Notice::new(reason, id, echo, unix, 0, key.as_ref()));
                }
                return;
            }
        };
        if let Err((why, retry)) = self.forward_for(now, unix, datagram, &forward, from, &holder) {
            self.drop(now, why, id, from);
            let Dropped::Refused(reason) = why else { return };
            let limit = matches!(reason, Reason::OverRate | Reason::OverQuota | Reason::RelayQuota);
            let place = self.accounts.find(id, forward.branch()).filter(|_| limit);
            if place.is_none_or(|place| self.accounts.may_notice(place, unix)) && self.notices.allows(now) {
                self.notice(datagram, &Notice::new(reason, id, echo, unix, retry, Some(&holder.key)));
            }
        }
    }

    /// Finds the relay word under which a packet was made. The account knows its key; only the
    /// first packet of a word, and a forged one, cost more. The error is the word's key, if it was
    /// made under that key and only its cookie does not hold.
    fn holder(
        &self,
        forward: &Forward,
        packet: &[u8],
        from: SocketAddr,
        unix: u64,
    ) -> Result<WordHolder, Option<MacKey>> {
        let (id, said) = (forward.grant.id, forward.unix(unix));
        let good = |cookie| cookie == 0 || self.keys.check_cookie(cookie, id, from, unix);
        let mut stale = None;
        let place = self.accounts.find(id, forward.branch());
        let known = place.and_then(|place| self.accounts.get(place)).filter(|account| {
            account.grant == forward.grant
                && account.caveat == forward.caveat
                && self.keys.knows(account.origin, id)
        });
        if let Some(account) = known {
            let cookie = forward.cookie(packet, &account.key, said);
            let again = |recent: &VerifiedPacket| recent.knows_sender(self.moment(unix), from, cookie);
            if account.recent().is_some_and(again) || good(cookie) {
                let (key, origin) = (account.key.clone(), account.origin);
                return Ok(WordHolder { key, origin, place, cookie });
            }
            stale = self.keys.made_cookie(cookie, id).then(|| account.key.clone());
        }
        for origin in self.keys.origins(id) {
            if known.is_some_and(|account| account.origin == origin) {
                continue; // it was just tried
            }
            let Some(key) = self.keys.mac_key(origin, &forward.grant, forward.caveat.as_ref()) else {
                continue;
            };
            let cookie = forward.cookie(packet, &key, said);
            if good(cookie) {
                return Ok(WordHolder { key, origin, place: None, cookie });
            }
            stale = stale.or_else(|| self.keys.made_cookie(cookie, id).then_some(key));
        }
        Err(stale)
    }

    fn forward_for(
        &mut self,
        now: Instant,
        unix: u64,
        datagram: &mut Datagram<'_>,
        forward: &Forward,
        from: SocketAddr,
        holder: &WordHolder,
    ) -> Result<(), (Dropped, u32)> {
        let refuse = |reason| Err((Dropped::Refused(reason), 0));
        let to = forward.destination;
        let terms = forward.caveat.map_or(forward.grant.terms, |caveat| caveat.terms);
        if forward.unix(unix).abs_diff(unix) > TIME_WINDOW {
            return refuse(Reason::Clock);
        }
        if !terms.within(&forward.grant.terms) {
            return refuse(Reason::Wider);
        }
        let holds = self.keys.check(holder.origin, &forward.grant, now);
        holds.map_err(|reason| (Dropped::Refused(reason), 0))?;
        if terms.expiry.unix() <= unix {
            return refuse(Reason::Expired);
        }
        if !terms.scope.contains(forward.scope()) {
            return refuse(Reason::Scope);
        }
        if !self.allows(to) {
            return refuse(Reason::Destination);
        }
        let (moment, cookie, consent) = (self.moment(unix), holder.cookie, forward.consent);
        let said = PacketClaims { moment, from, cookie, to, consent };
        let recent = holder.place.and_then(|place| self.accounts.get(place)?.recent());
        let known = recent.and_then(|recent| recent.return_tag(&said));
        if known.is_none() {
            match self.keys.check_consent(&consent, forward.grant.id, to, unix) {
                None => return refuse(Reason::NoConsent),
                Some(end) if end <= unix => return refuse(Reason::ConsentExpired),
                Some(_) => {}
            }
        }
        let way = self.carriers.way(datagram, to, Some(forward.grant.id)).map_err(|why| (why, 0))?;
        let length = size(datagram);
        if self.heart.is_draining() && self.accounts.find(forward.grant.id, forward.branch()).is_none() {
            return refuse(Reason::Draining);
        }
        let Some(places) = self.places(now, unix, forward, holder) else { return refuse(Reason::Busy) };
        self.lend(now, length).map_err(|why| (why, 0))?;
        self.charge(places, now, unix, length)?;

        let account = (forward.grant.id, forward.branch());
        let return_tag = known.unwrap_or_else(|| {
            let may_answer = cookie != 0 && terms.scope.contains(Scope::BACK);
            let return_tag =
                may_answer.then(|| self.keys.current().return_tag(account, from, to, unix + RETURN_LIFE));
            self.accounts.remember(places.0, VerifiedPacket { said, return_tag });
            return_tag
        });
        // A sender that may not be answered, or did not show its address, gets no return tag.
        let none = ReturnTag { grant: account.0, branch: account.1, expiry: 0, tag: 0 };
        let tag = return_tag.unwrap_or(none);
        let written = Delivered { from, tag, inner: forward.inner }.write(datagram.payload);
        if written && self.carriers.goes(way, datagram, to, Some(account.0)) {
            self.counters.forwarded_packets += 1;
            self.counters.forwarded_bytes += length as u64;
        }
        self.hold_back(now, datagram.local, places);
        Ok(())
    }

    /// Charges the accounts and the relay's own: all or none.
    fn charge(
        &mut self,
        places: (usize, Option<usize>),
        now: Instant,
        unix: u64,
        length: usize,
    ) -> Result<(), (Dropped, u32)> {
        let period = self.usage.go_on(unix);
        self.usage.check(unix, length as u64)?;
        let charged = self.accounts.charge(places, now, unix, length, period);
        let is_new = charged.map_err(|(reason, retry)| (Dropped::Refused(reason), retry))?;
        self.usage.charge(length as u64, is_new);
        if let Some(account) = self.accounts.get(places.0) {
            self.keys.named_words_mut().count(&account.grant, length as u64);
        }
        Ok(())
    }

    /// Returns the accounts to charge: that of the relay word, and the one above if it is a branch.
    fn places(
        &mut self,
        now: Instant,
        unix: u64,
        forward: &Forward,
        holder: &WordHolder,
    ) -> Option<(usize, Option<usize>)> {
        let Self { accounts, keys, caps, counters, .. } = self;
        let (origin, grant, branch) = (holder.origin, forward.grant, forward.caveat);
        let made = (|| Some(holder.key.clone()), || keys.mac_key(origin, &grant, None));
        let names = ((grant, branch), origin, holder.place);
        let (own, above, evicted) = accounts.places(names, made, *caps, (now, unix))?;
        counters.evicted += evicted;
        Some((own, above))
    }

    fn back(&mut self, now: Instant, datagram: &mut Datagram<'_>) {
        let from = canonical(datagram.remote);
        let Ok(back) = Return::read(datagram.payload) else {
            return self.drop(now, Dropped::Malformed, 0, from);
        };
        if let Err(why) = self.back_for(now, datagram, &back, from) {
            self.drop(now, why, back.tag.grant, from);
        }
    }

    /// Forwards a receiver's packet back to a sender. It sends no notices: a receiver has no relay
    /// word, and could not react.
    fn back_for(
        &mut self,
        now: Instant,
        datagram: &mut Datagram<'_>,
        back: &Return,
        from: SocketAddr,
    ) -> Result<(), Dropped> {
        let unix = self.unix(now);
        let refuse = |reason| Err(Dropped::Refused(reason));
        let ReturnTag { grant: id, branch, .. } = back.tag;
        let own = self.accounts.find(id, branch);
        let recent = own.and_then(|place| self.accounts.get(place)?.recent());
        if !recent.is_some_and(|recent| recent.gave(self.moment(unix), &back.tag, back.to, from)) {
            let end = self.keys.check_return(&back.tag, back.to, from, unix);
            if end.is_none_or(|end| end <= unix) {
                return Err(Dropped::BadReturn);
            }
        }
        let own = own.ok_or(Dropped::UnknownAccount)?;
        let above =
            if branch == 0 { None } else { Some(self.accounts.find(id, 0).ok_or(Dropped::UnknownAccount)?) };
        let account = self.accounts.get(own).ok_or(Dropped::UnknownAccount)?;
        let terms = *account.terms();
        self.keys.check(account.origin, &account.grant, now).map_err(Dropped::Refused)?;
        if terms.expiry.unix() <= unix {
            return refuse(Reason::Expired);
        }
        if !terms.scope.contains(Scope::BACK) {
            return refuse(Reason::Scope);
        }
        if !self.allows(back.to) {
            return refuse(Reason::Destination);
        }
        let way = self.carriers.way(datagram, back.to, None)?;
        let length = size(datagram);
        self.lend(now, length)?;
        let charged = self.charge((own, above), now, unix, length);
        charged.map_err(|(why, _)| why)?;
        if (ReturnedPacket { from, inner: back.inner }).write(datagram.payload)
            && self.carriers.goes(way, datagram, back.to, None)
        {
            self.counters.returned_packets += 1;
            self.counters.returned_bytes += length as u64;
        }
        self.hold_back(now, datagram.local, (own, above));
        Ok(())
    }

    fn beat(&mut self, now: Instant) {
        let carries = (self.load(now), self.used(now), self.usage.left());
        while let Some((beat, addresses)) = self.heart.beat(now, |range| self.keys.epoch(range), carries) {
            let mut bytes = [0; BEAT_LEN];
            beat.write(&mut Writer::new(&mut bytes));
            for address in addresses {
                if self.carriers.send(canonical(*address), &bytes) {
                    self.counters.beats += 1;
                }
            }
        }
    }

    fn answered(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let answered = HeartbeatAnswer::read(datagram.payload).ok();
        let Some((range, orders)) = answered.and_then(|answered| self.heart.answered(now, &answered)) else {
            return self.drop(now, Dropped::BadAnswer, 0, canonical(datagram.remote));
        };
        self.counters.answers += 1;
        self.keys.set_epoch(now, range, orders.epoch, Duration::from_secs(orders.last_holds.into()));
    }

    /// Notes that a TCP connection brought a valid packet. Pauses the connection if it exceeds its
    /// relay word's rate.
    fn hold_back(&mut self, now: Instant, local: Local, places: (usize, Option<usize>)) {
        if local.is_connection() {
            let wait = self.accounts.owed(places, now);
            self.carriers.is_good(now, local, (wait > Duration::ZERO).then(|| now + wait));
        }
    }
}

impl Machine for Relay {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(mut datagram) => {
                self.counters.received_packets += 1;
                self.counters.received_bytes += size(&datagram) as u64;
                self.lending.iter_mut().for_each(|lending| lending.arrived(size(&datagram) as u64));
                let first = datagram.payload.first().copied();
                match first.and_then(MessageType::of) {
                    Some(MessageType::Forward) => self.forward(now, &mut datagram),
                    Some(MessageType::Return) => self.back(now, &mut datagram),
                    Some(MessageType::Greet) => self.greet(now, &datagram),
                    None if first == Some(ANSWERED_TYPE) => self.answered(now, &datagram),
                    None if first == Some(MAILBOX_TYPE) => self.visit_mailbox(now, &datagram),
                    _ => self.drop(now, Dropped::Malformed, 0, canonical(datagram.remote)),
                }
            }
            Input::SendError(_) => self.counters.send_errors += 1,
            change => self.carriers.change(now, &change),
        }
    }

    fn wake(&mut self, now: Instant) {
        self.beat(now);
        self.carriers.wake(now);
    }

    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let dscp = if self.lending.is_some() { Dscp::LowerEffort } else { Dscp::BestEffort };
        let sent = Transmit { dscp, ..self.carriers.transmit(out)? };
        self.lending.iter_mut().for_each(|lending| lending.left(&sent));
        Some(sent)
    }

    fn deadline(&self) -> Option<Instant> {
        [self.heart.deadline(), self.carriers.deadline()].into_iter().flatten().min()
    }

    fn serves(&self, local: Local) -> bool {
        self.carriers.serves(local)
    }

    fn ask(&mut self, _: Instant) -> Option<TcpRequest> {
        self.carriers.next_ask()
    }
}
