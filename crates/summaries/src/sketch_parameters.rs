//! What a sketch is constructed with, and which sketches fit together.

use std::fmt;

use crate::counters::{ExtendError, MAX_LABEL_BYTES, MIN_LABEL_BYTES};

/// The most cells in a row: a bucket takes 32 bits, with room to spare.
pub const MAX_WIDTH: usize = 1 << 31;
/// The most rows.
pub const MAX_DEPTH: usize = 1 << 16;

/// How a sketch counts and estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SketchRule {
    /// Cells add up weights; the estimate is the smallest cell.
    CountMin,
    /// Cells add up weights with signs; the estimate is the median of the signed cells of an odd number of rows.
    CountSketch,
}

impl SketchRule {
    /// What the rule is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::CountMin => "count-min",
            Self::CountSketch => "count-sketch",
        }
    }
}

/// What a sketch is constructed with, besides its keys. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchParameters {
    /// How it counts and estimates.
    pub rule: SketchRule,
    /// Cells in a row, 1 to [`MAX_WIDTH`].
    pub width: usize,
    /// Rows, 1 to [`MAX_DEPTH`]; an odd number for [`SketchRule::CountSketch`].
    pub depth: usize,
    /// Longer labels are told apart by prefix and digest, `MIN_LABEL_BYTES` to `MAX_LABEL_BYTES`.
    pub max_label_bytes: u32,
    /// Random, drawn at construction.
    pub identity: [u8; 16],
}

impl SketchParameters {
    /// True if every value is in its range.
    pub fn valid(&self) -> bool {
        (1..=MAX_WIDTH).contains(&self.width)
            && (1..=MAX_DEPTH).contains(&self.depth)
            && (self.rule == SketchRule::CountMin || self.depth % 2 == 1)
            && (MIN_LABEL_BYTES..=MAX_LABEL_BYTES).contains(&self.max_label_bytes)
    }

    /// Bytes that the cells and keys take. To be compared with the machine's memory before the sketch is made: systems
    /// that lend more memory than they have do not refuse.
    pub fn bytes_needed(&self) -> u64 {
        Self::bytes_of(self.width, self.depth)
    }

    /// [`bytes_needed`](Self::bytes_needed) of a shape, also of one that is out of range.
    pub fn bytes_of(width: usize, depth: usize) -> u64 {
        let row = (width as u64).saturating_mul(8).saturating_add(24);
        row.saturating_mul(depth as u64)
    }

    /// Tell why sketches with these parameters cannot be merged, if they cannot.
    pub(crate) fn agree(&self, other: &Self) -> Result<(), MergeError> {
        if self.rule != other.rule {
            return Err(MergeError::Rule(self.rule, other.rule));
        }
        for (what, held, given) in [
            ("width", self.width, other.width),
            ("depth", self.depth, other.depth),
            (
                "max_label_bytes",
                self.max_label_bytes as usize,
                other.max_label_bytes as usize,
            ),
        ] {
            if held != given {
                return Err(MergeError::Shape { what, held, given });
            }
        }
        Ok(())
    }
}

/// Why two sketches cannot be merged. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// Other rules: that of the one merged into, and that of the other.
    Rule(SketchRule, SketchRule),
    /// Another width, depth or length limit of labels.
    Shape {
        /// The name of the parameter.
        what: &'static str,
        /// That of the one merged into.
        held: usize,
        /// That of the other.
        given: usize,
    },
    /// Keys that were drawn apart: a label's cells are not the same in both.
    Keys,
    /// Labels of two kinds, or too long a stream together.
    Stream(ExtendError),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = "Make all but one of them as empty copies of that one.";
        match self {
            Self::Rule(held, given) => {
                let (held, given) = (held.name(), given.name());
                write!(
                    f,
                    "sketches that are merged must have the same rule; got {held} and {given}. {remedy}"
                )
            }
            Self::Shape { what, held, given } => {
                write!(
                    f,
                    "sketches that are merged must have the same {what}; got {held} and {given}. {remedy}"
                )
            }
            Self::Keys => {
                write!(
                    f,
                    "sketches that are merged must have the same hash keys; these were drawn apart. {remedy}"
                )
            }
            Self::Stream(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MergeError {}
