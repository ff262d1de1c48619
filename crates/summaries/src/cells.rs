//! The cells of a sketch, row by row, and what is done with many fingerprints at once.

use crate::row_hash::{RowHash, bucket, signed};

/// Fingerprints whose buckets are worked out before the first of their cells is touched: what vector instructions do.
const HASHED: usize = 512;

/// Cells in rows of equal width. Additions wrap; who adds says why they do not.
pub(crate) struct Cells {
    width: usize,
    cells: Vec<i64>,
}

/// There is not enough memory for the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

fn reserved(length: usize) -> Result<Vec<i64>, OutOfMemory> {
    let mut cells = Vec::new();
    cells.try_reserve_exact(length).map_err(|_| OutOfMemory)?;
    Ok(cells)
}

impl Cells {
    /// All zero.
    pub(crate) fn new(width: usize, depth: usize) -> Result<Self, OutOfMemory> {
        let length = width.checked_mul(depth).ok_or(OutOfMemory)?;
        let mut cells = reserved(length)?;
        cells.resize(length, 0);
        Ok(Self { width, cells })
    }

    pub(crate) fn copy(&self) -> Result<Self, OutOfMemory> {
        let mut cells = reserved(self.cells.len())?;
        cells.extend_from_slice(&self.cells);
        let width = self.width;
        Ok(Self { width, cells })
    }

    /// Cells that were saved, as many as make whole rows.
    pub(crate) fn restored(
        width: usize,
        saved: impl ExactSizeIterator<Item = i64>,
    ) -> Result<Self, OutOfMemory> {
        let mut cells = reserved(saved.len())?;
        cells.extend(saved);
        Ok(Self { width, cells })
    }

    /// Whether they may be those of a stream of that length, without noise. Each item adds its weight to one cell of a
    /// row, with one sign or the other: so the sizes of a row's cells sum to the length or, where signs cancelled, to
    /// less by an even number. Where rows give no signs of their own, all of them sum to the same.
    pub(crate) fn could_count(&self, signs: bool, length: u64) -> bool {
        let mut first = None;
        self.rows().all(|row| {
            let size = row.iter().map(|cell| u128::from(cell.unsigned_abs()));
            let size: u128 = size.sum();
            let sum: i128 = row.iter().copied().map(i128::from).sum();
            let cancelled = u128::from(length).checked_sub(size);
            cancelled.is_some_and(|cancelled| cancelled.is_multiple_of(2))
                && (signs || *first.get_or_insert(sum) == sum)
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[i64]> {
        self.cells.chunks_exact(self.width)
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut [i64]> {
        self.cells.chunks_exact_mut(self.width)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<i64>()
    }

    /// Add the cells of a sketch of the same shape.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (cell, added) in self.cells.iter_mut().zip(&other.cells) {
            *cell = cell.wrapping_add(*added);
        }
    }

    /// Add weights to the cells of their fingerprints in every row, with signs or without.
    pub(crate) fn add(
        &mut self,
        sign: bool,
        hashes: &[RowHash],
        fingerprints: &[u64],
        weights: &[i64],
    ) {
        crate::cpu::best(
            #[inline(always)]
            || match sign {
                true => self.add_block::<true>(hashes, fingerprints, weights),
                false => self.add_block::<false>(hashes, fingerprints, weights),
            },
        );
    }

    #[inline(always)]
    fn add_block<const SIGNED: bool>(
        &mut self,
        hashes: &[RowHash],
        fingerprints: &[u64],
        weights: &[i64],
    ) {
        let (mut buckets, mut signed_weights) = ([0; HASHED], [0; HASHED]);
        for (row, hash) in self.rows_mut().zip(hashes) {
            let width = width_of(row);
            let parts = fingerprints.chunks(HASHED).zip(weights.chunks(HASHED));
            for (fingerprints, weights) in parts {
                let items = fingerprints.iter().zip(weights);
                let found = buckets.iter_mut().zip(&mut signed_weights);
                for ((bucket_of, signed_weight), (&fingerprint, &weight)) in found.zip(items) {
                    let hashed = hash.hash(fingerprint);
                    *bucket_of = bucket(hashed, width);
                    if SIGNED {
                        *signed_weight = signed(hashed, weight);
                    }
                }
                let weights = if SIGNED { &signed_weights } else { weights };
                let buckets = &buckets[..fingerprints.len()];
                for (&bucket, &weight) in buckets.iter().zip(weights) {
                    let cell = &mut row[bucket as usize];
                    *cell = cell.wrapping_add(weight);
                }
            }
        }
    }

    /// The same for a single fingerprint, with nothing to set up.
    pub(crate) fn add_one(
        &mut self,
        sign: bool,
        hashes: &[RowHash],
        fingerprint: u64,
        weight: i64,
    ) {
        for (row, hash) in self.rows_mut().zip(hashes) {
            let hashed = hash.hash(fingerprint);
            let cell = &mut row[bucket(hashed, width_of(row)) as usize];
            *cell = cell.wrapping_add(if sign { signed(hashed, weight) } else { weight });
        }
    }

    /// The smallest cell of each fingerprint: Count-Min's estimate.
    pub(crate) fn smallest(&self, hashes: &[RowHash], fingerprints: &[u64], out: &mut [i64]) {
        out.fill(i64::MAX);
        for (row, hash) in self.rows().zip(hashes) {
            let width = width_of(row);
            for (least, &fingerprint) in out.iter_mut().zip(fingerprints) {
                let cell = row[bucket(hash.hash(fingerprint), width) as usize];
                *least = cell.min(*least);
            }
        }
    }

    /// The median of the signed cells of each fingerprint, for an odd number of rows: CountSketch's estimate.
    pub(crate) fn median(&self, hashes: &[RowHash], fingerprints: &[u64], out: &mut [i64]) {
        let depth = hashes.len();
        let mut found = vec![0; depth * fingerprints.len()];
        for (number, (row, hash)) in self.rows().zip(hashes).enumerate() {
            let width = width_of(row);
            let of_row = found.iter_mut().skip(number).step_by(depth);
            for (value, &fingerprint) in of_row.zip(fingerprints) {
                let hashed = hash.hash(fingerprint);
                *value = signed(hashed, row[bucket(hashed, width) as usize]);
            }
        }
        for (median, values) in out.iter_mut().zip(found.chunks_exact_mut(depth)) {
            *median = *values.select_nth_unstable(depth / 2).1;
        }
    }
}

/// A row's width, of which the compiler is to see that it takes 32 bits: that saves a multiplication.
#[inline(always)]
fn width_of(row: &[i64]) -> u64 {
    u64::from(row.len() as u32)
}
