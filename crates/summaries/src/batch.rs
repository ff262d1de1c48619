//! Applying a batch of items to tables, in stream order, by one worker or several.

use std::marker::PhantomData;

use crate::counters::MAX_THREADS;
use crate::label::{
    self, ByteString, ByteStrings, Digest, HashKey, Integer, Integers, Kind, Store,
};
use crate::weights::{Weighing, Weights};

/// Items that are hashed before the first of them is counted, and how far ahead the bytes of labels are asked for.
const HASHED_BLOCK: usize = 64;
const _: () = assert!(
    HASHED_BLOCK <= 1 << u8::BITS,
    "offsets in a block are bytes"
);

/// Items in stream order.
#[derive(Clone, Copy, Debug)]
pub struct Items<F> {
    /// How many there are, nulls included.
    pub length: usize,
    /// Whether there may be nulls; if not, `get` has a label at every position below the length.
    pub nulls: bool,
    /// The label at a position, `None` for a null, which is skipped.
    pub get: F,
}

impl<T, F: Fn(usize) -> Option<T>> Items<F> {
    /// Items without nulls: `get` has a label at every position below the length.
    pub fn all(length: usize, get: F) -> Self {
        Self {
            length,
            nulls: false,
            get,
        }
    }

    /// Items with nulls among them, perhaps.
    pub fn nullable(length: usize, get: F) -> Self {
        Self {
            length,
            nulls: true,
            get,
        }
    }

    /// The sum of the weights of all items but nulls, signs left out, or `None` above 2^64 - 1.
    pub(crate) fn weight(&self, weights: impl Weighing) -> Option<u64> {
        let counts = |&position: &usize| !self.nulls || (self.get)(position).is_some();
        match weights.given() {
            None if !self.nulls => Some(self.length as u64),
            None => Some((0..self.length).filter(counts).count() as u64),
            Some(_) => (0..self.length)
                .filter(counts)
                .try_fold(0u64, |sum, position| {
                    sum.checked_add(weights.size(position))
                }),
        }
    }
}

/// A batch of items for a store of labels.
pub(crate) trait Batch<L: Store>: Sync {
    /// How many items there are.
    fn len(&self) -> usize;

    /// Ask for the memory of a label that will be read soon.
    fn expect(&self, _position: usize) {}

    /// The label at a position, unless it is null. One above the length limit is shortened, for which `shortened` lends
    /// the room and `digest` says the digest of the whole.
    fn get<'a>(
        &'a self,
        position: usize,
        shortened: &'a mut Vec<u8>,
        digest: impl FnOnce(&[u8]) -> Digest,
    ) -> Option<L::Ref<'a>>;
}

pub(crate) struct IntegerBatch<F>(pub(crate) Items<F>);

impl<F: Fn(usize) -> Option<Integer> + Sync> Batch<Integers> for IntegerBatch<F> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.length
    }

    #[inline(always)]
    fn get(
        &self,
        position: usize,
        _: &mut Vec<u8>,
        _: impl FnOnce(&[u8]) -> Digest,
    ) -> Option<Integer> {
        (self.0.get)(position)
    }
}

pub(crate) struct ByteStringBatch<'s, F> {
    pub(crate) items: Items<F>,
    pub(crate) limit: usize,
    pub(crate) kind: Kind,
    pub(crate) lent: PhantomData<&'s [u8]>,
}

impl<'s, F: Fn(usize) -> Option<&'s [u8]> + Sync> Batch<ByteStrings> for ByteStringBatch<'s, F> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.items.length
    }

    #[inline(always)]
    fn expect(&self, position: usize) {
        if let Some(bytes) = (self.items.get)(position) {
            crate::cpu::prefetch(bytes, 0);
        }
    }

    #[inline(always)]
    fn get<'a>(
        &'a self,
        position: usize,
        shortened: &'a mut Vec<u8>,
        digest: impl FnOnce(&[u8]) -> Digest,
    ) -> Option<ByteString<'a>> {
        let bytes = (self.items.get)(position)?;
        if bytes.len() <= self.limit {
            return Some(ByteString {
                bytes,
                shortened: false,
            });
        }
        label::shorten(bytes, &digest(bytes), self.limit, self.kind, shortened);
        Some(ByteString {
            bytes: shortened,
            shortened: true,
        })
    }
}

/// Tables that one worker counts into, by their number in the group; a table by itself is a group too, and has number
/// 0. Slots are numbered within the group.
pub(crate) trait Group<L: Store>: Send {
    /// Whether the group is so large that its memory is worth asking for ahead.
    fn is_large(&self) -> bool {
        false
    }

    /// Ask for what says where in a table a label stands.
    fn expect(&self, _table: usize) {}

    /// Ask for what an update of a label touches, after [`expect`](Self::expect).
    fn seek(&self, _table: usize, _hash: u64) {}

    /// Count `weight >= 1` occurrences in a row of the label with this hash. The caller keeps the sum of all weights
    /// within 2^63 - 1, so that no counter wraps.
    fn update(&mut self, table: usize, hash: u64, label: L::Ref<'_>, weight: u64);

    /// Add a saved label. Called in the order of [`slots_in_saved_order`](Self::slots_in_saved_order). False if it is
    /// there already or no slot is free.
    fn restore(&mut self, table: usize, label: L::Ref<'_>, count: u64) -> bool;

    /// The slots that hold a label, in the order that the next updates depend on: for SpaceSaving that of the labels'
    /// last occurrences, oldest first, for Misra-Gries that of the labels.
    fn slots_in_saved_order(&self, table: usize) -> Vec<usize>;

    /// The label in a slot that holds one.
    fn label(&self, slot: usize) -> L::Ref<'_>;

    /// The counter in a slot that holds a label.
    fn count(&self, slot: usize) -> u64;

    /// How far a counter may be above the true count: SpaceSaving's minimum counter, which is 0 while a slot is free; 0
    /// for Misra-Gries.
    fn minimum(&self, table: usize) -> u64;

    /// Bytes of memory that the group takes besides itself.
    fn heap_bytes(&self) -> usize;
}

/// Which partition a label belongs to, which depends on the label alone, and where the partition's table is.
#[derive(Clone, Copy)]
pub(crate) struct Routing {
    pub(crate) partitions: usize,
    /// A group holds the tables of 2^shift partitions, the last one perhaps fewer.
    pub(crate) shift: u32,
    /// Keys the hash.
    pub(crate) key: HashKey,
}

impl Routing {
    /// The partition of a label. The bits used are not those that a table looks at first.
    #[inline(always)]
    pub(crate) fn partition(&self, hash: u64) -> usize {
        (((hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) * self.partitions as u64) >> 32) as usize
    }

    /// The group that holds a partition's table, and the table's number in it.
    #[inline(always)]
    pub(crate) fn locate(&self, partition: usize) -> (usize, usize) {
        (partition >> self.shift, partition & ((1 << self.shift) - 1))
    }
}

/// Items to count, and what is needed to do it.
pub(crate) struct Work<'a, B> {
    pub(crate) batch: &'a B,
    pub(crate) weights: Weights<'a>,
    pub(crate) routing: Routing,
}

impl<B> Work<'_, B> {
    /// Count all items in stream order, with up to `threads` workers; the result does not depend on their number.
    pub(crate) fn apply<L: Store, G: Group<L>>(&self, groups: &mut [G], threads: usize)
    where
        B: Batch<L>,
    {
        if self.batch.len() == 1 {
            return self.apply_one(groups); // a call for each item has no use for the rest
        }
        if self.routing.partitions == 1 {
            return crate::cpu::best(
                #[inline(always)]
                || self.apply_to_table(&mut groups[0]),
            );
        }
        let owned = groups.len().div_ceil(threads.clamp(1, MAX_THREADS));
        let worker = |first, own: &mut [G]| {
            crate::cpu::best(
                #[inline(always)]
                || self.apply_to_groups(own, first),
            );
        };
        if owned == groups.len() {
            return worker(0, groups);
        }
        std::thread::scope(|scope| {
            for (number, own) in groups.chunks_mut(owned).enumerate() {
                scope.spawn(move || worker(number * owned, own));
            }
        });
    }

    fn apply_one<L: Store, G: Group<L>>(&self, groups: &mut [G])
    where
        B: Batch<L>,
    {
        let (mut digests, mut shortened) = (Digests::default(), Vec::new());
        let hash = self.hash(0, &mut digests, &mut shortened);
        let (group, table) = self.routing.locate(self.routing.partition(hash));
        let group = &mut groups[group];
        self.count(group, table, 0, hash, &digests, &mut shortened);
    }

    #[inline(always)]
    fn apply_to_table<L: Store, G: Group<L>>(&self, table: &mut G)
    where
        B: Batch<L>,
    {
        let mut hashes = [0; HASHED_BLOCK];
        let mut digests = Digests::default();
        let mut shortened = Vec::new();
        for block in (0..self.batch.len()).step_by(HASHED_BLOCK) {
            let hashes = &mut hashes[..HASHED_BLOCK.min(self.batch.len() - block)];
            digests.0.clear();
            for (offset, hash) in hashes.iter_mut().enumerate() {
                self.expect(block + offset + HASHED_BLOCK);
                *hash = self.hash(block + offset, &mut digests, &mut shortened);
            }
            for (offset, &hash) in hashes.iter().enumerate() {
                self.count(table, 0, block + offset, hash, &digests, &mut shortened);
            }
        }
    }

    /// Count what belongs to some neighbouring groups, of which `first` is the number of the first. Each worker hashes
    /// all items: with two, that took less time than telling each other whose they are, and nobody waits. So the time
    /// of a stream never falls below that of its hashes, whatever the number of workers.
    #[inline(always)]
    fn apply_to_groups<L: Store, G: Group<L>>(&self, groups: &mut [G], first: usize)
    where
        B: Batch<L>,
    {
        let mut hashes = [0; HASHED_BLOCK];
        let mut offsets = [0; HASHED_BLOCK];
        let mut digests = Digests::default();
        let mut shortened = Vec::new();
        for block in (0..self.batch.len()).step_by(HASHED_BLOCK) {
            digests.0.clear();
            let mut own = 0;
            for offset in 0..HASHED_BLOCK.min(self.batch.len() - block) {
                self.expect(block + offset + HASHED_BLOCK);
                let hash = self.hash(block + offset, &mut digests, &mut shortened);
                let (group, _) = self.routing.locate(self.routing.partition(hash));
                (hashes[own], offsets[own]) = (hash, offset as u8); // and the next one over it, if it is none
                own += usize::from(group.wrapping_sub(first) < groups.len());
            }
            if groups[0].is_large() {
                self.ask_ahead(groups, first, &hashes[..own]);
            }
            for (&hash, &offset) in hashes[..own].iter().zip(&offsets) {
                let (group, table) = self.routing.locate(self.routing.partition(hash));
                let (group, position) = (&mut groups[group - first], block + usize::from(offset));
                self.count(group, table, position, hash, &digests, &mut shortened);
            }
        }
    }

    /// Have the memory for a block of items on its way before the first of them is counted.
    #[inline(always)]
    fn ask_ahead<L: Store, G: Group<L>>(&self, groups: &[G], first: usize, hashes: &[u64]) {
        for &hash in hashes {
            let (group, table) = self.routing.locate(self.routing.partition(hash));
            groups[group - first].expect(table);
        }
        for &hash in hashes {
            let (group, table) = self.routing.locate(self.routing.partition(hash));
            groups[group - first].seek(table, hash);
        }
    }

    /// Ask for the memory of the label at a position, if there is one.
    #[inline(always)]
    fn expect<L: Store>(&self, position: usize)
    where
        B: Batch<L>,
    {
        if position < self.batch.len() {
            self.batch.expect(position);
        }
    }

    /// The hash of the label at a position; any number for a null.
    #[inline(always)]
    fn hash<L: Store>(&self, position: usize, digests: &mut Digests, shortened: &mut Vec<u8>) -> u64
    where
        B: Batch<L>,
    {
        let digest = |bytes: &[u8]| digests.compute(position, bytes);
        match self.batch.get(position, shortened, digest) {
            Some(label) => L::hash(label, &self.routing.key),
            None => 0,
        }
    }

    #[inline(always)]
    fn count<L: Store, G: Group<L>>(
        &self,
        group: &mut G,
        table: usize,
        position: usize,
        hash: u64,
        digests: &Digests,
        shortened: &mut Vec<u8>,
    ) where
        B: Batch<L>,
    {
        let weight = self.weights.get(position);
        if weight > 0
            && let Some(label) = self
                .batch
                .get(position, shortened, |_| digests.computed(position))
        {
            group.update(table, hash, label, weight);
        }
    }
}

/// The digests of the labels above the length limit among hashed items, by position in ascending order: an item is
/// counted some time after it was hashed, and needs its digest for both.
#[derive(Default)]
struct Digests(Vec<(usize, Digest)>);

impl Digests {
    #[cold]
    fn compute(&mut self, position: usize, bytes: &[u8]) -> Digest {
        let digest = label::digest(bytes);
        self.0.push((position, digest));
        digest
    }

    #[cold]
    fn computed(&self, position: usize) -> Digest {
        let found = self.0.binary_search_by_key(&position, |&(at, _)| at);
        self.0[found.expect("an item is hashed before it is counted")].1
    }
}
