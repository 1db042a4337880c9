//! What receivers send back.

use super::Relay;
use crate::queue::size;
use crate::report::Dropped;
use byway_wire::relay::{Back, Reason, Return, ReturnTag, Scope, canonical};
use byway_wire::{Datagram, Instant};
use core::net::SocketAddr;

impl Relay {
    pub(super) fn back(&mut self, now: Instant, datagram: &mut Datagram<'_>) {
        let from = canonical(datagram.remote);
        let Ok(back) = Return::read(datagram.payload) else {
            return self.drop(now, Dropped::Malformed, 0, from);
        };
        if let Err(why) = self.back_for(now, datagram, &back, from) {
            self.drop(now, why, back.tag.grant, from);
        }
    }

    /// No notices here: a receiver holds no word, and there is nothing that he could do about it.
    fn back_for(
        &mut self,
        now: Instant,
        datagram: &mut Datagram<'_>,
        back: &Return,
        from: SocketAddr,
    ) -> Result<(), Dropped> {
        let unix = self.unix(now);
        let refuse = |reason| Err(Dropped::Refused(reason));
        let ReturnTag { grant: id, branch, .. } = back.tag;
        let own = self.accounts.find(id, branch);
        let recent = own.and_then(|place| self.accounts.get(place)?.recent());
        if !recent.is_some_and(|recent| recent.gave(self.moment(unix), &back.tag, back.to, from)) {
            let end = self.keys.check_return(&back.tag, back.to, from, unix);
            if end.is_none_or(|end| end <= unix) {
                return Err(Dropped::BadReturn);
            }
        }
        let own = own.ok_or(Dropped::UnknownAccount)?;
        let above =
            if branch == 0 { None } else { Some(self.accounts.find(id, 0).ok_or(Dropped::UnknownAccount)?) };
        let account = self.accounts.get(own).ok_or(Dropped::UnknownAccount)?;
        let terms = *account.terms();
        if !self.keys.epoch_holds(account.origin, id, now) {
            return refuse(Reason::EpochOver);
        }
        if terms.expiry.unix() <= unix {
            return refuse(Reason::Expired);
        }
        if !terms.scope.contains(Scope::BACK) {
            return refuse(Reason::Scope);
        }
        if !self.allows(back.to) {
            return refuse(Reason::Destination);
        }
        let way = self.way(self.hops.next(datagram.local, back.to, None), datagram, back.to)?;
        let length = size(datagram);
        self.lend(now, length)?;
        let charged = self.charge((own, above), now, unix, length);
        charged.map_err(|(reason, _)| Dropped::Refused(reason))?;
        if (Back { from, inner: back.inner }).write(datagram.payload) && self.goes(way, datagram, None) {
            self.counters.returned_packets += 1;
            self.counters.returned_bytes += length as u64;
        }
        self.hold_back(now, datagram.local, (own, above));
        Ok(())
    }
}
