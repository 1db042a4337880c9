//! One number that stands for all that happened, for checks of determinism.

/// A running hash in four lanes, so that it costs little beside copying the bytes. Not for secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace([u64; 4]);

const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Trace {
    pub(crate) const fn new() -> Self {
        Self([1, 2, 3, 4])
    }

    pub(crate) fn number(&mut self, number: u64) {
        let [lane, ..] = &mut self.0;
        *lane = mix(*lane, number);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let [mut a, mut b, mut c, mut d] = self.0;
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            let &[first, second, third, fourth] = words else { continue };
            a = mix(a, u64::from_le_bytes(first));
            b = mix(b, u64::from_le_bytes(second));
            c = mix(c, u64::from_le_bytes(third));
            d = mix(d, u64::from_le_bytes(fourth));
        }
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            b = mix(b, u64::from_le_bytes(*word));
        }
        for byte in rest {
            c = mix(c, u64::from(*byte));
        }
        self.0 = [a, b, c, d];
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.iter().fold(0, |sum, &lane| mix(sum, lane))
    }
}

const fn mix(lane: u64, word: u64) -> u64 {
    (lane ^ word).wrapping_mul(HASH_MULTIPLIER).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_the_order_count() {
        let value = |bytes: &[u8]| {
            let mut trace = Trace::new();
            trace.bytes(bytes);
            trace.value()
        };
        let base: Vec<u8> = (0..77).collect();
        for at in 0..base.len() {
            let mut other = base.clone();
            other[at] ^= 1;
            assert_ne!(value(&base), value(&other), "byte {at}");
        }
        let mut swapped = base.clone();
        swapped.swap(0, 32);
        assert_ne!(value(&base), value(&swapped));
        assert_ne!(value(&base), value(&base[..76]));
    }
}
