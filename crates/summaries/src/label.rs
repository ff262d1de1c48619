//! Labels: the identity of an item. A table holds one kind, in a store with one entry per slot.

use std::cmp::Ordering;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline};
use sha2::{Digest as _, Sha256};

/// The kind of label that a summary holds; the first item fixes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers from -2^63 to 2^64 - 1.
    Integer,
    /// Strings, in UTF-8.
    String,
    /// Any bytes.
    Bytes,
}

impl Kind {
    /// What labels of the kind are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integers",
            Self::String => "strings",
            Self::Bytes => "bytes",
        }
    }
}

/// A whole number from -2^63 to 2^64 - 1: 64 bits in two's complement, and whether they are to be read as unsigned.
///
/// `above_signed` is set exactly for values of at least 2^63, so that equal values are equal labels whatever the width
/// they came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer {
    /// The low 64 bits.
    pub bits: u64,
    /// The value is `bits` as unsigned, and at least 2^63.
    pub above_signed: bool,
}

impl Ord for Integer {
    /// By value. `bits` in two's complement are in order on either side of 2^63.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |label: &Self| (label.above_signed, label.bits as i64);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Integer {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<i64> for Integer {
    #[inline]
    fn from(value: i64) -> Self {
        Self {
            bits: value as u64,
            above_signed: false,
        }
    }
}

impl From<u64> for Integer {
    #[inline]
    fn from(value: u64) -> Self {
        Self {
            bits: value,
            above_signed: value > i64::MAX as u64,
        }
    }
}

impl From<Integer> for i128 {
    fn from(value: Integer) -> Self {
        if value.above_signed {
            i128::from(value.bits)
        } else {
            i128::from(value.bits as i64)
        }
    }
}

/// A string or bytes label as stored. `shortened` labels are a prefix and a SHA-256 digest, and equal no label that is
/// not shortened. Ordered by their bytes, which for strings is the order of their characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteString<'a> {
    /// The label, or its prefix followed by 32 bytes of SHA-256 of the whole.
    pub bytes: &'a [u8],
    /// The label was longer than the limit.
    pub shortened: bool,
}

/// How many bytes a SHA-256 digest has.
pub const DIGEST_BYTES: usize = 32;

/// A SHA-256 digest.
pub(crate) type Digest = [u8; DIGEST_BYTES];

pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Write to `stored` what is kept of a label longer than `limit` bytes: a prefix and the digest of the whole, `limit`
/// bytes at the most. The prefix of a string ends between two characters.
pub(crate) fn shorten(
    bytes: &[u8],
    digest: &Digest,
    limit: usize,
    kind: Kind,
    stored: &mut Vec<u8>,
) {
    let mut end = limit - DIGEST_BYTES;
    if kind == Kind::String {
        while end > 0 && bytes[end] & 0b1100_0000 == 0b1000_0000 {
            end -= 1;
        }
    }
    stored.clear();
    stored.extend_from_slice(&bytes[..end]);
    stored.extend_from_slice(digest);
}

/// A label as read from a summary. Those of one kind have an order that depends on nothing but them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label<'a> {
    /// An integer.
    Integer(Integer),
    /// A string or bytes.
    ByteString(ByteString<'a>),
}

/// What a summary's hash is keyed with: labels that collide in one summary do not in another. The hash is no
/// cryptographic one; collisions cost time, and never mix labels up.
#[derive(Clone, Copy)]
pub(crate) struct HashKey {
    integers: u64,
    byte_strings: RapidSecrets,
}

impl HashKey {
    pub(crate) fn new(key: u64) -> Self {
        Self {
            integers: key,
            byte_strings: RapidSecrets::seed(key),
        }
    }
}

/// One label per slot, of one kind, and the hash that finds it.
pub(crate) trait Store: Default + Send {
    /// Make it a store of that many slots, not fewer than before; the further ones have no label yet.
    fn grow(&mut self, slots: usize);

    /// A borrowed label.
    type Ref<'a>: Copy + Send + Ord
    where
        Self: 'a;

    /// The label as one of any kind.
    fn as_label<'a>(label: Self::Ref<'a>) -> Label<'a>
    where
        Self: 'a;
    fn hash(label: Self::Ref<'_>, key: &HashKey) -> u64;

    /// A hash to stand for a label where the label itself is not kept: distinct labels share it by chance alone.
    #[inline(always)]
    fn fingerprint(label: Self::Ref<'_>, key: &HashKey) -> u64 {
        Self::hash(label, key)
    }

    /// Ask for the memory of a slot's label.
    fn expect(&self, slot: usize);
    /// Let a slot that is to be set next have the room of one whose label is gone.
    fn give_room(&mut self, from: usize, to: usize);
    fn get(&self, slot: usize) -> Self::Ref<'_>;
    fn matches(&self, slot: usize, label: Self::Ref<'_>) -> bool;
    fn set(&mut self, slot: usize, label: Self::Ref<'_>);
    fn heap_bytes(&self) -> usize;
}

/// Integer labels: 8 bytes a slot, and one more only once a value of 2^63 or above has been seen.
#[derive(Default)]
pub(crate) struct Integers {
    bits: Vec<u64>,
    above_signed: Vec<bool>,
}

impl Integers {
    #[inline]
    fn above_signed(&self, slot: usize) -> bool {
        !self.above_signed.is_empty() && self.above_signed[slot]
    }

    fn set_above_signed(&mut self, slot: usize, value: bool) {
        if value && self.above_signed.len() <= slot {
            self.above_signed.resize(self.bits.len(), false);
        }
        if let Some(flag) = self.above_signed.get_mut(slot) {
            *flag = value;
        }
    }
}

impl Store for Integers {
    type Ref<'a> = Integer;

    fn as_label<'a>(label: Integer) -> Label<'a>
    where
        Self: 'a,
    {
        Label::Integer(label)
    }

    #[inline(always)]
    fn hash(label: Integer, key: &HashKey) -> u64 {
        // two rounds of multiplying to 128 bits and folding the halves
        let fold = |x: u64, factor: u64| {
            let product = u128::from(x) * u128::from(factor);
            product as u64 ^ (product >> 64) as u64
        };
        fold(
            fold(label.bits ^ key.integers, 0x9FB2_1C65_1E98_DF25) ^ key.integers.rotate_left(32),
            0xA3B1_9535_4A39_B70D,
        )
    }

    /// The hash of 2^63 or above is that of the negative number with its bits, which a table tells apart.
    #[inline(always)]
    fn fingerprint(label: Integer, key: &HashKey) -> u64 {
        Self::hash(label, key) ^ u64::from(label.above_signed)
    }

    #[inline(always)]
    fn expect(&self, slot: usize) {
        crate::cpu::prefetch(&self.bits, slot);
    }

    #[inline(always)]
    fn give_room(&mut self, _: usize, _: usize) {}

    #[inline]
    fn get(&self, slot: usize) -> Integer {
        Integer {
            bits: self.bits[slot],
            above_signed: self.above_signed(slot),
        }
    }

    #[inline(always)]
    fn matches(&self, slot: usize, label: Integer) -> bool {
        self.bits[slot] == label.bits && self.above_signed(slot) == label.above_signed
    }

    #[inline]
    fn set(&mut self, slot: usize, label: Integer) {
        self.bits[slot] = label.bits;
        self.set_above_signed(slot, label.above_signed);
    }

    fn grow(&mut self, slots: usize) {
        self.bits.reserve_exact(slots - self.bits.len());
        self.bits.resize(slots, 0);
        if !self.above_signed.is_empty() {
            self.above_signed.resize(slots, false);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.bits.capacity() * 8 + self.above_signed.capacity()
    }
}

/// Where a slot's bytes stand in the arena.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    length: u32,
    /// Bytes reserved for the slot, so that a later label that fits takes no new space.
    room: u32,
}

/// Bytes for each slot that may be lost, besides an eighth of those in use, before the arena is rewritten: they pay for
/// the look at every slot, where labels are short and a few grow long in turn.
const LOST_PER_SLOT: usize = 4;

/// The bit of a length that marks a shortened label, here and in the saved form.
pub(crate) const SHORTENED: u32 = 1 << 31;

/// String and bytes labels in one arena: a replaced label leaves its room to the next one, and what is lost to labels
/// that outgrow their room is reclaimed when it exceeds an eighth of what is in use, and [`LOST_PER_SLOT`].
#[derive(Default)]
pub(crate) struct ByteStrings {
    arena: Vec<u8>,
    spans: Vec<Span>,
    /// Bytes of the labels that the slots hold or last held.
    used: usize,
}

impl ByteStrings {
    fn append(&mut self, label: ByteString<'_>) -> Span {
        let start = self.arena.len();
        if self.arena.capacity() - start < label.bytes.len() {
            self.arena.reserve_exact(label.bytes.len().max(start / 16)); // not double: it is most of the memory
        }
        self.arena.extend_from_slice(label.bytes);
        let length = label.bytes.len() as u32;
        Span {
            start,
            length: length | if label.shortened { SHORTENED } else { 0 },
            room: length,
        }
    }

    #[cfg(test)]
    pub(crate) fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    fn reclaim(&mut self) {
        let mut arena = Vec::with_capacity(self.used);
        for span in &mut self.spans {
            let length = (span.length & !SHORTENED) as usize;
            let start = arena.len();
            arena.extend_from_slice(&self.arena[span.start..span.start + length]);
            span.start = start;
            span.room = length as u32;
        }
        self.arena = arena;
    }
}

/// Whether two slices of one length are equal. Up to 32 bytes as two words that may overlap, without the call and the
/// branches on the length that a loop would take.
#[inline(always)]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() <= 32
        && let Some(same) = same_ends::<16>(a, b).or_else(|| same_ends::<8>(a, b))
    {
        return same;
    }
    a == b
}

/// Whether the first and last `N` bytes are equal, if there are as many.
#[inline(always)]
fn same_ends<const N: usize>(a: &[u8], b: &[u8]) -> Option<bool> {
    let first = a.first_chunk::<N>()? == b.first_chunk::<N>()?;
    let last = a.last_chunk::<N>()? == b.last_chunk::<N>()?;
    Some(first & last)
}

impl Store for ByteStrings {
    type Ref<'a> = ByteString<'a>;

    fn as_label<'a>(label: ByteString<'a>) -> Label<'a>
    where
        Self: 'a,
    {
        Label::ByteString(label)
    }

    /// rapidhash v3, whose values no later release changes: partitions of saved summaries depend on them.
    #[inline(always)]
    fn hash(label: ByteString<'_>, key: &HashKey) -> u64 {
        let hash = rapidhash_v3_nano_inline::<true, true>(label.bytes, &key.byte_strings);
        hash ^ u64::from(label.shortened)
    }

    #[inline(always)]
    fn expect(&self, slot: usize) {
        crate::cpu::prefetch(&self.spans, slot);
    }

    #[inline(always)]
    fn give_room(&mut self, from: usize, to: usize) {
        self.spans.swap(from, to);
    }

    #[inline]
    fn get(&self, slot: usize) -> ByteString<'_> {
        let span = self.spans[slot];
        ByteString {
            bytes: &self.arena[span.start..span.start + (span.length & !SHORTENED) as usize],
            shortened: span.length & SHORTENED != 0,
        }
    }

    #[inline(always)]
    fn matches(&self, slot: usize, label: ByteString<'_>) -> bool {
        let span = &self.spans[slot];
        let length = label.bytes.len() as u32 | if label.shortened { SHORTENED } else { 0 };
        span.length == length
            && same_bytes(
                &self.arena[span.start..span.start + label.bytes.len()],
                label.bytes,
            )
    }

    fn set(&mut self, slot: usize, label: ByteString<'_>) {
        let span = self.spans[slot];
        self.used += label.bytes.len();
        self.used -= (span.length & !SHORTENED) as usize;
        if label.bytes.len() <= span.room as usize {
            self.arena[span.start..span.start + label.bytes.len()].copy_from_slice(label.bytes);
            self.spans[slot].length =
                label.bytes.len() as u32 | if label.shortened { SHORTENED } else { 0 };
        } else {
            self.spans[slot] = self.append(label);
        }
        if self.arena.len() > self.used + self.used / 8 + self.spans.len() * LOST_PER_SLOT {
            self.reclaim();
        }
    }

    fn grow(&mut self, slots: usize) {
        let empty = Span {
            start: 0,
            length: 0,
            room: 0,
        };
        self.spans.reserve_exact(slots - self.spans.len());
        self.spans.resize(slots, empty);
    }

    fn heap_bytes(&self) -> usize {
        self.arena.capacity() + self.spans.capacity() * size_of::<Span>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_label_reads_back_and_the_arena_stays_bounded() {
        let mut store = ByteStrings::default();
        store.grow(16);
        for round in 0..10_000usize {
            let label = vec![round as u8; (round * 7919) % 200];
            let slot = round % 16;
            store.set(
                slot,
                ByteString {
                    bytes: &label,
                    shortened: round % 3 == 0,
                },
            );
            assert_eq!(store.get(slot).bytes, label);
            assert_eq!(store.get(slot).shortened, round % 3 == 0);
        }
        assert!(store.arena.len() <= 16 * 200 * 9 / 8 + 16 * LOST_PER_SLOT + 200);
    }

    #[test]
    fn bytes_that_differ_anywhere_are_told_apart() {
        for length in 0..80 {
            let bytes: Vec<u8> = (0..length).collect();
            assert!(same_bytes(&bytes, &bytes.clone()));
            for at in 0..bytes.len() {
                let mut other = bytes.clone();
                other[at] ^= 128;
                assert!(!same_bytes(&bytes, &other), "{length} bytes, at {at}");
            }
        }
    }

    #[test]
    fn a_string_is_shortened_between_characters() {
        let text = "é".repeat(100);
        let mut stored = Vec::new();
        let digest = digest(text.as_bytes());
        shorten(text.as_bytes(), &digest, 65, Kind::String, &mut stored);
        assert_eq!(stored.len(), 32 + 32);
        assert!(std::str::from_utf8(&stored[..32]).is_ok());
        shorten(text.as_bytes(), &digest, 65, Kind::Bytes, &mut stored);
        assert_eq!(stored.len(), 65);
    }

    #[test]
    fn a_value_above_the_signed_range_differs_from_the_negative_with_its_bits() {
        let mut store = Integers::default();
        store.grow(2);
        store.set(0, Integer::from(-1i64));
        store.set(1, Integer::from(u64::MAX));
        assert!(!store.matches(0, Integer::from(u64::MAX)));
        assert!(store.matches(1, Integer::from(u64::MAX)));
        store.set(1, Integer::from(-2i64));
        assert!(store.matches(1, Integer::from(-2i64)));
    }

    #[test]
    fn integers_are_ordered_by_value() {
        let signed = [i64::MIN, -2, -1, 0, 1, i64::MAX].map(Integer::from);
        let above = [1 << 63, u64::MAX - 1, u64::MAX].map(Integer::from);
        let ascending: Vec<Integer> = signed.into_iter().chain(above).collect();
        assert!(ascending.is_sorted_by(|a, b| a < b));
        assert!(ascending.is_sorted_by_key(|&label| i128::from(label)));
    }
}
