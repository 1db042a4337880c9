//! How well `background` yields over TCP, above the kernel's CUBIC, and what it does over UDP on
//! the same lines.

use crate::common::harm::{PAYLOAD, endless, percentile};
use crate::common::{MS, Receiver, Sender, address, identity, line};
use byway_control::{Controller, by_name};
use byway_sim::tcp::web::{self, Clients};
use byway_sim::tcp::{Flow, FrameBytes, ServerConfig, Subflow, TcpCarried, TcpConfig, TcpHost};
use byway_sim::{Handle, LinkId, PipeConfig, TapVerdict, World};
use byway_wire::{Duration, Instant, Local};
use std::net::SocketAddr;

/// Mbit/s, RTT in milliseconds, and packets that the queue holds.
const CELLS: [(u64, u32, usize); 4] = [(4, 40, 50), (10, 20, 50), (20, 100, 250), (50, 40, 200)];
/// A foreground begins at this time in seconds.
const BEGINS: u64 = 20;
const REQUESTS: u32 = 300;
const REQUEST: u64 = 20_000;

/// What carries the transfer, if there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Nothing,
    Udp,
    Tcp,
}

/// A line, and a `background` transfer on it.
struct Line {
    world: World,
    there: LinkId,
    back: LinkId,
    receiver: Handle<TcpCarried<Receiver>>,
}

fn linux() -> TcpConfig {
    TcpConfig { no_delay: true, ..TcpConfig::linux() }
}

/// What governs every TCP connection here.
fn cubic(seed: u64, _: &TcpConfig) -> Box<dyn Controller> {
    by_name("cubic", seed).expect("a controller")
}

impl Line {
    fn new(seed: u64, (mbit, rtt, queue): (u64, u32, usize), by: By) -> Self {
        let pipe = line(mbit, MS * rtt / 2).queue(queue);
        let mut world = World::new(seed);
        world.stop_trace();
        let there = world.link("there", pipe.clone());
        let back = world.link("back", PipeConfig { queue_packets: 100_000, ..pipe });
        let [from, to] = ["10.0.0.1:5000", "10.0.1.1:4000"].map(address);
        let mut plan = endless("background");
        plan.addresses.push(to);
        if by == By::Nothing {
            plan.start = Duration::from_secs(100_000);
        }
        let bytes = FrameBytes::default();
        let serve = ServerConfig { options: linux(), controller: cubic, ..ServerConfig::default() };
        let receiver = Receiver::new(9, plan.config.clone(), plan.suites);
        let receiver = TcpCarried::new(receiver, 1, &bytes, 1, serve.clone());
        let receiver = world.add("receiver", receiver, &TcpCarried::<Receiver>::addresses(&[to]));
        let sender = TcpCarried::new(Sender::new(7, identity(9).public(), plan), 1, &bytes, 2, serve);
        let sender = world.add("sender", sender, &TcpCarried::<Sender>::addresses(&[from]));
        let mut line = Self { world, there, back, receiver };
        line.connect(from, to);
        if by == By::Tcp {
            line.world.tap(move |seen| match [from, to].contains(seen.to) {
                true => TapVerdict::Drop,
                false => TapVerdict::Pass,
            });
            line.world.run_until(Instant::from_millis(500));
            line.world.act(sender, |host, now| host.dial(now, Local(0), to)).unwrap();
        }
        line
    }

    fn connect(&mut self, from: SocketAddr, to: SocketAddr) {
        self.world.route(from, to.ip(), &[self.there]);
        self.world.route(to, from.ip(), &[self.back]);
    }

    fn until(&mut self, seconds: u64) {
        self.world.run_until(Instant::from_millis(seconds * 1_000));
    }

    fn received(&self) -> u64 {
        self.world[self.receiver].node().received
    }
}

fn mbit(bytes: u64, seconds: u64) -> f64 {
    bytes as f64 * 8e-6 / seconds as f64
}

/// What one CUBIC and the transfer have of the line, in a minute that begins ten seconds after
/// CUBIC does.
fn beside_cubic(cell: (u64, u32, usize), by: By) -> (f64, f64) {
    let mut line = Line::new(1, cell, by);
    let [from, to] = ["10.0.0.2:6000", "10.0.1.2:6000"].map(address);
    let flow = Flow::new(vec![Subflow::direct(to)], cubic(1, &linux())).options(linux());
    let mut host = TcpHost::new(3);
    host.open(flow.start(Instant::from_millis(BEGINS * 1_000)));
    line.world.add("cubic", host, &[from]);
    let sink = TcpHost::serving(4, ServerConfig { options: linux(), ..ServerConfig::default() });
    let sink = line.world.add("sink", sink, &[to]);
    line.connect(from, to);
    line.until(BEGINS + 10);
    let before = (line.world[sink].received_bytes(), line.received());
    line.until(BEGINS + 70);
    let after = (line.world[sink].received_bytes(), line.received());
    let full = cell.0 as f64 * PAYLOAD;
    (mbit(after.0 - before.0, 60) / full, mbit(after.1 - before.1, 60) / full)
}

/// Seconds that requests of 20 kB took, ascending, and what the transfer had of the line meanwhile.
fn beside_requests(cell: (u64, u32, usize), by: By) -> (Vec<f64>, f64) {
    let mut line = Line::new(1, cell, by);
    let [server, client] = ["10.0.0.3:6000", "10.0.1.3:6000"].map(address);
    let lasts = MS * 200 * REQUESTS;
    let begins = Instant::from_millis(BEGINS * 1_000);
    let list = web::fetches(1, REQUESTS, REQUEST, begins, lasts, true);
    let options = TcpConfig { initial_window: Some(10), ..linux() };
    let serve = ServerConfig { options: options.clone(), controller: cubic, ..ServerConfig::default() };
    line.world.add("server", TcpHost::serving(5, serve), &[server]);
    let clients = Clients::new(server, &list, Instant::ZERO, options);
    let clients = line.world.add("clients", clients, &[client]);
    line.connect(server, client);
    line.until(BEGINS);
    let before = line.received();
    line.until(BEGINS + 60);
    let share = mbit(line.received() - before, 60) / (cell.0 as f64 * PAYLOAD);
    line.until(BEGINS + 90);
    let mut took: Vec<f64> = line.world[clients]
        .outcomes()
        .iter()
        .map(|it| it.finished.zip(it.started).map_or(f64::INFINITY, |(end, at)| end.since(at).as_secs_f64()))
        .collect();
    took.sort_by(f64::total_cmp);
    (took, share)
}

#[test]
#[ignore = "minutes"]
fn background_yields_over_tcp_as_over_udp() {
    println!(
        "| line | carrier | a CUBIC beside it | the transfer | requests' median | 90th percentile | the transfer |"
    );
    for cell in CELLS {
        let (mbit, rtt, queue) = cell;
        let (alone, _) = beside_cubic(cell, By::Nothing);
        let (times, _) = beside_requests(cell, By::Nothing);
        let measured = [By::Udp, By::Tcp].map(|by| {
            let (cubic, transfer) = beside_cubic(cell, by);
            let (took, share) = beside_requests(cell, by);
            let ratio = |percent| percentile(&took, percent) / percentile(&times, percent);
            let (cubic, median, p90) = (cubic / alone, ratio(50), ratio(90));
            println!(
                "| {mbit} Mbit/s, {rtt} ms, {queue} packets | {by:?} | {cubic:.2} | {transfer:.2} | {median:.2} | {p90:.2} | {share:.2} |"
            );
            [cubic, median, p90, share]
        });
        let [udp, tcp] = measured;
        assert!(tcp[0] > 0.95 * udp[0] && tcp[3] > 0.6 * udp[3], "{cell:?}: {measured:?}");
        assert!(tcp[1] < 1.1 * udp[1] && tcp[2] < 1.1 * udp[2], "{cell:?}: {measured:?}");
    }
}
