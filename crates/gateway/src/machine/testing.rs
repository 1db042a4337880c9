//! A gateway's parts, with one peer and without a session.

use super::config::{self, Settings};
use super::host_packets::Hosts;
use super::index_vec::{PeerIdx, TunnelIdx};
use super::loss_repair::LossRepair;
use super::packet_buffer::PacketBuffer;
use super::site_flows::Flows;
use super::tunnels::PeerSessions;
use crate::Prefix;
use crate::checksum::ChecksumState;
use crate::encap::Label;
use crate::rules::{Rule, Rules};
use crate::tcp_segment::Segment;
use crate::testing::{V4_ADDRESSES, build};
use alloc::vec::Vec;
use byway_engine::handshake::Identity;
use byway_engine::seal::Suites;
use byway_engine::{Endpoint, EndpointConfig};
use etherparse::TcpHeader;

/// The parts of a machine on which other parts work.
pub(super) struct Parts {
    pub links: PeerSessions,
    pub flows: Flows,
    pub losses: LossRepair,
    pub hosts: Hosts,
    pub peer: PeerIdx,
    pub site: TunnelIdx,
}

/// The peer may speak for the hosts to which [`build`] sends.
pub(super) fn parts(settings: Settings) -> Parts {
    let endpoint = Endpoint::new(EndpointConfig {
        identity: Identity::from_secret([1; 32]),
        suites: Suites::SECURE,
        seed: [2; 32],
        connection: byway_engine::Config::default(),
        admission: None,
        greeting: Vec::new(),
    });
    let peer = config::PeerConfig {
        name: "the other".into(),
        key: Identity::from_secret([3; 32]).public(),
        addresses: Vec::new(),
        allowed: alloc::vec![Prefix::of(V4_ADDRESSES.1.into(), 24)],
        relays: Vec::new(),
    };
    let told = (Vec::new(), Label::new(7));
    let links = PeerSessions::new(endpoint, "background".parse().unwrap(), told, alloc::vec![peer], settings);
    let (peer, site) = links.peers.iter().map(|(index, peer)| (index, peer.site)).next().unwrap();
    Parts {
        links,
        flows: Flows::new(Rules { rules: alloc::vec![Rule::default()] }, settings.flows),
        losses: LossRepair::new(&settings),
        hosts: Hosts::new(100),
        peer,
        site,
    }
}

/// Makes a packet of [`build`]'s hosts with these flags, and the packet's view.
pub(super) fn segment(flags: &str, sequence: u32, payload: &[u8]) -> (PacketBuffer, Segment) {
    let mut header = TcpHeader::new(40_000, 873, sequence, 500);
    (header.syn, header.ack) = (flags.contains('S'), flags.contains('A'));
    let packet = build(&header, payload);
    let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
    (PacketBuffer::copy(Vec::new(), &packet), segment)
}
