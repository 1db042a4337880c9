//! Requests to the relay itself: a host's own address, a receiver's location, and mailboxes.

use super::Relay;
use crate::greeting_answers::{GreetingAnswer, GreetingTime, answer};
use crate::operator_report::Dropped;
use crate::request_rights::Claim;
use byway_wire::relay::{
    Greet, MAILED_MAX, MacKey, MailboxAnswer, MailboxRequest, Notice, Reason, canonical,
};
use byway_wire::{Datagram, Instant};
use core::net::SocketAddr;

impl Relay {
    pub(super) fn greet(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let from = canonical(datagram.remote);
        let Ok(greet) = Greet::read(datagram.payload) else {
            return self.drop(now, Dropped::Malformed, 0, from);
        };
        if !self.greetings.allows(now) {
            return self.drop(now, Dropped::Greeting, greet.grant, from);
        }
        let unix = self.unix(now);
        if !self.allows(from) {
            self.drop(now, Dropped::Refused(Reason::Destination), greet.grant, from);
            if self.hints.allows(now) {
                let notice = Notice::new(Reason::Destination, greet.grant, greet.nonce, unix, 0, None);
                self.notice(datagram, &notice);
            }
            return;
        }
        let time = GreetingTime { now, unix_millis: self.millis(now) };
        let Self { locations, keys, policy, carriers, .. } = self;
        let allows = |address| policy.allows(address) && !carriers.are_at(address);
        let (answer, is_location) =
            match answer(locations, keys, time, (&greet, datagram.payload), from, allows) {
                GreetingAnswer::Greeted(answer) => (answer, false),
                GreetingAnswer::Location(answer) => (answer, true),
                GreetingAnswer::Refused(notice) => {
                    self.drop(now, Dropped::Refused(notice.reason), greet.grant, from);
                    if self.notices.allows(now) {
                        self.notice(datagram, &notice);
                    }
                    return;
                }
            };
        if self.carriers.answer(datagram, answer.as_slice()) {
            self.counters.greeted += 1;
            self.counters.located += u64::from(is_location);
            self.carriers.is_good(now, datagram.local, None);
        } else {
            self.drop(now, Dropped::QueueFull, greet.grant, from);
        }
    }

    /// Answers a request about a mailbox, which counts as a greeting.
    pub(super) fn visit_mailbox(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let (from, unix) = (canonical(datagram.remote), self.unix(now));
        let Ok(request) = MailboxRequest::read(datagram.payload) else {
            return self.drop(now, Dropped::Malformed, 0, from);
        };
        let id = request.word.map_or(0, |(grant, _)| grant.id);
        if !self.greetings.allows(now) {
            return self.drop(now, Dropped::Greeting, id, from);
        }
        let key = match self.key_of_visitor(now, unix, &request, datagram.payload, from) {
            Ok(key) => key,
            Err((reason, key)) => {
                self.drop(now, Dropped::Refused(reason), id, from);
                let limit = if key.is_some() { &mut self.notices } else { &mut self.hints };
                if limit.allows(now) {
                    self.notice(datagram, &Notice::new(reason, id, request.nonce, unix, 0, key.as_ref()));
                }
                return;
            }
        };
        let (number, state, letter) = self.mailboxes.visit(&request, now);
        let mut bytes = [0; MAILED_MAX];
        let length = MailboxAnswer { nonce: request.nonce, number, state, letter }.write(&mut bytes, &key);
        if self.carriers.answer(datagram, bytes.get(..length).unwrap_or_default()) {
            self.counters.mailed += 1;
            self.carriers.is_good(now, datagram.local, None);
        } else {
            self.drop(now, Dropped::QueueFull, id, from);
        }
    }

    /// The key with which a request about a mailbox was made. The error has the key if the request
    /// is proven.
    fn key_of_visitor(
        &self,
        now: Instant,
        unix: u64,
        request: &MailboxRequest<'_>,
        packet: &[u8],
        from: SocketAddr,
    ) -> Result<MacKey, (Reason, Option<MacKey>)> {
        let unknown = (Reason::UnknownWord, None);
        let Some((grant, caveat)) = request.word else {
            let key = MacKey::of_strangers();
            let mut cookies = self.keys.cookies(0, from, unix);
            return match cookies.any(|cookie| request.is_authentic(packet, &key, cookie)) {
                true => Ok(key),
                false => Err(unknown),
            };
        };
        let claim = Claim { grant, caveat, from };
        let found = claim.key(&self.keys, unix, |key, cookie| request.is_authentic(packet, key, cookie));
        let (key, origin) = found.ok_or(unknown)?;
        match claim.holds(&self.keys, origin, now, unix) {
            Ok(()) => Ok(key),
            Err(reason) => Err((reason, Some(key))),
        }
    }
}
