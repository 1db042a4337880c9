//! Balia, the balanced linked adaptation of Peng, Walid, Hwang and Low: "Multipath TCP: analysis, design, and implementation"
//! (IEEE/ACM Transactions on Networking 24, 2016), draft-walid-mptcp-congestion-control, and Linux (`mptcp_balia.c`).

use crate::bundle::{Decrease, Law, Member, Paths};
use byway_wire::PathId;

/// Increase and decrease of Balia, between LIA's readiness and OLIA's fairness; everything else is TCP's, path by path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia;

/// The source's alpha: the rate x = w/rtt of the fastest path over that of `path`, and the sum of all rates.
fn alpha(paths: &Paths<Member<()>>, path: PathId) -> Option<(f64, f64)> {
    let rate = paths.get(path)?.rate();
    let (fastest, sum) = paths
        .iter()
        .map(|(_, member)| member.rate())
        .fold((0.0_f64, 0.0), |(fastest, sum), rate| (fastest.max(rate), sum + rate));
    (rate > 0.0).then_some((fastest / rate, sum))
}

impl Law for Balia {
    type Memory = ();

    /// Per packet acknowledged: `x_r / (rtt_r (sum of x)^2) * (1 + alpha_r)/2 * (4 + alpha_r)/5`. On a single path this is TCP's
    /// 1/w. The kernel writes the same as packets to be acknowledged for one more,
    /// `10 w (sum of x)^2 / ((x_r + max x)(4 x_r + max x))`.
    fn increase(&self, paths: &Paths<Member<()>>, path: PathId, packets: f64) -> f64 {
        let Some(member) = paths.get(path) else { return 0.0 };
        let per_packet = match (alpha(paths, path), member.seconds()) {
            (Some((alpha, sum)), Some(rtt)) => {
                member.rate() / (rtt * sum * sum) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
            }
            _ => 1.0 / member.window.packets(),
        };
        packets * per_packet
    }

    /// Per loss: `w_r/2 * min (alpha_r, 1.5)` is taken off. The kernel leaves one packet at least where there are several paths,
    /// and does as TCP where there is one.
    fn decrease(&self, paths: &Paths<Member<()>>, path: PathId) -> Decrease {
        match alpha(paths, path) {
            Some((alpha, _)) if paths.len() > 1 => Decrease { keep: 1.0 - alpha.min(1.5) / 2.0, least: 1.0 },
            _ => Decrease::HALF,
        }
    }
}
