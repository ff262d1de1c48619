//! The labels with the largest estimates seen: what is tracked beside an oracle that knows no labels itself.
//!
//! A label's estimate is taken when it arrives. It is then stored if the label is tracked already, if there is room, or
//! if it exceeds the smallest one stored, whose label goes; of several with the smallest estimate the one that was
//! stored first. So when a label last failed to be tracked, all stored estimates were at least its own (Holland,
//! section 5).

use crate::counters::{ExtendError, Extent, MAX_CAPACITY, MAX_LABEL_BYTES, MIN_LABEL_BYTES};
use crate::label::{ByteStrings, HashKey, Integers, Kind, Label, Store};
use crate::slots::Slots;

/// The labels of one kind, in a heap by (estimate, order in which it was stored).
struct Table<L> {
    slots: Slots<L>,
    /// For each slot its label's estimate when it last arrived, and the number of that arrival.
    keys: Vec<(i64, u64)>,
    /// Slots, each above two others with larger keys.
    heap: Vec<u32>,
    /// For each slot its place in the heap.
    places: Vec<u32>,
    offers: u64,
}

impl<L: Store> Table<L> {
    fn new(capacity: usize, key: HashKey) -> Self {
        Self {
            slots: Slots::new(capacity, key),
            keys: Vec::new(),
            heap: Vec::new(),
            places: Vec::new(),
            offers: 0,
        }
    }

    fn offer(&mut self, label: L::Ref<'_>, estimate: i64) {
        self.offers += 1;
        let key = (estimate, self.offers);
        let hash = self.slots.hash(label);
        if let Some(slot) = self.slots.find(hash, label) {
            self.keys[slot] = key;
            self.settle(self.places[slot] as usize);
        } else if !self.slots.full() {
            let slot = self.slots.take(hash, label, |moves| {
                self.keys = moves.carry(&self.keys, (0, 0));
                self.places = moves.carry(&self.places, 0);
                for (place, slot) in moves.new_slots(&self.heap).into_iter().enumerate() {
                    self.heap[place] = slot;
                }
            });
            self.keys[slot] = key;
            self.heap.push(slot as u32);
            self.rise(self.heap.len() - 1);
        } else if estimate > self.keys[self.heap[0] as usize].0 {
            let slot = self.slots.replace(self.heap[0] as usize, hash, label);
            self.keys[slot] = key;
            self.heap[0] = slot as u32;
            self.sink(0);
        }
    }

    /// Store a label's estimate after those of all others. False if it is tracked already, there is no room, or labels
    /// collide as they do not by chance.
    fn restore(&mut self, label: L::Ref<'_>, estimate: i64) -> bool {
        let hash = self.slots.hash(label);
        let new = !self.slots.full() && self.slots.find(hash, label).is_none();
        if new {
            self.offer(label, estimate);
        }
        new && !self.slots.beyond_hashes()
    }

    fn key(&self, place: usize) -> (i64, u64) {
        self.keys[self.heap[place] as usize]
    }

    fn put(&mut self, place: usize, slot: u32) {
        self.heap[place] = slot;
        self.places[slot as usize] = place as u32;
    }

    /// Move the slot at a place to where its key belongs.
    fn settle(&mut self, place: usize) {
        let slot = self.heap[place];
        self.rise(place);
        self.sink(self.places[slot as usize] as usize);
    }

    fn rise(&mut self, mut place: usize) {
        let slot = self.heap[place];
        let key = self.keys[slot as usize];
        while place > 0 && self.key((place - 1) / 2) > key {
            let above = (place - 1) / 2;
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, slot);
    }

    fn sink(&mut self, mut place: usize) {
        let slot = self.heap[place];
        let key = self.keys[slot as usize];
        loop {
            let below = 2 * place + 1;
            if below >= self.heap.len() {
                break;
            }
            let right = below + 1;
            let smaller = if right < self.heap.len() && self.key(right) < self.key(below) {
                right
            } else {
                below
            };
            if self.key(smaller) >= key {
                break;
            }
            self.put(place, self.heap[smaller]);
            place = smaller;
        }
        self.put(place, slot);
    }

    /// The slots, the estimate stored first before the others.
    fn in_order(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.slots.taken().collect();
        slots.sort_unstable_by_key(|&slot| self.keys[slot].1);
        slots
    }

    fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes()
            + self.keys.capacity() * size_of::<(i64, u64)>()
            + (self.heap.capacity() + self.places.capacity()) * 4
    }
}

enum Tables {
    Empty,
    Integers(Table<Integers>),
    ByteStrings(Table<ByteStrings>),
}

/// At most `capacity` labels, those with the largest estimates, and how many items the stream had.
///
/// Everything that this type gives out except its capacity is private.
pub struct TopEstimates {
    capacity: usize,
    max_label_bytes: u32,
    identity: [u8; 16],
    extent: Extent,
    tables: Tables,
}

impl TopEstimates {
    /// Whether the capacity and the length limit of labels are in range, see [`MAX_CAPACITY`] and [`MAX_LABEL_BYTES`].
    pub fn valid(capacity: usize, max_label_bytes: u32) -> bool {
        (1..=MAX_CAPACITY).contains(&capacity)
            && (MIN_LABEL_BYTES..=MAX_LABEL_BYTES).contains(&max_label_bytes)
    }

    /// No labels yet.
    ///
    /// # Panics
    /// If a parameter is out of range, see [`valid`](Self::valid).
    pub fn new(capacity: usize, max_label_bytes: u32, identity: [u8; 16]) -> Self {
        assert!(
            Self::valid(capacity, max_label_bytes),
            "parameters out of range"
        );
        Self {
            capacity,
            max_label_bytes,
            identity,
            extent: Extent::default(),
            tables: Tables::Empty,
        }
    }

    /// How many labels are tracked at the most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Longer labels are kept as prefix and digest.
    pub fn max_label_bytes(&self) -> u32 {
        self.max_label_bytes
    }

    /// Random, drawn at construction.
    pub fn identity(&self) -> [u8; 16] {
        self.identity
    }

    /// Kind and length of what has been counted.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Go on with a stream that was checked to come next.
    pub fn extend(&mut self, after: Extent) {
        self.extent = after;
    }

    /// Take a label's estimate on its arrival.
    ///
    /// # Errors
    /// The summary holds labels of another kind.
    pub fn offer(
        &mut self,
        kind: Kind,
        label: Label<'_>,
        estimate: i64,
    ) -> Result<(), ExtendError> {
        self.extent.hold(kind)?;
        match (self.tables_for(label), label) {
            (Tables::Integers(table), Label::Integer(label)) => table.offer(label, estimate),
            (Tables::ByteStrings(table), Label::ByteString(label)) => table.offer(label, estimate),
            _ => unreachable!("the kind was checked"),
        }
        Ok(())
    }

    /// Take a saved label and its estimate, those stored first before the others, before any item. False if it cannot
    /// stand there: another kind, twice, no room, or too long.
    pub(crate) fn restore(&mut self, kind: Kind, label: Label<'_>, estimate: i64) -> bool {
        let limit = self.max_label_bytes as usize;
        if self.extent.hold(kind).is_err() {
            return false;
        }
        match (self.tables_for(label), label) {
            (Tables::Integers(table), Label::Integer(label)) => table.restore(label, estimate),
            (Tables::ByteStrings(table), Label::ByteString(label)) => {
                label.bytes.len() <= limit && table.restore(label, estimate)
            }
            _ => false,
        }
    }

    /// The tables, which are there from the first label on.
    fn tables_for(&mut self, label: Label<'_>) -> &mut Tables {
        if let Tables::Empty = self.tables {
            let mut half = [0; 8];
            half.copy_from_slice(&self.identity[..8]);
            let key = HashKey::new(u64::from_le_bytes(half));
            self.tables = match label {
                Label::Integer(_) => Tables::Integers(Table::new(self.capacity, key)),
                Label::ByteString(_) => Tables::ByteStrings(Table::new(self.capacity, key)),
            };
        }
        &mut self.tables
    }

    /// How many labels are tracked.
    pub fn tracked(&self) -> usize {
        match &self.tables {
            Tables::Empty => 0,
            Tables::Integers(table) => table.heap.len(),
            Tables::ByteStrings(table) => table.heap.len(),
        }
    }

    /// The labels and their estimates as stored, the one that was stored first before the others.
    pub fn labels(&self) -> Vec<(Label<'_>, i64)> {
        match &self.tables {
            Tables::Empty => Vec::new(),
            Tables::Integers(table) => table
                .in_order()
                .into_iter()
                .map(|slot| (Label::Integer(table.slots.label(slot)), table.keys[slot].0))
                .collect(),
            Tables::ByteStrings(table) => table
                .in_order()
                .into_iter()
                .map(|slot| {
                    (
                        Label::ByteString(table.slots.label(slot)),
                        table.keys[slot].0,
                    )
                })
                .collect(),
        }
    }

    /// Bytes of memory that labels and estimates take.
    pub fn heap_bytes(&self) -> usize {
        match &self.tables {
            Tables::Empty => 0,
            Tables::Integers(table) => table.heap_bytes(),
            Tables::ByteStrings(table) => table.heap_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{ByteString, Integer};
    use crate::testing::{Colliding, stream};

    /// The plain twin: a list of (label, estimate, order), searched.
    struct Twin {
        capacity: usize,
        kept: Vec<(u64, i64, u64)>,
        offers: u64,
    }

    impl Twin {
        fn offer(&mut self, label: u64, estimate: i64) {
            self.offers += 1;
            if let Some(entry) = self.kept.iter_mut().find(|entry| entry.0 == label) {
                (entry.1, entry.2) = (estimate, self.offers);
                return;
            }
            if self.kept.len() == self.capacity {
                let least = self.kept.iter().enumerate().min_by_key(|(_, e)| (e.1, e.2));
                let (at, least) = least.expect("capacity is at least one");
                if estimate <= least.1 {
                    return;
                }
                self.kept.remove(at);
            }
            self.kept.push((label, estimate, self.offers));
        }
    }

    fn compare<L: for<'a> Store<Ref<'a> = Integer> + 'static>(capacity: usize, labels: u64) {
        let mut table = Table::<L>::new(capacity, HashKey::new(7));
        let mut twin = Twin {
            capacity,
            kept: Vec::new(),
            offers: 0,
        };
        for (label, weight) in stream(3, labels, 3000) {
            let estimate = weight as i64 % 40 - 5; // they fall as well as rise, and many are equal
            table.offer(Integer::from(label), estimate);
            twin.offer(label, estimate);
            let mut expected = twin.kept.clone();
            expected.sort_unstable_by_key(|entry| entry.2);
            let found = table.in_order().into_iter().map(|slot| {
                let (estimate, order) = table.keys[slot];
                (table.slots.label(slot).bits, estimate, order)
            });
            assert!(found.eq(expected));
        }
        assert_eq!(table.heap.len(), capacity.min(labels as usize));
    }

    #[test]
    fn the_largest_estimates_stay() {
        for capacity in [1, 2, 7, 40, 150] {
            compare::<Integers>(capacity, 200);
            compare::<Colliding>(capacity, 200);
        }
        compare::<Integers>(64, 30);
    }

    #[test]
    fn a_long_label_is_kept_whole_below_the_limit_and_kinds_do_not_mix() {
        let mut top = TopEstimates::new(2, 64, [1; 16]);
        let label = |bytes| {
            Label::ByteString(ByteString {
                bytes,
                shortened: false,
            })
        };
        top.offer(Kind::String, label(b"a"), 3).expect("the first");
        top.offer(Kind::String, label(b"b"), 2).expect("the second");
        top.offer(Kind::String, label(b"c"), 1).expect("too small");
        assert_eq!(top.labels(), [(label(b"a"), 3), (label(b"b"), 2)]);
        assert!(top.offer(Kind::Bytes, label(b"a"), 9).is_err());
        assert_eq!(top.tracked(), 2);
    }
}
