//! What `byway registry` says.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

pub const REVOKED_WORD_FOR_USE: &str = "the word and all grants that were minted for it are revoked";
pub const REVOKED_WORD_FOR_JOINING: &str = "the word is revoked; relays that enrolled with it stay listed";
pub const REVOKED_RELAY: &str = "the relay is not listed any more";

pub fn cannot_open(store: &str) -> String {
    format!("cannot open the registry's store {store}")
}

pub fn no_store(file: &str) -> String {
    format!("the registry's store {file} does not exist: check the path")
}

pub fn no_damage(store: &str) -> String {
    format!("no damage was found in {store}")
}

/// A probe must come from an address that no relay has sent to.
pub fn probes_pass_nat(ip: IpAddr) -> String {
    format!(
        "relays send heartbeats to {ip}, so NATs let in what comes from there: give --probe-from another address"
    )
}

pub fn cannot_serve_pages(address: Option<SocketAddr>) -> String {
    let address = address.map(|address| format!(" {address}")).unwrap_or_default();
    format!("cannot serve HTTP at --http{address}")
}

pub fn words(join: &str, ask: &str) -> String {
    format!("relays join with {join}\nsenders ask with {ask}")
}

pub fn refused_request(reason: impl Display) -> String {
    format!("refused a request: {reason}")
}
