//! A bounded channel whose sending end never waits: what does not fit is held, one handful of messages, and nothing else is made
//! until it left.
//!
//! Messages go by the handful: the first that is sent wakes who waits for it, who then often takes the processor at once, finds that one and
//! falls asleep again.

use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::vec::IntoIter;

/// The sending end.
pub(super) struct Outbox<T> {
    channel: SyncSender<Vec<T>>,
    held: Option<Vec<T>>,
}

/// The receiving end: gives messages one by one.
pub(super) struct Inbox<T> {
    channel: Receiver<Vec<T>>,
    taken: IntoIter<T>,
}

/// A mailbox for `size` handfuls.
pub(super) fn mailbox<T>(size: usize) -> (Outbox<T>, Inbox<T>) {
    let (channel, inbox) = sync_channel(size);
    (Outbox { channel, held: None }, Inbox { channel: inbox, taken: IntoIter::default() })
}

impl<T> Outbox<T> {
    /// Whether [`post`](Self::post) may be called.
    pub fn has_room(&mut self) -> bool {
        if let Some(held) = self.held.take() {
            self.post_all(held);
        }
        self.held.is_none()
    }

    /// Hangs up: what did not fit comes back, the rest will still be read.
    pub fn into_held(self) -> Vec<T> {
        self.held.unwrap_or_default()
    }

    /// Sends, or holds, a message.
    pub fn post(&mut self, message: T) {
        self.post_all(vec![message]);
    }

    /// Sends, or holds, a handful.
    pub fn post_all(&mut self, messages: Vec<T>) {
        debug_assert!(self.held.is_none(), "ask for room first");
        match self.channel.try_send(messages) {
            Ok(()) => {}
            Err(TrySendError::Full(messages)) => self.held = Some(messages),
            // Whoever took no more said so by the other way.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

impl<T> Inbox<T> {
    /// The next message, if there is one.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        loop {
            match self.taken.next() {
                Some(message) => return Ok(message),
                None => self.taken = self.channel.try_recv()?.into_iter(),
            }
        }
    }

    /// The next message: waits for it.
    pub fn recv(&mut self) -> Result<T, RecvError> {
        loop {
            match self.taken.next() {
                Some(message) => return Ok(message),
                None => self.taken = self.channel.recv()?.into_iter(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_and_keeps_its_place() {
        let (mut outbox, mut inbox) = mailbox(1);
        assert!(outbox.has_room());
        outbox.post(1);
        assert!(outbox.has_room());
        outbox.post_all(vec![2, 3]);
        assert!(!outbox.has_room());
        assert_eq!(inbox.recv(), Ok(1));
        assert!(outbox.has_room());
        assert_eq!((inbox.recv(), inbox.try_recv()), (Ok(2), Ok(3)));
        assert_eq!(inbox.try_recv(), Err(TryRecvError::Empty));
        drop(inbox);
        outbox.post(4);
        assert!(outbox.has_room(), "nobody is there to wait for");
    }
}
