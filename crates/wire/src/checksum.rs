//! The Internet checksum (RFC 1071). This module computes a checksum and updates it when a field
//! changes (RFC 1624). It also completes a partial checksum, such as the kernel writes if the
//! network card is to compute the rest.

use core::net::IpAddr;

/// Returns the sum of `bytes` as big-endian words, where an odd last byte is the upper half of a
/// word. It is not folded, so sums may be added.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    // Words of four bytes: 2^16 is 1 modulo 2^16 - 1, so that halves may be added later. No packet
    // overflows 64 bits.
    let (words, rest) = bytes.as_chunks::<4>();
    let wide: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    wide + u64::from(u32::from_be_bytes(last))
}

/// Folds a sum into 16 bits: adds the carries until none is left.
#[must_use]
pub const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The unfolded sum over the pseudo-header of a packet (RFC 9293 for IPv4, RFC 8200 for IPv6).
/// `length` is the number of bytes of the transport header and payload.
#[must_use]
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> u64 {
    let address = |address| match address {
        IpAddr::V4(v4) => sum(&v4.octets()),
        IpAddr::V6(v6) => sum(&v6.octets()),
    };
    address(source) + address(destination) + u64::from(protocol) + length as u64
}

/// Returns the checksum after a covered word changed from `old` to `new`: `HC' = ~(~HC + ~m + m')`,
/// RFC 1624, equation 3.
#[must_use]
pub const fn replaced(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

/// As [`replaced`], for 16 bits that begin `at` bytes after the start of the checksummed bytes. If
/// `at` is odd, the bits belong to two words of the sum, so their bytes are swapped (RFC 1071
/// section 2).
#[must_use]
pub const fn replaced_at(checksum: u16, old: u16, new: u16, at: usize) -> u16 {
    if at.is_multiple_of(2) {
        replaced(checksum, old, new)
    } else {
        replaced(checksum, old.swap_bytes(), new.swap_bytes())
    }
}

/// Completes the checksum field of a transport header, if the field holds only the sum over the
/// pseudo-header. `bytes`: transport header and payload. `field`: offset of the field in bytes.
/// Returns false if `bytes` are too short.
pub fn complete(bytes: &mut [u8], field: usize) -> bool {
    let value = !fold(sum(bytes));
    match bytes.get_mut(field..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        Some(place) => {
            *place = value.to_be_bytes();
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_rfcs() {
        // RFC 1071, section 3.
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
        // RFC 1624, section 4: the case that RFC 1141 got wrong.
        assert_eq!(replaced(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn an_odd_byte_is_the_upper_half() {
        assert_eq!(fold(sum(&[0x12])), 0x1200);
        assert_eq!(fold(sum(&[0, 0, 0, 0, 0x12, 0x34, 0x56])), 0x1234 + 0x5600);
    }

    proptest! {
        #[test]
        fn an_update_equals_a_computation_anew(
            mut bytes in prop::collection::vec(any::<u8>(), 4..200), at: prop::sample::Index, new: u16
        ) {
            prop_assume!(bytes.iter().any(|byte| *byte != 0));
            let at = at.index(bytes.len() - 1);
            let before = !fold(sum(&bytes));
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assume!(bytes.iter().any(|byte| *byte != 0));
            prop_assert_eq!(replaced_at(before, old, new, at), !fold(sum(&bytes)));
        }

        #[test]
        fn sums_do_not_depend_on_how_they_are_split(bytes: Vec<u8>, at: prop::sample::Index) {
            let at = at.index(bytes.len() + 1) / 2 * 2;
            let (head, tail) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(fold(sum(head) + sum(tail)), fold(sum(&bytes)));
        }
    }
}
