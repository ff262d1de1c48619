//! The tables that share a summary's capacity, of one kind of label: large ones, or many small ones.

use crate::batch::{Batch, Part, Routing, Weights, Work};
use crate::label::Store;
use crate::small_tables::{Capacities, MAX_SLOTS, SmallTables};
use crate::space_saving::Parameters;
use crate::table::Table;

/// Ranges that small tables are held in, at the most: what workers can share.
const MAX_RANGES: usize = 64;

/// The tables of a summary.
pub(crate) struct Partitions<L> {
    routing: Routing,
    parts: Parts<L>,
}

enum Parts<L> {
    /// Each table by itself.
    Large(Vec<Table<L>>),
    /// Ranges of tables.
    Small(Vec<SmallTables<L>>),
}

impl<L: Store> Partitions<L> {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let Parameters {
            capacity,
            partitions: tables,
            tie,
            ..
        } = *parameters;
        let key = parameters.hash_key();
        let (counters, larger) = (capacity / tables, capacity % tables);
        let small = tables > 1 && capacity.div_ceil(tables) <= MAX_SLOTS;
        let range = if small {
            tables.div_ceil(MAX_RANGES).next_power_of_two()
        } else {
            1
        };
        let routing = Routing {
            tables,
            shift: range.trailing_zeros(),
            key,
        };
        let parts = (0..tables).step_by(range).map(|first| Capacities {
            tables: range.min(tables - first),
            counters,
            larger: larger.saturating_sub(first).min(range),
        });
        let parts = if small {
            Parts::Small(
                parts
                    .map(|capacities| SmallTables::new(capacities, tie, key))
                    .collect(),
            )
        } else {
            Parts::Large(
                parts
                    .map(|capacities| Table::new(capacities.of(0), tie, key))
                    .collect(),
            )
        };
        Self { routing, parts }
    }

    /// Count a batch in stream order, with up to `threads` workers; the result does not depend on their number.
    pub(crate) fn apply(&mut self, batch: &impl Batch<L>, weights: Weights<'_>, threads: usize) {
        let work = Work {
            batch,
            weights,
            routing: self.routing,
        };
        match &mut self.parts {
            Parts::Large(parts) => work.apply(parts, threads),
            Parts::Small(parts) => work.apply(parts, threads),
        }
    }

    /// The part that holds a partition's table, and the table's number in it.
    pub(crate) fn part(&self, partition: usize) -> (&dyn Part<L>, usize) {
        let (part, table) = self.routing.place(partition);
        match &self.parts {
            Parts::Large(parts) => (&parts[part], table),
            Parts::Small(parts) => (&parts[part], table),
        }
    }

    /// Add a saved label to its partition. False if it belongs to another one, is there already, or no slot is free.
    pub(crate) fn restore(&mut self, partition: usize, label: L::Ref<'_>, count: u64) -> bool {
        let hash = L::hash(label, &self.routing.key);
        let (part, table) = self.routing.place(partition);
        self.routing.table(hash) == partition
            && match &mut self.parts {
                Parts::Large(parts) => parts[part].restore(table, label, count),
                Parts::Small(parts) => parts[part].restore(table, label, count),
            }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        fn all<L: Store, P: Part<L>>(parts: &[P]) -> usize {
            size_of_val(parts) + parts.iter().map(Part::heap_bytes).sum::<usize>()
        }
        match &self.parts {
            Parts::Large(parts) => all(parts),
            Parts::Small(parts) => all(parts),
        }
    }
}
