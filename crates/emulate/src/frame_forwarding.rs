//! Carrying: what a device lets out goes into a line, what is due at a line's end goes into the
//! device there.

use crate::ethernet_frame;
use crate::lateness::Lateness;
use crate::packet_socket::{ClockPair, ControlBuffer, Port};
use crate::simplex_link::SimplexLink;
use byway_net::Clock;
use byway_wire::Instant;
use std::io;

/// The most frames that are read from one device before the other devices have their turn and due
/// frames are sent.
const BATCH_FRAMES: usize = 32;
/// Bytes of the largest frame, for any MTU of a device.
const MAX_FRAME_LEN: usize = 65_600;

/// The wires of a lab. `ports[2 * w + e]` is the packet socket at end `e` (0 or 1) of wire `w`.
/// `lines[2 * w + e]` carries frames from this end to the other end.
pub(crate) struct LabWires<'a> {
    clock: Clock,
    ports: &'a [Port],
    lines: Vec<SimplexLink>,
    lateness: Lateness,
    frame: Vec<u8>,
    control: ControlBuffer,
}

impl<'a> LabWires<'a> {
    pub(crate) fn new(clock: Clock, ports: &'a [Port], lines: Vec<SimplexLink>) -> Self {
        let lateness = Lateness::default();
        Self { clock, ports, lines, lateness, frame: vec![0; MAX_FRAME_LEN], control: ControlBuffer::new() }
    }

    /// Reads the frames that wait at a port. If more are left, the port stays readable.
    pub(crate) fn fetch(&mut self, index: usize) -> io::Result<()> {
        let (Some(port), Some(line)) = (self.ports.get(index), self.lines.get_mut(index)) else {
            return Ok(());
        };
        let clocks = ClockPair::read(&self.clock);
        for _ in 0..BATCH_FRAMES {
            let Some(fetched) = port.fetch(&mut self.frame, &mut self.control)? else { break };
            self.lateness.missed += fetched.missed;
            let frame = self.frame.get(..fetched.length);
            if let Some(frame) = frame.filter(|frame| !ethernet_frame::nobody_sent(frame)) {
                line.offer(clocks.came(fetched.stamp), frame);
            }
        }
        Ok(())
    }

    /// Lets all leave that is due.
    pub(crate) fn deliver(&mut self) {
        let Self { clock, ports, lines, lateness, .. } = self;
        let now = clock.now();
        for (index, line) in lines.iter_mut().enumerate() {
            if line.deadline().is_none_or(|deadline| deadline > now) {
                continue;
            }
            // Its far end is the other of the two.
            let Some(port) = ports.get(index ^ 1) else { continue };
            line.deliver(now, |due, frame| {
                if port.put(frame) {
                    lateness.note(due, clock.now());
                } else {
                    lateness.refused += 1;
                }
            });
        }
    }

    /// When something is due next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lines.iter().filter_map(SimplexLink::deadline).min()
    }

    pub(crate) fn lines(&self) -> &[SimplexLink] {
        &self.lines
    }

    pub(crate) const fn lateness(&self) -> Lateness {
        self.lateness
    }
}
