//! Hostile saved forms: what the fuzzer checks (`make fuzz`), on the seeds and on changes of them that a fixed seed
//! chooses. So the fuzz target cannot come to rest uncompiled.

use std::path::Path;

use dptop_summaries::wire::counters::{decode, encode};
use dptop_summaries::{Algorithm, Counters, Integer, Items, Kind, Parameters, Tie, Weights};

#[path = "../fuzz/fuzz_targets/forms.rs"]
mod forms;
#[path = "../fuzz/fuzz_targets/sound.rs"]
mod sound;

fn seeds() -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../../tests/cases/saved-form-1", "fuzz/seeds"];
    let files = folders.map(|folder| std::fs::read_dir(here.join(folder)).expect("committed"));
    let mut paths: Vec<_> = files
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "dptop")
    });
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Numbers that look random (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Change bytes in one of the ways of fuzzers.
    fn change(&mut self, part: &mut Vec<u8>) {
        let extremes = [
            0,
            1,
            1 << 31,
            (1 << 31) - 1,
            i64::MAX as u64,
            1 << 63,
            u64::MAX,
        ];
        if part.is_empty() {
            part.push(0);
        }
        let at = self.below(part.len());
        match self.next() % 6 {
            0 => part[at] ^= 1 << self.below(8),
            1 => part[at] = self.next() as u8,
            2 => part.truncate(at),
            3 => part.insert(at, self.next() as u8),
            4 => {
                let number = extremes[self.below(extremes.len())].to_le_bytes();
                let end = part.len().min(at + 8);
                part[at..end].copy_from_slice(&number[..end - at]);
            }
            _ => {
                let to = at + self.below(part.len() - at + 1);
                let copy = part[at..to].to_vec();
                let into = self.below(part.len());
                part.splice(into..into, copy);
            }
        }
    }
}

#[test]
fn the_seeds_are_read_and_keep_their_rules() {
    let seeds = seeds();
    assert!(seeds.len() >= 20);
    for seed in seeds {
        assert!(sound::check(&seed));
    }
}

#[test]
fn changes_behind_right_checksums_are_refused_or_sound() {
    let mut random = SplitMix(7);
    let (mut read, mut refused) = (0, 0);
    for seed in seeds() {
        for _ in 0..200 {
            let mut form = seed.clone();
            for _ in 0..=random.below(3) {
                let choice = random.next();
                form = match forms::mutated(&form, choice, |part| random.change(part)) {
                    Some(form) => form,
                    None => continue,
                };
            }
            if sound::check(&form) {
                read += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(
        read > 500 && refused > 500,
        "{read} read, {refused} refused"
    );
}

/// A form with many partitions, in which about half of all hold one label or more, or almost none does.
fn many_partitions(per_partition: usize, kind: Kind, items: u64) -> Vec<u8> {
    let partitions = 1 << 12;
    let mut summary = Counters::new(Parameters {
        capacity: partitions * per_partition,
        partitions,
        algorithm: Algorithm::SpaceSaving(Tie::LeastRecent),
        max_label_bytes: 64,
        identity: [9; 16],
    });
    let length = items as usize;
    let counted = if kind == Kind::Integer {
        let items = Items::all(length, |at| Some(Integer::from(at as u64)));
        summary.extend_integers(items, Weights::Unit, 1)
    } else {
        let items: Vec<_> = (0..items).map(|item| item.to_le_bytes()).collect();
        let items = Items::all(length, |at| Some(&items[at][..]));
        summary.extend_byte_strings(kind, items, Weights::Unit, 1)
    };
    counted.expect("few items");
    encode(&summary, b"")
}

#[test]
fn the_forms_that_take_the_most_memory_for_a_byte_stay_within_what_is_said() {
    let mut most = 0;
    for kind in [Kind::Integer, Kind::Bytes] {
        for per_partition in [1, 9, 64, 65, 1 << 19] {
            for items in [1, 1 << 11, 1 << 12] {
                let form = many_partitions(per_partition, kind, items);
                assert!(sound::check(&form));
                let (summary, _) = decode(&form).expect("checked");
                most = most.max(summary.heap_bytes() / form.len());
            }
        }
    }
    assert!(most > 20, "{most}: these are not the forms that take much");
}
