//! An object as the event loop and the application share it.

use crate::error::ConnectionError;
use crate::shared_value::Shared;
use byway_engine::Handle;
use byway_engine::data::{ReadRequest, WriteRequest};
use byway_wire::ObjectId;
use std::collections::VecDeque;

/// Why an object does not arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The peer's application refused the object, with this code.
    #[error("the peer wants no more of the object, and says code {0}")]
    Refused(u64),
    /// The sender gave the object up.
    #[error("the peer gave the object up")]
    Withdrawn,
    /// The description of the object has more than 1024 bytes.
    #[error("the header of an object has at most 1024 bytes")]
    Header,
    /// The source or target of the bytes failed, or ended before the object.
    #[error("cannot read or write the object here: {0}")]
    Io(#[from] std::io::Error),
    /// The connection has ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// An object that this side sends.
#[derive(Debug)]
pub struct OutboundObject {
    /// The handle of the connection.
    pub handle: Handle,
    /// The number of the object.
    pub id: ObjectId,
    /// The application's description of the object.
    pub header: Vec<u8>,
    /// The object's size in bytes.
    pub size: u64,
    /// The changing state of the object.
    pub state: Shared<SentState>,
}

impl OutboundObject {
    /// Notes that the connection has ended.
    pub fn fail(&self, error: &ConnectionError) {
        self.state.change(|state| {
            state.over.get_or_insert_with(|| ObjectEnd::Connection(error.clone()));
        });
    }
}

/// The changing state of an object that is sent.
#[derive(Debug, Default)]
pub struct SentState {
    /// The reads that the engine requested, in order. Each piece is requested once.
    pub wanted: VecDeque<ReadRequest>,
    /// Pieces that the application is reading.
    pub in_hand: usize,
    /// Bytes that the application provided, with their offsets.
    pub ready: VecDeque<(u64, Vec<u8>)>,
    /// Whether the application gave the object up.
    pub withdrawn: bool,
    /// The way in which the object ended.
    pub over: Option<ObjectEnd>,
}

/// How an object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectEnd {
    /// The receiving application has all of the object.
    Well,
    /// The receiving application refused the rest, with this code.
    Refused(u64),
    /// The sender gave the object up.
    Withdrawn,
    /// The connection has ended.
    Connection(ConnectionError),
}

impl ObjectEnd {
    /// The object's end as a result.
    pub fn outcome(self) -> Result<(), ObjectError> {
        match self {
            Self::Well => Ok(()),
            Self::Refused(code) => Err(ObjectError::Refused(code)),
            Self::Withdrawn => Err(ObjectError::Withdrawn),
            Self::Connection(error) => Err(error.into()),
        }
    }
}

/// An object that the peer sends.
#[derive(Debug)]
pub struct InboundObject {
    /// The handle of the connection.
    pub handle: Handle,
    /// The number of the object.
    pub id: ObjectId,
    /// The changing state of the object.
    pub state: Shared<InboundState>,
}

/// The changing state of an object that is received.
#[derive(Debug, Default)]
pub struct InboundState {
    /// The sender's description of the object, and its size in bytes.
    pub announced: Option<(Vec<u8>, u64)>,
    /// Bytes for the application, in no particular order.
    pub pieces: VecDeque<WriteRequest>,
    /// Buffers that the application gave back.
    pub done: Vec<Vec<u8>>,
    /// Whether all bytes were handed to the application.
    pub complete: bool,
    /// Whether the application confirmed that it has everything.
    pub confirmed: bool,
    /// The code with which the application refused the rest. `None`: it did not refuse it.
    pub stopped: Option<u64>,
    /// Why no more bytes come. `None`: more may come.
    pub broken: Option<ObjectEnd>,
}
