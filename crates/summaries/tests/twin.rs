//! The fast tables against the algorithms written out.

use dptop_summaries::{
    Algorithm, Counters, Integer, Items, Kind, Label, Parameters, Tie, Weights, wire,
};
use proptest::prelude::*;

mod reference;
use reference::{MisraGriesTwin, Twin};

const LIMIT: usize = 64;
/// What is kept of a label above the limit, besides its digest.
const PREFIX: usize = LIMIT - 32;

/// A label as text; some are above the limit, and told apart by their prefixes as well.
fn text_of(label: i64) -> String {
    let width = if label % 8 == 0 { LIMIT + 1 } else { 0 };
    format!("{label:<width$}")
}

fn parameters(capacity: usize, partitions: usize, tie: Tie) -> Parameters {
    Parameters {
        algorithm: Algorithm::SpaceSaving(tie),
        partitions,
        ..misra_gries(capacity)
    }
}

fn misra_gries(capacity: usize) -> Parameters {
    Parameters {
        capacity,
        partitions: 1,
        algorithm: Algorithm::MisraGries,
        max_label_bytes: LIMIT as u32,
        identity: [42; 16],
    }
}

fn counters(summary: &Counters, partition: usize) -> Vec<(i128, u64)> {
    let slots = summary.slots_in_saved_order(partition).into_iter();
    slots
        .map(|slot| {
            let label = match summary.label(partition, slot) {
                Label::Integer(label) => label.into(),
                Label::ByteString(label) => {
                    assert!(!label.shortened || label.bytes.len() == LIMIT);
                    let kept = &label.bytes[..label.bytes.len().min(PREFIX)];
                    std::str::from_utf8(kept).unwrap().trim().parse().unwrap()
                }
            };
            (label, summary.count(partition, slot))
        })
        .collect()
}

fn save_and_load(summary: Counters) -> Counters {
    let bytes = wire::counters::encode(&summary, b"record");
    let (loaded, record) = wire::counters::decode(&bytes).unwrap();
    assert_eq!(record, b"record");
    assert_eq!(wire::counters::encode(&loaded, b"record"), bytes);
    loaded
}

fn tie() -> impl Strategy<Value = Tie> {
    prop_oneof![Just(Tie::LeastRecent), Just(Tie::MostRecent)]
}

/// Small weights, zeros, powers of two and their neighbours.
fn weight() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(1u64),
        2 => 0u64..4,
        2 => (0u32..40, 0u64..3).prop_map(|(bit, less)| (1u64 << bit).saturating_sub(less)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn one_table_equals_the_twin(
        capacity in prop_oneof![1usize..20, 20usize..200],
        tie in tie(),
        stream in prop_oneof![
            prop::collection::vec((0i64..40, weight()), 0..400),
            prop::collection::vec((0i64..2000, weight()), 0..3000),
            prop::collection::vec((0i64..1_000_000, Just(1)), 0..3000),
        ],
        save_at in prop::collection::vec(0usize..400, 0..3),
        text in any::<bool>(),
    ) {
        let mut summary = Counters::new(parameters(capacity, 1, tie));
        let mut twin = Twin::new(capacity, tie);
        for (position, &(label, weight)) in stream.iter().enumerate() {
            if save_at.contains(&position) {
                summary = save_and_load(summary);
            }
            twin.update(label.into(), weight);
            if text {
                let label = text_of(label);
                summary.extend_byte_strings(Kind::String, Items::all(1, |_| Some(label.as_bytes())), Weights::Each(&[weight]), 1).unwrap();
            } else {
                summary.extend_integers(Items::all(1, |_| Some(Integer::from(label))), Weights::Each(&[weight]), 1).unwrap();
            }
        }
        prop_assert_eq!(counters(&summary, 0), twin.counters);
        prop_assert_eq!(summary.length(), stream.iter().map(|s| s.1).sum::<u64>());
    }

    /// Tables of up to 64 counters are kept in another way than larger ones; capacities on both sides of that.
    #[test]
    fn each_partition_equals_a_twin_of_its_labels_with_any_number_of_workers(
        partitions in 2usize..80,
        counters_each in prop_oneof![1usize..10, 10usize..70],
        more in 0usize..80,
        tie in tie(),
        text in any::<bool>(),
        stream in prop_oneof![
            prop::collection::vec((-50i64..50, weight()), 0..600),
            prop::collection::vec((0i64..5000, Just(1)), 0..3000),
        ],
        save_at in 0usize..3000,
        workers in 1usize..5,
    ) {
        let capacity = partitions * counters_each + more % partitions;
        let share = |partition| counters_each + usize::from(partition < more % partitions);
        // with room for all labels, it tells which partition a label belongs to
        let mut roomy = Counters::new(parameters(partitions * 5000, partitions, tie));
        let mut summary = Counters::new(parameters(capacity, partitions, tie));
        extend(&mut roomy, &stream, text, 1);
        let (before, after) = stream.split_at(save_at.min(stream.len()));
        extend(&mut summary, before, text, workers);
        summary = save_and_load(summary);
        extend(&mut summary, after, text, workers);
        let all: Vec<_> = (0..partitions).map(|partition| counters(&roomy, partition)).collect();
        for (partition, labels) in all.iter().enumerate() {
            let mut twin = Twin::new(share(partition), tie);
            for &(label, weight) in &stream {
                if labels.iter().any(|&(x, _)| x == i128::from(label)) {
                    twin.update(label.into(), weight);
                }
            }
            prop_assert_eq!(counters(&summary, partition), twin.counters.clone());
            let minimum = twin.counters.iter().map(|c| c.1).min().unwrap_or(0);
            let full = twin.counters.len() == share(partition);
            prop_assert_eq!(summary.minimum(partition), if full { minimum } else { 0 });
        }
    }
}

/// Streams of labels and weights: few labels, many, and labels that hardly return; and what is hard on Misra-Gries:
/// heavy counters, then newcomers that take from all of them, with few zeros at a time.
fn stream() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let hostile = (2i64..60, 1i64..4, 0usize..1000, any::<bool>()).prop_map(
        |(heavy, returning, newcomers, equal)| {
            let heavy = (0..heavy).map(move |x| (x, if equal { 7 } else { 10 + 3 * x as u64 }));
            let newcomers = (0..newcomers as i64).flat_map(move |x| {
                let newcomer = (1000 - x, 1 + (x % 5) as u64);
                [newcomer, (x % returning, 1)]
            });
            heavy.chain(newcomers).collect()
        },
    );
    prop_oneof![
        prop::collection::vec((0i64..40, weight()), 0..400),
        prop::collection::vec((-1000i64..1000, weight()), 0..3000),
        prop::collection::vec((0i64..1_000_000, Just(1)), 0..3000),
        hostile,
    ]
}

/// Labels with their counts in the order of the labels, as far as they are told apart.
fn misra_gries_counters<X: Ord>(
    summary: &Counters,
    label: impl Fn(Label<'_>) -> X,
) -> Vec<(X, u64)> {
    let slots = summary.slots_in_saved_order(0).into_iter();
    slots
        .map(|slot| (label(summary.label(0, slot)), summary.count(0, slot)))
        .collect()
}

/// From integers on both sides of 0 and of 2^63.
fn integer_of(label: i64) -> Integer {
    if label % 3 == 0 {
        Integer::from(u64::MAX / 2 + label.unsigned_abs() * 2)
    } else {
        Integer::from(label)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn misra_gries_equals_its_twin(
        capacity in prop_oneof![1usize..20, 20usize..200],
        stream in stream(),
        save_at in prop::collection::vec(0usize..1000, 0..3),
        kind in prop_oneof![Just(Kind::Integer), Just(Kind::String), Just(Kind::Bytes)],
    ) {
        let mut summary = Counters::new(misra_gries(capacity));
        let mut integers = MisraGriesTwin::new(capacity);
        let mut texts = MisraGriesTwin::new(capacity);
        for (position, &(label, weight)) in stream.iter().enumerate() {
            if save_at.contains(&position) {
                summary = save_and_load(summary);
            }
            let weights = Weights::Each(std::slice::from_ref(&weight));
            if kind == Kind::Integer {
                let label = integer_of(label);
                integers.update(i128::from(label), weight);
                summary.extend_integers(Items::all(1, |_| Some(label)), weights, 1).unwrap();
            } else {
                let label = text_of(label);
                let items = Items::all(1, |_| Some(label.as_bytes()));
                summary.extend_byte_strings(kind, items, weights, 1).unwrap();
                texts.update(label.trim_end().to_owned(), weight);
            }
        }
        prop_assert_eq!(summary.length(), stream.iter().map(|s| s.1).sum::<u64>());
        prop_assert_eq!(summary.minimum(0), 0);
        if kind == Kind::Integer {
            let found = misra_gries_counters(&summary, |label| match label {
                Label::Integer(label) => i128::from(label),
                Label::ByteString(_) => unreachable!(),
            });
            prop_assert_eq!(found, Vec::from_iter(integers.counters));
        } else {
            let found = misra_gries_counters(&summary, |label| match label {
                Label::Integer(_) => unreachable!(),
                Label::ByteString(label) => {
                    let kept = &label.bytes[..label.bytes.len().min(PREFIX)];
                    std::str::from_utf8(kept).unwrap().trim_end().to_owned()
                }
            });
            prop_assert_eq!(found, Vec::from_iter(texts.counters));
        }
    }

    #[test]
    fn misra_gries_counts_a_weight_as_units_and_blocks_as_items(
        capacity in 1usize..12,
        stream in prop::collection::vec((0i64..20, 0u64..12), 0..300),
    ) {
        let mut weighted = Counters::new(misra_gries(capacity));
        extend(&mut weighted, &stream, false, 1);
        let mut units = Counters::new(misra_gries(capacity));
        for &(label, weight) in &stream {
            for _ in 0..weight {
                units.extend_integers(Items::all(1, |_| Some(Integer::from(label))), Weights::Unit, 1).unwrap();
            }
        }
        prop_assert_eq!(wire::counters::encode(&weighted, b""), wire::counters::encode(&units, b""));
    }

    /// Agarwal et al. 2012: what SpaceSaving with one counter more has above its minimum.
    #[test]
    fn misra_gries_is_space_saving_less_its_minimum(
        capacity in prop_oneof![1usize..20, 20usize..100],
        tie in tie(),
        stream in stream(),
    ) {
        let mut one = Counters::new(misra_gries(capacity));
        let mut other = Counters::new(parameters(capacity + 1, 1, tie));
        extend(&mut one, &stream, false, 1);
        extend(&mut other, &stream, false, 1);
        let mut above = counters(&other, 0);
        above.iter_mut().for_each(|c| c.1 -= other.minimum(0));
        let [mut above, mut positive] = [above, counters(&one, 0)].map(|mut counters| {
            counters.retain(|c| c.1 > 0);
            counters
        });
        above.sort_unstable();
        positive.sort_unstable();
        prop_assert_eq!(above, positive);
    }
}

fn extend(summary: &mut Counters, stream: &[(i64, u64)], text: bool, workers: usize) {
    let weights: Vec<u64> = stream.iter().map(|&(_, weight)| weight).collect();
    let weights = Weights::Each(&weights);
    let texts: Vec<String> = stream.iter().map(|&(label, _)| text_of(label)).collect();
    if text {
        let items = Items::all(stream.len(), |i| Some(texts[i].as_bytes()));
        summary.extend_byte_strings(Kind::String, items, weights, workers)
    } else {
        let items = Items::all(stream.len(), |i| Some(Integer::from(stream[i].0)));
        summary.extend_integers(items, weights, workers)
    }
    .unwrap();
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    for parameters in [parameters(3, 1, Tie::LeastRecent), misra_gries(3)] {
        every_change_is_refused(Counters::new(parameters));
    }
}

fn every_change_is_refused(mut summary: Counters) {
    let labels = ["a", "b", "a", "c", "d"];
    summary
        .extend_byte_strings(
            Kind::String,
            Items::all(5, |i| Some(labels[i].as_bytes())),
            Weights::Unit,
            1,
        )
        .unwrap();
    let bytes = wire::counters::encode(&summary, &[]);
    for cut in 0..bytes.len() {
        assert!(wire::counters::decode(&bytes[..cut]).is_err());
    }
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(wire::counters::decode(&changed).is_err());
    }
}
