//! One fixed piece of work of the core, for callgrind to count its instructions: `instructions NAME`.
//!
//! Run by benchmarks/instructions.py, which knows the counts of the baseline. Without a name: the names, and the vector
//! instructions that this processor, or valgrind's, offers to code that chooses at run time.

use dptop_summaries::{Counters, Weights, noise, wire};

mod support;
use support::{Strings, count, count_strings, distinct, misra_gries, summary, weights, zipf};

const ITEMS: usize = 300_000;
const LABELS: usize = 100_000;
const CAPACITY: usize = 10_000;

const WORK: [(&str, fn()); 10] = [
    ("integers zipf 1.1", || {
        integers(&zipf(ITEMS, LABELS, 1.1), 1)
    }),
    ("integers zipf 1.5", || {
        integers(&zipf(ITEMS, LABELS, 1.5), 1)
    }),
    ("integers distinct", || integers(&distinct(ITEMS), 1)),
    ("integers zipf 1.1, 16 counters a table", || {
        integers(&zipf(ITEMS, LABELS, 1.1), CAPACITY / 16)
    }),
    ("integers zipf 1.1, weighted", || {
        let (items, weights) = (zipf(ITEMS, LABELS, 1.1), weights(ITEMS));
        let mut summary = summary(CAPACITY, 1);
        counted(|| count(&mut summary, &items, Weights::Each(&weights)));
    }),
    ("strings zipf 1.1", || {
        let items = Strings::zipf(ITEMS, LABELS, 1.1);
        let mut summary = summary(CAPACITY, 1);
        counted(|| count_strings(&mut summary, &items));
    }),
    ("misra-gries", || {
        let items = zipf(ITEMS, LABELS, 1.1);
        let mut summary = misra_gries(CAPACITY);
        counted(|| count(&mut summary, &items, Weights::Unit));
    }),
    // from the system's entropy, as a release draws: the count varies, by far less than a percent
    ("noise", || {
        counted(|| noise::discrete_laplace(1 << 32, ITEMS / 10, None).expect("entropy"));
    }),
    ("save", || {
        let summary = filled();
        counted(|| wire::counters::encode(&summary, b""));
    }),
    ("load", || {
        let bytes = wire::counters::encode(&filled(), b"");
        counted(|| wire::counters::decode(&bytes).expect("what encode wrote"));
    }),
];

/// What callgrind counts: its calls of a function of this name, and nothing else.
#[inline(never)]
fn counted<R>(work: impl FnOnce() -> R) -> R {
    std::hint::black_box(work())
}

fn integers(items: &[i64], partitions: usize) {
    let mut summary = summary(CAPACITY, partitions);
    counted(|| count(&mut summary, items, Weights::Unit));
}

fn filled() -> Counters {
    let mut summary = summary(CAPACITY, 1);
    count(&mut summary, &zipf(ITEMS, LABELS, 1.1), Weights::Unit);
    summary
}

#[cfg(target_arch = "x86_64")]
fn vector_instructions() -> Vec<&'static str> {
    [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("sha", is_x86_feature_detected!("sha")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
    ]
    .into_iter()
    .filter_map(|(name, offered)| offered.then_some(name))
    .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_instructions() -> Vec<&'static str> {
    Vec::new()
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    for name in &wanted {
        let work = WORK.iter().find(|(known, _)| known == name);
        work.unwrap_or_else(|| panic!("no piece of work is called {name:?}"))
            .1();
    }
    if wanted.is_empty() {
        println!(
            "{} {}",
            std::env::consts::ARCH,
            vector_instructions().join(" ")
        );
        WORK.iter().for_each(|(name, _)| println!("{name}"));
    }
}
