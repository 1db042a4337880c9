//! A bounded channel whose sending end never waits: what does not fit is held, one message, and nothing else is made
//! until it left.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// The sending end.
pub(super) struct Outbox<T> {
    channel: SyncSender<T>,
    held: Option<T>,
}

/// A mailbox for `size` messages.
pub(super) fn mailbox<T>(size: usize) -> (Outbox<T>, Receiver<T>) {
    let (channel, inbox) = sync_channel(size);
    (Outbox { channel, held: None }, inbox)
}

impl<T> Outbox<T> {
    /// Whether [`post`](Self::post) may be called.
    pub fn has_room(&mut self) -> bool {
        if let Some(held) = self.held.take() {
            self.post(held);
        }
        self.held.is_none()
    }

    /// Hangs up: what did not fit comes back, the rest will still be read.
    pub fn into_held(self) -> Option<T> {
        self.held
    }

    /// Sends, or holds, a message.
    pub fn post(&mut self, message: T) {
        debug_assert!(self.held.is_none(), "ask for room first");
        match self.channel.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Full(message)) => self.held = Some(message),
            // Whoever took no more said so by the other way.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_and_keeps_its_place() {
        let (mut outbox, inbox) = mailbox(1);
        assert!(outbox.has_room());
        outbox.post(1);
        assert!(outbox.has_room());
        outbox.post(2);
        assert!(!outbox.has_room());
        assert_eq!(inbox.recv(), Ok(1));
        assert!(outbox.has_room());
        assert_eq!(inbox.recv(), Ok(2));
        drop(inbox);
        outbox.post(3);
        assert!(outbox.has_room(), "nobody is there to wait for");
    }
}
