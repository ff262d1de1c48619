//! The algorithms written out: slow, and short enough to be compared by eye with docs/privacy.md, "The variant", and
//! with `python/dptop/reference/misra_gries.py`.

use std::collections::BTreeMap;

use super::Tie;

/// SpaceSaving: a list of (label, count), searched from end to end.
pub struct Twin {
    capacity: usize,
    tie: Tie,
    /// Oldest last occurrence first.
    pub counters: Vec<(i128, u64)>,
}

impl Twin {
    pub fn new(capacity: usize, tie: Tie) -> Self {
        Self {
            capacity,
            tie,
            counters: Vec::new(),
        }
    }

    pub fn update(&mut self, label: i128, weight: u64) {
        if weight == 0 {
            return;
        }
        let count = if let Some(at) = self.counters.iter().position(|&(x, _)| x == label) {
            self.counters.remove(at).1
        } else if self.counters.len() < self.capacity {
            0
        } else {
            let minimum = self.counters.iter().map(|&(_, c)| c).min().unwrap();
            let mut at_minimum = self
                .counters
                .iter()
                .enumerate()
                .filter(|(_, c)| c.1 == minimum);
            let victim = match self.tie {
                Tie::LeastRecent => at_minimum.next().unwrap().0,
                Tie::MostRecent => at_minimum.next_back().unwrap().0,
            };
            self.counters.remove(victim).1
        };
        self.counters.push((label, count + weight));
    }
}

/// Misra-Gries that keeps its zeros: labels in their order, with their counts.
pub struct MisraGriesTwin<X> {
    capacity: usize,
    pub counters: BTreeMap<X, u64>,
}

impl<X: Ord + Clone> MisraGriesTwin<X> {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            counters: BTreeMap::new(),
        }
    }

    pub fn update(&mut self, label: X, weight: u64) {
        if weight == 0 {
            return;
        }
        if let Some(count) = self.counters.get_mut(&label) {
            *count += weight;
            return;
        }
        if self.counters.len() == self.capacity {
            let smallest = *self.counters.values().min().unwrap();
            if smallest > 0 {
                let taken_off = weight.min(smallest);
                self.counters.values_mut().for_each(|c| *c -= taken_off);
                return self.update(label, weight - taken_off);
            }
            let zero = self.counters.iter().find(|(_, count)| **count == 0);
            let zero = zero.unwrap().0.clone();
            self.counters.remove(&zero);
        }
        self.counters.insert(label, weight);
    }
}
