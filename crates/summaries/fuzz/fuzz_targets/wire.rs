//! Bytes, most of them behind a right checksum, read as every type of summary.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

mod forms;
mod sound;

fuzz_target!(|bytes: &[u8]| {
    sound::check(bytes);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let form = forms::mutated(&data[..size], u64::from(seed), |part| {
        let before = part.len();
        part.resize(before + max_size.saturating_sub(size).min(64), 0);
        let room = part.len();
        let after = fuzzer_mutate(part, before, room);
        part.truncate(after);
    });
    match form {
        Some(form) if form.len() <= max_size => {
            data[..form.len()].copy_from_slice(&form);
            form.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});
