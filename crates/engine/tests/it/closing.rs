//! How soon a session is over after one side has ended it, counted in round trips.

use crate::common::{MS, Parallel, Plan, Sender, both, line, parallel};
use byway_engine::Connection;
use byway_engine::connection::close;
use byway_sim::{Handle, TapVerdict, World};
use byway_wire::{Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;

const RTT: Duration = Duration::from_millis(200);

/// A session whose transfer is over, and the time.
fn transferred() -> (Parallel, Instant) {
    let mut world = parallel(1, Plan::new("newreno", &[64 << 10], &[]), &[both(line(10, RTT / 2))]);
    world.world.act(world.sender, |host, _| host.keep_open = true);
    world.finish(Duration::from_secs(60));
    world.world.run_for(Duration::from_secs(3));
    let now = world.world.now();
    (world, now)
}

fn sender_is_over(world: &World, sender: Handle<Sender>) -> bool {
    let host = &world[sender];
    host.handle.and_then(|handle| host.endpoint.connection(handle)).is_none_or(Connection::is_closed)
}

fn close_sender(world: &mut Parallel) {
    world.world.act(world.sender, |host, now| {
        host.endpoint.close(now, host.handle.unwrap(), close::DONE_CODE, "done");
    });
}

/// Until the sender's side is over.
fn wait(world: &mut Parallel, since: Instant) -> Duration {
    let sender = world.sender;
    let limit = since + Duration::from_secs(30);
    assert!(world.world.run_while(|world| !sender_is_over(world, sender), limit), "it never ends");
    world.world.now().since(since)
}

#[test]
fn who_closes_waits_for_one_answer_and_no_longer() {
    let (mut world, begun) = transferred();
    close_sender(&mut world);
    let took = wait(&mut world, begun);
    assert!((RTT..RTT + RTT / 10).contains(&took), "{took:?}");
    assert_eq!(world.world[world.receiver].closed, [(close::DONE_CODE, "done".to_owned())]);
}

/// The first CLOSE or the first answer is lost: it is told again, and nobody waits without end.
#[test]
fn a_close_or_its_answer_that_is_lost_costs_a_few_round_trips() {
    for lost in [0, 1] {
        let (mut world, begun) = transferred();
        let sent = Rc::new(RefCell::new(0));
        let count = Rc::clone(&sent);
        world.world.tap(move |datagram| {
            // Nothing but CLOSE and its answers travels.
            assert!(datagram.payload.len() < 128);
            let number = count.replace_with(|number| *number + 1);
            if number == lost { TapVerdict::Drop } else { TapVerdict::Pass }
        });
        close_sender(&mut world);
        let took = wait(&mut world, begun);
        assert!(took <= RTT * 5, "{lost}: {took:?}");
        assert_eq!(world.world[world.receiver].closed.len(), 1);
        world.world.run_for(Duration::from_secs(5));
        let receiver = &world.world[world.receiver];
        let open = receiver.handles.iter().filter_map(|handle| receiver.endpoint.connection(*handle));
        assert!(open.into_iter().all(Connection::is_closed));
        assert!(*sent.borrow() <= 16, "{} packets", sent.borrow());
    }
}

/// Both sides close at once: each takes the other's CLOSE for the answer, and none follows.
#[test]
fn two_closes_that_cross_need_no_answer() {
    let (mut world, begun) = transferred();
    let sent = Rc::new(RefCell::new(0));
    let count = Rc::clone(&sent);
    world.world.tap(move |_| {
        *count.borrow_mut() += 1;
        TapVerdict::Pass
    });
    close_sender(&mut world);
    world.world.act(world.receiver, |host, now| {
        host.endpoint.close(now, host.handles[0], close::DONE_CODE, "done");
    });
    let took = wait(&mut world, begun);
    assert!(took <= RTT / 2 + 5 * MS, "{took:?}");
    world.world.run_for(Duration::from_secs(5));
    assert_eq!(*sent.borrow(), 2);
}
