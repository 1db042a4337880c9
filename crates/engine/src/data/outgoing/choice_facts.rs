//! What a path rule must know of the data that wait.

use super::Outgoing;
use crate::path_choice::SessionFacts;

impl Outgoing {
    /// The facts of the stream whose turn it is. Without one, those of the objects.
    pub(crate) fn choice_facts(&self) -> SessionFacts {
        let credit = self.credit();
        let turn = self.ready.front().and_then(|id| self.streams.get(id));
        if let Some(stream) = turn {
            let sent = stream.track.sent;
            let left = stream.limit.saturating_sub(sent).min(credit);
            let unacked = sent - stream.track.acked.prefix();
            return SessionFacts { send_window: left + unacked, unsent: stream.end().saturating_sub(sent) };
        }
        let unsent = self.order.iter().filter_map(|id| self.objects.get(*id));
        SessionFacts {
            send_window: credit + (self.progress.sent - self.progress.acked),
            unsent: unsent.map(|object| object.size - object.track.sent).sum(),
        }
    }
}
