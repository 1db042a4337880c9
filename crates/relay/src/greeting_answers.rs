//! A relay's answers to greetings: its time, a consent and a cookie, or a receiver's location.

use crate::receiver_locations::{LIFETIME_SECONDS, ReceiverLocations};
use crate::relay_keys::Keys;
use crate::request_rights::Claim;
use byway_wire::relay::{
    CONSENT_LIFE, GREET_LEN, GREETED_MAX, Greet, Greeted, LOCATION_MAX, Location, LocationAction,
    LocationRequest, Notice, Reason,
};
use byway_wire::{Instant, Writer};
use core::net::SocketAddr;

/// The longest answer, which is never longer than its greeting.
const ANSWER_MAX: usize = if GREETED_MAX > LOCATION_MAX { GREETED_MAX } else { LOCATION_MAX };
const _: () = assert!(ANSWER_MAX <= GREET_LEN);

/// The answer to a greeting.
#[derive(Debug)]
pub(crate) enum GreetingAnswer {
    /// The greeter's address, its consent and its cookie.
    Greeted(AnswerBytes),
    /// The location of a receiver.
    Location(AnswerBytes),
    /// Why a request about a location is refused.
    Refused(Notice),
}

/// An encoded answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerBytes {
    bytes: [u8; ANSWER_MAX],
    length: usize,
}

impl AnswerBytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// When a greeting comes, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GreetingTime {
    pub(crate) now: Instant,
    /// The relay's clock, in ms of Unix time.
    pub(crate) unix_millis: u64,
}

impl GreetingTime {
    const fn unix(self) -> u64 {
        self.unix_millis / 1_000
    }
}

/// Answers a greeting that came from `from`. `allows`: whether the relay sends to an address.
pub(crate) fn answer(
    locations: &mut ReceiverLocations,
    keys: &Keys,
    time: GreetingTime,
    (greet, packet): (&Greet, &[u8]),
    from: SocketAddr,
    allows: impl Fn(SocketAddr) -> bool,
) -> GreetingAnswer {
    let (unix, consented_until) = (time.unix(), time.unix() + CONSENT_LIFE);
    if let Ok(Some(request)) = LocationRequest::read(packet)
        && let claim = (Claim { grant: request.grant, caveat: request.caveat, from })
        && let Some((key, origin)) =
            claim.key(keys, unix, |key, cookie| request.is_authentic(packet, key, cookie))
    {
        let located = claim.holds(keys, origin, time.now, unix);
        match located.and_then(|()| locate(locations, unix, &request, from, allows)) {
            Ok(Some((address, seconds))) => {
                let location = Location {
                    nonce: greet.nonce,
                    address,
                    // Nobody consents to more than the time for which a receiver is remembered.
                    consent: keys.current().consent(
                        greet.grant,
                        address,
                        consented_until.min(unix.saturating_sub(seconds) + LIFETIME_SECONDS),
                    ),
                    unix_millis: time.unix_millis,
                    age_minutes: u16::try_from(seconds / 60).unwrap_or(u16::MAX),
                };
                let mut bytes = [0; ANSWER_MAX];
                let length = bytes.first_chunk_mut().map_or(0, |bytes| location.write(bytes, &key));
                return GreetingAnswer::Location(AnswerBytes { bytes, length });
            }
            Ok(None) => {}
            Err(reason) => {
                let notice = Notice::new(reason, greet.grant, greet.nonce, unix, 0, Some(&key));
                return GreetingAnswer::Refused(notice);
            }
        }
    }
    let greeted = Greeted {
        nonce: greet.nonce,
        address: from,
        consent: keys.current().consent(greet.grant, from, consented_until),
        cookie: keys.current().cookie(greet.grant, from, unix),
        unix_millis: time.unix_millis,
    };
    let mut bytes = [0; ANSWER_MAX];
    let mut writer = Writer::new(&mut bytes);
    greeted.write(&mut writer);
    let length = writer.len();
    GreetingAnswer::Greeted(AnswerBytes { bytes, length })
}

/// Runs an authentic request. Returns the receiver's location, and the seconds since it was heard
/// there. `None`: there is no room to remember it.
fn locate(
    locations: &mut ReceiverLocations,
    unix: u64,
    request: &LocationRequest,
    from: SocketAddr,
    allows: impl Fn(SocketAddr) -> bool,
) -> Result<Option<(SocketAddr, u64)>, Reason> {
    let LocationRequest { action, grant, tag, sequence, .. } = *request;
    match action {
        LocationAction::Register => {
            let is_here = locations.register((grant.id, tag), from, sequence, unix);
            Ok(is_here.then_some((from, 0)))
        }
        LocationAction::LookUp => match locations.look_up(grant.id, tag, unix) {
            None => Err(Reason::NoReceiver),
            Some((address, _)) if !allows(address) => Err(Reason::Destination),
            known => Ok(known),
        },
    }
}
