//! What a packet of 1200 bytes costs a relay, compared with a forwarder that only copies datagrams
//! (`cargo bench -p byway-relay`). The relay rewrites packets in place, so each value includes the
//! copy that restores a packet.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that cannot run should say where")]

#[path = "../tests/it/common/mod.rs"]
mod common;

use byway_relay::Config;
use byway_wire::relay::{Grant, Minted, Word};
use byway_wire::{Datagram, Duration, Ecn, Input, Instant, Local, Machine, TransmitBuffer};
use common::{World, at, config, relay_v4, seal, terms};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::net::SocketAddr;
use std::process::Command;

const PACKET: usize = 1200;
/// Packets that arrive between two looks at what is to leave.
const BATCH: usize = 64;
const ROUNDS: usize = 15;
/// Batches of a round, and of a count of instructions.
const BATCHES: usize = 2_000;
const COUNTED: usize = 100;

/// Accounts of the relay, and words of a load that is to find none of them there.
const ACCOUNTS: usize = 4_096;
const STRANGERS: usize = 4 * ACCOUNTS;
const RANGE: u8 = 5;

/// How packets come: in turns of `run` from each of `senders`, under words of a kind.
struct Load {
    name: &'static str,
    senders: usize,
    run: usize,
    words: Words,
    /// Packets between two looks at what is to leave.
    batch: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Words {
    /// One of the operator's for all.
    One,
    /// One of the operator's for each sender.
    Own,
    /// One of a registry's for each sender.
    Minted,
}

const fn load(name: &'static str, senders: usize, run: usize, words: Words, batch: usize) -> Load {
    Load { name, senders, run, words, batch }
}

const LOADS: [Load; 9] = [
    load("runs of 16", 4, 16, Words::Own, BATCH),
    load("  minted", 4, 16, Words::Minted, BATCH),
    load("64 interleaved senders", 64, 1, Words::Own, BATCH),
    load("  minted", 64, 1, Words::Minted, BATCH),
    load("a new word in each packet", STRANGERS, 1, Words::Own, BATCH),
    load("  minted", STRANGERS, 1, Words::Minted, BATCH),
    load("64 senders of one word", 64, 1, Words::One, BATCH),
    load("one by one", 1, 1, Words::Own, 1),
    load("only copying", 0, 1, Words::One, BATCH),
];

/// What a load needs to run again and again.
struct Bench {
    world: World,
    packets: Vec<(SocketAddr, Vec<u8>)>,
    /// Which of them comes next.
    next: usize,
    batch: usize,
    payload: Vec<u8>,
    queue: Vec<u8>,
    buffer: Vec<u8>,
}

impl Bench {
    fn new(load: &Load) -> Self {
        let mut world = World::new(&Config { accounts: ACCOUNTS, ..config() });
        assert!(world.relay.set_epoch(Instant::ZERO, RANGE, 1, Duration::from_secs(3_600)));
        let minting = world.relay.range_key(RANGE).epoch_key(1);
        let mut packet = |number: usize| {
            let sender = number / load.run % load.senders;
            let port = 1000 + sender as u16;
            let (from, to) = (at(&format!("8.8.8.8:{port}")), at(&format!("9.9.9.9:{port}")));
            let word = match load.words {
                Words::One => world.word(1, terms()),
                Words::Own => world.word(port.into(), terms()),
                Words::Minted => {
                    let id = Minted::new(RANGE, 1, sender as u32).unwrap().id();
                    let grant = Grant { id, terms: terms() };
                    Word::new(vec![relay_v4()], grant, minting.secret(&grant)).unwrap()
                }
            };
            let hop = world.hop(&word, from, to);
            // The greetings of thousands of senders take longer than a second.
            world.pass(1);
            (from, seal(&hop, Instant::ZERO, &vec![0; PACKET - hop.room()]))
        };
        let packets = match load.senders {
            0 => Vec::new(),
            senders => (0..senders.max(BATCH)).map(&mut packet).collect(),
        };
        let (payload, buffer) = (vec![0; PACKET], vec![0; 65_535]);
        Self { world, packets, next: 0, batch: load.batch, payload, queue: vec![0; BATCH * PACKET], buffer }
    }

    fn run(&mut self, batches: usize) {
        for _ in 0..batches {
            if self.packets.is_empty() { self.copy() } else { self.forward() }
        }
        assert_eq!(self.world.relay.counters().dropped_in_all(), 0);
    }

    #[inline(never)]
    fn forward(&mut self) {
        let packets = &self.packets[self.next..self.next + BATCH];
        self.next = (self.next + BATCH) % self.packets.len();
        for packets in packets.chunks(self.batch) {
            for (remote, packet) in packets {
                self.payload.copy_from_slice(packet);
                let (local, ecn, arrival, payload) =
                    (Local(0), Ecn::NotEct, Instant::ZERO, self.payload.as_mut_slice());
                let datagram = Datagram { local, remote: *remote, ecn, arrival, payload, phantom: 0 };
                self.world.relay.handle(Instant::ZERO, Input::Datagram(datagram));
            }
            let mut out = TransmitBuffer { buffer: &mut self.buffer, max_segments: 64 };
            while let Some(sent) = self.world.relay.transmit(Instant::ZERO, &mut out) {
                black_box(sent);
            }
        }
    }

    #[inline(never)]
    fn copy(&mut self) {
        let packet = [7; PACKET];
        for room in self.queue.chunks_exact_mut(PACKET) {
            self.payload.copy_from_slice(black_box(&packet));
            room.copy_from_slice(black_box(&self.payload));
        }
        for run in self.queue.chunks(54 * PACKET) {
            self.buffer[..run.len()].copy_from_slice(run);
            black_box(&mut self.buffer);
        }
    }
}

/// Processor time of this thread in seconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Instructions per packet, counted in another process; `None` without `valgrind`.
fn instructions(load: usize) -> Option<f64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let only = if LOADS.get(load)?.senders == 0 { "*Bench*copy*" } else { "*Bench*forward*" };
    valgrind.arg(format!("--toggle-collect={only}"));
    valgrind.arg(std::env::current_exe().ok()?).args(["count", &load.to_string()]);
    let output = valgrind.output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected : "))?.1;
    Some(collected.trim().parse::<f64>().ok()? / (COUNTED * BATCH) as f64)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [count, load] = words.as_slice()
        && count == "count"
    {
        let load = LOADS.get(load.parse::<usize>().unwrap()).unwrap();
        return Bench::new(load).run(COUNTED);
    }
    let mut benches: Vec<Bench> = LOADS.iter().map(Bench::new).collect();
    let mut rates = vec![Vec::new(); LOADS.len()];
    for _ in 0..ROUNDS {
        for (bench, rates) in benches.iter_mut().zip(&mut rates) {
            let begun = cpu();
            bench.run(BATCHES);
            rates.push((BATCHES * BATCH) as f64 / (cpu() - begun));
        }
    }
    let median = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let medians: Vec<f64> = rates.iter().map(|rates| median(rates)).collect();
    let copying = medians.last().copied().unwrap();
    println!("in memory, packets of {PACKET} bytes, {BATCH} at a time, medians of {ROUNDS} rounds");
    println!("{:<24} {:>15} {:>11} {:>14}", "", "packets/CPU s", "to copying", "instructions");
    for (index, (load, rate)) in LOADS.iter().zip(medians).enumerate() {
        let instructions = instructions(index).map_or("-".to_owned(), |count| format!("{count:.0}"));
        println!("{:<24} {rate:>15.0} {:>11.2} {instructions:>14}", load.name, rate / copying);
    }
    println!();
    for (own, load) in LOADS
        .iter()
        .enumerate()
        .filter(|(own, _)| LOADS.get(own + 1).is_some_and(|next| next.words == Words::Minted))
    {
        let rounds = rates[own].iter().zip(&rates[own + 1]);
        let ratio = median(&rounds.clone().map(|(own, minted)| minted / own).collect::<Vec<_>>());
        let more = median(&rounds.map(|(own, minted)| 1e9 / minted - 1e9 / own).collect::<Vec<_>>());
        println!("{}: minted to own {ratio:.3}, {more:+.0} ns per packet (medians of rounds)", load.name);
    }
}
