//! The saved form: versioned, checksummed, little-endian, in tagged sections. docs/saved-form.md says it byte by byte.
//!
//! Reading takes memory within a small multiple of the bytes given, whatever they claim, and refuses whatever
//! contradicts itself: what is read was left by some stream, under some keys, and is written to the same bytes again.

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
