//! Draws the troubles of a random world: lines change, middleboxes drop UDP, hosts restart, sleep
//! and move, relays and the registry crash. All of it is over at a known time.

use super::draw::{millis, one, rate, seconds};
use super::network::NetworkDraw;
use super::world_facts::TROUBLE_END_SECONDS;
use crate::setup::{
    Carrier, Change, Changed, EndChange, EndChoice, ExchangeOptions, PathChoice, Transfer, UdpFilter,
};
use byway_sim::Random;
use byway_wire::Duration;

/// A long sleep: an hour, or a day and a half.
const LONG_SLEEPS: [u64; 2] = [3_600, 129_600];

/// Troubles that a world has.
pub(super) struct Troubles<'a> {
    network: &'a NetworkDraw,
    transfers: &'a [Transfer],
    /// Whether other traffic than the transfers needs the direct line.
    is_needed: bool,
    changes: Vec<Change>,
}

impl<'a> Troubles<'a> {
    /// All changes of a world in order of time. `is_needed`: other traffic than the transfers needs
    /// the direct line.
    pub(super) fn draw(
        network: &'a NetworkDraw,
        transfers: &'a [Transfer],
        is_needed: bool,
        random: &mut Random,
    ) -> Vec<Change> {
        let mut draw = Self { network, transfers, is_needed, changes: Vec::new() };
        if random.chance(0.5) {
            draw.lines(random);
        }
        if random.chance(0.35) {
            draw.udp(random);
        }
        draw.relays(random);
        if random.chance(0.45) {
            for transfer in transfers {
                if let Carrier::Exchange(options) = &transfer.carrier {
                    draw.ends(transfer, options, random);
                }
            }
        }
        if transfers.iter().any(|transfer| transfer.paths.contains(&PathChoice::Registry))
            && random.chance(0.5)
        {
            let at = draw.at(random);
            draw.for_a_while(at, seconds(random, 1, 15), |up| Changed::Registry { up });
        }
        draw.changes.sort_by_key(|change| change.at);
        draw.changes
    }

    fn at(&self, random: &mut Random) -> Duration {
        seconds(random, 0, TROUBLE_END_SECONDS - 16)
    }

    fn push(&mut self, at: Duration, what: Changed) {
        self.changes.push(Change { at, what });
    }

    /// Something is down from a time on, and up again later.
    fn for_a_while(&mut self, at: Duration, time: Duration, what: impl Fn(bool) -> Changed) {
        self.push(at, what(false));
        self.push(at + time, what(true));
    }

    /// Lines become faster, slower, longer, lossy or dark, several times each.
    fn lines(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(4) {
            let (from, to) = self.network.line(random);
            let at = self.at(random);
            let both = random.chance(0.5);
            let mut directions = vec![(from.clone(), to.clone())];
            if both {
                directions.push((to, from));
            }
            let dark = random.chance(0.25).then(|| seconds(random, 0, 14));
            let new_rate = random.chance(0.4).then(|| rate(random));
            let delay = random.chance(0.6).then(|| millis(random, 1, 300));
            let loss = random.chance(0.2).then(|| random.unit() * 0.2);
            let mtu = random.chance(0.15).then(|| 1_300 + random.below(200) as usize);
            let is_change = new_rate.is_some() || delay.is_some() || mtu.is_some();
            if !is_change && dark.is_none() && loss.is_none() {
                continue;
            }
            for (from, to) in directions {
                let link = |up, loss| Changed::Link {
                    from: from.clone(),
                    to: to.clone(),
                    rate: new_rate,
                    delay,
                    loss,
                    up,
                    mtu,
                };
                self.push(at, link(dark.map(|_| false), loss));
                if dark.is_some() || loss.is_some() {
                    let after = dark.unwrap_or(Duration::from_secs(10));
                    self.push(at + after, link(dark.map(|_| true), loss.map(|_| 0.01)));
                }
            }
        }
        self.dead_line(random);
    }

    /// Cuts the direct line at a random time, if every transfer has another route.
    fn dead_line(&mut self, random: &mut Random) {
        let is_needless = |transfer: &Transfer| match &transfer.carrier {
            Carrier::Exchange(options) => options.ticket_names_relays && options.words_hold.is_none(),
            _ => false,
        };
        if !self.is_needed && self.transfers.iter().all(is_needless) && random.chance(0.5) {
            let at = self.at(random);
            for (from, to) in [("A", "B"), ("B", "A")] {
                let (from, to) = (from.to_owned(), to.to_owned());
                let what = Changed::Link {
                    from,
                    to,
                    rate: None,
                    delay: None,
                    loss: None,
                    up: Some(false),
                    mtu: None,
                };
                self.push(at, what);
            }
        }
    }

    /// Makes a middlebox drop UDP, all or in part, and let it pass again, several times.
    fn udp(&mut self, random: &mut Random) {
        let (from, to) = match random.below(3) {
            0 => ("S".to_owned(), "A".to_owned()),
            1 => ("B".to_owned(), "D".to_owned()),
            _ => self.network.line(random),
        };
        let filter = match random.below(5) {
            0 => UdpFilter { share: 0.3 + random.unit() * 0.7, above: 0 },
            1 => UdpFilter { share: 1.0, above: 600 + random.below(600) as usize },
            _ => UdpFilter { share: 1.0, above: 0 },
        };
        let both = random.chance(0.7);
        let mut at = if random.chance(0.3) { Duration::ZERO } else { self.at(random) };
        let end = Duration::from_secs(TROUBLE_END_SECONDS);
        for _ in 0..1 + random.below(3) {
            let until = (at + seconds(random, 1, 12)).min(end);
            let mut directions = vec![(from.clone(), to.clone())];
            if both {
                directions.push((to.clone(), from.clone()));
            }
            for (from, to) in directions {
                let udp = |filter| Changed::Udp { from: from.clone(), to: to.clone(), filter };
                self.push(at, udp(Some(filter)));
                self.push(until, udp(None));
            }
            at = until + seconds(random, 0, 12);
            if at >= end {
                break;
            }
        }
    }

    /// Relays that byway's sessions use crash, and start again with nothing in memory.
    fn relays(&mut self, random: &mut Random) {
        for relay in self.network.relays() {
            let used = self.transfers.iter().any(|transfer| {
                matches!(transfer.carrier, Carrier::Session(_) | Carrier::Exchange(_))
                    && transfer.paths.contains(&PathChoice::Through(relay.clone()))
            });
            if used && random.chance(0.25) {
                let node = relay.clone();
                for _ in 0..1 + random.below(2) {
                    let at = self.at(random);
                    let down = seconds(random, 0, 14);
                    self.for_a_while(at, down, |up| Changed::Relay { node: node.clone(), up });
                }
            }
        }
    }

    /// Random changes at the hosts of an exchange.
    fn ends(&mut self, transfer: &Transfer, options: &ExchangeOptions, random: &mut Random) {
        for _ in 0..1 + random.below(3) {
            let end = if random.chance(0.5) { EndChoice::Sender } else { EndChoice::Receiver };
            let what = |what| Changed::End { transfer: transfer.name.clone(), end, what };
            let at = self.at(random);
            match random.below(8) {
                0 => self.push(at, what(EndChange::Restart)),
                1 => {
                    // Down for a while before it starts again.
                    self.push(at, what(EndChange::Freeze(true)));
                    self.push(at + seconds(random, 0, 14), what(EndChange::Restart));
                }
                2 => {
                    let sleep = match one(random, &LONG_SLEEPS).filter(|_| random.chance(0.06)) {
                        Some(long) => Duration::from_secs(*long),
                        None => seconds(random, 0, 15),
                    };
                    self.for_a_while(at, sleep, |up| what(EndChange::Freeze(!up)));
                }
                3 => {
                    let number = random.below(1 + options.uplinks.len() as u64) as u16;
                    let number = if end == EndChoice::Sender { number } else { 0 };
                    for flap in 0..1 + random.below(3) as u32 {
                        let at = at + Duration::from_secs(4) * flap;
                        let down = millis(random, 10, 3_900);
                        self.for_a_while(at, down, |up| what(EndChange::Socket { number, up }));
                    }
                }
                4 => self.for_a_while(at, seconds(random, 0, 15), |up| what(EndChange::Reads(up))),
                5 => self.push(at, what(EndChange::Reset)),
                number => {
                    let what = Changed::End {
                        transfer: transfer.name.clone(),
                        end: EndChoice::Sender,
                        what: if number == 6 { EndChange::Rebind } else { EndChange::Move },
                    };
                    self.push(at, what);
                }
            }
        }
    }
}
