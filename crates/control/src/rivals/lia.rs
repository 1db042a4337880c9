//! LIA, the linked increases of RFC 6356: all paths together take as much as one TCP on the best
//! path.

use crate::bundle::{CoupledPath, Law, Paths};
use byway_wire::PathId;

/// The increase of RFC 6356, section 3. Everything else is TCP's (RFC 5681), path by path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia;

impl Law for Lia {
    type Memory = ();

    /// RFC 6356, equation 1, per ACK: `min (alpha * bytes_acked * MSS_i / cwnd_total, bytes_acked *
    /// MSS_i / cwnd_i)`. The second term is the growth of a TCP on path i, so no path grows faster
    /// than a TCP.
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
        // RFC 6356, equation 2: `alpha = cwnd_total * MAX (cwnd_i/rtt_i^2) / (SUM
        // (cwnd_i/rtt_i))^2`, with windows in bytes. `linked` is `alpha / cwnd_total`. The result
        // is the increase of equation 1 in packets, so divided by MSS_i.
        let linked = if sum > 0.0 { best / (sum * sum) } else { f64::INFINITY };
        packets * member.window.packet() * linked.min(1.0 / member.window.bytes())
    }
}
