//! Whether a path's ECN marks mean anything (RFC 9000 section 13.4.2).

/// Packets whose marks are watched before any is believed: as many as RFC 9000, appendix A.4, sends
/// for a trial.
const TRIAL_PACKETS: u64 = 10;

/// The validation of ECN on one path. Some routers set CE on every packet, which would keep the
/// sender at its smallest window. So if every packet of the trial has a CE mark, the path's marks
/// are ignored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validation {
    acked: u64,
    state: EcnState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EcnState {
    /// All packets are marked as ECN-capable, and none was judged yet.
    #[default]
    Trial,
    /// Some packets came back without a CE mark, so the path does not mark everything.
    Capable,
    /// The path marks every packet, so the marks mean nothing.
    Mangled,
}

impl Validation {
    /// Whether packets should leave as capable of ECN.
    #[must_use]
    pub fn is_used(self) -> bool {
        self.state != EcnState::Mangled
    }

    /// Handles an ACK of `packets` packets with `marks` new marks. Returns the marks that indicate
    /// congestion.
    pub fn on_ack(&mut self, packets: u32, marks: u32) -> u32 {
        if self.state == EcnState::Capable {
            return marks;
        }
        if self.state == EcnState::Trial {
            self.acked += u64::from(packets);
            if marks < packets {
                self.state = EcnState::Capable;
                return marks;
            }
            if self.acked >= TRIAL_PACKETS {
                self.state = EcnState::Mangled;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_count_once_one_packet_came_without() {
        let mut ecn = Validation::default();
        assert_eq!(ecn.on_ack(3, 3), 0);
        assert_eq!(ecn.on_ack(3, 1), 1);
        assert_eq!(ecn.on_ack(100, 100), 100);
        assert!(ecn.is_used());
    }

    #[test]
    fn a_path_that_marks_everything_is_not_believed() {
        let mut ecn = Validation::default();
        for _ in 0..3 {
            assert!(ecn.is_used());
            assert_eq!(ecn.on_ack(4, 4), 0);
        }
        assert!(!ecn.is_used());
        assert_eq!(ecn.on_ack(4, 1), 0, "marks of before");
    }
}
