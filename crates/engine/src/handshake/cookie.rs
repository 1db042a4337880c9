//! Cookies: they prove that a host receives at an address, and the endpoint remembers no request
//! for that.

use core::hash::Hasher;
use core::net::{IpAddr, SocketAddr};

use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};
use siphasher::sip128::{Hasher128, SipHasher24};

/// Bytes of a cookie.
pub const COOKIE_LEN: usize = 16;
/// The longest time for which a cookie is valid. Time is cut into periods of half this length. A
/// cookie is valid in the period in which it was made and in the next.
pub const COOKIE_LIFETIME: Duration = Duration::from_secs(30);

/// Makes and checks cookies: a MAC (SipHash-2-4, 128 bits) over the period and the address, port
/// included.
#[derive(Clone)]
pub(super) struct Cookies(SipHasher24);

impl Cookies {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self(SipHasher24::new_with_key(&key))
    }

    pub(super) fn make(&self, now: Instant, remote: SocketAddr) -> [u8; COOKIE_LEN] {
        self.mac(period(now), remote)
    }

    pub(super) fn check(&self, now: Instant, remote: SocketAddr, cookie: &[u8]) -> bool {
        let Ok(cookie) = <[u8; COOKIE_LEN]>::try_from(cookie) else { return false };
        let this = period(now);
        let last = this.checked_sub(1).is_some_and(|last| same(&self.mac(last, remote), &cookie));
        same(&self.mac(this, remote), &cookie) | last
    }

    fn mac(&self, period: u64, remote: SocketAddr) -> [u8; COOKIE_LEN] {
        let mut hasher = self.0;
        hasher.write(&period.to_be_bytes());
        // A dual-stack socket and a plain one see the same IPv4 peer under two names.
        let address = match remote.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        hasher.write(&address.octets());
        hasher.write(&remote.port().to_be_bytes());
        hasher.finish128().as_bytes()
    }
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / (nanos(COOKIE_LIFETIME) / 2)
}

/// Compares two cookies in constant time.
fn same(left: &[u8; COOKIE_LEN], right: &[u8; COOKIE_LEN]) -> bool {
    u128::from_ne_bytes(*left) ^ u128::from_ne_bytes(*right) == 0
}
