//! The SpaceSaving summary: one or more tables that share the capacity, fed in stream order.

use std::fmt;
use std::marker::PhantomData;

use crate::label::{self, Bytes, DIGEST_BYTES, Integer, Integers, Kind, Label, Store, Strings};
use crate::table::Table;
use crate::victims::Tie;

/// The largest capacity: a slot number takes 32 bits, with room to spare.
pub const MAX_CAPACITY: usize = 1 << 31;
/// The most partitions: what each of them takes, in memory and in a release, stays small.
pub const MAX_PARTITIONS: usize = 1 << 20;
/// The largest length limit of a label, in bytes.
pub const MAX_LABEL_BYTES: u32 = 1 << 30;
/// The smallest length limit: a digest and as much of a prefix.
pub const MIN_LABEL_BYTES: u32 = 2 * DIGEST_BYTES as u32;
/// The largest length of a stream, and so the largest counter.
pub const MAX_LENGTH: u64 = i64::MAX as u64;
/// Items that several workers hash and apply before the next ones are looked at: 3 MiB of hashes.
const THREADED_BLOCK: usize = 1 << 18;

/// Why a slot of a summary that has seen no item cannot be read.
const EMPTY: &str = "an empty summary has no labels";

/// What a summary is constructed with. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Counters in all tables together, 1 to [`MAX_CAPACITY`].
    pub capacity: usize,
    /// Tables that share the capacity, 1 to `capacity` and to [`MAX_PARTITIONS`]; a label's hash says which one counts it.
    pub partitions: usize,
    /// Which label at the minimum is evicted.
    pub tie: Tie,
    /// Longer labels are kept as prefix and digest, [`MIN_LABEL_BYTES`] to [`MAX_LABEL_BYTES`].
    pub max_label_bytes: u32,
    /// Random, drawn at construction; its first half keys the hash.
    pub identity: [u8; 16],
}

impl Parameters {
    fn seed(&self) -> u64 {
        let mut half = [0; 8];
        half.copy_from_slice(&self.identity[..8]);
        u64::from_le_bytes(half)
    }

    /// Counters of partition `number`: the capacity shared out, one more for the first ones.
    fn share(&self, number: usize) -> usize {
        self.capacity / self.partitions + usize::from(number < self.capacity % self.partitions)
    }

    /// True if every value is in its range.
    pub fn valid(&self) -> bool {
        (1..=MAX_CAPACITY).contains(&self.capacity)
            && (1..=self.capacity.min(MAX_PARTITIONS)).contains(&self.partitions)
            && (MIN_LABEL_BYTES..=MAX_LABEL_BYTES).contains(&self.max_label_bytes)
    }
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
    fn get(&self, position: usize) -> u64 {
        match self {
            Self::Unit => 1,
            Self::Each(weights) => weights[position],
        }
    }
}

/// Why a batch was refused. Nothing of it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendError {
    /// The summary holds labels of another kind.
    OtherKind {
        /// What the summary holds.
        held: Kind,
        /// What the batch brings.
        given: Kind,
    },
    /// The length of the stream would exceed 2^63 - 1.
    TooLong,
    /// There are not as many weights as items.
    WeightsMismatch {
        /// Items in the batch, nulls included.
        items: usize,
        /// Weights given.
        weights: usize,
    },
}

impl fmt::Display for ExtendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherKind { held, given } => write!(
                f,
                "a summary holds one kind of label; it holds {}, these are {}. Cast them, or use another summary.",
                held.name(),
                given.name()
            ),
            Self::TooLong => f.write_str(
                "the weights of a stream must sum to at most 2**63 - 1; these exceed it. Use smaller weights.",
            ),
            Self::WeightsMismatch { items, weights } => write!(
                f,
                "there must be one weight per item; got {weights} weights for {items} items."
            ),
        }
    }
}

impl std::error::Error for ExtendError {}

enum Tables {
    Empty,
    Integers(Vec<Table<Integers>>),
    Strings(Vec<Table<Strings>>),
}

/// Run `$body` with `$tables` bound to the tables of either kind.
macro_rules! any_tables {
    ($self:expr, $tables:ident => $body:expr, empty => $empty:expr) => {
        match &$self.tables {
            Tables::Empty => $empty,
            Tables::Integers($tables) => $body,
            Tables::Strings($tables) => $body,
        }
    };
}

/// The most frequent labels of a stream in at most `capacity` counters, each at least its label's true count and at
/// most the true count plus the minimum counter.
///
/// The exact variant, and the theorems on neighbouring streams, are in docs/privacy.md. Everything that this type
/// gives out except its [parameters](Self::parameters) and [kind](Self::kind) is private.
pub struct SpaceSaving {
    parameters: Parameters,
    kind: Option<Kind>,
    tables: Tables,
    length: u64,
}

impl SpaceSaving {
    /// An empty summary; nothing is allocated for its counters yet.
    ///
    /// # Panics
    /// If a parameter is out of range, see [`Parameters::valid`].
    pub fn new(parameters: Parameters) -> Self {
        assert!(parameters.valid(), "parameters out of range");
        Self {
            parameters,
            kind: None,
            tables: Tables::Empty,
            length: 0,
        }
    }

    /// What it was constructed with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The kind of label that the first item fixed.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The sum of all weights.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Count integer items in stream order; `item` gives the one at a position, or `None` for a null, which is skipped.
    ///
    /// With more than one partition, `threads` workers share them; the result does not depend on it.
    ///
    /// # Errors
    /// The batch is refused whole, see [`ExtendError`].
    pub fn extend_integers(
        &mut self,
        items: usize,
        item: impl Fn(usize) -> Option<Integer> + Sync,
        weights: Weights<'_>,
        threads: usize,
    ) -> Result<(), ExtendError> {
        let batch = IntegerBatch(item);
        let Some(added) = self.check(&batch, items, weights, Kind::Integer)? else {
            return Ok(());
        };
        if let Tables::Empty = self.tables {
            self.tables = Tables::Integers(self.new_tables());
        }
        let Tables::Integers(tables) = &mut self.tables else {
            unreachable!("the kind was checked");
        };
        let seed = self.parameters.seed();
        apply(tables, &batch, items, weights, seed, threads);
        self.kind = Some(Kind::Integer);
        self.length += added;
        Ok(())
    }

    /// Count text or bytes items in stream order, as [`extend_integers`](Self::extend_integers) does integers. Items
    /// of [`Kind::Text`] must be UTF-8.
    ///
    /// # Errors
    /// The batch is refused whole, see [`ExtendError`].
    ///
    /// # Panics
    /// If `kind` is [`Kind::Integer`].
    pub fn extend_strings<'a>(
        &mut self,
        kind: Kind,
        items: usize,
        item: impl Fn(usize) -> Option<&'a [u8]> + Sync,
        weights: Weights<'_>,
        threads: usize,
    ) -> Result<(), ExtendError> {
        assert!(kind != Kind::Integer, "strings are text or bytes");
        let limit = self.parameters.max_label_bytes as usize;
        let batch = StringBatch {
            item,
            limit,
            kind,
            lent: PhantomData,
        };
        let Some(added) = self.check(&batch, items, weights, kind)? else {
            return Ok(());
        };
        if let Tables::Empty = self.tables {
            self.tables = Tables::Strings(self.new_tables());
        }
        let Tables::Strings(tables) = &mut self.tables else {
            unreachable!("the kind was checked");
        };
        let seed = self.parameters.seed();
        apply(tables, &batch, items, weights, seed, threads);
        self.kind = Some(kind);
        self.length += added;
        Ok(())
    }

    /// The weight that a batch adds, or `None` if it holds nothing to count; or why it is refused.
    fn check<L: Store>(
        &self,
        batch: &impl Batch<L>,
        items: usize,
        weights: Weights<'_>,
        given: Kind,
    ) -> Result<Option<u64>, ExtendError> {
        let mut counted = (0..items).filter(|&position| batch.has(position));
        let added = match weights {
            Weights::Unit => counted.count() as u64,
            Weights::Each(weights) => {
                if weights.len() != items {
                    return Err(ExtendError::WeightsMismatch {
                        items,
                        weights: weights.len(),
                    });
                }
                counted
                    .try_fold(0u64, |sum, position| sum.checked_add(weights[position]))
                    .ok_or(ExtendError::TooLong)?
            }
        };
        if added == 0 {
            return Ok(None);
        }
        if added > MAX_LENGTH - self.length {
            return Err(ExtendError::TooLong);
        }
        match self.kind {
            Some(held) if held != given => Err(ExtendError::OtherKind { held, given }),
            _ => Ok(Some(added)),
        }
    }

    fn new_tables<L: Store>(&self) -> Vec<Table<L>> {
        let Parameters {
            tie, partitions, ..
        } = self.parameters;
        let seed = self.parameters.seed();
        (0..partitions)
            .map(|number| Table::new(self.parameters.share(number), tie, seed))
            .collect()
    }

    /// How many labels the partition tracks.
    pub fn tracked(&self, partition: usize) -> usize {
        any_tables!(self, tables => tables[partition].len(), empty => 0)
    }

    /// The counter in a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn count(&self, partition: usize, slot: usize) -> u64 {
        any_tables!(self, tables => tables[partition].count(slot), empty => panic!("{EMPTY}"))
    }

    /// The minimum counter of a partition, 0 while one of its slots is free.
    pub fn minimum(&self, partition: usize) -> u64 {
        any_tables!(self, tables => tables[partition].minimum(), empty => 0)
    }

    /// The slots of a partition in the order of their labels' last occurrences, oldest first.
    pub fn slots_by_last_occurrence(&self, partition: usize) -> Vec<usize> {
        any_tables!(self, tables => tables[partition].slots_by_last_occurrence(), empty => Vec::new())
    }

    /// The label in a slot.
    ///
    /// # Panics
    /// If the slot is free.
    pub fn label(&self, partition: usize, slot: usize) -> Label<'_> {
        match &self.tables {
            Tables::Empty => panic!("{EMPTY}"),
            Tables::Integers(tables) => Label::Integer(tables[partition].label(slot)),
            Tables::Strings(tables) => Label::Bytes(tables[partition].label(slot)),
        }
    }

    /// Take a saved label into its partition. Called for a partition's labels in last-occurrence order, before any
    /// item. False if the label cannot stand there: another kind, another partition, twice, no free slot, a count of 0,
    /// too long, or a length above 2^63 - 1.
    pub(crate) fn restore(
        &mut self,
        kind: Kind,
        partition: usize,
        label: Label<'_>,
        count: u64,
    ) -> bool {
        if count == 0 || count > MAX_LENGTH - self.length {
            return false;
        }
        if let Tables::Empty = self.tables {
            self.kind = Some(kind);
            self.tables = match kind {
                Kind::Integer => Tables::Integers(self.new_tables()),
                Kind::Text | Kind::Bytes => Tables::Strings(self.new_tables()),
            };
        }
        let (seed, partitions) = (self.parameters.seed(), self.parameters.partitions);
        let restored = match (&mut self.tables, label) {
            (Tables::Integers(tables), Label::Integer(label)) => {
                route(Integers::hash(label, seed), partitions) == partition
                    && tables[partition].restore(label, count)
            }
            (Tables::Strings(tables), Label::Bytes(label)) => {
                label.bytes.len() <= self.parameters.max_label_bytes as usize
                    && route(Strings::hash(label, seed), partitions) == partition
                    && tables[partition].restore(label, count)
            }
            _ => false,
        };
        self.length += if restored { count } else { 0 };
        restored
    }

    /// Bytes of memory that the counters take.
    pub fn heap_bytes(&self) -> usize {
        any_tables!(
            self,
            tables => tables.iter().map(Table::heap_bytes).sum::<usize>() + size_of_val(&tables[..]),
            empty => 0
        )
    }
}

/// A batch of items for a store of labels.
trait Batch<L: Store>: Sync {
    /// False where the item is null.
    fn has(&self, position: usize) -> bool;

    /// The label at a position, unless it is null. `shortened` lends the room for a label above the length limit.
    fn get<'a>(&'a self, position: usize, shortened: &'a mut Vec<u8>) -> Option<L::Ref<'a>>;
}

struct IntegerBatch<F>(F);

impl<F: Fn(usize) -> Option<Integer> + Sync> Batch<Integers> for IntegerBatch<F> {
    #[inline(always)]
    fn has(&self, position: usize) -> bool {
        (self.0)(position).is_some()
    }

    #[inline(always)]
    fn get(&self, position: usize, _: &mut Vec<u8>) -> Option<Integer> {
        (self.0)(position)
    }
}

struct StringBatch<'s, F> {
    item: F,
    limit: usize,
    kind: Kind,
    lent: PhantomData<&'s [u8]>,
}

impl<'s, F: Fn(usize) -> Option<&'s [u8]> + Sync> Batch<Strings> for StringBatch<'s, F> {
    #[inline(always)]
    fn has(&self, position: usize) -> bool {
        (self.item)(position).is_some()
    }

    #[inline(always)]
    fn get<'a>(&'a self, position: usize, shortened: &'a mut Vec<u8>) -> Option<Bytes<'a>> {
        let bytes = (self.item)(position)?;
        if bytes.len() <= self.limit {
            return Some(Bytes {
                bytes,
                shortened: false,
            });
        }
        label::shorten(bytes, self.limit, self.kind, shortened);
        Some(Bytes {
            bytes: shortened,
            shortened: true,
        })
    }
}

/// The partition of a label: it depends on the label alone. The bits used are not those that the index looks at first.
#[inline(always)]
fn route(hash: u64, partitions: usize) -> usize {
    (((hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) * partitions as u64) >> 32) as usize
}

/// Apply a batch in stream order.
fn apply<L: Store>(
    tables: &mut [Table<L>],
    batch: &impl Batch<L>,
    items: usize,
    weights: Weights<'_>,
    seed: u64,
    threads: usize,
) {
    let partitions = tables.len();
    let workers = threads.min(partitions);
    if workers > 1 {
        return apply_threaded(tables, batch, items, weights, seed, workers);
    }
    crate::cpu::best(
        #[inline(always)]
        || apply_alone(tables, batch, items, weights, seed),
    );
}

/// Items that are hashed before the first of them is counted: their labels are on the way from memory by then.
const HASHED_BLOCK: usize = 64;

#[inline(always)]
fn apply_alone<L: Store>(
    tables: &mut [Table<L>],
    batch: &impl Batch<L>,
    items: usize,
    weights: Weights<'_>,
    seed: u64,
) {
    let mut hashes = [0; HASHED_BLOCK];
    let mut shortened = Vec::new();
    for block in (0..items).step_by(HASHED_BLOCK) {
        let hashes = &mut hashes[..HASHED_BLOCK.min(items - block)];
        for (offset, hash) in hashes.iter_mut().enumerate() {
            *hash = hash_of(batch, block + offset, seed, &mut shortened);
        }
        if let [table] = &mut *tables {
            table.expect_updates(hashes.len());
            for (offset, &hash) in hashes.iter().enumerate() {
                count(table, batch, block + offset, hash, weights, &mut shortened);
            }
        } else {
            for (offset, &hash) in hashes.iter().enumerate() {
                let table = &mut tables[route(hash, tables.len())];
                table.expect_updates(1);
                count(table, batch, block + offset, hash, weights, &mut shortened);
            }
        }
    }
}

/// The hash of the label at a position; any number for a null.
#[inline(always)]
fn hash_of<L: Store>(
    batch: &impl Batch<L>,
    position: usize,
    seed: u64,
    shortened: &mut Vec<u8>,
) -> u64 {
    match batch.get(position, shortened) {
        Some(label) => L::hash(label, seed),
        None => 0,
    }
}

#[inline(always)]
fn count<L: Store>(
    table: &mut Table<L>,
    batch: &impl Batch<L>,
    position: usize,
    hash: u64,
    weights: Weights<'_>,
    shortened: &mut Vec<u8>,
) {
    let weight = weights.get(position);
    if weight > 0
        && let Some(label) = batch.get(position, shortened)
    {
        table.update(hash, label, weight);
    }
}

/// Apply a batch with several workers. Each owns a range of partitions and applies that range's items in stream order,
/// so every table sees what it would see with one worker.
fn apply_threaded<L: Store>(
    tables: &mut [Table<L>],
    batch: &impl Batch<L>,
    items: usize,
    weights: Weights<'_>,
    seed: u64,
    workers: usize,
) {
    let partitions = tables.len();
    let owned = partitions.div_ceil(workers);
    let mut hashes = vec![0u64; items.min(THREADED_BLOCK)];
    for block in (0..items).step_by(THREADED_BLOCK) {
        let hashes = &mut hashes[..THREADED_BLOCK.min(items - block)];
        let chunk = hashes.len().div_ceil(workers);
        std::thread::scope(|scope| {
            for (number, hashes) in hashes.chunks_mut(chunk).enumerate() {
                scope.spawn(move || {
                    let mut shortened = Vec::new();
                    for (offset, hash) in hashes.iter_mut().enumerate() {
                        let position = block + number * chunk + offset;
                        *hash = hash_of(batch, position, seed, &mut shortened);
                    }
                });
            }
        });
        let hashes = &*hashes;
        std::thread::scope(|scope| {
            for (number, tables) in tables.chunks_mut(owned).enumerate() {
                scope.spawn(move || {
                    let mut shortened = Vec::new();
                    let first = number * owned;
                    for (offset, &hash) in hashes.iter().enumerate() {
                        let partition = route(hash, partitions);
                        if (first..first + tables.len()).contains(&partition) {
                            let table = &mut tables[partition - first];
                            table.expect_updates(1);
                            count(table, batch, block + offset, hash, weights, &mut shortened);
                        }
                    }
                });
            }
        });
    }
}
