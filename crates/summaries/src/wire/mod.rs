//! The saved form: versioned, checksummed, little-endian, in tagged sections.
//!
//! ```text
//! header     8 bytes "dptop\0\r\n", u16 version = 1, u16 type, u32 number of sections
//! section    u32 tag, u64 length, then as many bytes; tags in ascending order, each once
//! trailer    u32 CRC-32 (IEEE) of everything before it
//!
//! type                                    sections
//! 1 SpaceSaving, 2 Misra-Gries            parameters, counters, record
//! 3 Count-Min, 4 CountSketch              parameters, record, keys, cells, noise
//! 5 labels tracked by their estimates     parameters, record, estimates
//! 6 labels tracked beside a sketch        parameters, record, sketch, labels
//!
//! 1 parameters   of types 1 and 2: u64 capacity, u64 partitions, u8 tie (0 least, 1 most recent; 0 for Misra-Gries),
//!                kind, u32 max_label_bytes, 16 bytes identity
//!                of types 3 and 4: u64 width, u64 depth, u8 seeded (0 nothing, 1 the noise alone, 2 the keys), kind,
//!                u32 max_label_bytes, 16 bytes identity, u64 length of the stream
//!                of type 5: u64 capacity, kind, u32 max_label_bytes, 16 bytes identity, u64 length of the stream
//!                of type 6, from the caller: u64 capacity, u8 candidates (0 SpaceSaving, 1 estimates), u8 tie as above
//! 2 counters     for Misra-Gries: u64 length of the stream. Then for each partition: u64 labels, then the labels in
//!                last-occurrence order, oldest first, or for Misra-Gries in the order of the labels: u64 count and the
//!                label. Free slots are what is missing to the partition's share of the capacity. SpaceSaving has no
//!                count of 0, and the length is the sum of its counts.
//! 3 record       bytes of the caller: what was spent and what may be
//! 4 keys         u64 key of the fingerprints, then for each row its hash's u64 a, u64 b, u64 c. Secrets, as the cells
//!                are: whoever knows them can make labels collide.
//! 5 cells        row by row, each an i64
//! 6 noise        bytes of the caller: the noise that is in the cells; empty if there is none
//! 7 estimates    u64 labels, then the labels in the order in which their estimates were stored, oldest first: i64
//!                estimate and the label
//! 8 sketch       a whole saved form of type 3 or 4
//! 9 labels       a whole saved form of type 1 or 5
//!
//! kind           u8: 0 none yet, 1 integers, 2 strings, 3 bytes
//! label          an integer: u8 (1 if it is 2^63 or more), u64 bits. A string or bytes: u32 length with the top bit set
//!                if shortened, then the bytes.
//! ```
//!
//! Reading takes memory within a small multiple of the bytes given, whatever they claim, and refuses whatever
//! contradicts itself.

pub mod counters;
mod labels;
mod sections;
pub mod sketch;
pub mod top_estimates;
pub mod tracked;

use std::fmt;

/// Saved bytes that are not a whole, consistent summary; says the rule that they break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt(pub &'static str);

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Corrupt {}

const OUT_OF_RANGE: Corrupt = Corrupt("a parameter is out of range");
