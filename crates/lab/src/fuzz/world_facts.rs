//! Facts from the set-up of a random world: its exchanges, their changes, and the end of its
//! trouble.

use crate::setup::{Carrier, Changed, Demand, EndChange, EndChoice, ExchangeOptions, Setup};
use byway_wire::Duration;

/// Faults and changes happen before this second, but for long sleeps; afterwards the network is as
/// good as it began.
pub(super) const TROUBLE_END_SECONDS: u64 = 40;
/// Returns the exchanges of a world, with their names.
pub(super) fn exchanges(setup: &Setup) -> impl Iterator<Item = (&str, &ExchangeOptions)> {
    setup.transfers.iter().filter_map(|transfer| match &transfer.carrier {
        Carrier::Exchange(options) => Some((transfer.name.as_str(), options)),
        _ => None,
    })
}

/// Returns the changes at the hosts of one transfer, with their times.
pub(super) fn happenings<'a>(
    setup: &'a Setup,
    name: &'a str,
) -> impl Iterator<Item = (Duration, EndChoice, EndChange)> + 'a {
    setup.changes.iter().filter_map(move |change| match &change.what {
        Changed::End { transfer, end, what } if transfer == name => Some((change.at, *end, *what)),
        _ => None,
    })
}

/// When the last change has come and every partition is over.
pub(super) fn trouble_end(setup: &Setup) -> Duration {
    let changes = setup.changes.iter().map(|change| change.at);
    let partitions = setup.network.links.iter().flat_map(|link| &link.spec.partitions).map(|dark| dark.1);
    let steps = exchanges(setup).flat_map(|(_, options)| [options.sender_clock, options.receiver_clock]);
    let steps = steps.filter_map(|clock| clock.step).map(|step| step.0);
    let stops = setup.cross.iter().filter_map(|cross| cross.stop);
    changes.chain(partitions).chain(steps).chain(stops).max().unwrap_or_default()
}

/// Bytes that a transfer moves in both directions, if that is a number.
pub(super) fn bytes(demand: &Demand, carrier: &Carrier) -> Option<u64> {
    let Demand::Size(size) = demand else { return None };
    let Carrier::Exchange(options) = carrier else { return Some(*size) };
    let back: u64 = options.objects_back.iter().sum();
    let streams = options.streams.iter();
    let streams: u64 = streams.map(|stream| stream.answer + stream.reset_after.unwrap_or_default()).sum();
    Some(size + back + streams)
}
