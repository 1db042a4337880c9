//! Machines over links.
mod common;

use byway_sim::{PipeConfig, World};
use byway_wire::{Duration, Instant};
use common::{Ping, address};

const MS: Duration = Duration::from_millis(1);

#[test]
fn ping_over_a_lossy_pipe() {
    let (a, b) = (address(1, 1000), address(2, 2000));
    let mut world = World::new(42);
    let client = world.add("client", Ping::client(b, 200, 100 * MS), &[a]);
    let server = world.add("server", Ping::server(), &[b]);
    let line = PipeConfig::new(10_000_000, 20 * MS).loss(0.1);
    let (there, _) = world.connect(a, b, line.clone(), line);
    assert!(world.run_while(|world| !world[client].done(), Instant::from_millis(60_000)));
    assert!(world[server].heard >= 200);
    let books = world.counters(there);
    assert!(books.dropped() > 5 && books.sent > 200, "{books:?}");
}
