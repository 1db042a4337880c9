//! Values as stores keep them: numbers that have a sign, and addresses as text.

use byway_wire::heartbeat::RelayId;
use std::net::{IpAddr, SocketAddr};

/// Converts an unsigned number for a signed column. A number that does not fit becomes the largest,
/// which means "no limit".
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reverses [`signed`]. The largest number means "no limit", so it becomes `u64::MAX`.
pub fn unsigned(number: i64) -> u64 {
    if number == i64::MAX { u64::MAX } else { u64::try_from(number).unwrap_or(0) }
}

/// Addresses as text.
pub fn text_of(addresses: &[SocketAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(" ")
}

/// Parses addresses separated by spaces. Skips text that is no address.
pub fn addresses_of(text: &str) -> Vec<SocketAddr> {
    text.split(' ').filter_map(|word| word.parse().ok()).collect()
}

/// Returns the IP addresses of `addresses`, each once.
pub fn ips_of(addresses: &[SocketAddr]) -> Vec<String> {
    let mut ips: Vec<IpAddr> = addresses.iter().map(|address| address.ip().to_canonical()).collect();
    ips.sort_unstable();
    ips.dedup();
    ips.iter().map(ToString::to_string).collect()
}

/// Reads a relay's name from its 32 hexadecimal digits.
pub fn relay_of(text: &str) -> Option<RelayId> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(RelayId(bytes))
}

/// The kind of an audit log entry, as one of the known kinds.
pub fn known(what: &str) -> &'static str {
    let all = ["enrolled", "changed", "refused", "revoked", "issued", "rolled"];
    all.into_iter().find(|known| *known == what).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for number in [0, 5, u64::MAX] {
            assert_eq!(unsigned(signed(number)), number);
        }
        let addresses = vec!["192.0.2.1:5".parse().unwrap(), "[2001:db8::1]:6".parse().unwrap()];
        assert_eq!(addresses_of(&text_of(&addresses)), addresses);
        assert_eq!(addresses_of(""), []);
        assert_eq!(ips_of(&[addresses[0], addresses[0]]), ["192.0.2.1"]);
        let id = RelayId([0xab; 16]);
        assert_eq!(relay_of(&id.to_string()), Some(id));
        assert_eq!((relay_of("zz"), relay_of(&"é".repeat(16))), (None, None));
    }
}
