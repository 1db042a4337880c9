//! Queued events: for the owner, for the endpoint about relays, and for the peer about relays.

use super::relay_states::RelayId;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use byway_wire::frame::{AddressList, Frame, RelayConsent, RelayOffer};
use byway_wire::relay::Reason;
use byway_wire::{PathId, Writer};
use core::net::SocketAddr;

/// Events that wait for the owner at most; an owner that never looks loses the oldest.
const MAX_EVENTS: usize = 1024;
/// Room for the longest answer about a relay.
const MAX_ANSWER_LEN: usize = 192;

/// An event of a connection, for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer has proved that it has the keys, so that the HELLO was no replay. Work for the peer
    /// may begin.
    Confirmed,
    /// A path may carry data.
    PathUp(PathId),
    /// A path works, and carries no data for now.
    PathResting {
        /// The path that works and rests.
        path: PathId,
        /// The reason, for people.
        reason: &'static str,
    },
    /// A path is given up.
    PathDown {
        /// The id of the path, which is never used again.
        path: PathId,
        /// The reason, for people.
        reason: &'static str,
    },
    /// A direct path to an address that the peer opened, or was seen at, brought no answer.
    PathUnopened {
        /// The id of the path, which is never used again.
        path: PathId,
        /// The address.
        remote: SocketAddr,
        /// The reason, for people.
        reason: &'static str,
    },
    /// A relay reports why it does not forward the packets of a path.
    Notice {
        /// The path on which the relay was used.
        path: PathId,
        /// The reason that the relay reports.
        reason: Reason,
        /// Whether the report is authentic.
        proven: bool,
    },
    /// Every relay was tried, and the controller wishes for more paths, or [asks once all are
    /// probed](byway_control::Controller::asks_once_probed). The owner may
    /// [add](crate::Endpoint::add_relay) more relays.
    RelaysUsedUp,
    /// The connection is over.
    Closed {
        /// Zero: all is well.
        code: u64,
        /// The reason, for people.
        reason: String,
        /// Whether the peer closed the connection.
        by_peer: bool,
    },
}

/// A message about relays for the endpoint: from the peer, or from this side.
#[derive(Clone, Debug)]
pub(crate) enum RelayEvent {
    /// The peer offers a relay through which it would reach this host.
    Offered(RelayOffer),
    /// The peer's consent to be reached through a relay that was offered.
    Consented { offer: u32, address: SocketAddr, consent: Vec<u8> },
    /// The peer could not greet a relay that was offered.
    Refused(u32),
    /// A relay is to be greeted and offered to the peer.
    Greet(RelayId),
    /// A relay need not be known for now.
    Release(RelayId),
    /// The peer is silent where something was waited for. One of both may have another address.
    Silence,
    /// The addresses at which relays see the peer, as a question or an answer.
    Addresses { is_answer: bool, token: [u8; 8], addresses: Vec<SocketAddr> },
}

/// A message about a relay, until it is sent to the peer.
#[derive(Clone, Debug)]
pub(crate) enum RelayMessage {
    Offer(RelayOffer),
    Consent {
        offer: u32,
        address: SocketAddr,
        consent: Vec<u8>,
    },
    Refuse(u32),
    /// Addresses of this host, as the frame holds them.
    Addresses {
        is_answer: bool,
        token: [u8; 8],
        encoded: Vec<u8>,
    },
}

impl RelayMessage {
    fn frame(&self) -> Frame<'_> {
        match self {
            Self::Offer(offer) => Frame::RelayOffer(*offer),
            Self::Consent { offer, address, consent } => {
                Frame::RelayConsent(RelayConsent { offer: *offer, address: *address, consent })
            }
            Self::Refuse(offer) => Frame::RelayRefused(*offer),
            Self::Addresses { is_answer, token, encoded } => {
                Frame::Addresses(AddressList::new(*is_answer, *token, encoded))
            }
        }
    }
}

/// The events and relay messages of a connection that wait, in order.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    events: VecDeque<Event>,
    relays: VecDeque<RelayEvent>,
    answers: VecDeque<RelayMessage>,
}

impl PendingEvents {
    /// Queues an event for the owner.
    pub fn raise(&mut self, event: Event) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Queues a request about relays for the endpoint. There are at most as many as relays that are
    /// tried at once.
    pub fn want(&mut self, news: RelayEvent) {
        self.relays.push_back(news);
    }

    /// Queues a peer's message about relays. Beyond the limit, messages are discarded.
    pub fn tell(&mut self, news: RelayEvent) {
        if self.relays.len() < MAX_EVENTS {
            self.relays.push_back(news);
        }
    }

    pub fn next_relay_news(&mut self) -> Option<RelayEvent> {
        self.relays.pop_front()
    }

    /// Queues a message to the peer about a relay.
    pub fn answer(&mut self, answer: RelayMessage) {
        if self.answers.len() < MAX_EVENTS {
            self.answers.push_back(answer);
        }
    }

    /// Whether a message to the peer about a relay waits.
    pub fn has_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Writes messages to the peer about relays, as many as fit.
    pub fn write_answers(&mut self, writer: &mut Writer<'_>) {
        while writer.room() >= MAX_ANSWER_LEN
            && let Some(answer) = self.answers.pop_front()
        {
            answer.frame().write(writer);
        }
    }
}
