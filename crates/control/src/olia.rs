//! OLIA, the opportunistic linked increases of Khalili, Gast, Popovic and Le Boudec: "MPTCP is not Pareto-optimal"
//! (CoNEXT 2012), draft-khalili-mptcp-congestion-control, and Linux (multipath-tcp.org, `mptcp_olia.c`).

use crate::Acked;
use crate::bundle::{Law, Member, Paths};
use byway_wire::PathId;

/// The increase of OLIA; everything else is TCP's, path by path.
///
/// What the paper calls the best paths, B, are those that would carry most if a TCP were alone on them; M are those with the
/// largest windows. While some best path has not the largest window, it grows at the expense of those that have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Olia;

/// Bytes acknowledged between losses: the paper's l, by which it estimates 1/p.
#[derive(Clone, Copy, Debug, Default)]
pub struct Distance {
    since: f64,
    between: f64,
}

impl Distance {
    /// l: since the last loss, or between the last two if that is more.
    fn longest(self) -> f64 {
        self.since.max(self.between)
    }
}

/// What ranks a path among the best: l/rtt^2, as paper and kernel have it (the draft writes l^2/rtt). The windows of two paths
/// that TCP would fill are sqrt(2 l), so their rates compare like the roots of this.
fn quality(member: &Member<Distance>) -> f64 {
    member.seconds().map_or(-1.0, |rtt| member.memory.longest() / (rtt * rtt))
}

/// Windows are compared in whole packets, as the kernel counts them: two that differ by less are equal.
fn whole(member: &Member<Distance>) -> u64 {
    member.window.packets() as u64
}

/// The paper's alpha of `path`: what it gains from, or cedes to, the others.
fn alpha(paths: &Paths<Member<Distance>>, path: PathId) -> f64 {
    let known = || paths.iter().filter(|(_, member)| member.rtt.is_some());
    let largest = known().map(|(_, member)| whole(member)).max().unwrap_or(0);
    let best = known().map(|(_, member)| quality(member)).fold(0.0, f64::max);
    let in_m = |member: &Member<Distance>| whole(member) == largest;
    let in_b = |member: &Member<Distance>| quality(member) >= best;
    let neglected = known().filter(|(_, member)| in_b(member) && !in_m(member)).count() as f64;
    let (count, most) = (known().count() as f64, known().filter(|(_, member)| in_m(member)).count() as f64);
    match paths.get(path) {
        Some(member) if neglected > 0.0 && in_m(member) => -1.0 / (count * most),
        Some(member) if neglected > 0.0 && in_b(member) => 1.0 / (count * neglected),
        _ => 0.0,
    }
}

impl Law for Olia {
    type Memory = Distance;

    fn heard(&mut self, paths: &mut Paths<Member<Distance>>, path: PathId, acked: &Acked<'_>) {
        if let Some(member) = paths.get_mut(path) {
            member.memory.since += acked.bytes as f64;
        }
    }

    /// Per packet acknowledged: `(w_r/rtt_r^2) / (sum of w_p/rtt_p)^2 + alpha_r/w_r`.
    fn increase(&self, paths: &Paths<Member<Distance>>, path: PathId, packets: f64) -> f64 {
        let Some(member) = paths.get(path) else { return 0.0 };
        let window = member.window.packets();
        let sum: f64 = paths.iter().map(|(_, member)| member.rate()).sum();
        let linked = match member.seconds() {
            Some(rtt) => window / (rtt * rtt) / (sum * sum),
            None => 1.0 / window,
        };
        packets * (linked + alpha(paths, path) / window)
    }

    fn lost(&mut self, paths: &mut Paths<Member<Distance>>, path: PathId) {
        if let Some(member) = paths.get_mut(path) {
            let distance = &mut member.memory;
            // A loss before anything was acknowledged since the one before is no new distance.
            if distance.since > 0.0 {
                *distance = Distance { since: 0.0, between: distance.since };
            }
        }
    }
}
