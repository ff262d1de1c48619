//! The hash family of the linear sketches: a label's fingerprint, and for each row a bucket and a sign.
//!
//! A label is reduced to a fingerprint F of 64 bits by the keyed hash that stores use too (`label.rs`). Row r has three
//! numbers a, b, c of its own, uniform on the 64-bit words, and
//!
//! ```text
//! h_r(F) = a * lo32(F) + b * hi32(F) + c    mod 2^64
//! ```
//!
//! which is vector multiply-shift (Dietzfelbinger 1996; Thorup, "High Speed Hashing for Integers and Strings", section
//! 3): its top 33 bits are strongly universal, uniform and 2-independent over distinct fingerprints. The top 32 bits h
//! say the bucket, `(h * width) >> 32`; the next bit says the sign, jointly 2-independent with the bucket. Two distinct
//! fingerprints share the bucket of a row with chance at most ceil(2^32 / width) / 2^32, which is 1 / width for powers
//! of two.
//!
//! Proved, for labels with distinct fingerprints: that chance, hence Count-Min's Markov bound in a row; and that rows
//! are independent, for none shares a number with another (no double hashing).
//!
//! Assumed: fingerprints behave as independent uniform numbers, so that two of n labels share one with chance about n^2
//! / 2^65, which envelopes pay for. And, for CountSketch alone, more than independence in pairs: that buckets and signs
//! of distinct labels behave within a row as independent uniform ones. Chebyshev's bound with signs needs three labels
//! at a time, the second moment of a row four, and the halving of one-sided errors all of them.

use std::fmt;

use crate::label::HashKey;
use crate::noise::Words;

/// The hash of one row: 24 bytes, independent of every other row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHash {
    /// Multiplies the low half of a fingerprint.
    pub a: u64,
    /// Multiplies the high half.
    pub b: u64,
    /// Is added.
    pub c: u64,
}

impl RowHash {
    /// 64 bits, of which the top 33 are strongly universal.
    #[inline(always)]
    pub(crate) fn hash(&self, fingerprint: u64) -> u64 {
        let (low, high) = (fingerprint & 0xFFFF_FFFF, fingerprint >> 32);
        let sum = self.a.wrapping_mul(low).wrapping_add(self.c);
        sum.wrapping_add(self.b.wrapping_mul(high))
    }
}

/// The bucket that a row's hash says, below `width <= 2^32`.
#[inline(always)]
pub(crate) fn bucket(hash: u64, width: u64) -> u32 {
    (((hash >> 32) * width) >> 32) as u32
}

/// `value` with the sign that a row's hash says. The smallest number, which has no opposite, stays.
#[inline(always)]
pub(crate) fn signed(hash: u64, value: i64) -> i64 {
    let negative = -((hash >> 31 & 1) as i64); // 0 or -1
    (value ^ negative).wrapping_sub(negative)
}

/// What the hashes of a sketch are keyed with. Secrets: whoever knows them can make labels collide.
#[derive(Clone)]
pub struct Keys {
    fingerprint: u64,
    hash_key: HashKey,
    rows: Vec<RowHash>,
    seeded: bool,
}

impl Keys {
    /// Keys for `depth` rows from the operating system's entropy; or, for tests only, from a seed.
    ///
    /// # Errors
    /// The operating system gave no entropy.
    pub fn draw(depth: usize, seed: Option<[u8; 32]>) -> Result<Self, getrandom::Error> {
        let mut words = Words::new(seed);
        let fingerprint = words.next()?;
        let mut row = || {
            let (a, b, c) = (words.next()?, words.next()?, words.next()?);
            Ok(RowHash { a, b, c })
        };
        let rows = (0..depth).map(|_| row()).collect::<Result<_, _>>()?;
        Ok(Self::restored(fingerprint, rows, seed.is_some()))
    }

    /// Keys that were saved.
    pub(crate) fn restored(fingerprint: u64, rows: Vec<RowHash>, seeded: bool) -> Self {
        Self {
            fingerprint,
            hash_key: HashKey::new(fingerprint),
            rows,
            seeded,
        }
    }

    /// What keys the hash that makes fingerprints.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn hash_key(&self) -> &HashKey {
        &self.hash_key
    }

    /// The rows' hashes.
    pub fn rows(&self) -> &[RowHash] {
        &self.rows
    }

    /// They came from a seed: no secrets.
    pub fn seeded(&self) -> bool {
        self.seeded
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.rows == other.rows
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys for {} rows", self.rows.len()) // the rest is secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_share_the_hashes_as_evenly_as_whole_numbers_allow() {
        for width in [1, 2, 3, 7, 1 << 31] {
            let top = |hash: u64| bucket(hash << 32, width);
            assert_eq!((top(0), top(u64::from(u32::MAX))), (0, (width - 1) as u32));
            for edge in 1..width.min(8) {
                let first = (edge << 32).div_ceil(width); // the smallest hash of this bucket
                assert_eq!((top(first - 1), top(first)), (edge as u32 - 1, edge as u32));
            }
        }
    }

    #[test]
    fn the_bit_below_the_bucket_says_the_sign() {
        for value in [0, 1, -7, i64::MAX, -i64::MAX] {
            assert_eq!(signed(!(1 << 31), value), value);
            assert_eq!(signed(1 << 31, value), -value);
        }
    }

    #[test]
    fn no_two_keys_are_the_same() {
        let keys = Keys::draw(100, None).unwrap();
        let mut words: Vec<u64> = keys.rows().iter().flat_map(|r| [r.a, r.b, r.c]).collect();
        words.push(keys.fingerprint());
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 301); // by chance fewer, with chance 301^2 / 2^65
        assert!(keys != Keys::draw(100, None).unwrap());
        assert!(!keys.seeded());
    }

    #[test]
    fn a_seed_repeats_and_is_told() {
        let keys = Keys::draw(3, Some([1; 32])).unwrap();
        assert!(keys == Keys::draw(3, Some([1; 32])).unwrap());
        assert!(keys != Keys::draw(3, Some([2; 32])).unwrap());
        assert!(keys.seeded());
        assert_eq!(format!("{keys:?}"), "Keys for 3 rows");
    }
}
