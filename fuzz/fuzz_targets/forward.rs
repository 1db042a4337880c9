//! What an entry and an exit of forwarded connections read: a program's SOCKS5, a request on a
//! stream, and what a person types. However the bytes are cut into pieces, the same comes of them.
#![no_main]

use byway_forward::allow_rules::AllowRule;
use byway_forward::forward_target::Target;
use byway_forward::local_port::{Forward, socks_listen};
use byway_forward::socks::{Socks, SocksAction};
use byway_forward::stream_request::{MAX_REQUEST_LEN, Request, request};
use libfuzzer_sys::fuzz_target;

/// What is said to a program whose bytes come in pieces of this size.
fn socks(bytes: &[u8], piece: usize) -> Vec<SocksAction> {
    let (mut socks, mut said) = (Socks::default(), Vec::new());
    for mut chunk in bytes.chunks(piece) {
        while !chunk.is_empty() {
            let (used, next) = socks.take(chunk);
            assert!(used <= chunk.len());
            chunk = &chunk[used..];
            match next {
                SocksAction::Wait if chunk.is_empty() => {}
                SocksAction::Wait => return said,
                SocksAction::Connect(_) | SocksAction::Close(_) => {
                    said.push(next);
                    return said;
                }
                SocksAction::Say(_) => said.push(next),
            }
        }
    }
    said
}

/// The target that is asked for, if all is there; how many bytes were read.
fn asked(bytes: &[u8], piece: usize) -> Option<Result<(usize, Target), ()>> {
    let (mut request, mut read) = (Request::default(), 0);
    for chunk in bytes.chunks(piece) {
        match request.take(chunk) {
            Ok((used, Some(target))) => return Some(Ok((read + used, target))),
            Ok((used, None)) => {
                assert_eq!(used, chunk.len());
                read += used;
            }
            Err(_) => return Some(Err(())),
        }
    }
    None
}

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(socks(bytes, 1), socks(bytes, bytes.len().max(1)));
    let whole = asked(bytes, bytes.len().max(1));
    assert_eq!(asked(bytes, 1), whole);
    if let Some(Ok((length, target))) = whole {
        assert!(length <= MAX_REQUEST_LEN);
        assert_eq!(asked(&request(&target), 7).map(|it| it.map(|(_, target)| target)), Some(Ok(target)));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(target) = text.parse::<Target>() {
        assert_eq!(target.to_string().parse(), Ok(target));
    }
    if let Ok(rule) = text.parse::<AllowRule>() {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    if let Ok(forward) = text.parse::<Forward>() {
        assert_eq!(forward.to_string().parse(), Ok(forward));
    }
    let _ = socks_listen(text);
});
