//! Worlds of a known size, to see how fast the simulator is. Whoever has a clock runs them.

use crate::plan::{Mode, Overrides, Plan};
use crate::world::{self, RunError};
use core::sync::atomic::AtomicBool;

/// A world to be timed.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Its name.
    pub id: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its plan, for so many simulated seconds.
    plan: fn(u32) -> String,
    /// How long it runs, in simulated seconds.
    duration: u32,
    /// Two shorter runs: what the longer takes more is what packets cost, without the world being built.
    brief: [u32; 2],
    /// Packets that end at the far side of links from this node count.
    bottleneck: &'static str,
}

/// What one run of a bench moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Packets of 1500 bytes over the bottlenecks.
    pub packets: u64,
    /// Packets over all links, ACKs included.
    pub hops: u64,
    /// Goodput of all transfers together, Mbit/s.
    pub goodput: f64,
    /// Hash of all that happened.
    pub trace: u64,
}

/// Two TCP flows, or a hundred, over one bottleneck (readings of the papers, section 5).
fn dumbbell(flows: u32, rate: &str, queue: u32, duration: u32, cut: u32) -> String {
    format!(
        "title = \"{flows} NewReno over one bottleneck\"\nduration = \"{duration} s\"\ncut = \"{cut} s\"\nsample = \"1 s\"\nseeds = 1\n\
         [[link]]\nbetween = [\"S\", \"A\"]\nrate = \"10 Gbit/s\"\ndelay = \"1 ms\"\nqueue = \"10000 packets\"\n\
         [[link]]\nbetween = [\"A\", \"B\"]\nrate = \"{rate}\"\ndelay = \"8 ms\"\nqueue = \"{queue} packets\"\n\
         [[link]]\nbetween = [\"B\", \"D\"]\nrate = \"10 Gbit/s\"\ndelay = \"1 ms\"\nqueue = \"10000 packets\"\n\
         [[transfer]]\nname = \"tcp\"\nfrom = \"S\"\nto = \"D\"\ncarrier = \"tcp\"\ncongestion = \"newreno\"\ncount = {flows}\n\
         start_jitter = \"100 ms\"\n"
    )
}

/// A session over the direct path and `relays` more, under the class that is made for many: it keeps as many active as
/// carry something.
fn session(relays: u32, duration: u32) -> String {
    let mut plan = format!(
        "title = \"A session over {relays} relays\"\nduration = \"{duration} s\"\nsample = \"1 s\"\nseeds = 1\nmemory = \"8 GB\"\n\
         [[link]]\nbetween = [\"S\", \"D\"]\nrate = \"25 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"50 packets\"\n"
    );
    let mut ways = String::from("\"direct\"");
    for relay in 0..relays {
        plan += &format!(
            "[[link]]\nbetween = [\"S\", \"R{relay}\"]\nrate = \"25 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n\
             [[link]]\nbetween = [\"R{relay}\", \"D\"]\ndelay = \"5 ms\"\n"
        );
        ways += &format!(", \"R{relay}\"");
    }
    plan + &format!(
        "[[transfer]]\nname = \"bulk\"\nfrom = \"S\"\nto = \"D\"\ncongestion = \"mpath\"\npaths = [{ways}]\n"
    )
}

/// Every bench.
#[must_use]
pub fn all() -> Vec<Bench> {
    vec![
        Bench {
            id: "D2",
            about: "2 NewReno, 10 Mbit/s, 20 ms, 50 packets",
            plan: |duration| dumbbell(2, "10 Mbit/s", 50, duration, 10),
            duration: 2_000,
            brief: [20, 60],
            bottleneck: "A",
        },
        Bench {
            id: "D100",
            about: "100 NewReno, 1 Gbit/s, 20 ms, 1667 packets",
            plan: |duration| dumbbell(100, "1 Gbit/s", 1_667, duration, 2),
            duration: 10,
            brief: [3, 4],
            bottleneck: "A",
        },
        Bench {
            id: "session-4",
            about: "a session (null cipher, lengths only, class normal) over 4 relays",
            plan: |duration| session(4, duration),
            duration: 40,
            brief: [10, 14],
            bottleneck: "S",
        },
        Bench {
            id: "session-450",
            about: "the same over 450 relays",
            plan: |duration| session(450, duration),
            duration: 40,
            brief: [20, 23],
            bottleneck: "S",
        },
    ]
}

impl Bench {
    /// Simulated seconds of the two runs by which instructions are counted.
    #[must_use]
    pub const fn brief(&self) -> [u32; 2] {
        self.brief
    }

    /// Runs it once.
    ///
    /// # Errors
    /// If its world cannot be built.
    pub fn run(&self) -> Result<Moved, RunError> {
        self.run_for(self.duration)
    }

    /// Runs it once, for so many simulated seconds.
    ///
    /// # Errors
    /// If its world cannot be built.
    pub fn run_for(&self, seconds: u32) -> Result<Moved, RunError> {
        let plan = Plan::read(self.id, &(self.plan)(seconds), Mode::All, &Overrides::default());
        debug_assert!(plan.is_ok(), "the plan of {}: {:?}", self.id, plan.as_ref().err());
        let Ok(Some(plan)) = plan else { return Err(RunError::Cancelled) };
        let Some(setup) = plan.variants.first() else { return Err(RunError::Cancelled) };
        let record = world::run(setup, 1, &AtomicBool::new(false))?;
        let over = record.links.iter().filter(|link| link.from == self.bottleneck && link.rate > 0);
        let bytes: u64 = over.filter_map(|link| link.sent.last()).sum();
        let first = libm::ceil(record.cut / record.sample) as usize;
        let received = record.transfers.iter().map(|transfer| {
            let at = |index: usize| transfer.received.get(index).copied().unwrap_or_default();
            at(transfer.received.len().saturating_sub(1)) - at(first)
        });
        Ok(Moved {
            packets: bytes / 1_500,
            hops: record.packets,
            goodput: received.sum::<u64>() as f64 * 8.0 / (record.duration - record.cut) / 1e6,
            trace: record.trace,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bench_has_a_plan() {
        for bench in all() {
            for seconds in bench.brief.into_iter().chain([bench.duration]) {
                let plan = Plan::read(bench.id, &(bench.plan)(seconds), Mode::All, &Overrides::default());
                let plan = plan.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(plan.map(|plan| plan.variants.len()), Some(1), "{}", bench.id);
            }
        }
    }
}
