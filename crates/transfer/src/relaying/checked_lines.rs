//! The common format of a relay's files: lines of text, the last of which is a checksum.

/// The checksum of all lines before the last.
pub(super) fn check(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(8).collect()
}

/// Returns the lines between the line `first`, which names the kind of file, and the checksum.
/// `None`: the text is damaged, or of another kind.
pub(super) fn checked<'a>(text: &'a str, first: &str) -> Option<std::str::Lines<'a>> {
    let (body, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let body = text.get(..=body.len())?;
    let mut lines = body.lines();
    (last.strip_prefix("check ")? == check(body) && lines.next()? == first).then_some(lines)
}

/// Bytes that are written as hexadecimal digits.
pub(super) fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}
