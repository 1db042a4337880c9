//! Greetings.

use super::Relay;
use crate::report::Dropped;
use byway_wire::relay::{CONSENT_LIFE, GREETED_MAX, Greet, Greeted, Notice, Reason, canonical};
use byway_wire::{Datagram, Instant, Writer};

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
        let greeted = Greeted {
            nonce: greet.nonce,
            address: from,
            consent: self.keys.current().consent(greet.grant, from, unix + CONSENT_LIFE),
            cookie: self.keys.current().cookie(greet.grant, from, unix),
            unix_millis: self.millis(now),
        };
        let mut bytes = [0; GREETED_MAX];
        let mut writer = Writer::new(&mut bytes);
        greeted.write(&mut writer);
        if self.answer(datagram, writer.written()) {
            self.counters.greeted += 1;
            self.hops.is_good(now, datagram.local);
        } else {
            self.drop(now, Dropped::QueueFull, greet.grant, from);
        }
    }
}
