//! Commands from an endpoint's handles to its event loop, and the streams that changed.

use crate::datagrams::Datagrams;
use crate::error::{ConnectError, ConnectionError, Error};
use crate::path_status::StatusSnapshot;
use crate::shared_buffers::SharedBuffers;
use crate::shared_object::{InboundObject, OutboundObject};
use crate::shared_stream::SharedStream;
use crate::shared_value::Shared;
use byway_engine::Handle;
use byway_net::Waker;
use byway_transfer::Ticket;
use byway_transfer::identity::PublicKey;
use byway_transfer::ticket::GreetedRelay;
use byway_wire::relay::Word;
use byway_wire::{ObjectId, StreamId};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The result of an attempt to connect. `None`: the attempt goes on.
pub type Connecting = Shared<Option<Result<Arc<PeerCell>, ConnectError>>>;

/// An order to the event loop.
pub enum Command {
    /// Connect to a listener.
    Connect {
        /// The ticket of the listener.
        ticket: Box<Ticket>,
        /// Through which relays, beside the ticket's.
        relays: Vec<Word>,
        /// The place for the result.
        answer: Arc<Connecting>,
    },
    /// Take a stream on that the application opened.
    Open(Arc<SharedStream>),
    /// Send an object.
    Send(Arc<OutboundObject>),
    /// Store a connection's status.
    Look(Handle, Arc<Shared<Option<StatusSnapshot>>>),
    /// Close a connection once all that was finished was read.
    Close(Handle),
    /// Close a connection now.
    Abort(Handle, u16, String),
    /// The application has dropped its last handle of a connection.
    Abandon(Handle),
}

/// A stream or object that the application changed.
pub enum ChangedItem {
    /// A stream.
    Stream(Arc<SharedStream>),
    /// An object to send.
    Sent(Arc<OutboundObject>),
    /// An object to receive.
    Coming(Arc<InboundObject>),
}

/// A connection's state that the event loop and the application share.
#[derive(Debug)]
pub struct PeerCell {
    /// The engine's name of the connection.
    pub handle: Handle,
    /// The public key of the peer.
    pub key: PublicKey,
    /// The state of the connection.
    pub state: Shared<PeerState>,
    /// Messages that may be lost.
    pub datagrams: Shared<Datagrams>,
}

/// The shared state of a connection.
#[derive(Debug, Default)]
pub struct PeerState {
    /// The number of the next stream that this side opens.
    pub next: u32,
    /// Streams that this side opened and that have not ended.
    pub open: u32,
    /// The most streams that the peer allows.
    pub most: u32,
    /// Streams that the peer opened and the application has not taken.
    pub accepted: VecDeque<Arc<SharedStream>>,
    /// The number of the next object that this side sends.
    pub next_object: u32,
    /// Objects that this side is sending.
    pub objects: u32,
    /// The most objects that the peer allows.
    pub most_objects: u32,
    /// Objects that the peer announced and the application has not taken.
    pub coming: VecDeque<Arc<InboundObject>>,
    /// Why the connection has ended. `None`: it has not ended.
    pub over: Option<ConnectionError>,
    /// Whether the peer's application had not read all finished data when the connection ended.
    pub unread: bool,
}

impl PeerState {
    /// The result of closing. `None`: the connection has not ended yet.
    pub fn closed(&self) -> Option<Result<(), ConnectionError>> {
        match self.over.clone()? {
            ConnectionError::ClosedHere => Some(Ok(())),
            ConnectionError::Closed { code: 0, .. } if !self.unread => Some(Ok(())),
            other => Some(Err(other)),
        }
    }

    /// Reserves a place for a stream that this side opens. Returns the stream's id, or `None` if
    /// the limit is reached for now.
    pub fn open(&mut self) -> Option<Result<StreamId, ConnectionError>> {
        if let Some(error) = &self.over {
            return Some(Err(error.clone()));
        }
        if self.open >= self.most {
            return None;
        }
        let id = StreamId(self.next);
        // 2^31 streams of one connection are as many as there are names.
        match self.next.checked_add(2) {
            Some(next) => self.next = next,
            None => {
                return Some(Err(ConnectionError::Broke(String::from(
                    "there are no more names for streams",
                ))));
            }
        }
        self.open += 1;
        Some(Ok(id))
    }

    /// Reserves a place for an object that this side sends. Returns the object's id, or `None` if
    /// the limit is reached for now.
    pub fn send(&mut self) -> Option<Result<ObjectId, ConnectionError>> {
        if let Some(error) = &self.over {
            return Some(Err(error.clone()));
        }
        if self.objects >= self.most_objects {
            return None;
        }
        let id = ObjectId(self.next_object);
        let names = || ConnectionError::Broke(String::from("there are no more names for objects"));
        Some(self.next_object.checked_add(1).ok_or_else(names).map(|next| {
            self.next_object = next;
            self.objects += 1;
            id
        }))
    }

    /// The next object that the peer sends. `None`: there is none now.
    pub fn accept_object(&mut self) -> Option<Result<Arc<InboundObject>, ConnectionError>> {
        match self.coming.pop_front() {
            Some(coming) => Some(Ok(coming)),
            None => self.over.clone().map(Err),
        }
    }

    /// The next stream that the peer opened. `None`: there is none now.
    pub fn accept(&mut self) -> Option<Result<Arc<SharedStream>, ConnectionError>> {
        match self.accepted.pop_front() {
            Some(cell) => Some(Ok(cell)),
            None => self.over.clone().map(Err),
        }
    }
}

/// The state shared by an endpoint's handles and its event loop.
pub struct Core {
    waker: Waker,
    inbox: Mutex<LoopInbox>,
    /// Peers that connected and that the application has not taken.
    pub accept_queue: Shared<AcceptQueue>,
    /// The results of the listener's registration with relays.
    pub listener_relays: Shared<ListenerRelays>,
    /// Buffers that are used again.
    pub shared_buffers: Arc<SharedBuffers>,
    /// Whether anybody accepts.
    listening: AtomicBool,
    stopping: AtomicBool,
}

/// The results of a listener's registration with relays.
#[derive(Debug, Default)]
pub struct ListenerRelays {
    /// Relays through which the listener can be reached.
    pub greeted: Vec<GreetedRelay>,
    /// Problems of relays that do not work, each as a sentence.
    pub troubles: Vec<String>,
}

/// Connections that the application has not accepted yet.
#[derive(Debug, Default)]
pub struct AcceptQueue {
    /// Peers in the order in which they connected.
    pub peers: VecDeque<Arc<PeerCell>>,
    /// Whether no more will come.
    pub over: bool,
}

impl AcceptQueue {
    /// The next peer that connected. `None`: there is none now.
    pub fn next(&mut self) -> Option<Result<Arc<PeerCell>, Error>> {
        match self.peers.pop_front() {
            Some(cell) => Some(Ok(cell)),
            None => self.over.then_some(Err(Error::Over)),
        }
    }
}

/// The queue of work for the event loop.
#[derive(Default)]
struct LoopInbox {
    work: LoopWork,
    /// Whether the event loop has ended.
    over: bool,
}

/// Work for the event loop.
#[derive(Default)]
pub struct LoopWork {
    /// Orders, in sequence. Each handle has at most a few here.
    pub commands: VecDeque<Command>,
    /// Streams and objects to look at. A stream is listed once, an object for each piece that
    /// moved.
    pub touched: Vec<ChangedItem>,
}

impl Core {
    pub fn new(waker: Waker, listening: bool) -> Self {
        Self {
            waker,
            inbox: Mutex::default(),
            accept_queue: Shared::default(),
            listener_relays: Shared::default(),
            shared_buffers: Arc::default(),
            listening: AtomicBool::new(listening),
            stopping: AtomicBool::new(false),
        }
    }

    fn inbox(&self) -> MutexGuard<'_, LoopInbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a command to the event loop. Returns the command if the loop has ended.
    pub fn ask(&self, command: Command) -> Result<(), Command> {
        let mut inbox = self.inbox();
        if inbox.over {
            return Err(command);
        }
        inbox.work.commands.push_back(command);
        drop(inbox);
        self.waker.wake();
        Ok(())
    }

    /// Notifies the event loop of a change of a stream.
    pub fn touch(&self, cell: &Arc<SharedStream>) {
        if !cell.list() {
            return;
        }
        let mut inbox = self.inbox();
        if !inbox.over {
            inbox.work.touched.push(ChangedItem::Stream(Arc::clone(cell)));
            drop(inbox);
            self.waker.wake();
        }
    }

    /// Notifies the event loop of a change of an object.
    pub fn touch_other(&self, touched: ChangedItem) {
        let mut inbox = self.inbox();
        if !inbox.over {
            inbox.work.touched.push(touched);
            drop(inbox);
            self.waker.wake();
        }
    }

    /// Takes all queued work. `done`: an empty earlier list, whose memory is used again.
    pub fn take(&self, done: &mut LoopWork) {
        std::mem::swap(&mut self.inbox().work, done);
    }

    /// Ends the queue. Returns the work that was left.
    pub fn end(&self) -> LoopWork {
        let mut inbox = self.inbox();
        inbox.over = true;
        std::mem::take(&mut inbox.work)
    }

    /// Asks for another turn of the event loop.
    pub fn again(&self) {
        self.waker.wake();
    }

    /// Whether anybody accepts.
    pub fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Acquire)
    }

    /// Notes that the application accepts no more connections.
    pub fn stop_listening(&self) {
        self.listening.store(false, Ordering::Release);
    }

    /// Whether no handle is left.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

/// Shared by all handles of an endpoint. When the last is dropped, the event loop ends.
pub struct EndpointGuard(pub Arc<Core>);

impl Drop for EndpointGuard {
    fn drop(&mut self) {
        self.0.stopping.store(true, Ordering::Release);
        self.0.again();
    }
}

/// Shared by all handles of a connection. When the last is dropped, the connection ends.
pub struct ConnectionGuard {
    /// The connection.
    pub cell: Arc<PeerCell>,
    /// The connection's endpoint.
    pub endpoint_guard: Arc<EndpointGuard>,
}

impl ConnectionGuard {
    pub fn core(&self) -> &Core {
        &self.endpoint_guard.0
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        // Without an event loop there is no connection.
        let _ = self.core().ask(Command::Abandon(self.cell.handle));
    }
}

/// Returns the id of the first stream that a host opens for its application.
pub const fn first_stream(initiator: bool) -> StreamId {
    StreamId(if initiator { 2 } else { 3 })
}
