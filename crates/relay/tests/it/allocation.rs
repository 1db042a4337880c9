//! A packet makes a relay allocate nothing.

use crate::common::*;
use crate::heap::Heap;
use byway_wire::relay::{Delivered, ReturnHop};
use byway_wire::{Datagram, Ecn, Input, Local, Machine, TransmitBuffer};

#[test]
fn forwarding_returning_refusing_and_new_accounts_allocate_nothing() {
    let mut world = World::new(&config());
    let mut packets = Vec::new();
    for id in 0..200 {
        // More words than the table has places: accounts come and go too.
        let word = world.word(id, terms());
        let word = if id % 2 == 0 { narrowed(&word, 1, |_| {}) } else { word };
        let hop = world.hop(&word, sender(), receiver());
        let packet = seal(&hop, world.now, &[0; 1200]);
        let header = Delivered::read(&world.put(sender(), &packet)[0].1).unwrap();
        let back = ReturnHop::new(relay_v4(), &header);
        let mut answer = vec![0; back.room() + 100];
        assert!(back.seal(&mut answer));
        let mut forged = packet.clone();
        forged[60] ^= 1;
        packets.push((sender(), packet));
        packets.push((receiver(), answer));
        packets.push((sender(), forged));
    }
    let mut buffer = vec![0; 65_535];
    let (mut forwarded, heap) = (0, Heap::new());
    for (remote, payload) in &mut packets {
        let (local, ecn, arrival) = (Local(0), Ecn::NotEct, world.now);
        world.relay.handle(
            world.now,
            Input::Datagram(Datagram { local, remote: *remote, ecn, arrival, payload, phantom: 0 }),
        );
        while world
            .relay
            .transmit(world.now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 64 })
            .is_some()
        {
            forwarded += 1;
        }
    }
    assert_eq!(heap.calls(), 0);
    assert!(forwarded >= 400 && world.relay.counters().evicted > 100, "{:?}", world.relay.counters());
}
