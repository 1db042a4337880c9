//! For each relay word (permission to use the relay), a relay remembers what it verified of the
//! last packet: cookie and consent. This must not change what the relay does. A relay just started
//! with the same keys would treat each packet the same way.

use crate::common::*;
use byway_relay::{Config, Dropped};
use byway_wire::relay::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Clone, Debug)]
enum Step {
    /// A packet on this way, or on the last one, with papers that were made when the way was first
    /// used.
    Forward {
        way: Option<Path>,
        papers: Papers,
        flip: Option<prop::sample::Index>,
    },
    /// The answer to the last delivered packet, maybe by another host, to another, with another
    /// tag.
    Back {
        by: Option<u8>,
        to: Option<u8>,
        tag: Tag,
    },
    Pass(u64),
    Roll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    word: u8,
    from: u8,
    to: u8,
}

#[derive(Clone, Copy, Debug)]
enum Papers {
    Good,
    NoCookie,
    CookieOf(u8),
    ConsentOf(u8),
    FreshConsent,
    Fresh,
}

#[derive(Clone, Copy, Debug)]
enum Tag {
    Given,
    Zero,
    Longer,
}

fn host(number: u8) -> SocketAddr {
    [at("8.8.8.8:1"), at("9.9.9.9:2"), at("[2a00::1]:3")][usize::from(number % 3)]
}

fn any_step() -> impl Strategy<Value = Step> {
    let way = (0u8..4, 0u8..3, 0u8..3).prop_map(|(word, from, to)| Path { word, from, to });
    let papers = prop_oneof![
        6 => Just(Papers::Good),
        1 => Just(Papers::NoCookie),
        1 => (0u8..3).prop_map(Papers::CookieOf),
        1 => (0u8..3).prop_map(Papers::ConsentOf),
        2 => Just(Papers::FreshConsent),
        1 => Just(Papers::Fresh),
    ];
    let flip = prop::option::weighted(0.1, any::<prop::sample::Index>());
    let other = || prop::option::weighted(0.2, 0u8..3);
    let tag = prop_oneof![4 => Just(Tag::Given), 1 => Just(Tag::Zero), 1 => Just(Tag::Longer)];
    let times = vec![1, 400, 1_000, 8_000, 59_000, 3_600_000, 43_200_000, 86_400_000, 172_800_000];
    prop_oneof![
        8 => (prop::option::weighted(0.3, way), papers, flip).prop_map(|(way, papers, flip)| Step::Forward { way, papers, flip }),
        4 => (other(), other(), tag).prop_map(|(by, to, tag)| Step::Back { by, to, tag }),
        2 => prop::sample::select(times).prop_map(Step::Pass),
        1 => Just(Step::Roll),
    ]
}

struct Keys {
    now: [u8; 32],
    before: Option<[u8; 32]>,
}

/// A relay that was started now.
fn started(world: &World, keys: &Keys) -> World {
    let unix_millis = UNIX * 1000 + world.now.as_nanos() / 1_000_000;
    World::new(&Config { key: keys.now, previous_key: keys.before, unix_millis, ..config() })
}

fn words(world: &World) -> Vec<Word> {
    let short = Terms { expiry: Minute::from_unix(UNIX + 60), ..terms() };
    let silent = Terms { scope: Scope::V4.and(Scope::V6), ..terms() };
    let plain = world.word(1, terms());
    vec![plain.clone(), narrowed(&plain, 1, |_| {}), world.word(2, short), world.word(3, silent)]
}

/// The clock of the hops: the relay's, which begins with the machine's.
fn clock() -> RelayClock {
    RelayClock::new(UNIX * 1000, byway_wire::Instant::ZERO)
}

proptest! {
    #[test]
    fn what_is_remembered_never_shows(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut world = World::new(&config());
        let mut keys = Keys { now: KEY, before: None };
        let words = words(&world);
        let mut papers: BTreeMap<Path, (Consent, u64)> = BTreeMap::new();
        let mut last: Option<(u8, Path, Delivered)> = None;
        let mut latest = Path { word: 0, from: 0, to: 1 };
        for step in steps {
            match step {
                Step::Pass(millis) => world.pass(millis),
                Step::Roll => {
                    let mut next = keys.now;
                    next[0] = next[0].wrapping_add(1);
                    world.relay.roll(&next);
                    keys = Keys { now: next, before: Some(keys.now) };
                }
                Step::Forward { way, papers: which, flip } => {
                    let way = way.unwrap_or(latest);
                    latest = way;
                    let unix = UNIX + world.now.as_nanos() / 1_000_000_000;
                    let (key, word) = (RelayKey::new(&keys.now), &words[usize::from(way.word)]);
                    let id = word.grant().id;
                    let consent_of = |to| key.consent(id, host(to), unix + CONSENT_LIFE);
                    let cookie_of = |from| key.cookie(id, host(from), unix);
                    let fresh = (consent_of(way.to), cookie_of(way.from));
                    let kept = papers.entry(way).or_insert(fresh);
                    let (consent, cookie) = match which {
                        Papers::Good => *kept,
                        Papers::NoCookie => (kept.0, 0),
                        Papers::CookieOf(other) => (kept.0, cookie_of(other)),
                        Papers::ConsentOf(other) => (consent_of(other), kept.1),
                        Papers::FreshConsent => (fresh.0, kept.1),
                        Papers::Fresh => { *kept = fresh; fresh }
                    };
                    let mut hop = Hop::new(word, relay_v4(), host(way.to), consent, clock());
                    hop.set_cookie(cookie);
                    let mut packet = seal(&hop, world.now, b"inner");
                    if let Some(bit) = flip {
                        let bit = bit.index(packet.len() * 8);
                        packet[bit / 8] ^= 1 << (bit % 8);
                    }
                    let expected = started(&world, &keys).put(host(way.from), &packet);
                    let sent = world.put(host(way.from), &packet);
                    // Of the notices, only how many leave depends on what was before.
                    let delivered = |sent: &Sent| sent.iter().filter_map(|(to, bytes)| Delivered::read(bytes).ok().map(|header| (*to, header))).collect::<Vec<_>>();
                    prop_assert_eq!(delivered(&sent), delivered(&expected));
                    if let Some((_, header)) = delivered(&sent).first() {
                        last = Some((way.word, way, *header));
                    }
                }
                Step::Back { by, to, tag } => {
                    let Some((word, way, mut header)) = last else { continue };
                    match tag {
                        Tag::Given => {}
                        Tag::Zero => (header.tag.tag, header.tag.expiry) = (0, 0),
                        Tag::Longer => header.tag.expiry = header.tag.expiry.wrapping_add(1),
                    }
                    header.from = to.map_or(header.from, host);
                    let by = host(by.unwrap_or(way.to));
                    let hop = ReturnHop::new(relay_v4(), &header);
                    let mut packet = vec![0; hop.room() + 5];
                    prop_assert!(hop.seal(&mut packet));
                    // The account exists there too, by a packet of somebody else that nobody may
                    // answer.
                    let mut other = started(&world, &keys);
                    let unix = UNIX + world.now.as_nanos() / 1_000_000_000;
                    let stranger = at("7.7.7.7:7");
                    // Under the key that the word was made under, if it still holds.
                    for key in [Some(keys.now), keys.before].into_iter().flatten().map(|key| RelayKey::new(&key)) {
                        let consent = key.consent(header.tag.grant, stranger, unix + 60);
                        let prime = Hop::new(&words[usize::from(word)], relay_v4(), stranger, consent, clock());
                        other.put(stranger, &seal(&prime, world.now, b"x"));
                    }
                    let known = other.relay.accounts() > 0;
                    let expected = other.put(by, &packet);
                    let sent = world.put(by, &packet);
                    // A word that rolled out of memory has an account here until it expires, and
                    // none there.
                    if known {
                        prop_assert_eq!(sent, expected);
                    }
                }
            }
        }
    }
}

/// What the property above is about, told once: warm, then everything that may not be taken from
/// memory.
#[test]
fn a_warm_account_refuses_what_a_cold_one_refuses() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let mut hop = world.hop(&word, sender(), receiver());
    let warm = |world: &mut World, hop: &Hop| {
        let sent = world.put(sender(), &seal(hop, world.now, b"x"));
        Delivered::read(&sent[0].1).unwrap()
    };
    let header = warm(&mut world, &hop);
    assert_eq!(warm(&mut world, &hop), header);
    let answer = |world: &mut World, tag: ReturnTag| {
        let hop = ReturnHop::new(relay_v4(), &Delivered { tag, ..header });
        let mut packet = vec![0; hop.room() + 1];
        assert!(hop.seal(&mut packet));
        world.put(receiver(), &packet).len()
    };
    assert_eq!(answer(&mut world, header.tag), 1);
    // The same sender without its cookie, then the tag of nobody.
    let cookie = world.greet(sender(), 1).unwrap().cookie;
    hop.set_cookie(0);
    assert_eq!(warm(&mut world, &hop).tag.tag, 0);
    assert_eq!(answer(&mut world, ReturnTag { expiry: 0, tag: 0, ..header.tag }), 0);
    assert_eq!(world.relay.counters().dropped(Dropped::BadReturn), 1);
    hop.set_cookie(cookie);
    warm(&mut world, &hop);
    // After two rolls, word, consent, cookie and return tag are worthless, in the very second in
    // which they were good.
    world.relay.roll(&[1; 32]);
    warm(&mut world, &hop);
    world.relay.roll(&[2; 32]);
    let refused = world.put(sender(), &seal(&hop, world.now, b"x"));
    assert_eq!(Notice::read(&refused[0].1).unwrap().reason, Reason::UnknownWord);
    assert_eq!(answer(&mut world, header.tag), 0);
}
