//! The streams of the Rust benchmarks: the same on every machine and with every version of every crate, so that
//! instruction counts can be compared. That is why no random number crate makes them.

use dptop_summaries::{Algorithm, Counters, Integer, Items, Kind, Parameters, Tie, Weights};

/// SplitMix64: a bijection of the 64-bit numbers that leaves no order among them.
fn scramble(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Ranks below `labels`, rank r with probability proportional to (r + 1)^-exponent, by inversion.
fn zipf_ranks(items: usize, labels: usize, exponent: f64) -> impl Iterator<Item = u64> {
    let mut sum = 0.0;
    let cumulated: Vec<f64> = (1..=labels)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect();
    (0..items as u64).map(move |position| {
        let uniform = (scramble(position) >> 11) as f64 / (1u64 << 53) as f64;
        cumulated.partition_point(|&c| c <= uniform * sum) as u64
    })
}

/// Integer labels with Zipf frequencies.
pub fn zipf(items: usize, labels: usize, exponent: f64) -> Vec<i64> {
    zipf_ranks(items, labels, exponent)
        .map(|rank| scramble(rank) as i64)
        .collect()
}

/// Integer labels that never occur twice.
pub fn distinct(items: usize) -> Vec<i64> {
    (0..items as u64).map(|n| scramble(n) as i64).collect()
}

/// Weights from 1 to 2^20, small ones more often.
pub fn weights(items: usize) -> Vec<u64> {
    (0..items as u64)
        .map(scramble)
        .map(|z| 1 + ((z >> 44) >> (z % 20)))
        .collect()
}

/// Labels of 20 to 28 bytes, one after the other in memory, as in an Arrow array.
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// Strings with Zipf frequencies.
    pub fn zipf(items: usize, labels: usize, exponent: f64) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for rank in zipf_ranks(items, labels, exponent) {
            let z = scramble(rank);
            bytes.extend_from_slice(format!("/p/{z:016x}/").as_bytes());
            bytes.resize(bytes.len() + (z % 9) as usize, b'.');
            ends.push(bytes.len());
        }
        Self { bytes, ends }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// The bytes of one.
    pub fn get(&self, position: usize) -> &[u8] {
        &self.bytes[self.ends[position]..self.ends[position + 1]]
    }
}

/// An empty summary with a fixed hash key.
pub fn summary(capacity: usize, partitions: usize) -> Counters {
    Counters::new(Parameters {
        capacity,
        partitions,
        algorithm: Algorithm::SpaceSaving(Tie::LeastRecent),
        max_label_bytes: 4096,
        identity: [42; 16],
    })
}

/// An empty Misra-Gries summary with a fixed hash key.
pub fn misra_gries(capacity: usize) -> Counters {
    Counters::new(Parameters {
        algorithm: Algorithm::MisraGries,
        ..*summary(capacity, 1).parameters()
    })
}

/// Count integers as the Python package does for an array without nulls.
pub fn count(summary: &mut Counters, items: &[i64], weights: Weights<'_>) {
    let items = Items::all(items.len(), |at| Some(Integer::from(items[at])));
    summary
        .extend_integers(items, weights, 1)
        .expect("integers within the length of a stream");
}

/// Count strings as the Python package does for an array without nulls.
pub fn count_strings(summary: &mut Counters, items: &Strings) {
    let items = Items::all(items.len(), |at| Some(items.get(at)));
    summary
        .extend_byte_strings(Kind::String, items, Weights::Unit, 1)
        .expect("strings within the length of a stream");
}
