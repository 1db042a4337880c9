//! Tests that depend on the machine: namespaces, emulated networks, gateways, small disks. A test
//! is reported as ignored if the machine lacks something. Tests that measure time or rate run only
//! with `--ignored`, one at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod addresses;
mod backup;
mod broken_hops;
#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod cuts;
mod detours;
mod emulate;
mod emulated_gateways;
mod files;
mod fleet;
mod floods;
mod forward;
mod gateway;
mod greet;
mod hands;
mod hosts;
mod joining;
mod lane;
mod lending;
mod live;
mod live_crowd;
mod live_disk;
mod live_uplinks;
mod manual;
mod marks;
mod names;
mod namespaces;
mod nat;
mod newcomer;
mod nights;
mod no_udp;
mod opened;
mod pages;
mod plumbing;
mod process;
mod redials;
mod refusals;
mod relay_crowd;
mod relay_search;
mod shares;
mod sites;
mod sources;
mod tcp_bundle;
mod tcp_relays;
mod tcp_strangers;
mod units;

fn main() {
    // Hosts in namespaces run this program too, with words that say which part they play.
    if crowd::play::play() || sites::pour::play() || files::play() {
        return;
    }
    // Those that take longest come first, so that others run beside them.
    let tests = [
        pages::tests(),
        fleet::tests(),
        hosts::tests(),
        sites::tests(),
        gateway::tests(),
        detours::tests(),
        joining::tests(),
        emulated_gateways::tests(),
        emulate::tests(),
        namespaces::tests(),
        addresses::tests(),
        names::tests(),
        nat::tests(),
        opened::tests(),
        redials::tests(),
        relay_search::tests(),
        newcomer::tests(),
        nights::tests(),
        shares::tests(),
        no_udp::tests(),
        tcp_relays::tests(),
        broken_hops::tests(),
        tcp_strangers::tests(),
        cuts::tests(),
        tcp_bundle::tests(),
        relay_crowd::tests(),
        files::tests(),
        forward::tests(),
        backup::tests(),
        lane::tests(),
        floods::tests(),
        refusals::tests(),
        plumbing::tests(),
        sources::tests(),
        live::tests(),
        live_disk::tests(),
        live_crowd::tests(),
        live_uplinks::tests(),
        manual::tests(),
        marks::tests(),
        units::tests(),
        lending::tests(),
        crowd::tests(),
    ];
    common::machine::conclude(tests.into_iter().flatten().collect());
}
