//! The partitions that share a summary's capacity, of one kind of label. Each has a table; tables are large and stand
//! by themselves, or small and stand in groups.

use crate::batch::{Batch, Group, Routing, Work};
use crate::counters::{Algorithm, MAX_THREADS, Parameters};
use crate::label::Store;
use crate::misra_gries::MisraGries;
use crate::small_tables::{Capacities, MAX_SLOTS, SmallTables};
use crate::table::Table;
use crate::weights::Weights;

/// The partitions of a summary, each with one table.
pub(crate) struct Partitions<L> {
    routing: Routing,
    groups: Groups<L>,
}

/// What holds the tables.
enum Groups<L> {
    /// Each table by itself.
    Large(Vec<Table<L>>),
    /// Several tables in one allocation.
    Small(Vec<SmallTables<L>>),
    /// The one table of Misra-Gries.
    MisraGries(Box<MisraGries<L>>),
}

impl<L: Store> Partitions<L> {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let Parameters {
            capacity,
            partitions,
            algorithm,
            ..
        } = *parameters;
        let key = parameters.hash_key();
        let Algorithm::SpaceSaving(tie) = algorithm else {
            debug_assert_eq!(partitions, 1);
            return Self {
                routing: Routing {
                    partitions,
                    shift: 0,
                    key,
                },
                groups: Groups::MisraGries(Box::new(MisraGries::new(capacity, key))),
            };
        };
        let (counters, larger) = (capacity / partitions, capacity % partitions);
        // Small tables are for whoever declares partitions of at most 64 counters: they take 20 bytes an integer
        // counter (in partitions of 16) where large ones take 38, and constant time for every update in the worst case,
        // where large ones take it on average. The price is a look at all keys of a table for each victim, hence the
        // limit.
        let small = partitions > 1 && capacity.div_ceil(partitions) <= MAX_SLOTS;
        let group_size = if small {
            partitions.div_ceil(MAX_THREADS).next_power_of_two() // a group has one worker
        } else {
            1
        };
        let routing = Routing {
            partitions,
            shift: group_size.trailing_zeros(),
            key,
        };
        let groups = (0..partitions).step_by(group_size).map(|first| Capacities {
            tables: group_size.min(partitions - first),
            counters,
            larger: larger.saturating_sub(first).min(group_size),
        });
        let groups = if small {
            Groups::Small(
                groups
                    .map(|capacities| SmallTables::new(capacities, tie, key))
                    .collect(),
            )
        } else {
            Groups::Large(
                groups
                    .map(|capacities| Table::new(capacities.of(0), tie, key))
                    .collect(),
            )
        };
        Self { routing, groups }
    }

    /// Count a batch in stream order, with up to `threads` workers; the result does not depend on their number.
    pub(crate) fn apply(&mut self, batch: &impl Batch<L>, weights: Weights<'_>, threads: usize) {
        let work = Work {
            batch,
            weights,
            routing: self.routing,
        };
        match &mut self.groups {
            Groups::Large(groups) => work.apply(groups, threads),
            Groups::Small(groups) => work.apply(groups, threads),
            Groups::MisraGries(table) => work.apply(std::slice::from_mut(&mut **table), threads),
        }
    }

    /// The group that holds a partition's table, and the table's number in it.
    pub(crate) fn group(&self, partition: usize) -> (&dyn Group<L>, usize) {
        let (group, table) = self.routing.locate(partition);
        match &self.groups {
            Groups::Large(groups) => (&groups[group], table),
            Groups::Small(groups) => (&groups[group], table),
            Groups::MisraGries(one) => (&**one, table),
        }
    }

    /// The table of Misra-Gries, if it is that.
    pub(crate) fn misra_gries(&self) -> Option<&MisraGries<L>> {
        match &self.groups {
            Groups::MisraGries(table) => Some(table),
            Groups::Large(_) | Groups::Small(_) => None,
        }
    }

    /// Add a saved label to its partition. False if it belongs to another one, is there already, or no slot is free.
    pub(crate) fn restore(&mut self, partition: usize, label: L::Ref<'_>, count: u64) -> bool {
        let hash = L::hash(label, &self.routing.key);
        let (group, table) = self.routing.locate(partition);
        self.routing.partition(hash) == partition
            && match &mut self.groups {
                Groups::Large(groups) => groups[group].restore(table, label, count),
                Groups::Small(groups) => groups[group].restore(table, label, count),
                Groups::MisraGries(one) => one.restore(table, label, count),
            }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        fn all<L: Store, G: Group<L>>(groups: &[G]) -> usize {
            size_of_val(groups) + groups.iter().map(Group::heap_bytes).sum::<usize>()
        }
        match &self.groups {
            Groups::Large(groups) => all(groups),
            Groups::Small(groups) => all(groups),
            Groups::MisraGries(table) => all(std::slice::from_ref(&**table)),
        }
    }
}
