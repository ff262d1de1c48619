//! The linear sketches: what batches, merging, deletion and noise do to their cells.

use dptop_summaries::row_hash::Keys;
use dptop_summaries::sketch::{MAX_DEPTH, MAX_WIDTH, MergeError, OutOfMemory};
use dptop_summaries::{
    ExtendError, Integer, Items, Kind, SignedWeights, Sketch, SketchParameters, SketchRule,
};

const RULES: [SketchRule; 2] = [SketchRule::CountMin, SketchRule::CountSketch];

fn parameters(rule: SketchRule, width: usize, depth: usize) -> SketchParameters {
    SketchParameters {
        rule,
        width,
        depth,
        max_label_bytes: 64,
        identity: [7; 16],
    }
}

fn sketch(rule: SketchRule, width: usize, depth: usize) -> Sketch {
    let keys = Keys::draw(depth, Some([5; 32])).unwrap();
    Sketch::new(parameters(rule, width, depth), keys).unwrap()
}

fn extend(sketch: &mut Sketch, labels: &[u64], weights: &[i64]) -> Result<(), ExtendError> {
    let items = Items::all(labels.len(), |at| Some(Integer::from(labels[at])));
    sketch.extend_integers(items, SignedWeights::Each(weights))
}

fn extend_bytes(sketch: &mut Sketch, kind: Kind, labels: &[&[u8]]) -> Result<(), ExtendError> {
    let items = Items::all(labels.len(), |at| Some(labels[at]));
    sketch.extend_byte_strings(kind, items, SignedWeights::Unit)
}

fn estimates(sketch: &Sketch, labels: &[u64]) -> Vec<i64> {
    let items = Items::all(labels.len(), |at| Some(Integer::from(labels[at])));
    sketch.estimate_integers(items).unwrap()
}

fn cells(sketch: &Sketch) -> Vec<&[i64]> {
    sketch.rows().collect()
}

/// Labels of very different frequencies, and weights of both signs.
fn stream(items: u64) -> (Vec<u64>, Vec<i64>) {
    let scrambled = (0..items).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20);
    let of = |z: u64| (z % 4001 % (1 + z % 977), (z % 41) as i64 - 15);
    scrambled.map(of).unzip()
}

#[test]
fn batches_of_any_size_leave_the_same_cells() {
    let (labels, weights) = stream(30_000);
    for rule in RULES {
        let mut whole = sketch(rule, 300, 5);
        extend(&mut whole, &labels, &weights).unwrap();
        for size in [1, 2, 1000, 1025, 4096] {
            let mut parts = sketch(rule, 300, 5);
            for (labels, weights) in labels.chunks(size).zip(weights.chunks(size)) {
                extend(&mut parts, labels, weights).unwrap();
            }
            assert_eq!(cells(&parts), cells(&whole));
            assert_eq!(parts.length(), whole.length());
        }
        for row in whole.rows() {
            let total: i64 = row.iter().sum();
            assert!(rule == SketchRule::CountSketch || total == weights.iter().sum());
        }
    }
}

#[test]
fn what_is_taken_back_was_never_there() {
    let (labels, weights) = stream(20_000);
    let opposite: Vec<i64> = weights.iter().map(|weight| -weight).collect();
    for rule in RULES {
        let mut sketch = sketch(rule, 128, 3);
        extend(&mut sketch, &labels, &weights).unwrap();
        assert!(sketch.rows().flatten().any(|&cell| cell != 0));
        extend(&mut sketch, &labels, &opposite).unwrap();
        assert!(sketch.rows().flatten().all(|&cell| cell == 0));
        let length: u64 = weights.iter().map(|weight| weight.unsigned_abs()).sum();
        assert_eq!(sketch.length(), 2 * length);
        assert_eq!(sketch.kind(), Some(Kind::Integer));
    }
}

#[test]
fn merging_counts_both_streams() {
    let (labels, weights) = stream(20_000);
    for rule in RULES {
        let mut whole = sketch(rule, 100, 7);
        extend(&mut whole, &labels, &weights).unwrap();
        let mut one = sketch(rule, 100, 7);
        let mut other = one.empty_copy([8; 16]).unwrap();
        assert_eq!(other.parameters().identity, [8; 16]);
        extend(&mut one, &labels[..7_000], &weights[..7_000]).unwrap();
        extend(&mut other, &labels[7_000..], &weights[7_000..]).unwrap();
        one.merge(&other).unwrap();
        assert_eq!(cells(&one), cells(&whole));
        assert_eq!(one.length(), whole.length());
        assert_eq!(estimates(&one, &labels), estimates(&whole, &labels));
    }
}

#[test]
fn a_refused_merge_says_what_differs_and_changes_nothing() {
    let mut held = sketch(SketchRule::CountMin, 10, 3);
    extend(&mut held, &[1, 2], &[3, 4]).unwrap();
    let before: Vec<i64> = held.rows().flatten().copied().collect();
    let shape = |what, held, given| MergeError::Shape { what, held, given };
    let mut long = held.empty_copy([0; 16]).unwrap();
    extend(&mut long, &[1], &[i64::MAX - 6]).unwrap();
    let mut text = held.empty_copy([0; 16]).unwrap();
    extend_bytes(&mut text, Kind::String, &[b"a"]).unwrap();
    let other_limit = SketchParameters {
        max_label_bytes: 65,
        ..*held.parameters()
    };
    let other_keys = Keys::draw(3, Some([6; 32])).unwrap();
    let refused = [
        (
            sketch(SketchRule::CountSketch, 10, 3),
            MergeError::Rule(SketchRule::CountMin, SketchRule::CountSketch),
        ),
        (sketch(SketchRule::CountMin, 11, 3), shape("width", 10, 11)),
        (sketch(SketchRule::CountMin, 10, 4), shape("depth", 3, 4)),
        (
            Sketch::new(other_limit, held.keys().clone()).unwrap(),
            shape("max_label_bytes", 64, 65),
        ),
        (
            Sketch::new(*held.parameters(), other_keys).unwrap(),
            MergeError::Keys,
        ),
        (long, MergeError::Stream(ExtendError::TooHeavy)),
        (
            text,
            MergeError::Stream(ExtendError::OtherKind {
                held: Kind::Integer,
                given: Kind::String,
            }),
        ),
    ];
    for (other, error) in refused {
        assert_eq!(held.merge(&other), Err(error));
        assert!(held.rows().flatten().eq(&before));
        assert_eq!((held.length(), held.kind()), (7, Some(Kind::Integer)));
    }
    let empty = held.empty_copy([0; 16]).unwrap();
    held.merge(&empty).unwrap();
    assert!(held.rows().flatten().eq(&before));
}

#[test]
fn a_batch_is_refused_whole() {
    for rule in RULES {
        let mut sketch = sketch(rule, 10, 3);
        let too_heavy = Err(ExtendError::TooHeavy);
        assert_eq!(extend(&mut sketch, &[1], &[i64::MIN]), too_heavy);
        assert_eq!(extend(&mut sketch, &[1, 1], &[i64::MAX, -1]), too_heavy);
        assert!(sketch.rows().flatten().all(|&cell| cell == 0));
        extend(&mut sketch, &[1, 2, 1], &[i64::MAX - 3, -2, 1]).unwrap();
        assert_eq!(extend(&mut sketch, &[3], &[-1]), too_heavy);
        assert_eq!(sketch.length(), i64::MAX as u64);
        let mismatch = ExtendError::WeightsMismatch {
            items: 2,
            weights: 1,
        };
        assert_eq!(extend(&mut sketch, &[1, 2], &[0]), Err(mismatch));
        let other = ExtendError::OtherKind {
            held: Kind::Integer,
            given: Kind::Bytes,
        };
        let labels: [&[u8]; 1] = [b"a"];
        assert_eq!(
            sketch.estimate_byte_strings(Kind::Bytes, Items::all(1, |at| Some(labels[at]))),
            Err(other)
        );
        let nulls = Items::nullable(2, |_| None);
        assert_eq!(
            sketch.estimate_byte_strings(Kind::Bytes, nulls),
            Ok(vec![0, 0])
        );
    }
}

#[test]
fn nothing_fixes_no_kind() {
    let mut sketch = sketch(SketchRule::CountMin, 10, 3);
    extend(&mut sketch, &[], &[]).unwrap();
    extend(&mut sketch, &[1], &[0]).unwrap();
    let nulls = Items::nullable(2000, |_| None);
    sketch
        .extend_byte_strings(Kind::Bytes, nulls, SignedWeights::Unit)
        .unwrap();
    assert_eq!((sketch.kind(), sketch.length()), (None, 0));
    assert!(sketch.rows().flatten().all(|&cell| cell == 0));
}

#[test]
fn labels_that_share_bits_are_told_apart() {
    let mut sketch = sketch(SketchRule::CountMin, 1 << 16, 5);
    let above = Items::all(1, |_| Some(Integer::from(u64::MAX)));
    sketch.extend_integers(above, SignedWeights::Unit).unwrap();
    let minus_one = Items::all(1, |_| Some(Integer::from(-1i64)));
    assert_eq!(sketch.estimate_integers(minus_one), Ok(vec![0]));
    assert_eq!(sketch.estimate_integers(above), Ok(vec![1]));
}

#[test]
fn long_labels_differ_at_their_ends() {
    for rule in RULES {
        let mut sketch = sketch(rule, 1 << 16, 5);
        let (one, other) = ([b'x'; 5000], [&[b'x'; 4999][..], b"y"].concat());
        let (one, other): (&[u8], &[u8]) = (&one, &other);
        extend_bytes(&mut sketch, Kind::String, &[one, other, one]).unwrap();
        let estimates =
            sketch.estimate_byte_strings(Kind::String, Items::all(2, |at| Some([one, other][at])));
        assert_eq!(estimates, Ok(vec![2, 1]));
    }
}

#[test]
fn each_cell_has_noise_of_its_own() {
    for (rule, width) in [
        (SketchRule::CountMin, 3),
        (SketchRule::CountSketch, 100_000),
    ] {
        let mut sketch = sketch(rule, width, 3);
        extend(&mut sketch, &[1, 2], &[i64::MAX - 1, -1]).unwrap();
        let drawn = std::cell::RefCell::new(Vec::new());
        let noisy = sketch
            .noisy(None, |count, seed| {
                assert!(seed.is_none());
                let mut all = drawn.borrow_mut();
                let noise: Vec<i64> = (0..count).map(|at| (all.len() + at) as i64).collect();
                all.extend(&noise);
                Ok(noise)
            })
            .unwrap();
        let noise = drawn.into_inner();
        assert_eq!(noise.len(), 3 * width);
        let sums = sketch.rows().flatten().zip(&noise);
        let sums = sums.map(|(cell, &noise)| cell.saturating_add(noise));
        assert!(sums.eq(noisy.rows().flatten().copied()));
        assert!(
            sketch
                .rows()
                .flatten()
                .any(|cell| cell.unsigned_abs() == i64::MAX as u64 - 1)
        );
        let (length, identity) = (sketch.length(), sketch.parameters().identity);
        assert_eq!(
            (noisy.length(), noisy.parameters().identity),
            (length, identity)
        );
    }
}

#[test]
fn a_seed_of_noise_repeats_and_travels() {
    let keys = Keys::draw(3, None).unwrap();
    let fresh = Sketch::new(parameters(SketchRule::CountMin, 1000, 3), keys).unwrap();
    let seeds = std::cell::RefCell::new(Vec::new());
    let draw = |count: usize, seed: Option<[u8; 32]>| {
        seeds.borrow_mut().push(seed.unwrap());
        Ok(vec![0; count])
    };
    let noisy = fresh.noisy(Some([3; 32]), draw).unwrap();
    let first = seeds.replace(Vec::new());
    fresh.noisy(Some([3; 32]), draw).unwrap();
    assert_eq!(first, seeds.into_inner());
    assert!(first.len() == 3 && first[0] != first[1] && first[1] != first[2]);
    assert!(!fresh.seeded() && noisy.seeded() && noisy.copy().unwrap().seeded());
    let mut merged = fresh.copy().unwrap();
    merged.merge(&noisy).unwrap();
    assert!(merged.seeded());
    assert!(sketch(SketchRule::CountMin, 10, 3).seeded());
}

#[test]
fn parameters_out_of_range_are_no_parameters() {
    let valid = |rule, width, depth| parameters(rule, width, depth).valid();
    for rule in RULES {
        assert!(valid(rule, 1, 1) && valid(rule, MAX_WIDTH, MAX_DEPTH - 1));
        assert!(!valid(rule, 0, 1) && !valid(rule, 1, 0));
        assert!(!valid(rule, MAX_WIDTH + 1, 1) && !valid(rule, 1, MAX_DEPTH + 1));
    }
    assert!(valid(SketchRule::CountMin, 1, 2) && !valid(SketchRule::CountSketch, 1, 2));
    for max_label_bytes in [63, (1 << 30) + 1] {
        let short = SketchParameters {
            max_label_bytes,
            ..parameters(SketchRule::CountMin, 1, 1)
        };
        assert!(!short.valid());
    }
}

#[test]
fn memory_that_is_not_there_is_refused() {
    let huge = parameters(SketchRule::CountMin, MAX_WIDTH, MAX_DEPTH);
    assert_eq!(huge.bytes_needed(), (1 << 50) + 24 * (1 << 16));
    let keys = Keys::draw(MAX_DEPTH, Some([0; 32])).unwrap();
    assert_eq!(Sketch::new(huge, keys).err(), Some(OutOfMemory));
    let small = sketch(SketchRule::CountMin, 100, 4);
    assert_eq!(small.heap_bytes() as u64, small.parameters().bytes_needed());
}
