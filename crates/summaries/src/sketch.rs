//! Count-Min and CountSketch: linear sketches, which estimate the count of any label and take items back.
//!
//! Both have `depth` rows of `width` cells. In each row an item adds its weight to one cell, in CountSketch with a
//! sign. The row's hash says which cell and which sign; its family, and what is assumed of it, stand in
//! [`row_hash`](crate::row_hash). Count-Min estimates by the smallest of a label's cells (Cormode, Muthukrishnan 2005),
//! CountSketch by the median of its signed cells (Charikar, Chen, Farach-Colton 2002).
//!
//! Cells are sums, so the order of items does not matter, and weights may be added up first (`sums.rs`).

use std::marker::PhantomData;

use crate::batch::{Batch, ByteStringBatch, IntegerBatch, Items};
use crate::cells::Cells;
pub use crate::cells::OutOfMemory;
use crate::counters::{ExtendError, Extent};
use crate::fingerprints::Fingerprints;
use crate::label::{self, ByteStrings, Integer, Integers, Kind, Label, Store};
use crate::noise::Words;
use crate::row_hash::Keys;
pub use crate::sketch_parameters::{
    MAX_DEPTH, MAX_WIDTH, MergeError, SketchParameters, SketchRule,
};
use crate::sums::{self, Sums};
use crate::top_estimates::TopEstimates;
use crate::weights::SignedWeights;

/// Batches up to this size are not added up first: the table of sums would cost more than it saves.
const FEW: usize = 1024;
/// Labels whose counts are estimated at a time; fewer where there are many rows.
const ESTIMATED: usize = 1024;
/// Cells of labels that are estimated at a time, at the most: 512 kB.
const READ: usize = 1 << 16;
const _: () = assert!(READ >= MAX_DEPTH);
/// Draws of noise that are held at a time, at the most: 512 kB.
const DRAWN: usize = 1 << 16;

/// Why there is no copy with noise.
#[derive(Debug)]
pub enum NoisyError {
    /// The operating system gave no entropy.
    Entropy(getrandom::Error),
    /// There is not enough memory for the copy.
    Memory(OutOfMemory),
}

/// Estimates of the counts of all labels, in `depth` rows of `width` cells.
///
/// Everything that this type gives out except its [parameters](Self::parameters) and whether it was
/// [seeded](Self::seeded) is private; its keys are secrets.
pub struct Sketch {
    parameters: SketchParameters,
    keys: Keys,
    seeded: bool,
    extent: Extent,
    cells: Cells,
}

impl Sketch {
    /// An empty sketch, its cells zeroed. See [`SketchParameters::bytes_needed`] for what to ask before.
    ///
    /// # Errors
    /// There is not enough memory for the cells.
    ///
    /// # Panics
    /// If a parameter is out of range, see [`SketchParameters::valid`], or the keys are not for `depth` rows.
    pub fn new(parameters: SketchParameters, keys: Keys) -> Result<Self, OutOfMemory> {
        assert!(parameters.valid(), "parameters out of range");
        assert_eq!(keys.rows().len(), parameters.depth, "a hash for each row");
        Ok(Self {
            parameters,
            seeded: keys.seeded(),
            keys,
            extent: Extent::default(),
            cells: Cells::new(parameters.width, parameters.depth)?,
        })
    }

    /// A sketch that was saved, its parts known to fit together.
    pub(crate) fn restored(
        parameters: SketchParameters,
        keys: Keys,
        seeded: bool,
        extent: Extent,
        cells: Cells,
    ) -> Self {
        Self {
            parameters,
            keys,
            seeded,
            extent,
            cells,
        }
    }

    /// A sketch of nothing with the same keys, and an identity of its own: they can be merged.
    ///
    /// # Errors
    /// There is not enough memory for the cells.
    pub fn empty_copy(&self, identity: [u8; 16]) -> Result<Self, OutOfMemory> {
        let parameters = SketchParameters {
            identity,
            ..self.parameters
        };
        Self::new(parameters, self.keys.clone())
    }

    /// The same sketch once more.
    ///
    /// # Errors
    /// There is not enough memory for the cells.
    pub fn copy(&self) -> Result<Self, OutOfMemory> {
        Ok(Self {
            parameters: self.parameters,
            keys: self.keys.clone(),
            seeded: self.seeded,
            extent: self.extent,
            cells: self.cells.copy()?,
        })
    }

    /// What it was constructed with.
    pub fn parameters(&self) -> &SketchParameters {
        &self.parameters
    }

    /// What its hashes are keyed with.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Its keys, or noise in its cells, came from a seed: what is computed from it is not private.
    pub fn seeded(&self) -> bool {
        self.seeded
    }

    /// The kind of label that the first item fixed.
    pub fn kind(&self) -> Option<Kind> {
        self.extent.kind()
    }

    /// The sum of all weights without their signs.
    pub fn length(&self) -> u64 {
        self.extent.length()
    }

    /// Kind and length together, to ask what would be refused after other batches.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The cells, row by row.
    pub fn rows(&self) -> impl Iterator<Item = &[i64]> {
        self.cells.rows()
    }

    /// Bytes of memory that the cells and keys take.
    pub fn heap_bytes(&self) -> usize {
        self.cells.heap_bytes() + size_of_val(self.keys.rows())
    }

    /// Count integer items.
    ///
    /// # Errors
    /// The batch is refused whole, see [`ExtendError`].
    pub fn extend_integers(
        &mut self,
        items: Items<impl Fn(usize) -> Option<Integer> + Sync>,
        weights: SignedWeights<'_>,
    ) -> Result<(), ExtendError> {
        let mut after = self.extent;
        after.add(Kind::Integer, &items, weights)?;
        self.count::<Integers>(&IntegerBatch(items), weights);
        self.extent = after;
        Ok(())
    }

    /// Count string or bytes items. Items of [`Kind::String`] must be UTF-8.
    ///
    /// # Errors
    /// The batch is refused whole, see [`ExtendError`].
    ///
    /// # Panics
    /// If `kind` is [`Kind::Integer`].
    pub fn extend_byte_strings<'a>(
        &mut self,
        kind: Kind,
        items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>,
        weights: SignedWeights<'_>,
    ) -> Result<(), ExtendError> {
        let mut after = self.extent;
        after.add(kind, &items, weights)?;
        self.count(&self.byte_strings(kind, items), weights);
        self.extent = after;
        Ok(())
    }

    fn byte_strings<'a, F: Fn(usize) -> Option<&'a [u8]> + Sync>(
        &self,
        kind: Kind,
        items: Items<F>,
    ) -> ByteStringBatch<'a, F> {
        assert!(kind != Kind::Integer, "integers are no byte strings");
        ByteStringBatch {
            items,
            limit: self.parameters.max_label_bytes as usize,
            kind,
            lent: PhantomData,
        }
    }

    /// Add a batch to the cells. The length of the stream stays within 2^63 - 1, and so does each cell without its
    /// sign, unless noise has been added: then a cell may wrap, once the length is as close to that as the noise is
    /// large. Privacy does not suffer from it, as what wraps is computed from the noisy sum.
    fn count<L: Store>(&mut self, batch: &impl Batch<L>, weights: SignedWeights<'_>) {
        let sign = self.parameters.rule == SketchRule::CountSketch;
        let mut labels = Fingerprints::new(batch, self.keys.hash_key());
        let (cells, hashes) = (&mut self.cells, self.keys.rows());
        let mut add = |fingerprints: &[u64], weights: &[i64]| {
            cells.add(sign, hashes, fingerprints, weights);
        };
        if batch.len() == 1 {
            if let Some(fingerprint) = labels.get(0) {
                cells.add_one(sign, hashes, fingerprint, weights.get(0));
            }
        } else if batch.len() <= FEW {
            let (mut fingerprints, mut added) = ([0; FEW], [0; FEW]);
            let mut count = 0;
            for position in 0..batch.len() {
                if let Some(fingerprint) = labels.get(position) {
                    (fingerprints[count], added[count]) = (fingerprint, weights.get(position));
                    count += 1;
                }
            }
            add(&fingerprints[..count], &added[..count]);
        } else {
            let mut sums = Sums::new();
            for start in (0..batch.len()).step_by(sums::STRIDE) {
                if sums.full() {
                    sums.take(&mut add);
                }
                for position in start..batch.len().min(start + sums::STRIDE) {
                    if let Some(fingerprint) = labels.get(position) {
                        sums.add(fingerprint, weights.get(position));
                    }
                }
            }
            sums.finish(add);
        }
    }

    /// The fingerprints of integer labels, for tests: secrets, as the keys are.
    pub fn integer_fingerprints(
        &self,
        items: Items<impl Fn(usize) -> Option<Integer> + Sync>,
    ) -> Vec<Option<u64>> {
        let batch = IntegerBatch(items);
        let mut labels = Fingerprints::<Integers, _>::new(&batch, self.keys.hash_key());
        (0..batch.len()).map(|at| labels.get(at)).collect()
    }

    /// The fingerprints of string or bytes labels, for tests: secrets, as the keys are.
    ///
    /// # Panics
    /// If `kind` is [`Kind::Integer`].
    pub fn byte_string_fingerprints<'a>(
        &self,
        kind: Kind,
        items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>,
    ) -> Vec<Option<u64>> {
        let batch = self.byte_strings(kind, items);
        let mut labels = Fingerprints::<ByteStrings, _>::new(&batch, self.keys.hash_key());
        (0..batch.len()).map(|at| labels.get(at)).collect()
    }

    /// Count integer items one after the other, and offer each label's estimate, its item counted, to what tracks the
    /// largest.
    ///
    /// # Errors
    /// The batch is refused whole, see [`ExtendError`].
    pub fn track_integers(
        &mut self,
        items: Items<impl Fn(usize) -> Option<Integer> + Sync>,
        weights: SignedWeights<'_>,
        top: &mut TopEstimates,
    ) -> Result<(), ExtendError> {
        let mut after = top.extent();
        after.add(Kind::Integer, &items, weights)?;
        self.track::<Integers>(Kind::Integer, &IntegerBatch(items), weights, top)?;
        top.extend(after);
        self.extent = after;
        Ok(())
    }

    /// Count string or bytes items as [`track_integers`](Self::track_integers) does integers.
    ///
    /// # Errors
    /// The batch is refused whole, see [`ExtendError`].
    ///
    /// # Panics
    /// If `kind` is [`Kind::Integer`].
    pub fn track_byte_strings<'a>(
        &mut self,
        kind: Kind,
        items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>,
        weights: SignedWeights<'_>,
        top: &mut TopEstimates,
    ) -> Result<(), ExtendError> {
        let mut after = top.extent();
        after.add(kind, &items, weights)?;
        let batch = self.byte_strings(kind, items);
        self.track(kind, &batch, weights, top)?;
        top.extend(after);
        self.extent = after;
        Ok(())
    }

    fn track<L: Store>(
        &mut self,
        kind: Kind,
        batch: &impl Batch<L>,
        weights: SignedWeights<'_>,
        top: &mut TopEstimates,
    ) -> Result<(), ExtendError> {
        let signs = self.parameters.rule == SketchRule::CountSketch;
        let mut shortened = Vec::new();
        for position in 0..batch.len() {
            let weight = weights.get(position);
            if weight == 0 {
                continue;
            }
            if let Some(label) = batch.get(position, &mut shortened, label::digest) {
                let fingerprint = L::fingerprint(label, self.keys.hash_key());
                let (cells, hashes) = (&mut self.cells, self.keys.rows());
                cells.add_one(signs, hashes, fingerprint, weight);
                let estimate = self.estimate_fingerprint(fingerprint);
                top.offer(kind, L::as_label(label), estimate)?;
            }
        }
        Ok(())
    }

    fn estimate_fingerprint(&self, fingerprint: u64) -> i64 {
        let (hashes, mut found) = (self.keys.rows(), [0]);
        match self.parameters.rule {
            SketchRule::CountMin => self.cells.smallest(hashes, &[fingerprint], &mut found),
            SketchRule::CountSketch => self.cells.median(hashes, &[fingerprint], &mut found),
        }
        found[0]
    }

    /// Estimate the count of a label as a summary keeps it.
    pub fn estimate_label(&self, label: Label<'_>) -> i64 {
        let key = self.keys.hash_key();
        self.estimate_fingerprint(match label {
            Label::Integer(label) => Integers::fingerprint(label, key),
            Label::ByteString(label) => ByteStrings::fingerprint(label, key),
        })
    }

    /// The sum of the squared cells of each row, or the largest number where that does not fit, which no noise makes
    /// likely.
    pub fn squares(&self) -> Vec<u128> {
        let square = |&cell: &i64| u128::from(cell.unsigned_abs()).pow(2);
        self.rows()
            .map(|row| row.iter().map(square).fold(0, u128::saturating_add))
            .collect()
    }

    /// Estimate the counts of integer labels, that of a null as 0.
    ///
    /// # Errors
    /// The sketch holds labels of another kind.
    pub fn estimate_integers(
        &self,
        items: Items<impl Fn(usize) -> Option<Integer> + Sync>,
    ) -> Result<Vec<i64>, ExtendError> {
        self.extent.check_kind(Kind::Integer, &items)?;
        Ok(self.estimate::<Integers>(&IntegerBatch(items)))
    }

    /// Estimate the counts of string or bytes labels, that of a null as 0.
    ///
    /// # Errors
    /// The sketch holds labels of another kind.
    ///
    /// # Panics
    /// If `kind` is [`Kind::Integer`].
    pub fn estimate_byte_strings<'a>(
        &self,
        kind: Kind,
        items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>,
    ) -> Result<Vec<i64>, ExtendError> {
        self.extent.check_kind(kind, &items)?;
        Ok(self.estimate(&self.byte_strings(kind, items)))
    }

    fn estimate<L: Store>(&self, batch: &impl Batch<L>) -> Vec<i64> {
        let mut estimates = vec![0; batch.len()];
        let mut labels = Fingerprints::<L, _>::new(batch, self.keys.hash_key());
        let hashes = self.keys.rows();
        let at_a_time = ESTIMATED.min(READ / hashes.len());
        let (mut positions, mut fingerprints) = (Vec::new(), Vec::new());
        let mut found = vec![0; at_a_time];
        for start in (0..batch.len()).step_by(at_a_time) {
            positions.clear();
            fingerprints.clear();
            for position in start..batch.len().min(start + at_a_time) {
                if let Some(fingerprint) = labels.get(position) {
                    positions.push(position);
                    fingerprints.push(fingerprint);
                }
            }
            let found = &mut found[..positions.len()];
            match self.parameters.rule {
                SketchRule::CountMin => self.cells.smallest(hashes, &fingerprints, found),
                SketchRule::CountSketch => self.cells.median(hashes, &fingerprints, found),
            }
            for (&position, &estimate) in positions.iter().zip(&*found) {
                estimates[position] = estimate;
            }
        }
        estimates
    }

    /// Add what another sketch with the same keys has counted: as if one had counted both streams.
    ///
    /// # Errors
    /// See [`MergeError`]; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.parameters.agree(&other.parameters)?;
        if self.keys != other.keys {
            return Err(MergeError::Keys);
        }
        let after = self.extent.join(other.extent, ExtendError::TooHeavy);
        after.map_err(MergeError::Stream)?;
        self.cells.merge(&other.cells);
        self.seeded |= other.seeded;
        Ok(())
    }

    /// A copy with noise of its own in each cell, drawn by `draw(how many, seed)`, which is called for a part of a row
    /// at a time, so that draws take little memory. A seed is for tests: each part has its own from it, and the copy is
    /// [seeded](Self::seeded).
    ///
    /// A sum beyond the range of a cell becomes the end of the range. It is computed from the noisy sum, so privacy
    /// does not suffer; nor does accuracy, before lengths near 2^63.
    ///
    /// # Errors
    /// See [`NoisyError`].
    pub fn noisy(
        &self,
        seed: Option<[u8; 32]>,
        draw: impl Fn(usize, Option<[u8; 32]>) -> Result<Vec<i64>, getrandom::Error>,
    ) -> Result<Self, NoisyError> {
        let mut copy = self.copy().map_err(NoisyError::Memory)?;
        copy.seeded |= seed.is_some();
        let mut seeds = seed.map(|seed| Words::new(Some(seed)));
        for part in copy.cells.rows_mut().flat_map(|row| row.chunks_mut(DRAWN)) {
            let seed = seeds.as_mut().map(next_seed).transpose();
            let seed = seed.map_err(NoisyError::Entropy)?;
            let noise = draw(part.len(), seed).map_err(NoisyError::Entropy)?;
            assert_eq!(noise.len(), part.len(), "a draw for each cell");
            for (cell, noise) in part.iter_mut().zip(noise) {
                *cell = cell.saturating_add(noise);
            }
        }
        Ok(copy)
    }
}

/// The next four words as a seed.
fn next_seed(words: &mut Words) -> Result<[u8; 32], getrandom::Error> {
    let mut seed = [0; 32];
    for word in seed.chunks_exact_mut(8) {
        word.copy_from_slice(&words.next()?.to_le_bytes());
    }
    Ok(seed)
}
