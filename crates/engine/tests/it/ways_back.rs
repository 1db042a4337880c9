//! Ways back: ACKs go on while packets come.

use crate::common::{MS, Plan, both, identity, line, parallel};
use byway_control::{Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Undo};
use byway_engine::handshake::PublicKey;
use byway_engine::{Admission, Admit, Endpoint, EndpointConfig};
use byway_wire::{Duration, Instant, PathId};

/// When the first way is given up, and when the second path dies.
const GIVEN_UP: Instant = Instant::from_millis(1_000);
const DEAD: Instant = Instant::from_millis(2_000);

/// The controller of a receiver, which sends no data. It gives the first way up once, as others do
/// after timeouts.
#[derive(Debug, Default)]
struct GivesUp {
    drop: Vec<PathId>,
    done: bool,
}

impl Controller for GivesUp {
    fn name(&self) -> &'static str {
        "gives up"
    }

    fn open(&mut self, _: PathId, _: &Opened) {}

    fn close(&mut self, path: PathId) {
        self.drop.retain(|dropped| *dropped != path);
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, _: PathId, _: &Acked<'_>) {}

    fn on_congested(&mut self, _: PathId, _: &Congested) {}

    fn on_undo(&mut self, _: PathId, _: &Undo) {}

    fn on_probe(&mut self, _: PathId, _: &ProbeResult) {}

    fn on_route_change(&mut self, _: PathId, _: Instant) {}

    fn on_packet_size(&mut self, _: PathId, _: u32) {}

    fn tick(&mut self, now: Instant) -> Option<Instant> {
        if now >= GIVEN_UP && !std::mem::replace(&mut self.done, true) {
            self.drop.push(PathId(0));
        }
        Some(now.max(GIVEN_UP) + 10 * MS)
    }

    fn allowance(&self, _: PathId) -> Allowance {
        Allowance { window: u64::MAX, ..Allowance::default() }
    }

    fn wants(&self) -> PathDemand<'_> {
        PathDemand { open: usize::MAX, drop: &self.drop, ..PathDemand::default() }
    }
}

#[derive(Debug)]
struct Host;

impl Admission for Host {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(Box::new(GivesUp::default()))
    }
}

/// The receiver gives up its way back of the first path, whose packets still come. Their ACKs go
/// by the second path until it dies. Then the first path leads back again.
#[test]
fn a_way_that_was_given_up_leads_back_once_no_other_does() {
    for congestion in ["background", "mpath", "newreno"] {
        let plan = Plan::new(congestion, &[8 << 20], &[]);
        let (config, suites) = (plan.config.clone(), plan.suites);
        let dies = line(10, 12 * MS).partition(DEAD, Instant::FAR_FUTURE);
        let mut world = parallel(1, plan, &[both(line(10, 10 * MS)), both(dies)]);
        world.world.act(world.receiver, |host, _| {
            host.endpoint = Endpoint::new(EndpointConfig {
                identity: identity(9),
                suites,
                seed: [9; 32],
                connection: config,
                admission: Some(Box::new(Host)),
                greeting: b"hello".to_vec(),
            });
        });
        world.world.run_until(DEAD);
        let receiver = &world.world[world.receiver];
        let ways = receiver.endpoint.connection(receiver.handles[0]).unwrap().status().paths.len();
        assert_eq!(ways, 1, "the first was given up");
        let took = world.finish(Duration::from_secs(12));
        println!("{congestion}: {took:?}");
    }
}
