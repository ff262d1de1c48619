//! What must hold of any bytes: they are refused, or they are a summary that keeps its rules, is written to the same
//! bytes again, takes little memory, and counts on as if it had never been saved.

use std::collections::HashSet;

use dptop_summaries::label::{ByteString, Kind, Label};
use dptop_summaries::wire::{self, tracked::Parts};
use dptop_summaries::{
    Algorithm, Counters, Integer, Items, SignedWeights, Sketch, SketchRule, Tie, TopEstimates,
    Weights,
};

#[path = "../../tests/reference/mod.rs"]
mod reference;

/// Bytes of memory for each saved byte, at the most: small tables take room for 64 labels with their first one.
const MEMORY: usize = 128;
/// And for the first tables.
const FIRST: usize = 4096;

/// Whether the bytes are read. Panics if they are, and break a rule.
pub fn check(bytes: &[u8]) -> bool {
    let read = [
        counters(bytes),
        sketch(bytes),
        top_estimates(bytes),
        tracked(bytes),
    ];
    let types = read.into_iter().filter(|&read| read).count();
    assert!(types <= 1, "a form has one type");
    types == 1
}

fn little(heap: usize, bytes: &[u8]) {
    assert!(
        heap <= MEMORY * bytes.len() + FIRST,
        "{heap} bytes of memory for {} saved bytes",
        bytes.len()
    );
}

/// A label that outlives the summary it came from.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Owned {
    Integer(i128),
    Bytes(Vec<u8>, bool),
}

impl Owned {
    fn of(label: Label<'_>) -> Self {
        match label {
            Label::Integer(label) => Self::Integer(label.into()),
            Label::ByteString(label) => Self::Bytes(label.bytes.to_vec(), label.shortened),
        }
    }
}

/// Items that are counted after loading: some that are there and some that are not, of the kind that is there.
struct More {
    kind: Kind,
    integers: Vec<Integer>,
    strings: Vec<Vec<u8>>,
}

impl More {
    fn after<'a>(kind: Option<Kind>, known: impl Iterator<Item = Label<'a>>) -> Self {
        let mut more = Self {
            kind: kind.unwrap_or(Kind::Integer),
            integers: [3u64, 1 << 63, 4].map(Integer::from).to_vec(),
            strings: [&b"new"[..], b"", &[b'y'; 100]].map(Vec::from).to_vec(),
        };
        for label in known.take(3) {
            match label {
                Label::Integer(label) => more.integers.push(label),
                Label::ByteString(label) if !label.shortened => {
                    more.strings.push(label.bytes.to_vec());
                }
                Label::ByteString(_) => {}
            }
        }
        more.integers.extend([-9i64, 3, 5].map(Integer::from));
        more.strings
            .extend([&b"newer"[..], b"new", b"newest"].map(Vec::from));
        more
    }

    fn len(&self) -> usize {
        match self.kind {
            Kind::Integer => self.integers.len(),
            Kind::String | Kind::Bytes => self.strings.len(),
        }
    }

    /// Count those at some positions with their weights; false if they are refused.
    fn count(&self, summary: &mut Counters, from: usize, to: usize) -> bool {
        let weights: Vec<u64> = (from..to).map(|at| at as u64 % 4).collect();
        let weights = Weights::Each(&weights);
        let done = match self.kind {
            Kind::Integer => summary.extend_integers(
                Items::all(to - from, |at| Some(self.integers[from + at])),
                weights,
                1,
            ),
            kind => summary.extend_byte_strings(
                kind,
                Items::all(to - from, |at| Some(&self.strings[from + at][..])),
                weights,
                1,
            ),
        };
        done.is_ok()
    }

    /// The same with weights of both signs.
    fn add(&self, sketch: &mut Sketch, from: usize, to: usize) -> bool {
        let weights: Vec<i64> = (from..to).map(|at| at as i64 % 5 - 2).collect();
        let weights = SignedWeights::Each(&weights);
        let done = match self.kind {
            Kind::Integer => sketch.extend_integers(
                Items::all(to - from, |at| Some(self.integers[from + at])),
                weights,
            ),
            kind => sketch.extend_byte_strings(
                kind,
                Items::all(to - from, |at| Some(&self.strings[from + at][..])),
                weights,
            ),
        };
        done.is_ok()
    }

    fn label(&self, at: usize) -> Label<'_> {
        match self.kind {
            Kind::Integer => Label::Integer(self.integers[at]),
            Kind::String | Kind::Bytes => Label::ByteString(ByteString {
                bytes: &self.strings[at],
                shortened: false,
            }),
        }
    }
}

fn counters(bytes: &[u8]) -> bool {
    let Ok((mut whole, record)) = wire::counters::decode(bytes) else {
        return false;
    };
    assert!(wire::counters::encode(&whole, &record) == bytes);
    little(whole.heap_bytes(), bytes);
    keeps_its_rules(&whole);

    let before = state(&whole);
    let known: Vec<_> = before.iter().flatten().map(|(label, _)| label).collect();
    let known = known.iter().map(|label| borrowed(label));
    let more = More::after(whole.kind(), known);
    let counted = more.count(&mut whole, 0, more.len());
    if !counted {
        assert!(
            wire::counters::encode(&whole, &record) == bytes,
            "refused whole"
        );
        return true;
    }
    keeps_its_rules(&whole);
    agrees_with_the_twin(&whole, &before, &more);

    let mut again = bytes.to_vec();
    for at in 0..more.len() {
        let (mut parts, record) = wire::counters::decode(&again).expect("saved by itself");
        assert!(more.count(&mut parts, at, at + 1));
        again = wire::counters::encode(&parts, &record);
    }
    assert!(again == wire::counters::encode(&whole, &record));
    true
}

fn borrowed(label: &Owned) -> Label<'_> {
    match label {
        Owned::Integer(label) => Label::Integer(match u64::try_from(*label) {
            Ok(label) => label.into(),
            Err(_) => (*label as i64).into(),
        }),
        Owned::Bytes(bytes, shortened) => Label::ByteString(ByteString {
            bytes,
            shortened: *shortened,
        }),
    }
}

/// For each partition labels and counts in the saved order.
fn state(summary: &Counters) -> Vec<Vec<(Owned, u64)>> {
    let of = |partition| {
        let slots = summary.slots_in_saved_order(partition).into_iter();
        slots
            .map(|slot| {
                let label = Owned::of(summary.label(partition, slot));
                (label, summary.count(partition, slot))
            })
            .collect()
    };
    (0..summary.parameters().partitions).map(of).collect()
}

fn keeps_its_rules(summary: &Counters) {
    let parameters = *summary.parameters();
    assert!(parameters.valid());
    let misra_gries = parameters.algorithm == Algorithm::MisraGries;
    let tables = state(summary);
    let mut seen = HashSet::new();
    let mut sum = 0;
    for (partition, table) in tables.iter().enumerate() {
        let larger = partition < parameters.capacity % parameters.partitions;
        let capacity = parameters.capacity / parameters.partitions + usize::from(larger);
        assert!(table.len() <= capacity);
        let minimum = table.iter().map(|&(_, count)| count).min();
        if misra_gries || table.len() < capacity {
            assert_eq!(summary.minimum(partition), 0);
        } else {
            assert_eq!(Some(summary.minimum(partition)), minimum);
        }
        assert!(misra_gries || minimum != Some(0));
        for (label, count) in table {
            assert!(seen.insert(label), "a label twice");
            sum += count;
        }
    }
    assert_eq!(summary.kind().is_some(), !seen.is_empty());
    if misra_gries {
        let more = summary.length().checked_sub(sum);
        let dropped = more.expect("no counter above its label's count");
        assert_eq!(dropped % (parameters.capacity as u64 + 1), 0);
    } else {
        assert_eq!(summary.length(), sum);
    }
}

fn agrees_with_the_twin(after: &Counters, before: &[Vec<(Owned, u64)>], more: &More) {
    let parameters = after.parameters();
    if more.kind != Kind::Integer || parameters.partitions > 1 {
        return;
    }
    let plain = |table: &[(Owned, u64)]| -> Vec<(i128, u64)> {
        let integer = |(label, count): &(Owned, u64)| match label {
            Owned::Integer(label) => (*label, *count),
            Owned::Bytes(..) => unreachable!("one kind"),
        };
        table.iter().map(integer).collect()
    };
    let weighted = more.integers.iter().zip(0u64..);
    let weighted = weighted.map(|(&label, at)| (i128::from(label), at % 4));
    let expected: Vec<(i128, u64)> = match parameters.algorithm {
        Algorithm::SpaceSaving(tie) => {
            let mut twin = reference::Twin::new(parameters.capacity, tie);
            twin.counters = plain(&before[0]);
            weighted.for_each(|(label, weight)| twin.update(label, weight));
            twin.counters
        }
        Algorithm::MisraGries => {
            let mut twin = reference::MisraGriesTwin::new(parameters.capacity);
            twin.counters = plain(&before[0]).into_iter().collect();
            weighted.for_each(|(label, weight)| twin.update(label, weight));
            twin.counters.into_iter().collect()
        }
    };
    assert!(
        plain(&state(after)[0]) == expected,
        "not as the twin counts"
    );
}

fn sketch(bytes: &[u8]) -> bool {
    let read = |bytes: &[u8]| wire::sketch::decode(bytes).ok();
    let Some(mut saved) = read(bytes) else {
        return false;
    };
    let write = |sketch: &Sketch, saved: &wire::sketch::Saved| {
        wire::sketch::encode(sketch, &saved.record, &saved.noise).expect("little memory")
    };
    assert!(write(&saved.sketch, &saved) == bytes);
    little(saved.sketch.heap_bytes(), bytes);
    let parameters = *saved.sketch.parameters();
    assert!(parameters.valid());
    assert_eq!(saved.sketch.kind().is_some(), saved.sketch.length() > 0);
    assert_eq!(saved.sketch.rows().count(), parameters.depth);
    assert_eq!(saved.sketch.squares().len(), parameters.depth);

    let more = More::after(saved.sketch.kind(), std::iter::empty());
    let mut steps = read(bytes).expect("as before").sketch;
    let counted = more.add(&mut saved.sketch, 0, more.len());
    if !counted {
        assert!(write(&saved.sketch, &saved) == bytes, "refused whole");
        return true;
    }
    for at in 0..more.len() {
        assert!(more.add(&mut steps, at, at + 1));
    }
    let after = write(&saved.sketch, &saved);
    assert!(after == write(&steps, &saved));
    let again = read(&after).expect("saved by itself");
    assert!(write(&again.sketch, &again) == after);
    for at in 0..more.len() {
        let label = more.label(at);
        let estimate = saved.sketch.estimate_label(label);
        assert_eq!(estimate, again.sketch.estimate_label(label));
        if parameters.rule == SketchRule::CountMin {
            let cells = saved.sketch.rows().flatten();
            assert!(cells.min().is_some_and(|&least| least <= estimate));
        }
    }
    if saved.sketch.merge(&again.sketch).is_ok() {
        assert_eq!(saved.sketch.length(), 2 * again.sketch.length());
        assert!(read(&write(&saved.sketch, &saved)).is_some());
    }
    true
}

fn top_estimates(bytes: &[u8]) -> bool {
    let read = |bytes: &[u8]| wire::top_estimates::decode(bytes).ok();
    let Some((mut whole, record)) = read(bytes) else {
        return false;
    };
    assert!(wire::top_estimates::encode(&whole, &record) == bytes);
    little(whole.heap_bytes(), bytes);
    let rules = |top: &TopEstimates| {
        let labels = top.labels();
        let distinct: HashSet<_> = labels.iter().map(|&(label, _)| Owned::of(label)).collect();
        assert_eq!(distinct.len(), labels.len());
        assert_eq!(labels.len(), top.tracked());
        assert!(labels.len() <= top.capacity());
        assert!(labels.len() as u64 <= top.extent().length());
    };
    rules(&whole);

    let known: Vec<_> = whole
        .labels()
        .into_iter()
        .map(|pair| Owned::of(pair.0))
        .collect();
    let more = More::after(whole.extent().kind(), known.iter().map(borrowed));
    let offer = |top: &mut TopEstimates, at: usize| {
        let mut after = top.extent();
        let one = Items::all(1, |_| Some(()));
        let label = more.label(at); // whoever offers labels has shortened them
        let short = match label {
            Label::ByteString(label) => label.bytes.len() <= top.max_label_bytes() as usize,
            Label::Integer(_) => true,
        };
        let fits = short && after.add(more.kind, &one, Weights::Unit).is_ok();
        if fits {
            let estimate = [5, -3, i64::MAX, 1, i64::MIN][at % 5];
            top.offer(more.kind, label, estimate)
                .expect("the kind that is there");
            top.extend(after);
        }
        fits
    };
    let mut again = bytes.to_vec();
    for at in 0..more.len() {
        let (mut part, record) = read(&again).expect("saved by itself");
        let fits = offer(&mut whole, at);
        assert_eq!(offer(&mut part, at), fits);
        rules(&whole);
        again = wire::top_estimates::encode(&part, &record);
        assert!(again == wire::top_estimates::encode(&whole, &record));
    }
    true
}

fn tracked(bytes: &[u8]) -> bool {
    let Ok(parts) = wire::tracked::decode(bytes) else {
        return false;
    };
    let Parts { sketch, labels, .. } = parts;
    assert!(wire::tracked::encode(&parts) == bytes);
    check(sketch);
    check(labels);
    true
}
