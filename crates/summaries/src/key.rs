//! The key of a counter in a small table: all that says which label to evict, in one word.

use crate::small_tables::MAX_SLOTS;

/// Bits that say the slot.
const SLOT_BITS: u32 = MAX_SLOTS.trailing_zeros();
/// Bits that say when the label last occurred.
const ORDER_BITS: u32 = 26;
/// Bits that hold the count: with the others they leave the sign bit 0.
pub(crate) const COUNT_BITS: u32 = 31;
const _: () = assert!(SLOT_BITS + ORDER_BITS + COUNT_BITS == 63);

/// The largest order of an occurrence. The smallest is 1: a key without count and order is that of a free slot, and the
/// lower bits of a count, which is what a key may hold, can be 0.
pub(crate) const MAX_ORDER: u32 = (1 << ORDER_BITS) - 1;

/// Count, order of the last occurrence and slot, from the top down, so that keys compare in this order. Signed, as that
/// is what vector instructions compare, and never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(i64);

impl Key {
    const MAX: Self = Self(i64::MAX);

    #[inline(always)]
    pub(crate) fn new(count: u64, order: u32, slot: usize) -> Self {
        let key = (count << ORDER_BITS | u64::from(order)) << SLOT_BITS | slot as u64;
        Self(key as i64)
    }

    /// The key of a slot without a label; it goes before all that have one.
    pub(crate) fn free(slot: usize) -> Self {
        Self::new(0, 0, slot)
    }

    pub(crate) fn is_free(self) -> bool {
        self.0 >> SLOT_BITS == 0
    }

    /// The count, or the lower bits of one that does not fit.
    #[inline(always)]
    pub(crate) fn count(self) -> u64 {
        self.0 as u64 >> (ORDER_BITS + SLOT_BITS)
    }

    pub(crate) fn order(self) -> u32 {
        (self.0 >> SLOT_BITS) as u32 & MAX_ORDER
    }

    /// The slot within its table.
    #[inline(always)]
    pub(crate) fn slot(self) -> usize {
        self.0 as usize & (MAX_SLOTS - 1)
    }
}

/// The smallest key, four at a time.
#[inline(always)]
pub(crate) fn smallest(keys: &[Key]) -> Key {
    let (fours, rest) = keys.as_chunks::<4>();
    let least = fours.iter().fold([Key::MAX; 4], |least, keys| {
        std::array::from_fn(|i| least[i].min(keys[i]))
    });
    least
        .into_iter()
        .chain(rest.iter().copied())
        .fold(Key::MAX, Key::min)
}

/// The key of the smallest count where `high` has the higher bits of counts; mostly these are 0 somewhere.
#[cold]
#[inline(never)]
pub(crate) fn smallest_with_high(keys: &[Key], high: &[u32]) -> Key {
    let slots = keys.iter().zip(high);
    let least = slots.min_by_key(|&(key, high)| (high, key));
    least.map_or(Key::MAX, |(&key, _)| key)
}
