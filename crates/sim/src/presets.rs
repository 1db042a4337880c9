//! Named links such as `dsl`, of the right order of magnitude, but not measured. Rates are as
//! advertised. Delays are one-way to a server in the same region. Queues are generous, as in cheap
//! routers.
//!
//! | name | down / up (Mbit/s) | one-way delay | queue down / up | besides |
//! |---|---|---|---|---|
//! | `lan` | 1000 / 1000 | 0.1 ms | 2 ms | |
//! | `fibre` | 300 / 100 | 4 ms | 40 ms | |
//! | `cable` | 200 / 20 | 9 ms | 100 / 250 ms | jitter 2 ms |
//! | `dsl` | 50 / 10 | 12 ms | 100 / 300 ms | |
//! | `wifi` | 60 / 40 | 3 ms | 80 ms | jitter 5 ms, loss 0.1 % |
//! | `lte` | 40 / 12 | 25 ms | 300 ms | jitter 8 ms |
//! | `lte_train` | 2 to 40 / 0.5 to 10, every 30 s | 35 ms | 600 ms | jitter 15 ms, loss 0.5 %, 3 s dark per 2 min |
//! | `leo_satellite` | 120 / 15 | 22 ms | 150 ms | jitter 6 ms, loss 0.5 % |
//! | `geo_satellite` | 40 / 5 | 300 ms | 500 ms | loss 0.1 % |
//! | `transatlantic` | 1000 / 1000 | 40 ms | 50 ms | loss 0.001 % |

use crate::pipe::{PipeConfig, RateStep};
use byway_wire::{Duration, Instant};

/// A link in both directions, from the customer's view.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplex {
    /// The direction from the customer to the network.
    pub up: PipeConfig,
    /// The direction from the network to the customer.
    pub down: PipeConfig,
}

/// The names that [`by_name`] knows, in the order of the table.
pub const PRESET_NAMES: [&str; 10] = [
    "lan",
    "fibre",
    "cable",
    "dsl",
    "wifi",
    "lte",
    "lte_train",
    "leo_satellite",
    "geo_satellite",
    "transatlantic",
];

/// The link with this name. `None`: there is none.
#[must_use]
pub fn by_name(name: &str) -> Option<Duplex> {
    Some(match name {
        "lan" => lan(),
        "fibre" => fibre(),
        "cable" => cable(),
        "dsl" => dsl(),
        "wifi" => wifi(),
        "lte" => lte(),
        "lte_train" => lte_train(),
        "leo_satellite" => leo_satellite(),
        "geo_satellite" => geo_satellite(),
        "transatlantic" => transatlantic(),
        _ => return None,
    })
}

/// A switched Gigabit Ethernet.
#[must_use]
pub fn lan() -> Duplex {
    duplex([1_000_000, 1_000_000], us(100), [ms(2), ms(2)])
}

/// Fibre to the home.
#[must_use]
pub fn fibre() -> Duplex {
    duplex([300_000, 100_000], ms(4), [ms(40), ms(40)])
}

/// A cable modem: a slow uplink behind a large buffer.
#[must_use]
pub fn cable() -> Duplex {
    duplex([200_000, 20_000], ms(9), [ms(100), ms(250)]).each(|pipe| pipe.jitter(ms(2)))
}

/// VDSL on a long copper pair.
#[must_use]
pub fn dsl() -> Duplex {
    duplex([50_000, 10_000], ms(12), [ms(100), ms(300)])
}

/// A wireless LAN with neighbours.
#[must_use]
pub fn wifi() -> Duplex {
    duplex([60_000, 40_000], ms(3), [ms(80), ms(80)]).each(|pipe| pipe.jitter(ms(5)).loss(0.001))
}

/// A phone that sits still.
#[must_use]
pub fn lte() -> Duplex {
    duplex([40_000, 12_000], ms(25), [ms(300), ms(300)]).each(|pipe| pipe.jitter(ms(8)))
}

/// A phone in a train. The rate depends on the nearest mast: it falls to 5 % and rises again every
/// 30 seconds. Every two minutes of the first hour, a tunnel cuts the link for 3 seconds.
#[must_use]
pub fn lte_train() -> Duplex {
    let shape = [(0, 100), (6, 60), (10, 20), (13, 5), (16, 15), (20, 50), (25, 80)];
    let mut both =
        duplex([40_000, 10_000], ms(35), [ms(600), ms(600)]).each(|pipe| pipe.jitter(ms(15)).loss(0.005));
    for pipe in [&mut both.up, &mut both.down] {
        let full = pipe.rate.unwrap_or(0);
        pipe.rate_period = Some(Duration::from_secs(30));
        pipe.rate_steps = shape
            .map(|(second, percent)| RateStep { at: Duration::from_secs(second), rate: full * percent / 100 })
            .to_vec();
        pipe.partitions = (0..30)
            .map(|tunnel| {
                let from = Instant::from_millis(tunnel * 120_000 + 73_000);
                (from, from + Duration::from_secs(3))
            })
            .collect();
    }
    both
}

/// A constellation in low orbit.
#[must_use]
pub fn leo_satellite() -> Duplex {
    duplex([120_000, 15_000], ms(22), [ms(150), ms(150)]).each(|pipe| pipe.jitter(ms(6)).loss(0.005))
}

/// A satellite in geostationary orbit: 36 000 km up and down again.
#[must_use]
pub fn geo_satellite() -> Duplex {
    duplex([40_000, 5_000], ms(300), [ms(500), ms(500)]).each(|pipe| pipe.loss(0.001))
}

/// A well-kept path between data centres on two sides of an ocean.
#[must_use]
pub fn transatlantic() -> Duplex {
    duplex([1_000_000, 1_000_000], ms(40), [ms(50), ms(50)]).each(|pipe| pipe.loss(0.000_01))
}

impl Duplex {
    fn each(self, change: impl Fn(PipeConfig) -> PipeConfig) -> Self {
        Self { up: change(self.up), down: change(self.down) }
    }
}

/// A link with rates in kbit/s and queues, each as down and up. Every preset has an MTU of 1500
/// bytes.
fn duplex(rates: [u64; 2], delay: Duration, queues: [Duration; 2]) -> Duplex {
    let [down, up] = [(rates[0], queues[0]), (rates[1], queues[1])]
        .map(|(rate, queue)| PipeConfig::new(rate * 1_000, delay).queue_time(queue).mtu(1_500));
    Duplex { up, down }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_link_with_room_for_a_packet() {
        for name in PRESET_NAMES {
            let both = by_name(name).unwrap();
            for pipe in [both.up, both.down] {
                assert!(pipe.rate.is_some() && pipe.queue_bytes > 10 * 1_500, "{name}: {pipe:?}");
            }
        }
        assert_eq!(by_name("carrier pigeon"), None);
    }
}
