//! What a relay does with its connections: what comes on one leaves on another.

use super::Stack;
use crate::tcp::{Demand, Flow, Options, Subflow, newreno};
use byway_wire::Instant;

/// Where a relay sends what it takes.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Onward {
    pub to: Subflow,
    pub options: Options,
    pub pairs: Vec<Pair>,
}

/// An accepted connection and the flow that carries its data on.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Pair {
    slot: u32,
    /// The slot is this connection's as long as it has this port.
    port: u32,
    pub bundle: u32,
    /// Bytes that came in order.
    pub came: u64,
    /// Of these, those that the next end has acknowledged.
    pub gone: u64,
    ended: bool,
}

impl Stack {
    /// Opens the flow that carries on what comes on the connection in `slot`.
    pub(super) fn carry_on(&mut self, now: Instant, slot: u32) {
        let port = self.connections[slot as usize].port;
        let Some(onward) = &self.onward else { return };
        // It writes what comes, when it comes.
        let written = Demand::Rate(Vec::new());
        let flow = Flow::new(vec![onward.to], newreno()).demand(written).start(now);
        let flow = flow.options(onward.options.clone());
        let bundle = self.open(flow, 0);
        if let Some(onward) = &mut self.onward {
            onward.pairs.push(Pair { slot, port, bundle, came: 0, gone: 0, ended: false });
        }
    }

    /// Hands over what has come, and makes room where it has gone.
    pub(in crate::tcp) fn hand_over(&mut self, now: Instant) {
        for number in 0..self.onward.as_ref().map_or(0, |onward| onward.pairs.len()) {
            let pair = self.onward.as_mut().and_then(|onward| onward.pairs.get_mut(number));
            let Some(pair) = pair else { return };
            let Pair { slot, bundle: index, .. } = *pair;
            let bundle = &mut self.bundles[index as usize];
            let left = bundle.delivered - pair.gone;
            pair.gone = bundle.delivered;
            let connection = &mut self.connections[slot as usize];
            if connection.port != pair.port {
                continue;
            }
            let fresh = connection.receive.next - pair.came;
            pair.came += fresh;
            bundle.supply.write(fresh);
            let ended = connection.receive.is_complete() && !pair.ended;
            if ended {
                pair.ended = true;
                bundle.supply.stop(now, bundle.delivered);
            }
            if left > 0 {
                connection.receive.take(left);
                connection.received += left;
                self.received += left;
                self.ready(slot);
            }
            if fresh > 0 || ended {
                self.settle_bundle(index);
            }
            if ended {
                self.after(now, index);
            }
        }
    }
}
