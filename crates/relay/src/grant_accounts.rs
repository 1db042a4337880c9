//! One account per grant in use. A grant is what a relay word permits: a number of bytes a second
//! and a day. Only the holder of a genuine word gets an account, so forgers cannot fill the table.

use crate::relay_keys::KeyOrigin;
use crate::verified_packets::VerifiedPacket;
use alloc::vec::Vec;
use byway_wire::relay::{Caveat, Grant, MacKey, Reason, Terms};
use byway_wire::{Duration, Instant, Meter};

/// Accounts in a set. A lookup reads the account's first set. If the account is not there, the
/// lookup reads its second set, which takes accounts that found their first set full.
const SET_ACCOUNTS: usize = 8;
/// The number of accounts for which memory is allocated at the start.
const INITIAL_ACCOUNTS: usize = 16_384;
/// The number of accounts in one segment, the unit in which the table's memory is allocated.
const SEGMENT_ACCOUNTS: usize = 2_048;
const SEGMENT_SHIFT: u32 = SEGMENT_ACCOUNTS.trailing_zeros();
/// Places for each account in a table that may grow. It grows while it has fewer, so that few sets
/// are full.
const PLACES_PER_ACCOUNT: usize = 3;
/// Bytes of the smallest burst. A sender that paces by the millisecond and a receiver's batches
/// cause such bursts at any rate.
const MIN_BURST_BYTES: u64 = 64 << 10;
/// The smallest burst of a grant, as the time that its rate needs for it: 125 ms.
const MIN_BURST_NANOS: u64 = 125_000_000;
const SECOND_NANOS: u64 = 1_000_000_000;
const DAY_SECONDS: u64 = 86_400;

/// Limits of the relay's operator. They apply even if a relay word allows more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) rate: Option<u64>,
    pub(crate) quota: Option<u64>,
}

/// Counts the bytes that were used today, limits the rate, and caches the verdict on the last
/// packet.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) grant: Grant,
    pub(crate) caveat: Option<Caveat>,
    pub(crate) key: MacKey,
    /// The key of the relay from which the account's key is derived.
    pub(crate) origin: KeyOrigin,
    rate: Option<u64>,
    burst: u64,
    quota: Option<u64>,
    meter: Meter,
    day: u64,
    used: u64,
    /// Unix time in seconds of the last notice about a limit to the grant's holder.
    noticed: u64,
    /// The number of the load period in which this account was last counted as a grant in use.
    counted: u32,
    recent: Option<VerifiedPacket>,
}

impl Account {
    pub(crate) fn new(
        grant: Grant,
        caveat: Option<Caveat>,
        key: MacKey,
        origin: KeyOrigin,
        caps: Caps,
    ) -> Self {
        let terms = caveat.map_or(grant.terms, |caveat| caveat.terms);
        let rate = least(terms.rate.bytes_per_second(), caps.rate);
        let quota = least(terms.quota.bytes_per_day(), caps.quota);
        let burst = rate.map_or(0, |rate| MIN_BURST_NANOS.max(MIN_BURST_BYTES * SECOND_NANOS / rate.max(1)));
        Self {
            grant,
            caveat,
            key,
            origin,
            rate,
            burst,
            quota,
            meter: Meter::default(),
            day: 0,
            used: 0,
            noticed: 0,
            counted: 0,
            recent: None,
        }
    }

    pub(crate) fn terms(&self) -> &Terms {
        self.caveat.as_ref().map_or(&self.grant.terms, |caveat| &caveat.terms)
    }

    /// The verified fields of the account's last packet. `None`: there was no packet yet.
    pub(crate) const fn recent(&self) -> Option<&VerifiedPacket> {
        self.recent.as_ref()
    }

    fn branch(&self) -> u8 {
        self.caveat.map_or(0, |caveat| caveat.branch)
    }

    /// Whether `bytes` bytes may pass now; else why not, and after how many seconds.
    fn check(&self, now: Instant, unix: u64, bytes: u64) -> Result<(), (Reason, u32)> {
        let used = if self.day == unix / DAY_SECONDS { self.used } else { 0 };
        if self.quota.is_some_and(|quota| used.saturating_add(bytes) > quota) {
            return Err((Reason::OverQuota, (DAY_SECONDS - unix % DAY_SECONDS) as u32));
        }
        match self.meter.wait(now, self.burst) {
            0 => Ok(()),
            wait => Err((Reason::OverRate, wait.div_ceil(SECOND_NANOS).min(u64::from(u32::MAX)) as u32)),
        }
    }

    fn charge(&mut self, now: Instant, unix: u64, bytes: u64) {
        let today = unix / DAY_SECONDS;
        if self.day != today {
            (self.day, self.used) = (today, 0);
        }
        self.used = self.used.saturating_add(bytes);
        if let Some(rate) = self.rate {
            self.meter.take(now, bytes, rate);
        }
    }

    /// Whether the account may be evicted without giving its holder a fresh quota or rate limit.
    fn owes_nothing(&self, now: Instant, unix: u64) -> bool {
        let used_today = self.quota.is_some() && self.day == unix / DAY_SECONDS && self.used > 0;
        self.terms().expiry.unix() <= unix || (self.meter.is_full(now) && !used_today)
    }
}

/// The table of all accounts. It grows from `INITIAL_ACCOUNTS` accounts to the configured number,
/// by linear hashing.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// Segments of the table. Each has [`SEGMENT_ACCOUNTS`] places, or fewer while the table is
    /// small.
    segments: Vec<Vec<Option<Account>>>,
    /// The number of sets in use. Sets beyond it have memory, and are empty.
    sets: usize,
    most_sets: usize,
    salt: u64,
    live: usize,
}

impl Accounts {
    pub(crate) fn new(most: usize, salt: u64) -> Self {
        let most = most.clamp(SET_ACCOUNTS, 1 << 24).next_power_of_two();
        let first = most.min(INITIAL_ACCOUNTS);
        let count = first.div_ceil(SEGMENT_ACCOUNTS);
        // Lists of segments, too, never move.
        let mut segments = Vec::with_capacity(most.div_ceil(SEGMENT_ACCOUNTS));
        segments.extend((0..count).map(|_| segment(first.min(SEGMENT_ACCOUNTS))));
        Self { segments, sets: first / SET_ACCOUNTS, most_sets: most / SET_ACCOUNTS, salt, live: 0 }
    }

    /// Accounts in the table.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Allocates memory for accounts that will soon be needed: a segment at most. To be called
    /// between packets.
    pub(crate) fn make_room(&mut self) {
        let spare = self.segments.len() * SEGMENT_ACCOUNTS
            < (self.sets + SEGMENT_ACCOUNTS / SET_ACCOUNTS / 2) * SET_ACCOUNTS;
        if spare && self.sets < self.most_sets && self.is_crowded() {
            self.segments.push(segment(SEGMENT_ACCOUNTS));
        }
    }

    fn is_crowded(&self) -> bool {
        self.live * PLACES_PER_ACCOUNT > self.sets * SET_ACCOUNTS
    }

    /// Splits the next set, if the table is crowded and has memory for one more.
    fn split(&mut self) {
        let new = self.sets;
        if !self.is_crowded()
            || new >= self.most_sets
            || new * SET_ACCOUNTS >= self.segments.len() * SEGMENT_ACCOUNTS
        {
            return;
        }
        self.sets += 1;
        let old = (new - base(new)) * SET_ACCOUNTS;
        for way in 0..SET_ACCOUNTS {
            let stays = |account: &Account| self.sets(account.grant.id, account.branch()).contains(&old);
            if self.get(old + way).is_some_and(|account| !stays(account)) {
                let account = self.slot(old + way).and_then(Option::take);
                if let Some(slot) = self.slot(new * SET_ACCOUNTS + way) {
                    *slot = account;
                }
            }
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Account> {
        self.segments.get(index >> SEGMENT_SHIFT)?.get(index % SEGMENT_ACCOUNTS)?.as_ref()
    }

    fn slot(&mut self, index: usize) -> Option<&mut Option<Account>> {
        self.segments.get_mut(index >> SEGMENT_SHIFT)?.get_mut(index % SEGMENT_ACCOUNTS)
    }

    /// The places of a set.
    fn ways(&self, set: usize) -> Option<&[Option<Account>]> {
        let from = set % SEGMENT_ACCOUNTS;
        self.segments.get(set >> SEGMENT_SHIFT)?.get(from..from + SET_ACCOUNTS)
    }

    /// The place of the account of a grant, or of a branch under the grant.
    pub(crate) fn find(&self, id: u32, branch: u8) -> Option<usize> {
        let mixed = self.mix(id, branch);
        self.find_in(self.first(mixed), id, branch).or_else(|| self.find_in(self.second(mixed), id, branch))
    }

    fn find_in(&self, set: usize, id: u32, branch: u8) -> Option<usize> {
        let way = self.ways(set)?.iter().position(|slot| {
            slot.as_ref().is_some_and(|account| account.grant.id == id && account.branch() == branch)
        })?;
        Some(set + way)
    }

    /// The place of the account of this name, which [is taken in](Self::admit) with this key if it
    /// is not there.
    pub(crate) fn place(
        &mut self,
        (grant, caveat): (Grant, Option<Caveat>),
        origin: KeyOrigin,
        key: impl FnOnce() -> Option<MacKey>,
        caps: Caps,
        (now, unix): (Instant, u64),
        keep: Option<usize>,
    ) -> Option<(usize, bool)> {
        let place = self.find(grant.id, caveat.map_or(0, |caveat| caveat.branch));
        let is_it = |account: &Account| {
            account.grant == grant && account.caveat == caveat && account.origin == origin
        };
        match place.filter(|place| self.get(*place).is_some_and(is_it)) {
            Some(place) => Some((place, false)),
            None => self.admit(Account::new(grant, caveat, key()?, origin, caps), now, unix, keep),
        }
    }

    /// Finds or adds the account of a relay word (a permission to use the relay). If a `Caveat`
    /// narrows the word, also the original word's account. Returns their indices, and the number of
    /// evicted accounts. `known`: the index of the word's own account, if known.
    pub(crate) fn places(
        &mut self,
        ((grant, caveat), origin, known): ((Grant, Option<Caveat>), KeyOrigin, Option<usize>),
        keys: (impl FnOnce() -> Option<MacKey>, impl FnOnce() -> Option<MacKey>),
        caps: Caps,
        when: (Instant, u64),
    ) -> Option<(usize, Option<usize>, u64)> {
        let (own, evicted) = match known {
            Some(place) => (place, false),
            None => self.place((grant, caveat), origin, keys.0, caps, when, None)?,
        };
        if caveat.is_none() {
            return Some((own, None, u64::from(evicted)));
        }
        let (above, too) = self.place((grant, None), origin, keys.1, caps, when, Some(own))?;
        Some((own, Some(above), u64::from(evicted) + u64::from(too)))
    }

    /// Puts an account into the table. An account with the same grant id and branch number is
    /// replaced; its byte counts continue. An account is evicted only if it `owes_nothing` and its
    /// index is not `keep`. Returns the index, and whether an account was evicted.
    pub(crate) fn admit(
        &mut self,
        mut account: Account,
        now: Instant,
        unix: u64,
        keep: Option<usize>,
    ) -> Option<(usize, bool)> {
        let (id, branch) = (account.grant.id, account.branch());
        if let Some(index) = self.find(id, branch) {
            if let Some(old) = self.get(index) {
                account.meter = old.meter;
                (account.day, account.used) = (old.day, old.used);
                (account.noticed, account.counted) = (old.noticed, old.counted);
            }
            *self.slot(index)? = Some(account);
            return Some((index, false));
        }
        // An account that is to be kept stays where it is.
        if keep.is_none() {
            self.split();
        }
        let sets = self.sets(id, branch);
        let place = |wanted: &dyn Fn(usize, &Option<Account>) -> bool| {
            sets.into_iter().find_map(|set| {
                let slots = self.ways(set)?.iter().enumerate();
                slots
                    .map(|(way, slot)| (set + way, slot))
                    .find(|(at, slot)| wanted(*at, slot))
                    .map(|(at, _)| at)
            })
        };
        let free = place(&|_, slot| slot.is_none());
        let place = free.or_else(|| {
            place(&|at, slot| {
                keep != Some(at) && slot.as_ref().is_some_and(|account| account.owes_nothing(now, unix))
            })
        })?;
        *self.slot(place)? = Some(account);
        self.live += usize::from(free.is_some());
        Some((place, free.is_none()))
    }

    /// Charges `bytes` to the account of a relay word (a permission to use the relay). A word
    /// narrowed by a `Caveat` also charges the original word's account. If one refuses, neither is
    /// charged. Returns whether this is the original's first charge in `period`.
    pub(crate) fn charge(
        &mut self,
        places: (usize, Option<usize>),
        now: Instant,
        unix: u64,
        bytes: usize,
        period: u32,
    ) -> Result<bool, (Reason, u32)> {
        let bytes = bytes as u64;
        for index in core::iter::once(places.0).chain(places.1) {
            self.get(index).ok_or((Reason::Busy, 0))?.check(now, unix, bytes)?;
        }
        let mut is_new = false;
        for index in core::iter::once(places.0).chain(places.1) {
            if let Some(Some(account)) = self.slot(index) {
                account.charge(now, unix, bytes);
                // The last of them is the grant's own.
                is_new = core::mem::replace(&mut account.counted, period) != period;
            }
        }
        Ok(is_new)
    }

    /// Returns the wait after which a sender is within its rate again. For senders over TCP, which
    /// can wait.
    pub(crate) fn owed(&self, places: (usize, Option<usize>), now: Instant) -> Duration {
        let accounts = core::iter::once(places.0).chain(places.1).filter_map(|index| self.get(index));
        let wait = accounts.map(|account| account.meter.wait(now, account.burst / 2)).max();
        Duration::from_nanos(wait.unwrap_or(0))
    }

    /// Stores the verified fields of an account's last packet, in place of the earlier ones.
    pub(crate) fn remember(&mut self, index: usize, recent: VerifiedPacket) {
        if let Some(Some(account)) = self.slot(index) {
            account.recent = Some(recent);
        }
    }

    /// Whether the account's holder may get a notice about a limit now: at most one per second.
    pub(crate) fn may_notice(&mut self, index: usize, unix: u64) -> bool {
        match self.slot(index) {
            Some(Some(account)) if account.noticed != unix => {
                account.noticed = unix;
                true
            }
            _ => false,
        }
    }

    /// The first place of both sets that an account may be in.
    fn sets(&self, id: u32, branch: u8) -> [usize; 2] {
        let mixed = self.mix(id, branch);
        [self.first(mixed), self.second(mixed)]
    }

    const fn mix(&self, id: u32, branch: u8) -> u64 {
        // Ids are the operator's and branches a holder's: mixing in what neither knows keeps them
        // from piling up in a set.
        let mixed = (((id as u64) << 8 | branch as u64) ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 32) ^ self.salt.rotate_left(17)).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    const fn first(&self, mixed: u64) -> usize {
        self.set((mixed >> 32) as usize)
    }

    const fn second(&self, mixed: u64) -> usize {
        self.set(((mixed ^ (mixed >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize)
    }

    const fn set(&self, mixed: usize) -> usize {
        let base = base(self.sets);
        // The sets before the one whose turn it is are split.
        let low = mixed & (base - 1);
        let set = if low < self.sets - base { mixed & (2 * base - 1) } else { low };
        set * SET_ACCOUNTS
    }
}

/// Returns the number of sets of the table before any split: the largest power of two up to `sets`.
const fn base(sets: usize) -> usize {
    1 << sets.ilog2()
}

fn segment(places: usize) -> Vec<Option<Account>> {
    (0..places).map(|_| None).collect()
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_as_small_as_the_configuration_says() {
        assert!(size_of::<Option<Account>>() <= 288, "{}", size_of::<Option<Account>>());
    }
}
