//! SpaceSaving written out: slow, and short enough to be compared with docs/privacy.md, "The variant", by eye.

use super::Tie;

/// A list of (label, count), searched from end to end.
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
