//! The receive window of a stream: the sender may send up to the offset that the application has
//! read, plus one window. MAX_STREAM_DATA is sent when it raises this limit by a quarter window.
//! [`window_tuning`](super::window_tuning) decides the size.

use super::window_tuning::WindowInputs;
use byway_wire::{Duration, Instant};

/// The flow-control window of one stream.
#[derive(Debug, Default)]
pub(super) struct StreamWindow {
    size: u64,
    /// The limit that was last sent to the peer, in bytes of the stream.
    limit: u64,
    /// Whether a new limit is to be sent.
    due: bool,
    /// Whether more than half of the window waits for a hole.
    pressed: bool,
    /// The time of the reader's last check, and its offset at that time.
    looked: (Option<Instant>, u64),
    /// The number of the last [round](super::window_tuning::Readers) in which the stream was read.
    pub round: u32,
}

impl StreamWindow {
    /// A window of `size` bytes, of which the peer knows.
    pub const fn new(size: u64) -> Self {
        Self { size, limit: size, due: false, pressed: false, looked: (None, 0), round: 0 }
    }

    /// Enlarges the window to `size`, if that is more. Returns whether the limit became due just
    /// now.
    pub fn widen(&mut self, size: u64) -> bool {
        let more = size > self.size;
        self.size = self.size.max(size);
        more && self.make_due()
    }

    /// The stream's window in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that the peer may send, or has sent, and that the owner at offset `read` has not read.
    pub const fn promised(&self, read: u64) -> u64 {
        self.limit - read
    }

    /// Whether the peer may have sent data up to `end`.
    pub const fn allows(&self, end: u64) -> bool {
        end <= self.limit
    }

    /// Notes that `held` bytes are held, and whether there is a hole before some of them. Returns
    /// whether the window has just become more than half full because of a hole.
    pub const fn press(&mut self, held: u64, hole: bool) -> bool {
        let pressed = held > self.size / 2 && hole;
        let before = core::mem::replace(&mut self.pressed, pressed);
        pressed && !before
    }

    /// Whether more than half of the window waits for a hole.
    pub const fn is_pressed(&self) -> bool {
        self.pressed
    }

    /// Notes that the application has read up to offset `read`, and that `held` bytes arrived and
    /// are unread. `is_known`: the final offset is known, so the peer needs no new limit. Returns
    /// whether to tell the peer a new limit.
    pub const fn on_read(&mut self, read: u64, held: u64, is_known: bool) -> bool {
        self.pressed &= held > self.size / 2;
        let grown = (read + self.size).saturating_sub(self.limit);
        grown >= self.size.div_ceil(4) && !is_known && self.make_due()
    }

    /// Notes that the packet with the limit was lost. Returns whether the limit became due just
    /// now.
    pub const fn tell_again(&mut self) -> bool {
        self.make_due()
    }

    const fn make_due(&mut self) -> bool {
        !core::mem::replace(&mut self.due, true)
    }

    /// Measures how fast the application reads. Call it when the application has read up to offset
    /// `read`. Returns the bytes read and the time passed since the last measurement. `None` until
    /// [a quarter of the window](WindowInputs::worth_a_look) was read.
    pub fn look(&mut self, now: Instant, read: u64) -> Option<(u64, Duration)> {
        let (Some(since), from) = self.looked else {
            self.looked = (Some(now), read);
            return None;
        };
        if read - from < WindowInputs::worth_a_look(self.size) {
            return None;
        }
        self.looked = (Some(now), read);
        Some((read - from, now.since(since)))
    }

    /// Sets the size of the window.
    pub const fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    /// Returns the offset up to which the peer may send, now that the owner has read up to offset
    /// `read`.
    pub fn tell(&mut self, read: u64) -> u64 {
        self.limit = self.limit.max(read + self.size);
        self.limit
    }

    /// Notes that the limit was sent, or is no longer needed.
    pub const fn told(&mut self) {
        self.due = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_window_is_worth_a_frame() {
        let mut window = StreamWindow::new(100);
        assert!(window.allows(100) && !window.allows(101));
        assert!(
            !window.on_read(24, 0, false) && window.on_read(25, 0, false) && !window.on_read(60, 0, false)
        );
        assert_eq!(window.tell(60), 160);
        window.told();
        assert!(window.allows(160) && !window.on_read(84, 0, false) && !window.on_read(99, 0, true));
        assert!(window.tell_again() && !window.tell_again(), "the frame was lost");
    }

    #[test]
    fn what_was_told_stays_when_the_window_becomes_smaller() {
        let mut window = StreamWindow::new(100);
        assert!(window.widen(400) && !window.widen(500) && !window.widen(200));
        assert_eq!((window.size(), window.tell(0), window.promised(30)), (500, 500, 470));
        window.told();
        window.set_size(80);
        assert!(!window.on_read(430, 0, false), "it may send more than its window as it is");
        assert_eq!(window.tell(430), 510);
        assert!(window.on_read(460, 0, false));
        assert_eq!(window.tell(460), 540);
    }

    #[test]
    fn the_reader_is_looked_at_after_each_quarter_of_a_window() {
        let mut window = StreamWindow::new(100);
        let at = Instant::from_millis;
        assert_eq!((window.look(at(5), 10), window.look(at(7), 34)), (None, None));
        assert_eq!(window.look(at(9), 35), Some((25, Duration::from_millis(4))));
        assert_eq!(window.look(at(9), 35), None);
    }

    #[test]
    fn a_window_half_full_behind_a_hole_is_pressed_once() {
        let mut window = StreamWindow::new(100);
        assert!(!window.press(50, true) && !window.press(80, false) && window.press(51, true));
        assert!(!window.press(60, true) && window.is_pressed());
        window.on_read(10, 50, false);
        assert!(!window.is_pressed() && window.press(51, true));
    }
}
