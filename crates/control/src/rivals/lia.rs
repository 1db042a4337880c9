//! LIA, the linked increases of RFC 6356: all paths together take as much as one TCP on the best
//! path.

use crate::bundle::{CoupledPath, Law, Paths};
use byway_wire::PathId;

/// The increase of RFC 6356, section 3. Everything else is TCP's (RFC 5681), path by path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia;

impl Law for Lia {
    type Memory = ();

    /// Equation 1, per ACK:
    /// `min (alpha * bytes_acked * MSS_i / cwnd_total, bytes_acked * MSS_i / cwnd_i)`. The second
    /// term keeps a path from growing faster than a TCP on the same path.
    fn increase(&self, paths: &Paths<CoupledPath<()>>, path: PathId, packets: f64) -> f64 {
        let Some(member) = paths.get(path) else { return 0.0 };
        let (mut sum, mut best) = (0.0_f64, 0.0_f64);
        for (_, member) in paths.iter() {
            if let Some(rtt) = member.seconds() {
                let bytes = member.window.bytes();
                sum += bytes / rtt;
                best = best.max(bytes / (rtt * rtt));
            }
        }
        // Equation 2: `alpha = cwnd_total * MAX (cwnd_i/rtt_i^2) / (SUM (cwnd_i/rtt_i))^2`.
        // `linked` is alpha divided by cwnd_total, as equation 1 needs it. Windows are in bytes, so
        // that paths with different packet sizes count alike. The increase is in packets, so
        // equation 1 is divided by MSS_i.
        let linked = if sum > 0.0 { best / (sum * sum) } else { f64::INFINITY };
        packets * member.window.packet() * linked.min(1.0 / member.window.bytes())
    }
}
