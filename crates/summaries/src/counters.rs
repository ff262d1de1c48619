//! The summaries that are made of counters, SpaceSaving and Misra-Gries: one or more tables that share the capacity,
//! fed in stream order.

use std::fmt;
use std::marker::PhantomData;

use crate::batch::{ByteStringBatch, IntegerBatch, Items};
use crate::label::{ByteStrings, DIGEST_BYTES, HashKey, Integer, Integers, Kind, Label, Store};
use crate::partitions::Partitions;
use crate::victims::Tie;
use crate::weights::{Weighing, Weights};

/// The largest capacity: a slot number takes 32 bits, with room to spare.
pub const MAX_CAPACITY: usize = 1 << 31;
/// The most partitions: what each of them takes, in memory and in a release, stays small.
pub const MAX_PARTITIONS: usize = 1 << 20;
/// The most workers that share a batch: each lists items for every other, and the tables of small partitions are in as
/// many groups.
pub const MAX_THREADS: usize = 64;
/// The largest length limit of a label, in bytes.
pub const MAX_LABEL_BYTES: u32 = 1 << 30;
/// The smallest length limit: a digest and as much of a prefix.
pub const MIN_LABEL_BYTES: u32 = 2 * DIGEST_BYTES as u32;
/// The largest length of a stream, and so the largest counter.
pub const MAX_LENGTH: u64 = i64::MAX as u64;

/// Why a slot of a summary that has seen no item cannot be read.
const EMPTY: &str = "an empty summary has no labels";

/// What is counted, and which label makes way for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// SpaceSaving: the label with the minimum counter makes way, and its counter goes to the new one. Ties are broken
    /// by last occurrence.
    SpaceSaving(Tie),
    /// Misra-Gries: labels whose counter is zero make way, the smallest first; while there are none, an item whose
    /// label is not tracked takes one off every counter instead. One partition only.
    MisraGries,
}

/// What a summary is constructed with. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Counters in all tables together, 1 to [`MAX_CAPACITY`].
    pub capacity: usize,
    /// What the capacity is divided among, 1 to `capacity` and to [`MAX_PARTITIONS`]: each has a table of its own, and
    /// a label's hash says which one it belongs to. 1 for Misra-Gries.
    pub partitions: usize,
    /// How labels are counted.
    pub algorithm: Algorithm,
    /// Longer labels are kept as prefix and digest, [`MIN_LABEL_BYTES`] to [`MAX_LABEL_BYTES`].
    pub max_label_bytes: u32,
    /// Random, drawn at construction; its first half keys the hash.
    pub identity: [u8; 16],
}

impl Parameters {
    pub(crate) fn hash_key(&self) -> HashKey {
        let mut half = [0; 8];
        half.copy_from_slice(&self.identity[..8]);
        HashKey::new(u64::from_le_bytes(half))
    }

    /// True if every value is in its range.
    pub fn valid(&self) -> bool {
        (1..=MAX_CAPACITY).contains(&self.capacity)
            && (1..=self.capacity.min(MAX_PARTITIONS)).contains(&self.partitions)
            && (self.partitions == 1 || self.algorithm != Algorithm::MisraGries)
            && (MIN_LABEL_BYTES..=MAX_LABEL_BYTES).contains(&self.max_label_bytes)
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
    /// The same, where weights have signs, which the length leaves out.
    TooHeavy,
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
            Self::TooHeavy => f.write_str(
                "the weights of a stream, signs left out, must sum to at most 2**63 - 1; these exceed it. \
                 Use smaller weights.",
            ),
            Self::WeightsMismatch { items, weights } => write!(
                f,
                "there must be one weight per item; got {weights} weights for {items} items. Give nulls a weight too."
            ),
        }
    }
}

impl std::error::Error for ExtendError {}

fn could_count<L: Store>(partitions: &Partitions<L>, length: u64) -> bool {
    let table = partitions.misra_gries();
    table.is_some_and(|table| table.could_count(length))
}

enum Tables {
    Empty,
    Integers(Partitions<Integers>),
    ByteStrings(Partitions<ByteStrings>),
}

/// `$body` with `$group` and `$table` bound to what holds a partition's table, of either kind of label; `$empty`
/// without tables.
macro_rules! partition {
    ($self:expr, $partition:expr, ($group:ident, $table:ident) => $body:expr, empty => $empty:expr) => {
        match &$self.tables {
            Tables::Empty => $empty,
            Tables::Integers(partitions) => {
                let ($group, $table) = partitions.group($partition);
                $body
            }
            Tables::ByteStrings(partitions) => {
                let ($group, $table) = partitions.group($partition);
                $body
            }
        }
    };
}

/// The most frequent labels of a stream in at most `capacity` counters. By SpaceSaving each is at least its label's
/// true count, and above it by at most the minimum counter; by Misra-Gries each is at most its label's true count, and
/// below it by at most the length over the capacity and one.
///
/// The exact variants, and the theorems on neighbouring streams, are in docs/privacy.md. Everything that this type
/// gives out except its [parameters](Self::parameters) and [kind](Self::kind) is private.
pub struct Counters {
    parameters: Parameters,
    extent: Extent,
    tables: Tables,
}

/// The kind of label and the length of a stream: of what a summary has counted, or of what it would have after more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    kind: Option<Kind>,
    length: u64,
}

impl Extent {
    /// That of a saved stream; `None` where there is a kind of label but no label, or the other way round, or the
    /// length is out of range.
    pub(crate) fn restored(kind: Option<Kind>, length: u64) -> Option<Self> {
        (length <= MAX_LENGTH && kind.is_some() == (length > 0)).then_some(Self { kind, length })
    }

    /// Go on with a batch that is to be counted next, or tell why it would be refused.
    ///
    /// # Errors
    /// See [`ExtendError`]; nothing has changed then.
    pub fn add<T, W: Weighing>(
        &mut self,
        given: Kind,
        items: &Items<impl Fn(usize) -> Option<T>>,
        weights: W,
    ) -> Result<(), ExtendError> {
        if let Some(weights) = weights.given()
            && weights != items.length
        {
            return Err(ExtendError::WeightsMismatch {
                items: items.length,
                weights,
            });
        }
        let added = items.weight(weights).ok_or(W::EXCEEDED)?;
        if added == 0 {
            return Ok(()); // nulls and weights of 0 are of no kind
        }
        let after = Self {
            kind: Some(given),
            length: added,
        };
        self.join(after, W::EXCEEDED)
    }

    /// Go on with another stream, or tell why it would be refused.
    pub(crate) fn join(&mut self, other: Self, exceeded: ExtendError) -> Result<(), ExtendError> {
        if other.length > MAX_LENGTH - self.length {
            return Err(exceeded);
        }
        match (self.kind, other.kind) {
            (Some(held), Some(given)) if held != given => {
                return Err(ExtendError::OtherKind { held, given });
            }
            (held, given) => self.kind = held.or(given),
        }
        self.length += other.length;
        Ok(())
    }

    /// Tell why labels that are asked for would be refused; nulls are of any kind.
    pub(crate) fn check_kind<T>(
        &self,
        given: Kind,
        items: &Items<impl Fn(usize) -> Option<T>>,
    ) -> Result<(), ExtendError> {
        match self.kind {
            Some(held) if held != given && items.weight(Weights::Unit) != Some(0) => {
                Err(ExtendError::OtherKind { held, given })
            }
            _ => Ok(()),
        }
    }

    /// Hold labels of a kind from now on, or tell why they would be refused.
    pub(crate) fn hold(&mut self, given: Kind) -> Result<(), ExtendError> {
        match self.kind {
            Some(held) if held != given => Err(ExtendError::OtherKind { held, given }),
            _ => {
                self.kind = Some(given);
                Ok(())
            }
        }
    }

    /// The kind of label, once there has been one.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The sum of all weights.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Counters {
    /// An empty summary; nothing is allocated for its counters yet.
    ///
    /// # Panics
    /// If a parameter is out of range, see [`Parameters::valid`].
    pub fn new(parameters: Parameters) -> Self {
        assert!(parameters.valid(), "parameters out of range");
        Self {
            parameters,
            extent: Extent::default(),
            tables: Tables::Empty,
        }
    }

    /// What it was constructed with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The kind of label that the first item fixed.
    pub fn kind(&self) -> Option<Kind> {
        self.extent.kind
    }

    /// The sum of all weights.
    pub fn length(&self) -> u64 {
        self.extent.length
    }

    /// Kind and length together, to ask what would be refused after other batches.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Count integer items in stream order.
    ///
    /// With more than one partition, up to `threads` workers, and to [`MAX_THREADS`], share them; the result does not
    /// depend on how many.
    ///
    /// # Errors
    /// The batch is refused whole, see [`ExtendError`].
    pub fn extend_integers(
        &mut self,
        items: Items<impl Fn(usize) -> Option<Integer> + Sync>,
        weights: Weights<'_>,
        threads: usize,
    ) -> Result<(), ExtendError> {
        let mut after = self.extent();
        after.add(Kind::Integer, &items, weights)?;
        if after.length == self.extent.length {
            return Ok(());
        }
        if let Tables::Empty = self.tables {
            self.tables = Tables::Integers(Partitions::new(&self.parameters));
        }
        let Tables::Integers(partitions) = &mut self.tables else {
            unreachable!("the kind was checked");
        };
        partitions.apply(&IntegerBatch(items), weights, threads);
        self.extent = after;
        Ok(())
    }

    /// Count string or bytes items in stream order, as [`extend_integers`](Self::extend_integers) does integers. Items
    /// of [`Kind::String`] must be UTF-8.
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
        weights: Weights<'_>,
        threads: usize,
    ) -> Result<(), ExtendError> {
        assert!(kind != Kind::Integer, "integers are no byte strings");
        let mut after = self.extent();
        after.add(kind, &items, weights)?;
        if after.length == self.extent.length {
            return Ok(());
        }
        if let Tables::Empty = self.tables {
            self.tables = Tables::ByteStrings(Partitions::new(&self.parameters));
        }
        let Tables::ByteStrings(partitions) = &mut self.tables else {
            unreachable!("the kind was checked");
        };
        let batch = ByteStringBatch {
            items,
            limit: self.parameters.max_label_bytes as usize,
            kind,
            lent: PhantomData,
        };
        partitions.apply(&batch, weights, threads);
        self.extent = after;
        Ok(())
    }

    /// The counter in a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn count(&self, partition: usize, slot: usize) -> u64 {
        partition!(self, partition, (group, _table) => group.count(slot), empty => panic!("{EMPTY}"))
    }

    /// How far a counter of a partition may be above its label's true count: SpaceSaving's minimum counter, which is 0
    /// while a slot is free; 0 for Misra-Gries.
    pub fn minimum(&self, partition: usize) -> u64 {
        partition!(self, partition, (group, table) => group.minimum(table), empty => 0)
    }

    /// The slots of a partition that hold a label, in the order that the next updates depend on: for SpaceSaving that
    /// of the labels' last occurrences, oldest first, for Misra-Gries that of the labels.
    pub fn slots_in_saved_order(&self, partition: usize) -> Vec<usize> {
        partition!(self, partition, (group, table) => group.slots_in_saved_order(table), empty => Vec::new())
    }

    /// The label in a slot.
    ///
    /// # Panics
    /// If the slot is free.
    pub fn label(&self, partition: usize, slot: usize) -> Label<'_> {
        match &self.tables {
            Tables::Empty => panic!("{EMPTY}"),
            Tables::Integers(partitions) => {
                Label::Integer(partitions.group(partition).0.label(slot))
            }
            Tables::ByteStrings(partitions) => {
                Label::ByteString(partitions.group(partition).0.label(slot))
            }
        }
    }

    /// Go through slots of a partition that hold labels.
    pub(crate) fn for_each(
        &self,
        partition: usize,
        slots: &[usize],
        mut visit: impl FnMut(Label<'_>, u64),
    ) {
        match &self.tables {
            Tables::Empty => {}
            Tables::Integers(partitions) => {
                let (group, _) = partitions.group(partition);
                slots
                    .iter()
                    .for_each(|&slot| visit(Label::Integer(group.label(slot)), group.count(slot)));
            }
            Tables::ByteStrings(partitions) => {
                let (group, _) = partitions.group(partition);
                slots.iter().for_each(|&slot| {
                    visit(Label::ByteString(group.label(slot)), group.count(slot));
                });
            }
        }
    }

    /// Take a saved label into its partition. Called for a partition's labels in the order of
    /// [`slots_in_saved_order`](Self::slots_in_saved_order), before any item. False if the label cannot stand there:
    /// another kind, another partition, twice, no free slot, a count of 0 (but in Misra-Gries), too long, chosen to
    /// collide with others, or counters that sum past 2^63 - 1. That sum is the length, unless
    /// [`restore_length`](Self::restore_length) tells another.
    pub(crate) fn restore(
        &mut self,
        kind: Kind,
        partition: usize,
        label: Label<'_>,
        count: u64,
    ) -> bool {
        if (count == 0 && self.parameters.algorithm != Algorithm::MisraGries)
            || count > MAX_LENGTH - self.extent.length
        {
            return false;
        }
        if let Tables::Empty = self.tables {
            self.extent.kind = Some(kind);
            self.tables = match kind {
                Kind::Integer => Tables::Integers(Partitions::new(&self.parameters)),
                Kind::String | Kind::Bytes => {
                    Tables::ByteStrings(Partitions::new(&self.parameters))
                }
            };
        }
        let restored = match (&mut self.tables, label) {
            (Tables::Integers(partitions), Label::Integer(label)) => {
                partitions.restore(partition, label, count)
            }
            (Tables::ByteStrings(partitions), Label::ByteString(label)) => {
                label.bytes.len() <= self.parameters.max_label_bytes as usize
                    && partitions.restore(partition, label, count)
            }
            _ => false,
        };
        self.extent.length += if restored { count } else { 0 };
        restored
    }

    /// Take the saved length of a Misra-Gries summary, whose labels are there. False if no stream of that length leaves
    /// these counters.
    pub(crate) fn restore_length(&mut self, length: u64) -> bool {
        let possible = length <= MAX_LENGTH
            && match &self.tables {
                Tables::Empty => length == 0,
                Tables::Integers(partitions) => could_count(partitions, length),
                Tables::ByteStrings(partitions) => could_count(partitions, length),
            };
        if possible {
            self.extent.length = length;
        }
        possible
    }

    /// Bytes of memory that the counters take.
    pub fn heap_bytes(&self) -> usize {
        match &self.tables {
            Tables::Empty => 0,
            Tables::Integers(partitions) => partitions.heap_bytes(),
            Tables::ByteStrings(partitions) => partitions.heap_bytes(),
        }
    }
}
