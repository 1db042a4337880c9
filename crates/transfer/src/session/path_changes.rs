//! A sender's reports about its paths and relays: each change once.

use crate::error::TransferError;
use crate::events::TransferEvent;
use crate::path_names::route_name;
use crate::progress::state_name;
use byway_engine::Connection;
use byway_engine::connection::Event;
use byway_wire::PathId;
use byway_wire::relay::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The last reported state of a connection's paths.
#[derive(Default)]
pub struct PathChanges {
    /// The name of each path that is up, and the first address to which its packets are sent.
    names: BTreeMap<PathId, (String, SocketAddr)>,
    /// Notices of relays that were reported: the relay's name, and the reason's number. Each is
    /// reported once.
    notices: BTreeSet<(String, u8)>,
    /// Relays that reported a used-up quota, with the reason. `None`: a relay on a path that was
    /// never usable.
    used_up: BTreeMap<Option<SocketAddr>, Reason>,
    /// Whether it was reported that no direct path opens. A direct path that opens resets this.
    is_told_unopened: bool,
}

impl PathChanges {
    /// Handles an event of the connection. Returns the event to report, if any.
    pub fn on_event(
        &mut self,
        event: Event,
        connection: &Connection,
        locals: &[SocketAddr],
    ) -> Option<TransferEvent> {
        let find = |path: PathId| connection.status().paths.into_iter().find(|it| it.id == path);
        match event {
            Event::PathUp(path) => {
                let status = find(path)?;
                let (name, remote) = (route_name(&status.route, locals), status.route.remote);
                self.is_told_unopened &= status.route.is_proxied();
                if status.route.is_proxied() {
                    self.used_up.retain(|relay, _| relay.is_some_and(|relay| relay != remote));
                }
                self.names.insert(path, (name.clone(), remote));
                Some(TransferEvent::Path {
                    path: path.0,
                    name,
                    state: state_name(status.state),
                    reason: None,
                })
            }
            Event::PathResting { path, reason } => {
                let (name, _) = self.names.get(&path)?.clone();
                Some(TransferEvent::Path {
                    path: path.0,
                    name,
                    state: "available",
                    reason: Some(reason.to_owned()),
                })
            }
            // Of a path that never worked, a notice told why.
            Event::PathDown { path, reason } => {
                let (name, _) = self.names.remove(&path)?;
                Some(TransferEvent::Path {
                    path: path.0,
                    name,
                    state: "closed",
                    reason: Some(reason.to_owned()),
                })
            }
            Event::PathUnopened { path, remote, reason } => {
                let is_told = std::mem::replace(&mut self.is_told_unopened, true);
                (!is_told).then(|| TransferEvent::Path {
                    path: path.0,
                    name: format!("direct to {remote}"),
                    state: "closed",
                    reason: Some(reason.to_owned()),
                })
            }
            Event::Notice { path, reason, proven } => {
                // A path that was refused at once is gone by now.
                let known = self.names.get(&path).map(|(name, _)| name.clone());
                let name = known.or_else(|| find(path).map(|it| route_name(&it.route, locals)));
                let said = name.is_none() && self.notices.iter().any(|(_, other)| *other == reason as u8);
                let name = name.unwrap_or_else(|| String::from("a relay"));
                if proven && matches!(reason, Reason::OverQuota | Reason::RelayQuota) {
                    self.used_up.insert(self.names.get(&path).map(|(_, relay)| *relay), reason);
                }
                let says = if proven { "says" } else { "seems to say" };
                let is_new = !said && self.notices.insert((name.clone(), reason as u8));
                is_new.then(|| TransferEvent::Warning(format!("{name} {says}: {reason}")))
            }
            Event::Closed { .. } | Event::Confirmed | Event::RelaysUsedUp => None,
        }
    }

    /// Whether a relay reported that its quota is used up.
    #[must_use]
    pub fn is_quota_used_up(&self) -> bool {
        !self.used_up.is_empty()
    }

    /// The error to report for a lost session. If nothing got through and a relay's quota is used
    /// up, the error names both.
    #[must_use]
    pub fn explain(&self, error: TransferError) -> TransferError {
        match (&error, self.used_up.values().next()) {
            (TransferError::ConnectionLost | TransferError::Standstill, Some(reason)) => {
                TransferError::QuotaUsedUp(*reason)
            }
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_whose_quota_is_used_up_is_named_beside_the_silence() {
        let mut changes = PathChanges::default();
        let lost = |changes: &PathChanges| changes.explain(TransferError::ConnectionLost).to_string();
        let silent = lost(&changes);
        assert!(silent.contains("nothing was heard"), "{silent}");
        changes.used_up.insert(None, Reason::RelayQuota);
        let told = lost(&changes);
        assert!(told.starts_with("the connection was lost"), "{told}");
        assert!(told.contains(&Reason::RelayQuota.to_string()), "{told}");
        let stopped = changes.explain(TransferError::Stopped);
        assert!(matches!(stopped, TransferError::Stopped), "{stopped}");
    }
}
