//! Units of bytes as people write them.

/// Names of units, and how many bytes each is. A letter alone is binary, as in rsync and rclone.
const UNIT_BYTES: [(&str, u64); 14] = [
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("", 1),
];

/// Returns the number of bytes in the unit `name`, in either case. The empty name is one byte.
/// `None`: there is no such unit.
#[must_use]
pub fn bytes(name: &str) -> Option<u64> {
    UNIT_BYTES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_alone_is_binary_and_with_a_b_decimal() {
        let units = ["", "B", "K", "KiB", "KB", "kb", "TiB", "TB"].map(bytes);
        let expected = [1, 1, 1_024, 1_024, 1_000, 1_000, 1 << 40, 1_000_000_000_000];
        assert_eq!(units, expected.map(Some));
        assert_eq!([bytes("X"), bytes("Kbit"), bytes("e3")], [None; 3]);
    }
}
