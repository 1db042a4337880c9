//! A closed loop of senders, drop-tail links and aggregated ACKs, without a protocol. So a test
//! shows the controller alone. The model is deterministic.
#![allow(dead_code)]

use byway_control::seeded_random::Random;
use byway_control::{Acked, Congested, Controller, Delay, Opened, ProbeResult, Sent, Trigger, Undo};
use byway_wire::{Duration, Instant, PathId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

pub const PACKET: u32 = 1500;
/// An ACK covers 10 packets or 10 ms, whichever is first.
const ACK_PACKETS: usize = 10;
const ACK_DELAY: Duration = Duration::from_millis(10);
const PROBE_EVERY: Duration = Duration::from_millis(500);

pub struct Link {
    pub bits_per_second: f64,
    pub queue: usize,
    pub loss: f64,
    pub up: bool,
    departures: VecDeque<Instant>,
    pub dropped: u64,
}

struct InFlight {
    number: u64,
    sent: Instant,
}

struct Path {
    link: usize,
    /// One way.
    delay: Duration,
    clock: i64,
    jitter: Duration,
    /// Jitter makes late, but lets nothing overtake.
    last_arrival: Instant,
    proxied: bool,
    flight: VecDeque<InFlight>,
    lost_late: VecDeque<InFlight>,
    next: u64,
    pace: Instant,
    paced: bool,
    pending: Vec<(u64, Instant, Delay)>,
    ack_due: bool,
    over: bool,
    srtt: Option<Duration>,
    rttvar: Duration,
    min_rtt: Duration,
    recent: VecDeque<(Instant, u64)>,
    last_progress: Instant,
    backoff: u32,
    probing: bool,
    pub delivered: u64,
}

pub struct Flow {
    pub controller: Box<dyn Controller>,
    paths: BTreeMap<PathId, Path>,
    from: Instant,
    until: Instant,
    pub timeouts: u64,
    pub losses: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive { flow: usize, path: PathId, number: u64, sent: Instant },
    Ack { flow: usize, path: PathId },
    Acked { flow: usize, path: PathId, numbers: Vec<(u64, Instant, i64)> },
    Pace { flow: usize, path: PathId },
    Timer { flow: usize, path: PathId, armed: Instant },
    Probe { flow: usize, path: PathId },
    Probed { flow: usize, path: PathId, sent: Instant, delay: Option<i64> },
    Start { flow: usize },
}

pub struct World {
    pub now: Instant,
    pub links: Vec<Link>,
    pub flows: Vec<Flow>,
    /// Whether receivers tell how long they held an ACK back. This time is subtracted from the RTT,
    /// as byway's paths do it.
    pub tells_held: bool,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    count: u64,
    random: Random,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            links: Vec::new(),
            flows: Vec::new(),
            tells_held: false,
            events: BinaryHeap::new(),
            count: 0,
            random: Random::new(seed),
        }
    }

    pub fn link(&mut self, megabits: f64, queue: usize, loss: f64) -> usize {
        self.links.push(Link {
            bits_per_second: megabits * 1e6,
            queue,
            loss,
            up: true,
            departures: VecDeque::new(),
            dropped: 0,
        });
        self.links.len() - 1
    }

    /// A flow over `paths`, each a link and an RTT in ms. It is active between two times in ms.
    pub fn flow(
        &mut self,
        controller: Box<dyn Controller>,
        paths: &[(usize, u64)],
        span: (u64, u64),
    ) -> usize {
        let from = Instant::from_millis(span.0);
        let flow = self.flows.len();
        let mut table = BTreeMap::new();
        for (index, (link, rtt)) in paths.iter().enumerate() {
            let path = Path {
                link: *link,
                delay: Duration::from_micros(rtt * 500),
                clock: 5_000_000_000 - 10_000_000_000 * (index as i64 % 2),
                jitter: Duration::ZERO,
                last_arrival: from,
                proxied: index > 0,
                flight: VecDeque::new(),
                lost_late: VecDeque::new(),
                next: 0,
                pace: from,
                paced: false,
                pending: Vec::new(),
                ack_due: false,
                over: false,
                srtt: None,
                rttvar: Duration::ZERO,
                min_rtt: Duration::MAX,
                recent: VecDeque::new(),
                last_progress: from,
                backoff: 0,
                probing: false,
                delivered: 0,
            };
            table.insert(PathId(index as u32), path);
        }
        self.flows.push(Flow {
            controller,
            paths: table,
            from,
            until: Instant::from_millis(span.1),
            timeouts: 0,
            losses: 0,
        });
        self.at(from, Event::Start { flow });
        flow
    }

    pub fn jitter(&mut self, flow: usize, path: u32, jitter: Duration) {
        self.flows[flow].paths.get_mut(&PathId(path)).unwrap().jitter = jitter;
    }

    pub fn delay(&mut self, flow: usize, path: u32, rtt_ms: u64) {
        self.flows[flow].paths.get_mut(&PathId(path)).unwrap().delay = Duration::from_micros(rtt_ms * 500);
    }

    pub fn delivered(&self, flow: usize) -> u64 {
        self.flows[flow].paths.values().map(|path| path.delivered).sum()
    }

    pub fn delivered_on(&self, flow: usize, path: u32) -> u64 {
        self.flows[flow].paths[&PathId(path)].delivered
    }

    /// How long a packet that comes now would wait for those before it.
    pub fn waiting(&self, link: usize) -> Duration {
        self.links[link].departures.back().map_or(Duration::ZERO, |last| last.since(self.now))
    }

    /// Packets that `flow` gets through between two times in ms, in Mbit/s.
    pub fn rate(&mut self, flow: usize, from: u64, until: u64) -> f64 {
        self.run(from);
        let before = self.delivered(flow);
        self.run(until);
        megabits(self.delivered(flow) - before, from, until)
    }

    fn at(&mut self, time: Instant, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time.max(self.now), self.count, event)));
    }

    pub fn run(&mut self, until_ms: u64) {
        let until = Instant::from_millis(until_ms);
        while self.events.peek().is_some_and(|Reverse((time, ..))| *time <= until) {
            let Some(Reverse((time, _, event))) = self.events.pop() else { return };
            assert!(time >= self.now);
            self.now = time;
            self.happen(event);
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start { flow } => {
                let now = self.now;
                let ids: Vec<PathId> = self.flows[flow].paths.keys().copied().collect();
                for id in &ids {
                    let f = &mut self.flows[flow];
                    let path = &f.paths[id];
                    let opened =
                        Opened { now, proxied: path.proxied, packet_size: PACKET, rtt: Some(path.delay * 2) };
                    f.controller.open(*id, &opened);
                }
                for id in ids {
                    self.send(flow, id);
                    self.arm(flow, id);
                }
            }
            Event::Arrive { flow, path, number, sent } => {
                let now = self.now;
                let f = &mut self.flows[flow];
                let limit = f.controller.allowance(path).delay_limit;
                let p = f.paths.get_mut(&path).unwrap();
                p.delivered += u64::from(PACKET);
                let one_way = now.signed_nanos_since(sent) + p.clock;
                p.pending.push((number, sent, Delay { sent_at: sent, one_way, bytes: PACKET }));
                let urgent =
                    limit.is_some_and(|limit| one_way > limit) && p.pending.len() == 1 && p.pending.len() > 1;
                if p.pending.len() >= ACK_PACKETS || urgent {
                    self.flush(flow, path);
                } else if !p.ack_due {
                    p.ack_due = true;
                    self.at(now + ACK_DELAY, Event::Ack { flow, path });
                }
            }
            Event::Ack { flow, path } => {
                self.flows[flow].paths.get_mut(&path).unwrap().ack_due = false;
                self.flush(flow, path);
            }
            Event::Acked { flow, path, numbers } => {
                self.acked(flow, path, &numbers);
                self.send_all(flow);
            }
            Event::Pace { flow, path } => {
                self.flows[flow].paths.get_mut(&path).unwrap().paced = false;
                self.send(flow, path);
            }
            Event::Timer { flow, path, armed } => self.timer(flow, path, armed),
            Event::Probe { flow, path } => self.probe(flow, path),
            Event::Probed { flow, path, sent, delay } => {
                let now = self.now;
                let f = &mut self.flows[flow];
                f.paths.get_mut(&path).unwrap().probing = false;
                let delay = delay.map(|one_way| Delay { sent_at: sent, one_way, bytes: PACKET });
                let rtt = delay.is_some().then(|| now.since(sent));
                f.controller.on_probe(path, &ProbeResult { now, delay, rtt });
                self.send_all(flow);
            }
        }
    }

    fn flush(&mut self, flow: usize, path: PathId) {
        let now = self.now;
        let p = self.flows[flow].paths.get_mut(&path).unwrap();
        if p.pending.is_empty() {
            return;
        }
        let numbers =
            p.pending.drain(..).map(|(number, sent, delay)| (number, sent, delay.one_way)).collect();
        let back = p.delay;
        self.at(now + back, Event::Acked { flow, path, numbers });
    }

    fn acked(&mut self, flow: usize, path: PathId, numbers: &[(u64, Instant, i64)]) {
        let now = self.now;
        let f = &mut self.flows[flow];
        let p = f.paths.get_mut(&path).unwrap();
        let before = p.flight.len();
        let delays: Vec<Delay> = numbers
            .iter()
            .map(|(_, sent_at, one_way)| Delay { sent_at: *sent_at, one_way: *one_way, bytes: PACKET })
            .collect();
        let (largest, sent_at, one_way) = *numbers.last().unwrap();
        let mut newly = 0_u32;
        for (number, sent, _) in numbers {
            if let Ok(at) = p.flight.binary_search_by_key(number, |packet| packet.number) {
                p.flight.remove(at);
                newly += 1;
            } else if p.lost_late.iter().any(|packet| packet.number == *number) {
                f.controller.on_undo(path, &Undo { now, sent_at: *sent });
            }
        }
        let travelled = sent_at.offset_nanos(one_way - p.clock) + p.delay;
        let rtt = if self.tells_held { travelled.since(sent_at) } else { now.since(sent_at) };
        p.min_rtt = p.min_rtt.min(rtt);
        p.srtt = Some(match p.srtt {
            None => {
                p.rttvar = rtt / 2;
                rtt
            }
            Some(srtt) => {
                p.rttvar = p.rttvar * 3 / 4 + srtt.abs_diff(rtt) / 4;
                srtt * 7 / 8 + rtt / 8
            }
        });
        p.last_progress = now;
        p.backoff = 0;
        let srtt = p.srtt.unwrap();
        p.recent.push_back((now, u64::from(newly) * u64::from(PACKET)));
        while p.recent.front().is_some_and(|(at, _)| now.since(*at) > srtt.max(Duration::from_millis(20))) {
            p.recent.pop_front();
        }
        let span = p.recent.front().map_or(0.0, |(at, _)| now.since(*at).as_secs_f64());
        let sum: u64 = p.recent.iter().skip(1).map(|(_, bytes)| bytes).sum();
        let delivery_rate = (span > 0.0).then(|| (sum as f64 / span) as u64);
        let mut lost = Vec::new();
        while p.flight.front().is_some_and(|packet| packet.number + 3 <= largest) {
            lost.push(p.flight.pop_front().unwrap());
        }
        if let (Some(first), Some(last)) = (lost.first(), lost.last()) {
            f.losses += lost.len() as u64;
            let congested = Congested {
                trigger: Trigger::Loss,
                first_sent_at: first.sent,
                sent_at: last.sent,
                now,
                bytes: lost.len() as u64 * u64::from(PACKET),
                in_flight: before as u64 * u64::from(PACKET),
            };
            f.controller.on_congested(path, &congested);
        }
        if newly > 0 {
            f.controller.on_acked(
                path,
                &Acked {
                    now,
                    bytes: u64::from(newly) * u64::from(PACKET),
                    packets: newly,
                    sent_at,
                    rtt: Some(rtt),
                    srtt,
                    min_rtt: p.min_rtt,
                    delays: &delays,
                    in_flight: p.flight.len() as u64 * u64::from(PACKET),
                    app_limited: false,
                    delivery_rate,
                    ce: 0,
                },
            );
        }
        f.controller.tick(now);
        if !f.paths[&path].flight.is_empty() {
            self.arm(flow, path);
        }
    }

    fn rto(p: &Path) -> Duration {
        let rto = p.srtt.map_or(Duration::from_secs(1), |srtt| srtt + p.rttvar * 4);
        (rto.max(Duration::from_millis(200)) * 2_u32.pow(p.backoff.min(5))).min(Duration::from_secs(10))
    }

    fn arm(&mut self, flow: usize, path: PathId) {
        let p = &self.flows[flow].paths[&path];
        let (due, armed) = (p.last_progress + Self::rto(p), p.last_progress);
        self.at(due.max(self.now), Event::Timer { flow, path, armed });
    }

    fn timer(&mut self, flow: usize, path: PathId, armed: Instant) {
        let now = self.now;
        let f = &mut self.flows[flow];
        let p = f.paths.get_mut(&path).unwrap();
        if p.last_progress != armed || p.flight.is_empty() {
            return;
        }
        f.timeouts += 1;
        p.backoff += 1;
        p.last_progress = now;
        let in_flight = p.flight.len() as u64 * u64::from(PACKET);
        let congested = Congested {
            trigger: Trigger::Timeout,
            first_sent_at: p.flight.front().unwrap().sent,
            sent_at: p.flight.back().unwrap().sent,
            now,
            bytes: in_flight,
            in_flight,
        };
        p.lost_late = std::mem::take(&mut p.flight);
        f.controller.on_congested(path, &congested);
        self.send_all(flow);
    }

    fn probe(&mut self, flow: usize, path: PathId) {
        let (now, f) = (self.now, &self.flows[flow]);
        let p = &f.paths[&path];
        let (delay, clock, link) = (p.delay, p.clock, p.link);
        if !f.controller.allowance(path).choked {
            self.flows[flow].paths.get_mut(&path).unwrap().probing = false;
            return;
        }
        let link = &mut self.links[link];
        let queue = link.departures.back().map_or(Duration::ZERO, |last| last.since(now));
        let result = link.up.then_some(queue);
        let arrival = now + queue + delay;
        let one_way = result.map(|_| arrival.signed_nanos_since(now) + clock);
        self.at(arrival + delay, Event::Probed { flow, path, sent: now, delay: one_way });
    }

    fn send_all(&mut self, flow: usize) {
        let ids: Vec<PathId> = self.flows[flow].paths.keys().copied().collect();
        for id in ids {
            self.send(flow, id);
        }
    }

    fn send(&mut self, flow: usize, path: PathId) {
        loop {
            let now = self.now;
            let f = &mut self.flows[flow];
            if now < f.from || now >= f.until {
                return;
            }
            let allowance = f.controller.allowance(path);
            let p = f.paths.get_mut(&path).unwrap();
            if allowance.choked {
                if !p.probing {
                    p.probing = true;
                    self.at(now + PROBE_EVERY, Event::Probe { flow, path });
                }
                return;
            }
            let flight = p.flight.len() as u64 * u64::from(PACKET);
            let fits = flight + u64::from(PACKET) <= allowance.window;
            if !(fits || (flight == 0 && allowance.rate.is_some())) {
                return;
            }
            if now < p.pace {
                if !p.paced {
                    p.paced = true;
                    let pace = p.pace;
                    self.at(pace, Event::Pace { flow, path });
                }
                return;
            }
            let srtt = p.srtt.unwrap_or(p.delay * 2).as_secs_f64();
            let rate = match allowance.rate {
                Some(rate) => rate as f64,
                None => 1.25 * allowance.window as f64 / srtt,
            };
            p.pace = p.pace.max(now - Duration::from_millis(1))
                + Duration::from_secs_f64(f64::from(PACKET) / rate);
            let number = p.next;
            p.next += 1;
            if p.flight.is_empty() {
                p.last_progress = now;
            }
            let idle = p.flight.is_empty();
            p.flight.push_back(InFlight { number, sent: now });
            let sent = Sent { now, bytes: PACKET, in_flight: flight + u64::from(PACKET), app_limited: false };
            f.controller.on_sent(path, &sent);
            let extra = p.jitter.mul_f64(self.random.unit());
            let (delay, link) = (p.delay, &mut self.links[p.link]);
            while link.departures.front().is_some_and(|departure| *departure <= now) {
                link.departures.pop_front();
            }
            // The packet in service is not counted among the queued.
            let full = link.departures.len() > link.queue;
            if full || !link.up || self.random.unit() < link.loss {
                link.dropped += 1;
            } else {
                let start = link.departures.back().copied().unwrap_or(now).max(now);
                let departed =
                    start + Duration::from_secs_f64(f64::from(PACKET) * 8.0 / link.bits_per_second);
                link.departures.push_back(departed);
                let p = self.flows[flow].paths.get_mut(&path).unwrap();
                p.last_arrival = p.last_arrival.max(departed + delay + extra);
                let arrival = p.last_arrival;
                self.at(arrival, Event::Arrive { flow, path, number, sent: now });
            }
            if idle {
                self.arm(flow, path);
            }
        }
    }
}

pub fn megabits(bytes: u64, from_ms: u64, until_ms: u64) -> f64 {
    bytes as f64 * 8.0 / ((until_ms - from_ms) as f64 * 1e3)
}
