//! The hash of the handshake: BLAKE2s (RFC 7693).

use blake2::{Blake2s256, Digest as _};
use snow::types::Hash;

/// Bytes of a block, and of a hash.
const BLOCK_LEN: usize = 64;
const HASH_LEN: usize = 32;

/// BLAKE2s in the form that snow uses.
#[derive(Default)]
pub(super) struct Blake2s(Blake2s256);

impl Hash for Blake2s {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        BLOCK_LEN
    }

    fn hash_len(&self) -> usize {
        HASH_LEN
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        // snow's buffers have room for longer hashes.
        if let Some(out) = out.get_mut(..HASH_LEN) {
            out.copy_from_slice(&self.0.finalize_reset());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7693, appendix B: BLAKE2s of "abc".
    const ABC: [u8; HASH_LEN] = [
        0x50, 0x8c, 0x5e, 0x8c, 0x32, 0x7c, 0x14, 0xe2, 0xe1, 0xa7, 0x2b, 0xa3, 0x4e, 0xeb, 0x45, 0x2f, 0x37,
        0x45, 0x8b, 0x20, 0x9e, 0xd6, 0x3a, 0x29, 0x4d, 0x99, 0x9b, 0x4c, 0x86, 0x67, 0x59, 0x82,
    ];

    #[test]
    fn the_example_of_the_standard() {
        let mut hash = Blake2s::default();
        hash.input(b"forgotten");
        hash.reset();
        for _ in 0..2 {
            let mut out = [0; HASH_LEN + 1];
            hash.input(b"a");
            hash.input(b"bc");
            hash.result(&mut out);
            assert_eq!(out[..HASH_LEN], ABC);
        }
    }
}
