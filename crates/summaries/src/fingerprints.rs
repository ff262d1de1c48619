//! The fingerprints of a batch's labels, one after the other.

use std::marker::PhantomData;

use crate::batch::Batch;
use crate::label::{self, HashKey, Store};

/// How far ahead the bytes of labels are asked for.
const AHEAD: usize = 64;

/// The way from positions in a batch to fingerprints.
pub(crate) struct Fingerprints<'a, L, B> {
    batch: &'a B,
    key: &'a HashKey,
    /// Room for a label that is shortened.
    shortened: Vec<u8>,
    of: PhantomData<L>,
}

impl<'a, L: Store, B: Batch<L>> Fingerprints<'a, L, B> {
    pub(crate) fn new(batch: &'a B, key: &'a HashKey) -> Self {
        Self {
            batch,
            key,
            shortened: Vec::new(),
            of: PhantomData,
        }
    }

    /// The fingerprint of the label at a position, unless it is null.
    #[inline(always)]
    pub(crate) fn get(&mut self, position: usize) -> Option<u64> {
        if position + AHEAD < self.batch.len() {
            self.batch.expect(position + AHEAD);
        }
        let label = self
            .batch
            .get(position, &mut self.shortened, label::digest)?;
        Some(L::fingerprint(label, self.key))
    }
}
