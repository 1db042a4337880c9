//! `byway lane`: uploads of local programs to hosts without byway.

use crate::args::lane::Lane;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Outcome, Output, Ready};
use crate::signals::{Hangup, SIGNAL_POLL_INTERVAL};
use anyhow::Result;
use byway_forward_host::Listening;
use byway_lane::report_text::{LaneCounters, event_line, listener_line, uplink_line};
use byway_lane::{RunningLane, UplinkObserver, check_loopback};
use byway_net::Clock;
use byway_wire::Duration;

/// Time between two events with the counters.
const COUNTERS_INTERVAL: Duration = Duration::from_secs(1);
/// Files that this process has open in addition to connections.
const OTHER_FILES: usize = 128;

/// Serves programs until a signal stops it.
pub(super) fn run(arguments: &Lane, output: &mut Output) -> Result<Exit> {
    if arguments.observe {
        return observe(output);
    }
    let addresses = arguments.ports.iter().map(|it| it.listen).chain(arguments.socks.iter().copied());
    check_loopback(addresses).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    // A connection has two descriptors.
    let files = super::recv::raise_file_limit().saturating_sub(OTHER_FILES) / 2;
    let listening = Listening::begin(arguments.ports.clone(), &arguments.socks)?;
    let listeners: Vec<_> = listening.listeners().cloned().collect();
    let signals = output.catch_signals(Hangup::Stop)?;
    let lane = RunningLane::start(listening, (arguments.connections as usize).min(files).max(1))?;
    let ports = listeners.iter().map(|it| it.address.to_string()).collect();
    output.emit(&Event::Ready(Ready { listen: ports, ..Ready::default() }));
    for listener in &listeners {
        output.say(&listener_line(listener));
    }
    let clock = Clock::new();
    let (mut told, mut told_at) = (LaneCounters::default(), clock.now());
    let exit = loop {
        if let Some(event) = lane.next(SIGNAL_POLL_INTERVAL)? {
            output.say(&event_line(&event));
        }
        let counters = LaneCounters::from(lane.figures());
        if counters != told && clock.now().since(told_at) >= COUNTERS_INTERVAL {
            output.emit(&Event::told("lane", &counters));
            (told, told_at) = (counters, clock.now());
        }
        if let Some(exit) = signals.stop() {
            break exit.of_service();
        }
    };
    output.stopping();
    let counters = LaneCounters::from(lane.stop()?);
    let LaneCounters { connections, sent_bytes, received_bytes, .. } = counters;
    output.say(&messages::forward::stopped(connections, sent_bytes, received_bytes));
    output.emit(&Event::told("lane", &counters));
    output.emit(&Event::result("lane", exit, Outcome::Nothing {}));
    Ok(exit)
}

/// Tells each second what the uplink carries, until a signal comes.
fn observe(output: &mut Output) -> Result<Exit> {
    let signals = output.catch_signals(Hangup::Stop)?;
    let (clock, mut observer) = (Clock::new(), UplinkObserver::default());
    loop {
        if let Some(seen) = observer.look(clock.now()) {
            output.say(&uplink_line(&seen));
            output.emit(&Event::told("uplink", &seen));
        }
        if let Some(exit) = signals.stop() {
            output.stopping();
            output.emit(&Event::result("lane", exit.of_service(), Outcome::Nothing {}));
            return Ok(exit.of_service());
        }
        std::thread::sleep(SIGNAL_POLL_INTERVAL);
    }
}
