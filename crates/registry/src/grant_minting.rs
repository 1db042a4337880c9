//! Mints relay words: permissions for one client to use one relay. All registries with the same
//! store mint the same relay word for a client. So the relay has one count of the client's traffic,
//! whichever registry the client asked.

use crate::store::{Epoch, LAST_EPOCH_SECONDS, RelayRow, WordRow};
use byway_wire::relay::{EpochKey, Grant, Minted, Minute, QuotaClass, RateClass, Scope, Terms, Word};

/// Duration of an epoch in seconds, unless the operator ends it sooner.
pub const EPOCH_LIFE: u64 = 24 * 3_600;
/// The serial number of the grant with which the registry itself tests relays.
pub const REGISTRY_SERIAL: u32 = 0;

/// When relay words (permissions to use a relay) of `epoch` expire at the latest. The result is in
/// seconds of Unix time, and a multiple of 60. An epoch lasts a day, or less if the registry
/// revokes words.
#[must_use]
pub const fn end_of(epoch: &Epoch) -> u64 {
    Minute::from_unix(epoch.began.saturating_add(EPOCH_LIFE + LAST_EPOCH_SECONDS)).unix()
}

/// Mints a permission to use `relay` for the client whose registry word is `word`. `None`: the
/// relay has no addresses.
#[must_use]
pub fn mint(word: &WordRow, relay: &RelayRow, epoch: &Epoch, key: &EpochKey) -> Option<Word> {
    let terms = Terms {
        expiry: Minute::from_unix(end_of(epoch).min(word.expires)),
        rate: narrower(word.rate, relay.rate),
        quota: smaller(word.quota, relay.quota),
        scope: Scope::ALL,
    };
    issue(word.number, terms, relay, epoch, key)
}

/// Mints the relay word with which the registry tests a relay.
#[must_use]
pub fn own(relay: &RelayRow, epoch: &Epoch, key: &EpochKey) -> Option<Word> {
    let terms = Terms {
        expiry: Minute::from_unix(end_of(epoch)),
        rate: RateClass::at_most(64 << 10),
        quota: QuotaClass::at_most(64 << 20),
        scope: Scope::ALL,
    };
    issue(REGISTRY_SERIAL, terms, relay, epoch, key)
}

fn issue(serial: u32, terms: Terms, relay: &RelayRow, epoch: &Epoch, key: &EpochKey) -> Option<Word> {
    let id = Minted::new(relay.range, epoch.number, serial)?.id();
    let grant = Grant { id, terms };
    Word::new(relay.addresses.clone(), grant, key.secret(&grant)).ok()
}

fn narrower(a: RateClass, b: RateClass) -> RateClass {
    if a <= b { a } else { b }
}

fn smaller(a: QuotaClass, b: QuotaClass) -> QuotaClass {
    if a <= b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Label;
    use crate::word::WordKind;
    use alloc::string::String;
    use alloc::vec;
    use byway_engine::handshake::PublicKey;
    use byway_wire::heartbeat::RelayId;
    use byway_wire::relay::RelayKey;

    fn rows() -> (WordRow, RelayRow) {
        let word = WordRow {
            number: 5,
            kind: WordKind::Use,
            name: String::from("alice"),
            uses: None,
            rate: RateClass::at_most(1 << 20),
            quota: QuotaClass::UNLIMITED,
            expires: u64::MAX,
            revoked: false,
        };
        let relay = RelayRow {
            relay: RelayId([1; 16]),
            key: PublicKey([2; 32]),
            word: 1,
            range: 9,
            range_key: RelayKey::new(&[3; 32]).range_key(9),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::at_most(1 << 30),
            operator: Label::new("Example"),
            region: Label::default(),
            addresses: vec!["192.0.2.1:4748".parse().unwrap()],
            tcp: false,
            revoked: false,
        };
        (word, relay)
    }

    #[test]
    fn a_client_has_one_grant_per_relay_and_epoch_with_the_narrower_terms() {
        let (word, relay) = rows();
        let epoch = |number| Epoch { number, began: 1_800_000_000, last_until: 0 };
        let minted = |word: &WordRow, number| {
            mint(word, &relay, &epoch(number), &relay.range_key.epoch_key(number)).unwrap()
        };
        let first = minted(&word, 3);
        assert_eq!(first, minted(&word, 3));
        assert_eq!(first.grant().id, Minted { range: 9, odd: true, serial: 5 }.id());
        assert_eq!((first.terms().rate, first.terms().quota), (word.rate, relay.quota));
        assert_eq!(first.terms().expiry.unix(), end_of(&epoch(3)));
        assert_ne!(first, minted(&word, 4));
        let soon = WordRow { expires: 1_800_000_060, ..word.clone() };
        assert_eq!(minted(&soon, 3).terms().expiry.unix(), 1_800_000_060);
        let other = WordRow { number: 6, ..word };
        assert_ne!(first.grant().id, minted(&other, 3).grant().id);
    }
}
