//! A relay among hosts that send it what they like. Nothing leaves it that is larger than what came
//! in, or that goes to who neither sent it nor asked for it; and it delivers just what a relay
//! delivers that was started this moment with its keys.
#![no_main]

use byway_relay::{Config, Relay};
use byway_wire::relay::{
    Caveat, Delivered, GREET_LEN, Grant, Greet, Greeted, Hop, LETTER_MAX, LocationAction, LocationKey,
    MAILBOX_LEN, MailboxKey, Minted, Minute, QuotaClass, RateClass, RelayClock, RelayKey, ReturnHop, Scope,
    Terms, Word,
};
use byway_wire::{
    Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, TransmitBuffer, Writer,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;

const UNIX: u64 = 1_800_057_600;
const RANGE: u8 = 5;

#[derive(Arbitrary, Debug)]
enum Step {
    Forward {
        word: u8,
        from: u8,
        to: u8,
        papers: Papers,
        size: u8,
        flip: Option<u16>,
    },
    /// The answer to the last delivered packet.
    Back {
        by: Option<u8>,
        to: Option<u8>,
        tag: u64,
        expiry: u16,
    },
    Greet {
        from: u8,
        grant: u8,
        cut: u8,
    },
    /// A receiver says where it is, or somebody asks.
    Locate {
        word: u8,
        from: u8,
        /// Whose cookie the request has.
        cookie: u8,
        receiver: u8,
        looks_up: bool,
        sequence: u32,
        flip: Option<u16>,
    },
    /// A host asks for a mailbox, under a word or as a stranger.
    Visit {
        word: Option<u8>,
        from: u8,
        cookie: u8,
        seat: u8,
        number: u8,
        page: bool,
        letter: u16,
        flip: Option<u16>,
    },
    Garbage {
        from: u8,
        kind: u8,
        bytes: Vec<u8>,
    },
    Again {
        from: u8,
    },
    Millis(u16),
    Hours(u8),
    Roll(u8),
    Link {
        local: u8,
        up: bool,
    },
    Epoch {
        epoch: u8,
        holds: u16,
    },
    Close,
}

#[derive(Arbitrary, Debug)]
enum Papers {
    /// Those of the last packet.
    Kept,
    Fresh,
    NoCookie,
    Other {
        consent: u8,
        cookie: u8,
    },
    Invented {
        tag: u64,
        expiry: u16,
        cookie: u64,
    },
}

fn host(number: u8) -> SocketAddr {
    let all = ["8.8.8.8:1", "9.9.9.9:2", "[2a00::1]:3", "127.0.0.1:4", "9.9.9.9:5"];
    all[usize::from(number) % all.len()].parse().expect("an address")
}

fn at(local: u16) -> SocketAddr {
    ["1.2.3.4:4748", "[2a00::4]:4748"][usize::from(local)].parse().expect("an address")
}

struct World {
    relay: Relay,
    now: Instant,
}

impl World {
    fn new(key: [u8; 32], previous_key: Option<[u8; 32]>, unix_millis: u64, links: [bool; 2]) -> Self {
        let mut config = Config {
            previous_key,
            accounts: 8,
            receivers: 3,
            queue_bytes: 4_096,
            ..Config::new(key, unix_millis)
        };
        config.queue_datagrams = 8;
        let mut relay = Relay::new(&config, Instant::ZERO);
        for local in 0..2 {
            let up = links[usize::from(local)];
            relay.handle(
                Instant::ZERO,
                Input::Link(LinkChange { local: Local(local), address: at(local), up }),
            );
        }
        Self { relay, now: Instant::ZERO }
    }

    fn put(&mut self, remote: SocketAddr, packet: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut payload = packet.to_vec();
        let (local, ecn, arrival) = (Local(u16::from(remote.is_ipv6())), Ecn::Ect0, self.now);
        let datagram = Datagram { local, remote, ecn, arrival, payload: &mut payload, phantom: 0 };
        self.relay.handle(self.now, Input::Datagram(datagram));
        let (mut buffer, mut sent) = (vec![0; 4_096], Vec::new());
        while let Some(transmit) =
            self.relay.transmit(self.now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 4 })
        {
            sent.extend(
                buffer[..transmit.size].chunks(transmit.segment).map(|one| (transmit.remote, one.to_vec())),
            );
        }
        assert!(sent.len() <= 1 && sent.iter().all(|(_, bytes)| bytes.len() <= packet.len()), "{sent:?}");
        assert!(self.relay.accounts() <= 8 && self.relay.remembered_receivers() <= 3);
        assert!(self.relay.deadline().is_none());
        sent
    }
}

fn delivered(sent: &[(SocketAddr, Vec<u8>)]) -> Option<(SocketAddr, Delivered)> {
    sent.iter().find_map(|(to, bytes)| Some((*to, Delivered::read(bytes).ok()?)))
}

fn words(relay: &Relay) -> Vec<Word> {
    let terms = Terms {
        expiry: Minute::from_unix(UNIX + 40 * 86_400),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        scope: Scope::ALL,
    };
    let issue = |id, terms| relay.issue(Grant { id, terms }, vec![at(0)]).expect("a word");
    let plain = issue(1, terms);
    let narrow = plain.narrow(Caveat { branch: 1, terms }).expect("no wider");
    let short = issue(2, Terms { expiry: Minute::from_unix(UNIX + 3_600), ..terms });
    let silent = issue(3, Terms { scope: Scope::V4, ..terms });
    let mint = |epoch| {
        let grant = Grant { id: Minted::new(RANGE, epoch, 1).expect("small").id(), terms };
        let secret = relay.range_key(RANGE).epoch_key(epoch).secret(&grant);
        Word::new(vec![at(0)], grant, secret).expect("a word")
    };
    vec![plain, narrow, short, silent, mint(1), mint(2), mint(3)]
}

fuzz_target!(|steps: Vec<Step>| {
    let (mut key, mut before, mut links) = ([5; 32], None, [true; 2]);
    let mut world = World::new(key, before, UNIX * 1_000, links);
    let words = words(&world.relay);
    let mut asked: Vec<SocketAddr> = Vec::new();
    let mut papers = (byway_wire::relay::Consent { expiry: 0, tag: 0 }, 0);
    let (mut last, mut answerable): (Vec<u8>, Option<(u8, Delivered)>) = (vec![0x60], None);
    for step in steps.iter().take(200) {
        let millis = UNIX * 1_000 + world.now.as_nanos() / 1_000_000;
        let unix = millis / 1_000;
        let (from, packet, compare) = match step {
            Step::Forward { word, from, to, papers: which, size, flip } => {
                let word = &words[usize::from(*word) % words.len()];
                let (relay, id) = (RelayKey::new(&key), word.grant().id);
                let consent = |to| relay.consent(id, host(to), unix + 86_400);
                let cookie = |from| relay.cookie(id, host(from), unix);
                papers = match which {
                    Papers::Kept => papers,
                    Papers::Fresh => (consent(*to), cookie(*from)),
                    Papers::NoCookie => (papers.0, 0),
                    Papers::Other { consent: a, cookie: b } => (consent(*a), cookie(*b)),
                    Papers::Invented { tag, expiry, cookie } => {
                        (byway_wire::relay::Consent { tag: *tag, expiry: *expiry }, *cookie)
                    }
                };
                // Whoever consents here greeted the relay.
                asked.extend([host(*to), host(*from)]);
                let clock = RelayClock::new(UNIX * 1_000, Instant::ZERO);
                let mut hop = Hop::new(word, at(0), host(*to), papers.0, clock);
                hop.set_cookie(papers.1);
                let mut packet = vec![0; hop.room() + 1 + usize::from(*size)];
                assert!(hop.seal(world.now, &mut packet));
                if let Some(bit) = flip {
                    let bit = usize::from(*bit) % (packet.len() * 8);
                    packet[bit / 8] ^= 1 << (bit % 8);
                }
                (host(*from), packet, true)
            }
            Step::Back { by, to, tag, expiry } => {
                let Some((by_then, mut header)) = answerable else { continue };
                header.from = to.map_or(header.from, host);
                header.tag.tag ^= tag;
                header.tag.expiry ^= expiry;
                let hop = ReturnHop::new(at(0), &header);
                let mut packet = vec![0; hop.room() + 9];
                assert!(hop.seal(&mut packet));
                (host(by.unwrap_or(by_then)), packet, false)
            }
            Step::Greet { from, grant, cut } => {
                let mut packet = [0; GREET_LEN];
                Greet { nonce: [1; 8], grant: (*grant).into() }.write(&mut Writer::new(&mut packet));
                let length = GREET_LEN - usize::from(*cut) % (GREET_LEN + 1);
                (host(*from), packet[..length].to_vec(), false)
            }
            Step::Locate { word, from, cookie, receiver, looks_up, sequence, flip } => {
                let word = &words[usize::from(*word) % words.len()];
                let action = if *looks_up { LocationAction::LookUp } else { LocationAction::Register };
                let cookie = RelayKey::new(&key).cookie(word.grant().id, host(*cookie), unix);
                let mut packet = [0; GREET_LEN];
                LocationKey::new(word, &[receiver % 4; 16]).write(
                    &mut packet,
                    [1; 8],
                    action,
                    cookie,
                    (*sequence).into(),
                );
                if let Some(bit) = flip {
                    let bit = usize::from(*bit) % (packet.len() * 8);
                    packet[bit / 8] ^= 1 << (bit % 8);
                }
                (host(*from), packet.to_vec(), false)
            }
            Step::Visit { word, from, cookie, seat, number, page, letter, flip } => {
                let word = word.map(|word| &words[usize::from(word) % words.len()]);
                let grant = word.map_or(0, |word| word.grant().id);
                let cookie = RelayKey::new(&key).cookie(grant, host(*cookie), unix);
                let (mut packet, place) = ([0; MAILBOX_LEN], (*number % 8, u8::from(*page)));
                let number = Some(u16::from(place.0)).filter(|number| *number != 0);
                MailboxKey::new(word, [seat % 8; 8]).write(
                    &mut packet,
                    [1; 8],
                    (number, place.1),
                    &[*seat; LETTER_MAX][..usize::from(*letter) % (LETTER_MAX + 1)],
                    cookie,
                );
                if let Some(bit) = flip {
                    let bit = usize::from(*bit) % (packet.len() * 8);
                    packet[bit / 8] ^= 1 << (bit % 8);
                }
                (host(*from), packet.to_vec(), false)
            }
            Step::Garbage { from, kind, bytes } => {
                let first = 0x60 | (kind & 0x0f);
                (host(*from), [&[first], bytes.as_slice()].concat(), true)
            }
            Step::Again { from } => (host(*from), last.clone(), true),
            Step::Millis(millis) => {
                world.now = Instant::from_nanos(world.now.as_nanos() + u64::from(*millis) * 1_000_000);
                continue;
            }
            Step::Hours(hours) => {
                world.now = Instant::from_nanos(world.now.as_nanos() + u64::from(*hours) * 3_600_000_000_000);
                continue;
            }
            Step::Roll(byte) => {
                // A key that was there before would know its words again; real keys are never used
                // twice.
                let mut next = [*byte; 32];
                next[1..9].copy_from_slice(&world.relay.counters().received_packets.to_be_bytes());
                world.relay.roll(&next);
                (before, key) = (Some(key), next);
                continue;
            }
            Step::Epoch { epoch, holds } => {
                let holds = Duration::from_secs((*holds).into());
                world.relay.set_epoch(world.now, RANGE, u32::from(epoch % 4), holds);
                continue;
            }
            Step::Close => {
                world.relay.close_range(RANGE);
                continue;
            }
            Step::Link { local, up } => {
                let local = u16::from(local % 2);
                links[usize::from(local)] = *up;
                let change = LinkChange { local: Local(local), address: at(local), up: *up };
                world.relay.handle(world.now, Input::Link(change));
                continue;
            }
        };
        let sent = world.put(from, &packet);
        for (to, bytes) in &sent {
            // Where only an IPv6 socket is up, IPv4 hosts stand in mapped form.
            let to = byway_wire::relay::canonical(*to);
            assert!(to == from || asked.contains(&to), "{to} never asked");
            if Greeted::read(bytes).is_ok() {
                assert_eq!(to, from);
            }
        }
        if compare {
            let mut fresh = World::new(key, before, millis, links);
            if let Some((epoch, holds)) = world.relay.epoch(world.now, RANGE) {
                assert!(fresh.relay.set_epoch(fresh.now, RANGE, epoch, holds));
            }
            assert_eq!(delivered(&sent), delivered(&fresh.put(from, &packet)));
        }
        if let Some((to, header)) = delivered(&sent) {
            let number = (0..5).find(|number| host(*number) == byway_wire::relay::canonical(to));
            answerable = number.map(|number| (number, header));
        }
        last = packet;
    }
});
