//! Whether a request that is no packet to forward was made by the holder of a word that holds.

use crate::relay_keys::{KeyOrigin, Keys};
use byway_wire::Instant;
use byway_wire::relay::{Caveat, Grant, MacKey, Reason};
use core::net::SocketAddr;

/// The relay word that a request claims, and the source of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) grant: Grant,
    pub(crate) caveat: Option<Caveat>,
    pub(crate) from: SocketAddr,
}

impl Claim {
    /// Returns the key of the relay word, if the request was made with it at the request's source.
    /// `is_authentic`: whether the request fits a key and a cookie.
    pub(crate) fn key(
        &self,
        keys: &Keys,
        unix: u64,
        is_authentic: impl Fn(&MacKey, u64) -> bool,
    ) -> Option<(MacKey, KeyOrigin)> {
        keys.origins(self.grant.id).find_map(|origin| {
            let key = keys.mac_key(origin, &self.grant, self.caveat.as_ref())?;
            let mut cookies = keys.cookies(self.grant.id, self.from, unix);
            cookies.any(|cookie| is_authentic(&key, cookie)).then_some((key, origin))
        })
    }

    /// Checks that the relay word is valid.
    pub(crate) fn holds(
        &self,
        keys: &Keys,
        origin: KeyOrigin,
        now: Instant,
        unix: u64,
    ) -> Result<(), Reason> {
        let terms = self.caveat.map_or(self.grant.terms, |caveat| caveat.terms);
        if !terms.within(&self.grant.terms) {
            return Err(Reason::Wider);
        }
        keys.check(origin, &self.grant, now)?;
        if terms.expiry.unix() <= unix {
            return Err(Reason::Expired);
        }
        Ok(())
    }
}
