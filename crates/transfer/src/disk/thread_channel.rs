//! A bounded channel between threads whose sending end never waits. A batch that does not fit is
//! held, and no other may be sent until it fits. Messages come in batches, because each send may
//! wake the receiving thread.

use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::vec::IntoIter;

/// The sending end of the channel.
pub(crate) struct BatchSender<T> {
    channel: SyncSender<Vec<T>>,
    held: Option<Vec<T>>,
}

/// The receiving end of the channel. It returns messages one by one.
pub(crate) struct BatchReceiver<T> {
    channel: Receiver<Vec<T>>,
    taken: IntoIter<T>,
}

/// A channel for `size` batches.
pub(crate) fn batch_channel<T>(size: usize) -> (BatchSender<T>, BatchReceiver<T>) {
    let (channel, receiver) = sync_channel(size);
    (BatchSender { channel, held: None }, BatchReceiver { channel: receiver, taken: IntoIter::default() })
}

impl<T> BatchSender<T> {
    /// Whether [`send`](Self::send) may be called.
    pub fn has_room(&mut self) -> bool {
        if let Some(held) = self.held.take() {
            self.send_all(held);
        }
        self.held.is_none()
    }

    /// Closes the channel. Returns the batch that was not sent. The receiver still reads the
    /// earlier batches.
    pub fn into_held(self) -> Vec<T> {
        self.held.unwrap_or_default()
    }

    /// Sends, or holds, a message.
    pub fn send(&mut self, message: T) {
        self.send_all(vec![message]);
    }

    /// Sends, or holds, a batch.
    pub fn send_all(&mut self, messages: Vec<T>) {
        debug_assert!(self.held.is_none(), "ask for room first");
        match self.channel.try_send(messages) {
            Ok(()) => {}
            Err(TrySendError::Full(messages)) => self.held = Some(messages),
            // Whoever took no more said so by the other way.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

impl<T> BatchReceiver<T> {
    /// The next message, if one is ready.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        loop {
            match self.taken.next() {
                Some(message) => return Ok(message),
                None => self.taken = self.channel.try_recv()?.into_iter(),
            }
        }
    }

    /// Waits for the next message.
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
        let (mut sender, mut receiver) = batch_channel(1);
        assert!(sender.has_room());
        sender.send(1);
        assert!(sender.has_room());
        sender.send_all(vec![2, 3]);
        assert!(!sender.has_room());
        assert_eq!(receiver.recv(), Ok(1));
        assert!(sender.has_room());
        assert_eq!((receiver.recv(), receiver.try_recv()), (Ok(2), Ok(3)));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        drop(receiver);
        sender.send(4);
        assert!(sender.has_room(), "nobody is there to wait for");
    }
}
