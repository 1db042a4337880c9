//! Which keys and words hold: the relay's own key, the one before, those of the ranges that it gave
//! to registries, and the words that have names.

use crate::named_words::NamedWords;
use alloc::vec::Vec;
use byway_wire::relay::{
    Caveat, Consent, EpochKey, Grant, MacKey, Minted, RANGE_COUNT, Reason, RelayKey, ReturnTag,
};
use byway_wire::{Duration, Instant};
use core::net::SocketAddr;

/// The origin of a relay word's key: the relay's key, and the epoch of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyOrigin {
    /// The number of the relay's key. Numbers count the keys.
    generation: u32,
    /// The epoch in which a registry minted the relay word. `None`: the relay's operator made the
    /// word.
    epoch: Option<u32>,
}

/// The range of grant ids that one registry may mint.
#[derive(Debug)]
struct Range {
    /// Whether the registry may mint. A closed range keeps its epoch, because epochs never
    /// decrease.
    open: bool,
    epoch: u32,
    /// The end of the previous epoch's validity.
    last_until: Instant,
    /// The range's keys under the relay's present key, and under the previous one.
    minting: [Option<Minting>; 2],
}

/// The keys of the current epoch and of the last.
#[derive(Debug)]
struct Minting {
    current: EpochKey,
    last: Option<EpochKey>,
}

impl Minting {
    fn new(key: &RelayKey, range: u8, epoch: u32) -> Self {
        let key = key.range_key(range);
        Self { current: key.epoch_key(epoch), last: epoch.checked_sub(1).map(|last| key.epoch_key(last)) }
    }
}

#[derive(Debug)]
pub(crate) struct Keys {
    key: RelayKey,
    previous: Option<RelayKey>,
    /// The number of the present key. An account compares it to see whether its own key still
    /// holds.
    generation: u32,
    ranges: Vec<Option<Range>>,
    /// Number of times that a range was opened or closed, or changed its epoch.
    changes: u64,
    named: NamedWords,
}

impl Keys {
    pub(crate) fn new(key: &[u8; 32], previous: Option<&[u8; 32]>) -> Self {
        Self {
            key: RelayKey::new(key),
            previous: previous.map(RelayKey::new),
            generation: 1,
            ranges: (0..RANGE_COUNT).map(|_| None).collect(),
            changes: 0,
            named: NamedWords::default(),
        }
    }

    /// The key that holds now, under which things are made.
    pub(crate) const fn current(&self) -> &RelayKey {
        &self.key
    }

    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }

    /// Sets a new key. Keys derived from the present one stay valid, those from the previous one do
    /// not.
    pub(crate) fn roll(&mut self, key: &[u8; 32]) {
        self.previous = Some(core::mem::replace(&mut self.key, RelayKey::new(key)));
        self.generation = self.generation.wrapping_add(1);
        for range in 0..RANGE_COUNT as u8 {
            self.derive(range);
        }
    }

    /// Accepts the relay words (permissions to use the relay) that a registry makes in `epoch`.
    /// `range`: the registry's number at this relay. The previous epoch's words stay valid for
    /// `last_holds`; repeated calls only shorten this time. False if `epoch` decreases, or `range`
    /// exceeds 127.
    pub(crate) fn set_epoch(&mut self, now: Instant, range: u8, epoch: u32, last_holds: Duration) -> bool {
        let Some(slot) = self.ranges.get_mut(usize::from(range)) else { return false };
        let until = now + last_holds;
        match slot {
            Some(known) if epoch < known.epoch => return false,
            Some(known) if epoch == known.epoch => {
                self.changes += u64::from(!known.open);
                (known.open, known.last_until) = (true, known.last_until.min(until));
                return true;
            }
            _ => *slot = Some(Range { open: true, epoch, last_until: until, minting: [None, None] }),
        }
        self.changes += 1;
        self.derive(range);
        true
    }

    /// Invalidates all relay words of a range until the range is opened again.
    pub(crate) fn close(&mut self, range: u8) {
        if let Some(Some(range)) = self.ranges.get_mut(usize::from(range)) {
            self.changes += u64::from(core::mem::take(&mut range.open));
        }
    }

    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The epoch of an open range.
    pub(crate) fn epoch(&self, range: u8) -> Option<u32> {
        Some(self.range(range)?.epoch)
    }

    /// Returns how long relay words of the previous epoch of an open range stay valid.
    pub(crate) fn last_holds(&self, range: u8, now: Instant) -> Option<Duration> {
        Some(self.range(range)?.last_until.since(now))
    }

    fn range(&self, range: u8) -> Option<&Range> {
        self.ranges.get(usize::from(range))?.as_ref().filter(|range| range.open)
    }

    fn derive(&mut self, number: u8) {
        if let Some(Some(range)) = self.ranges.get_mut(usize::from(number)) {
            let keys = [Some(&self.key), self.previous.as_ref()];
            range.minting = keys.map(|key| Some(Minting::new(key?, number, range.epoch)));
        }
    }

    /// The relay's keys that hold.
    fn all(&self) -> impl Iterator<Item = &RelayKey> {
        core::iter::once(&self.key).chain(&self.previous)
    }

    /// Returns the number of keys since `generation`. `None`: its key is no longer valid.
    fn age(&self, generation: u32) -> Option<usize> {
        match self.generation.wrapping_sub(generation) {
            0 => Some(0),
            1 if self.previous.is_some() => Some(1),
            _ => None,
        }
    }

    /// Returns the epoch in the id of a grant. `None`: it is the operator's own, or its range is
    /// not open.
    fn named(&self, grant: u32) -> Option<u32> {
        let minted = Minted::of(grant)?;
        minted.epoch(self.range(minted.range)?.epoch)
    }

    /// Returns the possible origins of the key for a relay word with this grant id. Operators once
    /// gave their own words any id.
    pub(crate) fn origins(&self, grant: u32) -> impl Iterator<Item = KeyOrigin> {
        let minted = self.named(grant);
        let generations =
            [Some(self.generation), self.previous.as_ref().map(|_| self.generation.wrapping_sub(1))];
        let of = move |epoch| {
            generations.into_iter().flatten().map(move |generation| KeyOrigin { generation, epoch })
        };
        minted.into_iter().flat_map(move |epoch| of(Some(epoch))).chain(of(None))
    }

    /// Whether a grant with this id was made with a key of this origin that is still valid. Its
    /// epoch may be over.
    pub(crate) fn knows(&self, origin: KeyOrigin, grant: u32) -> bool {
        self.age(origin.generation).is_some()
            && origin.epoch.is_none_or(|epoch| self.named(grant) == Some(epoch))
    }

    /// Checks that the epoch of a grant is not over, and that its relay word was not revoked.
    pub(crate) fn check(&self, origin: KeyOrigin, grant: &Grant, now: Instant) -> Result<(), Reason> {
        if !self.epoch_holds(origin, grant.id, now) {
            return Err(Reason::EpochOver);
        }
        if self.named.holds(grant) { Ok(()) } else { Err(Reason::Revoked) }
    }

    /// Returns the operator's named relay words.
    pub(crate) const fn named_words(&self) -> &NamedWords {
        &self.named
    }

    pub(crate) const fn named_words_mut(&mut self) -> &mut NamedWords {
        &mut self.named
    }

    /// Whether the epoch in which a grant was made still holds. Always, if it is the operator's.
    fn epoch_holds(&self, origin: KeyOrigin, grant: u32, now: Instant) -> bool {
        let Some(epoch) = origin.epoch else { return true };
        Minted::of(grant).and_then(|minted| self.range(minted.range)).is_some_and(|range| {
            range.epoch == epoch || (range.epoch.checked_sub(1) == Some(epoch) && now < range.last_until)
        })
    }

    /// Whether a grant's id is in a range that the relay gave to no registry.
    pub(crate) fn is_foreign(&self, grant: u32) -> bool {
        Minted::of(grant).is_some_and(|minted| self.range(minted.range).is_none())
    }

    /// Returns the MAC key of a relay word. `None`: its origin is no longer valid.
    pub(crate) fn mac_key(
        &self,
        origin: KeyOrigin,
        grant: &Grant,
        caveat: Option<&Caveat>,
    ) -> Option<MacKey> {
        let age = self.age(origin.generation)?;
        let secret = match origin.epoch {
            None => self.all().nth(age)?.secret(grant),
            Some(epoch) => {
                let range = self.range(Minted::of(grant.id)?.range)?;
                let minting = range.minting.get(age)?.as_ref()?;
                if range.epoch == epoch { &minting.current } else { minting.last.as_ref()? }.secret(grant)
            }
        };
        Some(match caveat {
            Some(caveat) => secret.narrow(caveat).mac_key(),
            None => secret.mac_key(),
        })
    }

    pub(crate) fn check_cookie(&self, cookie: u64, grant: u32, address: SocketAddr, unix: u64) -> bool {
        self.all().any(|key| key.check_cookie(cookie, grant, address, unix))
    }

    /// The cookies of an address that hold now, for a grant.
    pub(crate) fn cookies(&self, grant: u32, address: SocketAddr, unix: u64) -> impl Iterator<Item = u64> {
        self.all().flat_map(move |key| key.cookies(grant, address, unix))
    }

    /// Whether the relay made this cookie for the grant, possibly for another address or on another
    /// day.
    pub(crate) fn made_cookie(&self, cookie: u64, grant: u32) -> bool {
        self.all().any(|key| key.made_cookie(cookie, grant))
    }

    pub(crate) fn check_consent(
        &self,
        consent: &Consent,
        grant: u32,
        to: SocketAddr,
        unix: u64,
    ) -> Option<u64> {
        self.all().find_map(|key| key.check_consent(consent, grant, to, unix))
    }

    pub(crate) fn check_return(
        &self,
        tag: &ReturnTag,
        to: SocketAddr,
        from: SocketAddr,
        unix: u64,
    ) -> Option<u64> {
        self.all().find_map(|key| key.check_return(tag, to, from, unix))
    }
}
