//! The contents of packets, and their fate. That is streams and objects, datagrams, and the names
//! of dropped paths.

use super::closed_paths::ClosedPaths;
use super::datagram_queues::Datagrams;
use super::pending_datagrams::Outbox;
use super::standstill::Standstill;
use crate::config::{Config, Params};
use crate::data::{Carried, Incoming, Outgoing};
use crate::role::Role;

/// The contents of a connection's packets: streams, objects, datagrams, and dropped paths.
#[derive(Debug)]
pub(super) struct PacketContents {
    out: Outgoing,
    incoming: Incoming,
    datagrams: Datagrams,
    closed_paths: ClosedPaths,
    standstill: Standstill,
    /// Whether the owner has nothing more to add.
    finishing: bool,
}

impl PacketContents {
    pub fn new(config: &Config, params: &Params, role: Role) -> Self {
        let mut out = Outgoing::new(config.outgoing).made_of(config.payload).belonging_to(role);
        out.set_initial_max_streams(params.max_streams);
        out.on_max_data(params.max_data);
        out.set_initial_stream_limit(params.max_stream_data);
        let mut incoming = Incoming::new(config.incoming).made_of(config.payload).belonging_to(role);
        if let Some(least) = config.least_window() {
            incoming = incoming.sharing(least);
        }
        let (datagrams, closed_paths) = (Datagrams::new(config), ClosedPaths::default());
        let standstill = Standstill::default();
        Self { out, incoming, datagrams, closed_paths, standstill, finishing: false }
    }

    pub const fn out(&mut self) -> &mut Outgoing {
        &mut self.out
    }

    /// The receiving side, after it is told which streams this side has opened.
    pub const fn incoming(&mut self) -> &mut Incoming {
        self.incoming.opened_here(self.out.opened());
        &mut self.incoming
    }

    /// How long frames of streams waited for bytes before them.
    #[cfg(feature = "studies")]
    pub fn order_waits(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.incoming.order_waits()
    }

    /// Counts the peer's streams that are over in both directions.
    fn settle_streams(&mut self) {
        for id in self.incoming.take_ended() {
            if !self.out.answer_ends(id) {
                self.incoming.on_streams_over(1);
            }
        }
        self.incoming.on_streams_over(self.out.take_answers_over());
    }

    pub const fn datagrams(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }

    pub const fn farewells(&mut self) -> &mut ClosedPaths {
        &mut self.closed_paths
    }

    /// The detector of streams and objects that make no progress.
    pub const fn standstill(&mut self) -> &mut Standstill {
        &mut self.standstill
    }

    /// Returns why no more data are sent, if the window is not the reason.
    pub fn blocked_by(&self) -> Option<crate::data::Blocked> {
        self.out.blocked_by()
    }

    /// One more than the highest path id of this side that the peer is known to have seen.
    pub const fn known_ids(&self) -> u32 {
        self.closed_paths.known()
    }

    /// Whether data of streams and objects want to be sent.
    pub fn has_data(&self) -> bool {
        self.out.wants_to_send()
    }

    /// Whether data or datagrams want to be sent.
    pub fn has_any(&self) -> bool {
        self.has_data() || self.datagrams.waiting() > 0
    }

    /// Whether limits, refusals or close notifications want to be sent.
    pub fn has_control(&mut self) -> bool {
        self.settle_streams();
        self.incoming.wants_to_send() || !self.closed_paths.is_empty()
    }

    /// The owner has nothing more to add.
    pub const fn finish(&mut self) {
        self.finishing = true;
    }

    /// Whether the owner has nothing more to add.
    pub const fn is_finishing(&self) -> bool {
        self.finishing
    }

    /// Takes the unsent datagrams of a path back.
    pub fn recall(&mut self, outbox: &mut Outbox) {
        self.datagrams.recall(outbox);
    }

    /// Notes that the contents of a packet arrived.
    pub fn arrived(&mut self, carried: &Carried) {
        match carried {
            Carried::Datagram(mark) => self.datagrams.on_fate(*mark, true),
            Carried::PathDropped(id) => self.closed_paths.on_known(*id),
            _ => {
                self.standstill.on_arrived();
                self.out.on_acked(carried);
            }
        }
    }

    /// Notes that the contents of a packet are lost. Reliable contents are sent again.
    pub fn lost(&mut self, carried: &Carried) {
        match carried {
            Carried::Datagram(mark) => self.datagrams.on_fate(*mark, false),
            Carried::PathDropped(id) => self.closed_paths.push(*id),
            Carried::MaxStreams | Carried::MaxData | Carried::MaxStreamData(_) | Carried::StopSending(_) => {
                self.incoming.on_lost(carried);
            }
            _ => {
                self.standstill.on_lost();
                self.out.on_lost(carried);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ProtocolError;
    use byway_wire::frame::{Frame, Frames, Stream};
    use byway_wire::{Duration, Instant, PathId, StreamId, Writer};

    #[test]
    fn a_dropped_path_is_told_until_it_is_known() {
        let config = Config { datagrams: 4, ..Config::default() };
        let mut contents = PacketContents::new(&config, &Params::of(&config), Role::Responder);
        contents.farewells().push(PathId(3));
        for _ in 0..3 {
            assert!(contents.has_control());
            assert_eq!(contents.farewells().pop(), Some(PathId(3)));
            assert!(!contents.has_control());
            contents.lost(&Carried::PathDropped(PathId(3)));
        }
        contents.farewells().pop();
        contents.arrived(&Carried::PathDropped(PathId(3)));
        assert_eq!((contents.known_ids(), contents.has_control()), (4, false));
    }

    #[test]
    fn a_stream_is_over_when_both_directions_are() {
        let mut config = Config::default();
        config.incoming.streams = 1;
        let mut contents = PacketContents::new(&config, &Params::of(&config), Role::Responder);
        let mut told = alloc::vec![];
        let mut tell = |contents: &mut PacketContents| {
            let due = contents.has_control();
            let (mut buffer, mut carried) = ([0; 100], smallvec::SmallVec::new());
            let mut writer = Writer::new(&mut buffer);
            contents.incoming().fill(Instant::ZERO, Duration::ZERO, &mut writer, &mut carried);
            assert_eq!(due, !writer.is_empty());
            for frame in Frames::new(writer.written()) {
                told.push(match frame {
                    Ok(Frame::MaxStreams(limit)) => limit,
                    other => panic!("{other:?}"),
                });
            }
            told.len()
        };
        let ends = |id| Stream { id: StreamId(id), offset: 0, data: b"", fin: true };
        let read = |contents: &mut PacketContents, id| {
            assert!(contents.incoming().read(StreamId(id), &mut [0; 9]).is_some_and(|read| read.finished));
        };
        let now = Instant::ZERO;
        // Nobody answers.
        contents.incoming().on_stream(now, &ends(0)).unwrap();
        assert_eq!(tell(&mut contents), 0);
        read(&mut contents, 0);
        assert_eq!(tell(&mut contents), 1);
        // The answer ends last.
        contents.incoming().on_stream(now, &ends(2)).unwrap();
        contents.out().open_stream(StreamId(2));
        read(&mut contents, 2);
        contents.out().finish(StreamId(2));
        assert_eq!(tell(&mut contents), 1);
        let end = |id| Carried::Stream { id: StreamId(id), offset: 0, length: 0, fin: true };
        contents.arrived(&end(2));
        assert_eq!(tell(&mut contents), 2);
        // The answer ends first.
        contents.incoming().on_reset_stream(StreamId(4), 7).unwrap();
        contents.out().open_stream(StreamId(4));
        contents.out().finish(StreamId(4));
        contents.arrived(&end(4));
        assert_eq!(tell(&mut contents), 2);
        while contents.incoming().next_event().is_some() {}
        contents.incoming().on_stream(now, &ends(4)).unwrap();
        assert_eq!(tell(&mut contents), 3);
        // One that this side opened is no business of the peer's limit, and one that nobody opened
        // is an error.
        let code = |result: Result<(), ProtocolError>| result.unwrap_err().code;
        assert_eq!(code(contents.incoming().on_stream(now, &ends(1))), ProtocolError::STREAM_STATE);
        contents.out().open_next().unwrap();
        contents.incoming().on_stream(now, &ends(1)).unwrap();
        read(&mut contents, 1);
        assert_eq!(tell(&mut contents), 3);
        assert_eq!(code(contents.incoming().on_stream(now, &ends(8))), ProtocolError::STREAM_LIMIT);
        assert_eq!(told, [2, 3, 4]);
    }

    #[test]
    fn the_fate_of_a_datagram_is_told_under_its_mark() {
        let config = Config { datagrams: 4, ..Config::default() };
        let mut contents = PacketContents::new(&config, &Params::of(&config), Role::Responder);
        contents.lost(&Carried::Datagram(8));
        contents.arrived(&Carried::Datagram(9));
        let fates = core::iter::from_fn(|| contents.datagrams().next_fate());
        let fates: alloc::vec::Vec<_> = fates.map(|fate| (fate.mark, fate.arrived)).collect();
        assert_eq!(fates, [(8, false), (9, true)]);
    }
}
