//! Host names, looked up in threads: the system's resolver waits, and the event loop must not.

use crate::name_lookup_queue::{QuestionId, QuestionQueue, Sender};
use byway_forward::forward_target::Name;
use byway_net::Waker;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _};
use std::sync::mpsc::{self, Receiver, channel};
use std::thread::Builder;

/// The answer to a question: the addresses of the name. Empty: the name is unknown.
pub type Resolved = (QuestionId, Vec<IpAddr>);

/// Looks names up, each in a thread of its own, which ends with its answer.
pub struct Resolver {
    queue: QuestionQueue,
    look_up: fn(&Name) -> Vec<IpAddr>,
    sender: mpsc::Sender<Resolved>,
    answers: Receiver<Resolved>,
    waker: Waker,
}

impl Resolver {
    /// Makes a resolver that asks the operating system in threads. Each answer wakes `waker`.
    #[must_use]
    pub fn new(waker: Waker) -> Self {
        let (sender, answers) = channel();
        Self { queue: QuestionQueue::default(), look_up, sender, answers, waker }
    }

    /// Addresses that a name has without asking anybody (RFC 6761, section 6.3).
    #[must_use]
    pub fn known(name: &Name) -> Option<[IpAddr; 2]> {
        name.is_localhost().then(|| [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
    }

    /// Looks a name up for a question of `sender`. `false`: the system has no thread for it.
    pub fn ask(&mut self, sender: Sender, question: QuestionId, name: &Name) -> bool {
        self.queue.push(sender, question, name.clone());
        self.begin()
    }

    /// Forgets a question, as its answer is no longer needed. A name in the queue is then not
    /// looked up.
    pub fn forget(&mut self, sender: Sender, question: QuestionId) {
        self.queue.remove(sender, question);
    }

    /// The next that was found.
    #[expect(clippy::should_implement_trait, reason = "more may be found after `None`")]
    pub fn next(&mut self) -> Option<Resolved> {
        let found = self.answers.try_recv().ok()?;
        self.queue.answered(found.0);
        // Without a thread the questions wait for the next answer, or for the end of their time.
        let _ = self.begin();
        Some(found)
    }

    /// Begins all lookups that are due. `false`: the system has no thread for one, and none runs
    /// whose end would make room.
    fn begin(&mut self) -> bool {
        while let Some((question, name)) = self.queue.next_due() {
            let (look_up, sender, waker) = (self.look_up, self.sender.clone(), self.waker.clone());
            let asked = name.clone();
            let work = move || {
                // Without a receiver the exit is gone, and nobody waits.
                let _ = sender.send((question, look_up(&name)));
                waker.wake();
            };
            if Builder::new().name("byway names".into()).spawn(work).is_err() {
                self.queue.put_back(question, asked);
                return self.queue.is_running();
            }
        }
        true
    }
}

fn look_up(name: &Name) -> Vec<IpAddr> {
    let found = (name.as_str(), 0).to_socket_addrs();
    found.map(|addresses| addresses.map(|address| address.ip()).collect()).unwrap_or_default()
}
