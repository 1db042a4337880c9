//! What follows a loss, however it was found out.

use super::Connection;
use super::path::State;
use crate::data::Carried;
use crate::path::send::Losses;
use byway_control::{Congested, Trigger};
use byway_wire::frame::Ranges;
use byway_wire::{Instant, PathId};

/// What tells that packets are lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Evidence<'a> {
    /// Later ones were acknowledged, and they were waited for long enough.
    Holes,
    /// The receiver says that it misses these (PNACK).
    Missing(&'a Ranges<'a>),
    /// Nothing was acknowledged for a whole timeout.
    Timeout,
}

impl Connection {
    /// Takes for lost what `evidence` says is: it goes out again on whichever path is best, and the controller hears of it. Returns
    /// whether there was anything of which it hears.
    pub(super) fn judge_losses(&mut self, now: Instant, id: PathId, evidence: Evidence<'_>) -> bool {
        let Self { paths, exchange, controller, config, .. } = self;
        let Some(path) = paths.quietly(id) else { return false };
        let lost = |carried: &Carried| exchange.lost(carried);
        let (trigger, losses) = match evidence {
            Evidence::Holes => (Trigger::Loss, path.send.detect_losses(now, lost)),
            Evidence::Missing(missing) => (Trigger::Loss, path.send.on_missing(now, missing.iter(), lost)),
            Evidence::Timeout => (Trigger::Timeout, path.send.on_timeout(now, lost)),
        };
        let congested = match (losses, evidence) {
            (Some(losses), _) => congested(now, trigger, &losses),
            // Even if all that was under way are questions whether the path lives.
            (None, Evidence::Timeout) => {
                Congested { trigger, first_sent_at: now, sent_at: now, now, bytes: 0, in_flight: 0 }
            }
            (None, _) => return false,
        };
        // A controller passes over the losses of a path that it does not govern. Silence there is no sign of congestion.
        let governed = trigger == Trigger::Loss || path.state == State::Active;
        let told = governed && (trigger == Trigger::Timeout || !config.owner_judges_losses);
        if told {
            controller.on_congested(id, &congested);
            paths.judge_all();
        }
        if governed {
            paths.judge(id);
        }
        governed
    }
}

fn congested(now: Instant, trigger: Trigger, losses: &Losses) -> Congested {
    Congested {
        trigger,
        first_sent_at: losses.first_sent_at,
        sent_at: losses.last_sent_at,
        now,
        bytes: losses.bytes,
        in_flight: losses.in_flight,
    }
}
