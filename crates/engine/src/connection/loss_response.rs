//! The reaction to a loss, whichever way it was found.

use super::packet_contents::PacketContents;
use super::path::{Path, PathState};
use crate::config::Config;
use crate::data::Carried;
use crate::path::send::DetectedLosses;
use byway_control::{Congested, Controller, Trigger};
use byway_wire::Instant;
use byway_wire::frame::Ranges;

/// Why packets are taken for lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Evidence<'a> {
    /// Later packets were acknowledged, and the reordering time has passed.
    Holes,
    /// The receiver reports these packets as missing (PNACK).
    Missing(&'a Ranges<'a>),
    /// Nothing was acknowledged for a whole timeout.
    Timeout,
}

/// The effect of a loss on the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossOutcome {
    /// The loss says nothing about congestion.
    Nothing,
    /// Packets are lost, and whether that counts is the owner's to judge.
    Kept,
    /// The controller was informed, and may now allow other amounts on any path.
    Told,
}

/// Handles packets that are lost by `evidence`: their data are sent again by the best path, and the
/// controller is informed.
#[inline]
pub(super) fn judge(
    now: Instant,
    path: &mut Path,
    evidence: Evidence<'_>,
    contents: &mut PacketContents,
    controller: &mut dyn Controller,
    config: &Config,
) -> LossOutcome {
    let lost = |carried: &Carried| contents.lost(carried);
    let (trigger, losses) = match evidence {
        Evidence::Holes => (Trigger::Loss, path.send.detect_losses(now, lost)),
        Evidence::Missing(missing) => (Trigger::Loss, path.send.on_missing(now, missing.iter(), lost)),
        Evidence::Timeout => (Trigger::Timeout, path.send.on_timeout(now, lost)),
    };
    if let Some(losses) = losses {
        contents.standstill().on_failure(losses.first_sent_at, false);
    } else if trigger == Trigger::Timeout
        && let Some(sent_at) = path.send.oldest_data()
    {
        contents.standstill().on_failure(sent_at, true);
    }
    let congested = match (losses, trigger) {
        (Some(losses), _) => congested(now, trigger, &losses),
        // Even if all that was under way are questions whether the path lives.
        (None, Trigger::Timeout) => {
            Congested { trigger, first_sent_at: now, sent_at: now, now, bytes: 0, in_flight: 0 }
        }
        (None, _) => return LossOutcome::Nothing,
    };
    // A controller passes over the losses of a path that it does not govern. Silence there is no
    // sign of congestion.
    if trigger == Trigger::Timeout && path.state != PathState::Active {
        return LossOutcome::Nothing;
    }
    if trigger == Trigger::Loss && config.owner_judges_losses {
        return LossOutcome::Kept;
    }
    controller.on_congested(path.id(), &congested);
    LossOutcome::Told
}

fn congested(now: Instant, trigger: Trigger, losses: &DetectedLosses) -> Congested {
    Congested {
        trigger,
        first_sent_at: losses.first_sent_at,
        sent_at: losses.last_sent_at,
        now,
        bytes: losses.bytes,
        in_flight: losses.in_flight,
    }
}
