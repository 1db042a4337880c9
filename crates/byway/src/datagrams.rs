//! Datagrams: messages that may be lost and may overtake each other, each whole or not at all.

use crate::error::ConnectionError;
use byway_engine::Connection;
use std::collections::VecDeque;

/// The most datagrams that wait to be sent, and the most that wait for the application.
pub const MAX_QUEUED_DATAGRAMS: usize = 256;

/// Why a datagram was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// The datagram fits into no packet of any path.
    #[error("a datagram has at most {0} bytes now")]
    TooLarge(usize),
    /// The queue is full: the paths carry no more for now.
    #[error("as many datagrams wait to be sent as may")]
    Full,
    /// The connection has ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Bytes of a datagram that fits into the smallest packets that there are, through a relay too.
const BASE_DATAGRAM_LEN: usize = 1000;

/// The datagrams of a connection that the event loop and the application share.
#[derive(Debug)]
pub struct Datagrams {
    /// For the event loop.
    outgoing: VecDeque<Vec<u8>>,
    /// Datagrams that wait for the application.
    incoming: VecDeque<Vec<u8>>,
    /// The largest that is taken now.
    largest: usize,
    over: Option<ConnectionError>,
}

impl Default for Datagrams {
    fn default() -> Self {
        Self { outgoing: VecDeque::new(), incoming: VecDeque::new(), largest: BASE_DATAGRAM_LEN, over: None }
    }
}

impl Datagrams {
    /// Queues a datagram to send.
    pub fn put(&mut self, data: &[u8]) -> Result<(), DatagramError> {
        if let Some(error) = &self.over {
            return Err(error.clone().into());
        }
        if data.len() > self.largest {
            return Err(DatagramError::TooLarge(self.largest));
        }
        if self.outgoing.len() >= MAX_QUEUED_DATAGRAMS {
            return Err(DatagramError::Full);
        }
        self.outgoing.push_back(data.to_vec());
        Ok(())
    }

    /// The next received datagram. `None`: there is none now.
    pub fn take(&mut self) -> Option<Result<Vec<u8>, ConnectionError>> {
        match self.incoming.pop_front() {
            Some(data) => Some(Ok(data)),
            None => self.over.clone().map(Err),
        }
    }

    /// The largest that is taken now, in bytes.
    pub const fn largest(&self) -> usize {
        self.largest
    }

    /// Whether no datagram waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Notes the end of the connection. Datagrams received before can still be taken.
    pub fn end(&mut self, error: &ConnectionError) {
        self.over.get_or_insert_with(|| error.clone());
        self.outgoing.clear();
    }

    /// Sends as many datagrams as the paths accept, each by the fastest of these.
    pub fn send(&mut self, connection: &mut Connection) {
        let usable = connection.path_views().filter(|path| path.usable);
        self.largest = usable.map(|path| path.largest).max().unwrap_or(self.largest);
        while let Some(data) = self.outgoing.front() {
            let takes = |path: &byway_engine::connection::datagrams::PathView| {
                path.usable && path.room > 0 && path.largest >= data.len()
            };
            let fastest = connection.path_views().filter(takes).min_by_key(|path| path.srtt);
            let Some(path) = fastest else {
                if data.len() <= self.largest {
                    return; // there will be room
                }
                self.outgoing.pop_front(); // the paths have become narrower
                continue;
            };
            if let Some(data) = self.outgoing.pop_front()
                && let Err((_, data)) = connection.send_datagram(path.id, 0, data)
            {
                self.outgoing.push_front(data);
                return;
            }
        }
    }

    /// Takes datagrams that arrived. If 256 wait for the application already, the oldest is
    /// dropped. Also takes back outgoing datagrams that a path accepted and cannot send any more,
    /// so that another path sends them. Returns whether a datagram arrived.
    pub fn receive(&mut self, connection: &mut Connection) -> bool {
        while let Some((_, data)) = connection.next_returned() {
            if self.outgoing.len() < MAX_QUEUED_DATAGRAMS {
                self.outgoing.push_back(data);
            }
        }
        let mut some = false;
        while let Some(received) = connection.next_datagram() {
            if self.incoming.len() >= MAX_QUEUED_DATAGRAMS {
                self.incoming.pop_front();
            }
            self.incoming.push_back(received.data);
            some = true;
        }
        some
    }
}
