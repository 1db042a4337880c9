//! Messages of `byway registry`.

use std::fmt::Display;
use std::net::IpAddr;

pub const REVOKED_WORD_FOR_USE: &str = "the word and all grants that were minted for it are revoked";
pub const REVOKED_WORD_FOR_JOINING: &str = "the word is revoked; relays that enrolled with it stay listed";
pub const REVOKED_RELAY: &str = "the relay is not listed any more";

/// The commands to type next with the two registry words.
pub const WHAT_NEXT: &str = "save each word in a file that only you can read, as join.word and use.word\n\
     on a relay's host: byway relay --registry @join.word\n\
     on a sender's host: byway send PATH TICKET --registry @use.word";

pub fn cannot_open(store: &str) -> String {
    format!("cannot open the registry's store {}", without_password(store))
}

pub fn no_store(file: &str) -> String {
    format!("the registry's store {file} does not exist: check the path")
}

pub fn no_damage(store: &str) -> String {
    format!("no damage was found in {}", without_password(store))
}

/// A probe must come from an address that no relay has sent to.
pub fn probes_pass_nat(ip: IpAddr) -> String {
    format!(
        "relays send heartbeats to {ip}, so NATs let in what comes from there: give --probe-from another address"
    )
}

pub fn words(join: &str, ask: &str) -> String {
    format!("relays join with {join}\nsenders ask with {ask}")
}

pub fn refused_request(reason: impl Display) -> String {
    format!("refused a request: {reason}")
}

/// Returns the name of a store without the user, password and options of its URL, which can be
/// secret.
fn without_password(store: &str) -> String {
    let Some((scheme, rest)) = store.split_once("://") else { return store.to_owned() };
    let rest = rest.split('?').next().unwrap_or_default();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_shows_a_password() {
        for store in ["postgres://me:se/cr@et@db:5432/byway", "postgres://db:5432/byway?password=secret"] {
            assert_eq!(without_password(store), "postgres://db:5432/byway");
        }
        assert_eq!(without_password("/var/lib/me@host"), "/var/lib/me@host");
    }
}
