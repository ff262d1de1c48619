//! Weights: how often each item of a batch counts, and with which sign where a summary is linear.

use crate::counters::ExtendError;

/// What the length of a stream is the sum of: the weights of its items without their signs.
pub trait Weighing: Copy {
    /// Why a batch is refused with which that sum would exceed 2^63 - 1.
    const EXCEEDED: ExtendError;

    /// How many weights there are; `None` where each item counts once.
    fn given(&self) -> Option<usize>;

    /// The weight at a position without its sign.
    fn size(&self, position: usize) -> u64;
}

/// How often each item of a batch counts.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    /// Once.
    Unit,
    /// As often as the number at the item's position says; 0 leaves the summary as it is.
    Each(&'a [u64]),
}

impl Weights<'_> {
    #[inline(always)]
    pub(crate) fn get(&self, position: usize) -> u64 {
        match self {
            Self::Unit => 1,
            Self::Each(weights) => weights[position],
        }
    }
}

impl Weighing for Weights<'_> {
    const EXCEEDED: ExtendError = ExtendError::TooLong;

    #[inline(always)]
    fn given(&self) -> Option<usize> {
        match self {
            Self::Unit => None,
            Self::Each(weights) => Some(weights.len()),
        }
    }

    #[inline(always)]
    fn size(&self, position: usize) -> u64 {
        self.get(position)
    }
}

/// How often each item of a batch counts where items can be taken back: as often again with the other sign.
#[derive(Clone, Copy, Debug)]
pub enum SignedWeights<'a> {
    /// Once.
    Unit,
    /// As often as the number at the item's position says; 0 leaves the summary as it is.
    Each(&'a [i64]),
}

impl SignedWeights<'_> {
    #[inline(always)]
    pub(crate) fn get(&self, position: usize) -> i64 {
        match self {
            Self::Unit => 1,
            Self::Each(weights) => weights[position],
        }
    }
}

impl Weighing for SignedWeights<'_> {
    const EXCEEDED: ExtendError = ExtendError::TooHeavy;

    #[inline(always)]
    fn given(&self) -> Option<usize> {
        match self {
            Self::Unit => None,
            Self::Each(weights) => Some(weights.len()),
        }
    }

    #[inline(always)]
    fn size(&self, position: usize) -> u64 {
        self.get(position).unsigned_abs()
    }
}
