//! Transfers and what else is on the way.

use super::values::{Keys, list, node_ways, number, rate, size, text, time};
use crate::plan::shared_keys::PARTIAL_ACK_NAMES;
use crate::setup::{
    Arrivals, Carrier, ClockSetup, Cross, Demand, NodeChoice, Requests, SessionOptions, Sizes, StreamSetup,
    TcpOptions, Transfer,
};
use byway_control::ControllerChoice;
use byway_wire::Duration;

pub(super) fn transfer(transfer: &Transfer) -> Keys {
    let mut keys = Keys::default();
    keys.set("name", text(&transfer.name));
    keys.set_if(transfer.group != transfer.name, "group", || text(&transfer.group));
    for (key, end) in [("from", &transfer.from), ("to", &transfer.to)] {
        match end {
            NodeChoice::Node(node) => keys.set(key, text(node)),
            NodeChoice::Any(prefix) => keys.set(&format!("{key}_any"), text(prefix)),
        }
    }
    let carrier = match &transfer.carrier {
        Carrier::Session(_) => "session",
        Carrier::Exchange(_) => "exchange",
        Carrier::Tcp(_) => "tcp",
        Carrier::TcpRelays(_) => "tcp-relays",
        Carrier::Gateways(..) => "gateways",
    };
    // The gateways have the ways.
    if !matches!(transfer.carrier, Carrier::Gateways(..)) {
        keys.set("paths", list(node_ways(&transfer.paths)));
    }
    keys.set("carrier", text(carrier));
    match &transfer.carrier {
        Carrier::Session(options) => session(options, &mut keys),
        Carrier::Exchange(_) => {}
        Carrier::Tcp(options) | Carrier::TcpRelays(options) => tcp(options, &mut keys),
        Carrier::Gateways(options, by) => {
            keys.set("gateways", text(by));
            tcp(options, &mut keys);
        }
    }
    congestion(&transfer.congestion, &mut keys);
    if !matches!(transfer.carrier, Carrier::Exchange(_)) {
        demand(&transfer.demand, &mut keys);
    }
    keys.set_if(!transfer.start.is_zero(), "start", || time(transfer.start));
    keys.set_if(!transfer.start_jitter.is_zero(), "start_jitter", || time(transfer.start_jitter));
    keys.maybe("stop", transfer.stop, time);
    keys
}

fn demand(demand: &Demand, keys: &mut Keys) {
    match demand {
        Demand::Unlimited => {}
        Demand::Size(bytes) => keys.set("size", size(*bytes)),
        Demand::Rate(steps) => match steps.as_slice() {
            [(Duration::ZERO, bits)] if *bits > 0 => keys.set("rate", rate(*bits)),
            steps => keys.set("steps", list(steps.iter().map(|&(at, bits)| list([time(at), rate(bits)])))),
        },
    }
}

/// Writes the controller and its options.
pub(super) fn congestion(choice: &ControllerChoice, keys: &mut Keys) {
    keys.set("congestion", text(&choice.name));
    let mut options = Keys::default();
    choice.options.iter().for_each(|(option, value)| options.set(option, number(*value)));
    keys.set_if(!options.is_empty(), "options", || options.table());
}

/// Writes the options that differ from the defaults, which are the papers' hosts or Linux's.
fn tcp(options: &TcpOptions, keys: &mut Keys) {
    let usual = if options.linux { TcpOptions::linux() } else { TcpOptions::default() };
    let mut told = Keys::default();
    told.set_if(options.linux, "host", || text("linux"));
    told.set_if(options.delayed_ack != usual.delayed_ack, "delayed_ack", || options.delayed_ack.to_string());
    told.maybe("receive_window", options.receive_window, size);
    told.set_if(options.min_rto != usual.min_rto, "min_rto", || time(options.min_rto));
    let initial_window = options.initial_window;
    told.set_if(initial_window != usual.initial_window, "initial_window", || initial_window.to_string());
    told.set_if(options.sack != usual.sack, "sack", || options.sack.to_string());
    let partial_ack = PARTIAL_ACK_NAMES.iter().find(|(_, partial_ack)| *partial_ack == options.partial_ack);
    let is_other = options.partial_ack != usual.partial_ack;
    told.set_if(is_other, "partial_ack", || text(partial_ack.map_or("steady", |(name, _)| name)));
    told.set_if(options.mss != usual.mss, "mss", || options.mss.to_string());
    let relay_packets = options.relay_packets;
    told.set_if(relay_packets != usual.relay_packets, "relay_packets", || relay_packets.to_string());
    keys.set_if(!told.is_empty(), "tcp", || told.table());
}

fn session(options: &SessionOptions, keys: &mut Keys) {
    let mut told = Keys::default();
    told.set_if(options.pnack_first_gap, "pnack", || text("first-gap"));
    told.set_if(options.ack_direct, "ack_path", || text("direct"));
    told.maybe("tau", options.tau, number);
    told.maybe("datagram", options.datagram, |bytes| bytes.to_string());
    told.set_if(options.real_bytes, "real_bytes", || "true".to_owned());
    keys.set_if(!told.is_empty(), "session", || told.table());
}

/// The table of an exchange; `None`: the carrier is another.
pub(super) fn exchange(carrier: &Carrier) -> Option<Keys> {
    let Carrier::Exchange(options) = carrier else { return None };
    let mut keys = Keys::default();
    let sizes = |sizes: &[u64]| list(sizes.iter().map(|&bytes| size(bytes)));
    keys.set_if(!options.objects.is_empty(), "objects", || sizes(&options.objects));
    let present = options.objects_present;
    keys.set_if(present > 0, "objects_present", || present.to_string());
    keys.set_if(!options.objects_back.is_empty(), "objects_back", || sizes(&options.objects_back));
    keys.set_if(!options.streams.is_empty(), "streams", || {
        let lines = options.streams.iter().map(|one| format!("    {},\n", stream(*one)));
        format!("[\n{}]", lines.collect::<String>())
    });
    keys.set_if(options.datagrams > 0, "datagrams", || options.datagrams.to_string());
    keys.maybe("writes", options.writes, rate);
    keys.maybe("reads", options.reads, rate);
    keys.maybe("memory", options.memory, size);
    keys.maybe("datagram", options.datagram, |bytes| bytes.to_string());
    keys.maybe("path_choice", options.path_rule, |rule| text(rule.name()));
    keys.set_if(options.tcp, "tcp", || "true".to_owned());
    keys.set_if(options.ticket_names_relays, "ticket_names_relays", || "true".to_owned());
    keys.set_if(!options.uplinks.is_empty(), "uplinks", || list(options.uplinks.iter().map(|at| text(at))));
    keys.maybe("words_hold", options.words_hold, time);
    for (key, told) in [("sender_clock", options.sender_clock), ("receiver_clock", options.receiver_clock)] {
        keys.set_if(told != ClockSetup::default(), key, || clock(told));
    }
    Some(keys)
}

fn stream(stream: StreamSetup) -> String {
    let mut keys = Keys::default();
    keys.set("bytes", size(stream.bytes));
    keys.set_if(stream.answer > 0, "answer", || size(stream.answer));
    keys.set_if(stream.in_turn, "in_turn", || "true".to_owned());
    keys.maybe("reset_after", stream.reset_after, size);
    keys.table()
}

fn clock(clock: ClockSetup) -> String {
    let mut keys = Keys::default();
    keys.set("ahead", time(clock.ahead));
    keys.set("drift_ppm", number(clock.drift_ppm));
    keys.maybe("step", clock.step, |(at, by)| list([time(at), time(by)]));
    keys.table()
}

pub(super) fn requests(requests: &Requests) -> Keys {
    let mut keys = Keys::default();
    keys.set("name", text(&requests.name));
    keys.set("client", text(&requests.client));
    keys.set("server", text(&requests.server));
    match requests.arrivals {
        Arrivals::Closed { clients, think, rounds } => {
            keys.set("clients", clients.to_string());
            keys.set("think", time(think));
            keys.maybe("rounds", rounds, |rounds| rounds.to_string());
        }
        Arrivals::Open { count, every, poisson } => {
            keys.set_if(count > 0, "count", || count.to_string());
            keys.set("every", time(every));
            keys.set("poisson", poisson.to_string());
        }
    }
    match requests.sizes {
        Sizes::Web => keys.set("kind", text("web")),
        Sizes::Fixed(bytes) => keys.set("size", size(bytes)),
    }
    congestion(&requests.congestion, &mut keys);
    tcp(&requests.tcp, &mut keys);
    keys.set_if(!requests.start.is_zero(), "start", || time(requests.start));
    keys.maybe("stop", requests.stop, time);
    keys
}

pub(super) fn cross(cross: &Cross) -> Keys {
    let mut keys = Keys::default();
    keys.set("name", text(&cross.name));
    keys.set("from", text(&cross.from));
    keys.set("to", text(&cross.to));
    keys.set("rate", rate(cross.rate));
    keys.set("packet", cross.packet.to_string());
    keys.set("poisson", cross.poisson.to_string());
    keys.set("delays", cross.delays.to_string());
    keys.set_if(!cross.start.is_zero(), "start", || time(cross.start));
    keys.maybe("stop", cross.stop, time);
    keys
}
