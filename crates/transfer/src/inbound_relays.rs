//! Relays through which others reach a host: which of them work, and the troubles of the others.

use crate::secret::Secret;
use crate::sockets::is_private;
use crate::ticket::GreetedRelay;
use byway_engine::{Endpoint, Reachable, RelayTrouble};
use byway_net::source_for;
use byway_wire::relay::{Reason, Word};
use byway_wire::{Instant, Prefix};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Bits of the network to propose for a relay to send to, for IPv4 and IPv6.
const PROPOSED_PREFIX_BITS: (u8, u8) = (24, 64);

/// A relay through which this host cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UselessRelay {
    /// The relay's word.
    pub word: Word,
    /// The sentence for the user about the relay.
    pub message: String,
}

/// The relays at which this host is registered, by their relay words.
#[derive(Debug)]
pub struct StandingRelays {
    /// The secret in this host's tickets. Relays give this host's location to those who hold it.
    permission: Secret<[u8; 16]>,
    words: Vec<StandingWord>,
}

#[derive(Debug)]
struct StandingWord {
    word: Word,
    /// Addresses of the relay that were tried.
    tried: Vec<SocketAddr>,
    failed: BTreeSet<SocketAddr>,
    /// Whether one of the relay's addresses has led here.
    works: bool,
    told: bool,
}

impl StandingRelays {
    /// No relays yet. `permission`: the secret in the tickets of this host, to whose holders relays
    /// tell where it is.
    #[must_use]
    pub const fn new(permission: Secret<[u8; 16]>) -> Self {
        Self { permission, words: Vec::new() }
    }

    /// Registers this host at the relay of a relay word, and starts a check of the relay. Returns a
    /// warning if the relay cannot be used.
    pub fn stand(&mut self, endpoint: &mut Endpoint, now: Instant, word: Word) -> Option<UselessRelay> {
        let tried = endpoint.stand_at_for(now, &word, self.permission.expose());
        let (tried, trouble) = match tried {
            Ok(tried) => (tried, None),
            Err(trouble) => (Vec::new(), Some(trouble)),
        };
        let useless = trouble.map(|trouble| useless(&word, word.relays(), trouble));
        let told = useless.is_some();
        self.words.push(StandingWord { word, tried, failed: BTreeSet::new(), works: false, told });
        useless
    }

    /// Notes that the relay leads here, as `reachable` reports. Returns the relay as the ticket
    /// names it, under a relay word of that grant, preferably one that had not worked before.
    pub fn on_reachable(&mut self, reachable: &Reachable) -> Option<GreetedRelay> {
        let Reachable { relay, grant, address, consent, is_remembered } = *reachable;
        let fits = |it: &StandingWord| it.is_at(relay, grant);
        let fresh = self.words.iter().position(|it| fits(it) && !it.works);
        let place = fresh.or_else(|| self.words.iter().position(fits))?;
        let standing = self.words.get_mut(place)?;
        standing.works = true;
        let reach = (!is_remembered).then_some((address, consent));
        Some(GreetedRelay { word: standing.word.clone(), reach })
    }

    /// Notes trouble with one address of a relay. Returns a warning once no address is left that
    /// may work, or at once if the relay word itself is refused.
    pub fn on_trouble(
        &mut self,
        relay: SocketAddr,
        grant: u32,
        trouble: RelayTrouble,
    ) -> Option<UselessRelay> {
        let standing = self.words.iter_mut().find(|it| it.is_at(relay, grant) && !it.told)?;
        standing.failed.insert(relay);
        let is_of_word = matches!(trouble, RelayTrouble::Refused(reason) if reason.is_of_word());
        let is_over = !standing.works && standing.tried.iter().all(|tried| standing.failed.contains(tried));
        if !is_of_word && !is_over {
            return None;
        }
        standing.told = true;
        Some(useless(&standing.word, &standing.tried, trouble))
    }
}

impl StandingWord {
    fn is_at(&self, relay: SocketAddr, grant: u32) -> bool {
        self.word.grant().id == grant && self.word.relays().contains(&relay)
    }
}

/// Makes the warning about a relay, after all its addresses were tried.
fn useless(word: &Word, addresses: &[SocketAddr], trouble: RelayTrouble) -> UselessRelay {
    let shown: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let from = addresses.first().and_then(|relay| source_for(relay.ip()));
    let message = format!("relay {}: {}; nobody will come through it", shown.join(", "), why(trouble, from));
    UselessRelay { word: word.clone(), message }
}

/// Returns why a relay does not lead here. `from`: this host's address as the relay sees it without
/// a NAT.
fn why(trouble: RelayTrouble, from: Option<IpAddr>) -> String {
    let network = match (trouble, from) {
        (RelayTrouble::Refused(Reason::Destination), Some(from)) if is_private(from) => proposed(from),
        _ => return trouble.to_string(),
    };
    format!("it sends to no private address: start it with --allow-destination {network}")
}

/// A network of the usual size of one operator around an address.
fn proposed(address: IpAddr) -> Prefix {
    Prefix::of(address, if address.is_ipv4() { PROPOSED_PREFIX_BITS.0 } else { PROPOSED_PREFIX_BITS.1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::relay::{Consent, Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms};

    const V4: &str = "192.0.2.7:4748";
    const V6: &str = "[2001:db8::7]:4748";

    /// Makes a host that tries a relay at two addresses, under a relay word for each grant.
    fn standing(grants: &[u32]) -> StandingRelays {
        let relays = [V4, V6].map(|text| text.parse().unwrap());
        let terms = Terms {
            expiry: Minute::from_unix(1 << 31),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        let word = |id: &u32| StandingWord {
            word: RelayKey::new(&[7; 32]).issue(Grant { id: *id, terms }, relays.to_vec()).unwrap(),
            tried: relays.to_vec(),
            failed: BTreeSet::new(),
            works: false,
            told: false,
        };
        StandingRelays { permission: Secret::new([3; 16]), words: grants.iter().map(word).collect() }
    }

    fn reachable(relay: SocketAddr, grant: u32) -> Reachable {
        let consent = Consent { expiry: 1, tag: 2 };
        Reachable { relay, grant, address: V4.parse().unwrap(), consent, is_remembered: false }
    }

    #[test]
    fn a_ticket_names_an_address_only_where_the_relay_does_not_remember_it() {
        let mut relays = standing(&[1]);
        let mut reachable = reachable(V4.parse().unwrap(), 1);
        let reach = Some((reachable.address, reachable.consent));
        assert_eq!(relays.on_reachable(&reachable).unwrap().reach, reach);
        reachable.is_remembered = true;
        assert_eq!(relays.on_reachable(&reachable).unwrap().reach, None);
    }

    #[test]
    fn a_relay_of_which_one_address_works_is_in_no_trouble() {
        let [v4, v6] = [V4, V6].map(|text| text.parse().unwrap());
        let mut relays = standing(&[1]);
        assert_eq!(relays.on_trouble(v6, 1, RelayTrouble::Silent), None);
        assert!(relays.on_reachable(&reachable(v4, 1)).is_some());
        assert_eq!(relays.on_trouble(v4, 1, RelayTrouble::Silent), None, "it was silent for a while");
        let mut relays = standing(&[1]);
        assert_eq!(relays.on_trouble(v6, 1, RelayTrouble::Silent), None);
        let said = relays.on_trouble(v4, 1, RelayTrouble::Silent).unwrap().message;
        assert_eq!(said, format!("relay {V4}, {V6}: it does not answer; nobody will come through it"));
        assert_eq!(relays.on_trouble(v4, 1, RelayTrouble::Silent), None, "once");
    }

    #[test]
    fn a_word_that_is_refused_is_told_of_at_once_and_by_its_grant() {
        let v4 = V4.parse().unwrap();
        let mut relays = standing(&[1, 2]);
        let refused = RelayTrouble::Refused(Reason::Expired);
        let useless = relays.on_trouble(v4, 2, refused).unwrap();
        assert_eq!(useless.word.grant().id, 2);
        assert!(useless.message.contains("it refuses: the relay word has expired"), "{}", useless.message);
        assert_eq!(relays.on_reachable(&reachable(v4, 1)).unwrap().word.grant().id, 1);
        assert!(relays.on_trouble(v4, 1, refused).is_some(), "also one that has worked");
        assert_eq!(relays.on_reachable(&reachable(v4, 3)), None);
    }

    #[test]
    fn a_relay_that_sends_to_no_private_address_is_told_which_to_allow() {
        let refused = RelayTrouble::Refused(Reason::Destination);
        for (from, network) in [("192.168.1.10", "192.168.1.0/24"), ("fd00:1:2:3::4", "fd00:1:2:3::/64")] {
            let said = why(refused, Some(from.parse().unwrap()));
            assert_eq!(
                said,
                format!("it sends to no private address: start it with --allow-destination {network}")
            );
        }
        for from in [None, Some("192.0.2.1".parse().unwrap())] {
            assert_eq!(why(refused, from), "it refuses: the relay does not send to such addresses");
        }
        assert_eq!(why(RelayTrouble::Silent, None), "it does not answer");
    }
}
