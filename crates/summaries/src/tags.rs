//! Tags: 16 bits of its label's hash beside each slot, compared eight at a time to find the slots worth a look.

use wide::u16x8;

/// Slots whose tags are compared at once.
pub(crate) const ROW: usize = 8;

/// The tag of a slot without a label.
pub(crate) const NONE: u16 = 0;

/// The tags of neighbouring slots.
pub(crate) type Row = [u16; ROW];

/// The tag of a label with this hash: not [`NONE`], and 0 in the `reserved` bits, which are the lowest ones.
#[inline(always)]
pub(crate) fn tag(hash: u64, reserved: u16) -> u16 {
    (hash as u16 & !reserved).max(reserved + 1)
}

/// The slots of a row that have the tag, as bits.
#[inline(always)]
pub(crate) fn with_tag(row: &Row, tag: u16) -> u32 {
    u16x8::new(*row).simd_eq(u16x8::splat(tag)).to_bitmask()
}
