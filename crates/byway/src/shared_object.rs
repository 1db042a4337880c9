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
    /// The peer's application wants no more of it, and told this code.
    #[error("the peer wants no more of the object, and says code {0}")]
    Refused(u64),
    /// The sender gave it up.
    #[error("the peer gave the object up")]
    Withdrawn,
    /// What describes it has more than 1024 bytes.
    #[error("the header of an object has at most 1024 bytes")]
    Header,
    /// What it is read from, or written to, failed, or ended before the object did.
    #[error("cannot read or write the object here: {0}")]
    Io(#[from] std::io::Error),
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// An object that this side sends.
#[derive(Debug)]
pub struct OutboundObject {
    /// The connection.
    pub handle: Handle,
    /// The object's number.
    pub id: ObjectId,
    /// What the application says of it.
    pub header: Vec<u8>,
    /// The object's size in bytes.
    pub size: u64,
    /// The object's changing state.
    pub state: Shared<SentState>,
}

impl OutboundObject {
    /// The connection is over.
    pub fn fail(&self, error: &ConnectionError) {
        self.state.change(|state| {
            state.over.get_or_insert_with(|| ObjectEnd::Connection(error.clone()));
        });
    }
}

/// What moves of an object that is sent.
#[derive(Debug, Default)]
pub struct SentState {
    /// What the engine asks for: from its start to its end, each piece once.
    pub wanted: VecDeque<ReadRequest>,
    /// Pieces that the application is reading.
    pub in_hand: usize,
    /// What the application answered.
    pub ready: VecDeque<(u64, Vec<u8>)>,
    /// The application gives it up.
    pub withdrawn: bool,
    /// The way in which the object ended.
    pub over: Option<ObjectEnd>,
}

/// How an object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectEnd {
    /// The receiving application has all of it.
    Well,
    /// The receiving application wanted no more.
    Refused(u64),
    /// The sender gave the object up.
    Withdrawn,
    /// The connection is over.
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
    /// The connection.
    pub handle: Handle,
    /// The object's number.
    pub id: ObjectId,
    /// The object's changing state.
    pub state: Shared<InboundState>,
}

/// What moves of an object that comes.
#[derive(Debug, Default)]
pub struct InboundState {
    /// What the sender said of it, and its size in bytes.
    pub announced: Option<(Vec<u8>, u64)>,
    /// Bytes for the application, in no particular order.
    pub pieces: VecDeque<WriteRequest>,
    /// Buffers that the application gave back.
    pub done: Vec<Vec<u8>>,
    /// All of it was handed out.
    pub complete: bool,
    /// The application has it all.
    pub confirmed: bool,
    /// The application wants no more, and this is its code.
    pub stopped: Option<u64>,
    /// Why nothing more comes.
    pub broken: Option<ObjectEnd>,
}
