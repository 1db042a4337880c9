//! Names, looked up by a few threads: the system's resolver waits, and the event loop must not.

use byway_forward::forward_target::Name;
use byway_net::Waker;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// Names that are looked up at once.
const THREADS: usize = 4;
/// Names that wait to be looked up.
const WAITING: usize = 1024;

/// What was found: for whom, and the addresses. Without any the name is not known.
pub(crate) type Resolved = (u64, Vec<IpAddr>);

/// Looks names up.
pub(crate) struct Resolver {
    questions: SyncSender<(u64, Name)>,
    asked: Arc<Mutex<Receiver<(u64, Name)>>>,
    give: Sender<Resolved>,
    answers: Receiver<Resolved>,
    waker: Waker,
    threads: usize,
}

impl Resolver {
    /// Threads are begun when there are names for them.
    pub fn new(waker: Waker) -> Self {
        let (questions, asked) = sync_channel(WAITING);
        let (give, answers) = channel();
        Self { questions, asked: Arc::new(Mutex::new(asked)), give, answers, waker, threads: 0 }
    }

    /// Addresses that a name has without asking anybody (RFC 6761, section 6.3).
    pub fn known(name: &Name) -> Option<[IpAddr; 2]> {
        name.is_localhost().then(|| [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
    }

    /// Has a name looked up for `whom`. `false`: too many wait already.
    pub fn ask(&mut self, whom: u64, name: &Name) -> bool {
        if self.threads < THREADS && self.begin().is_ok() {
            self.threads += 1;
        }
        self.threads > 0 && self.questions.try_send((whom, name.clone())).is_ok()
    }

    /// The next that was found.
    pub fn next(&self) -> Option<Resolved> {
        self.answers.try_recv().ok()
    }

    /// A thread ends when the resolver is dropped and what it looks up is found.
    fn begin(&self) -> io::Result<()> {
        let (asked, give, waker) = (Arc::clone(&self.asked), self.give.clone(), self.waker.clone());
        let work = move || {
            loop {
                let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((whom, name)) = next else { return };
                if give.send((whom, look_up(&name))).is_err() {
                    return;
                }
                waker.wake();
            }
        };
        Builder::new().name("byway names".into()).spawn(work).map(drop)
    }
}

fn look_up(name: &Name) -> Vec<IpAddr> {
    let found = (name.as_str(), 0).to_socket_addrs();
    found.map(|addresses| addresses.map(|address| address.ip()).collect()).unwrap_or_default()
}
