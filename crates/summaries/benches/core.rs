//! Speed of the Rust core alone: `cargo bench -p dptop-summaries --bench core`, or `make bench-core`.
//!
//! A summary starts empty in every iteration, so that filling the table is part of the figure.

use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dptop_summaries::{SignedWeights, SketchRule, Weights, noise, wire};

#[path = "support/sketches.rs"]
mod sketches;
mod support;
use sketches::{sketch, sketch_integers, sketch_strings};
use support::{Strings, count, count_strings, distinct, misra_gries, summary, weights, zipf};

const ITEMS: usize = 1_000_000;
const LABELS: usize = 1_000_000;
const CAPACITIES: [usize; 3] = [1_000, 10_000, 100_000];
const RELEASED: usize = 65_536;

fn integers(c: &mut Criterion) {
    let streams = [
        ("zipf 1.1", zipf(ITEMS, LABELS, 1.1)),
        ("zipf 1.5", zipf(ITEMS, LABELS, 1.5)),
        ("distinct", distinct(ITEMS)),
    ];
    let mut group = c.benchmark_group("integers");
    group.throughput(Throughput::Elements(ITEMS as u64));
    for capacity in CAPACITIES {
        for (name, items) in &streams {
            group.bench_function(BenchmarkId::new(*name, capacity), |b| {
                b.iter_batched_ref(
                    || summary(capacity, 1),
                    |s| count(s, items, Weights::Unit),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    let partitions = CAPACITIES[1] / 16;
    group.bench_function(
        BenchmarkId::new("zipf 1.1, 16 counters a table", CAPACITIES[1]),
        |b| {
            b.iter_batched_ref(
                || summary(CAPACITIES[1], partitions),
                |s| count(s, &streams[0].1, Weights::Unit),
                BatchSize::LargeInput,
            );
        },
    );
    for (name, items) in &streams {
        let id = BenchmarkId::new(format!("{name}, misra-gries"), CAPACITIES[1]);
        group.bench_function(id, |b| {
            b.iter_batched_ref(
                || misra_gries(CAPACITIES[1]),
                |s| count(s, items, Weights::Unit),
                BatchSize::LargeInput,
            );
        });
    }
    let weights = weights(ITEMS);
    group.bench_function(BenchmarkId::new("zipf 1.1, weighted", CAPACITIES[1]), |b| {
        b.iter_batched_ref(
            || summary(CAPACITIES[1], 1),
            |s| count(s, &streams[0].1, Weights::Each(&weights)),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn strings(c: &mut Criterion) {
    let mut group = c.benchmark_group("strings");
    group.throughput(Throughput::Elements(ITEMS as u64));
    for (name, exponent) in [("zipf 1.1", 1.1), ("zipf 1.5", 1.5)] {
        let items = Strings::zipf(ITEMS, LABELS, exponent);
        for capacity in CAPACITIES {
            group.bench_function(BenchmarkId::new(name, capacity), |b| {
                b.iter_batched_ref(
                    || summary(capacity, 1),
                    |s| count_strings(s, &items),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

fn linear_sketches(c: &mut Criterion) {
    let streams = [
        ("zipf 1.1", zipf(ITEMS, LABELS, 1.1)),
        ("distinct", distinct(ITEMS)),
    ];
    let text = Strings::zipf(ITEMS, LABELS, 1.1);
    let mut group = c.benchmark_group("sketches");
    group.throughput(Throughput::Elements(ITEMS as u64));
    for (rule, depth) in [
        (SketchRule::CountMin, 5),
        (SketchRule::CountMin, 25),
        (SketchRule::CountSketch, 25),
    ] {
        let width = 10_000;
        let name = format!("{}, {depth} rows", rule.name());
        for (stream, items) in &streams {
            group.bench_function(BenchmarkId::new(&name, stream), |b| {
                let mut sketch = sketch(rule, width, depth);
                b.iter(|| sketch_integers(&mut sketch, items, SignedWeights::Unit));
            });
        }
        group.bench_function(BenchmarkId::new(&name, "strings zipf 1.1"), |b| {
            let mut sketch = sketch(rule, width, depth);
            b.iter(|| sketch_strings(&mut sketch, &text));
        });
    }
    group.finish();
}

fn draws(c: &mut Criterion) {
    let mut group = c.benchmark_group("noise");
    group.throughput(Throughput::Elements(RELEASED as u64));
    for (name, numerator) in [
        ("epsilon 1", 1u64 << 32),
        ("epsilon 1/100", (1 << 32) / 100),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| noise::discrete_laplace(numerator, RELEASED, None).expect("entropy"));
        });
    }
    group.finish();
}

fn saved(c: &mut Criterion) {
    let mut filled = summary(RELEASED, 1);
    count(&mut filled, &zipf(ITEMS, LABELS, 1.1), Weights::Unit);
    let bytes = wire::counters::encode(&filled, b"");
    let mut group = c.benchmark_group("saved form");
    group.throughput(Throughput::Elements(RELEASED as u64));
    group.bench_function("save", |b| b.iter(|| wire::counters::encode(&filled, b"")));
    group.bench_function("load", |b| {
        b.iter(|| wire::counters::decode(&bytes).expect("what encode wrote"));
    });
    group.finish();
}

criterion_group! {
    name = core;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2));
    targets = integers, strings, linear_sketches, draws, saved
}
criterion_main!(core);
