//! Summaries of data streams in bounded memory, and exact discrete noise. No Python in sight.
//!
//! A [`SpaceSaving`] summary is one or more partitions that share the capacity, a table each (`partitions.rs`), and
//! counts [`Items`] into them in stream order (`batch.rs`). A table (`table.rs`) has its labels ([`label`]) in slots,
//! where it finds them by hash (`slots.rs`), and asks its victims (`victims.rs`) which one to evict; small tables stand
//! side by side (`small_tables.rs`). [`noise`] draws discrete Laplace and discrete Gaussian noise with integers only.
//! [`wire`] is the saved form.
#![deny(unsafe_code)] // cpu.rs alone allows it, and says why

mod batch;
#[cfg(test)]
mod colliding;
mod cpu;
mod key;
pub mod label;
pub mod noise;
mod partitions;
mod radix_heap;
#[cfg(test)]
#[path = "../tests/reference/mod.rs"]
mod reference;
mod slots;
mod small_tables;
pub mod space_saving;
mod table;
mod tags;
mod victims;
pub mod wire;

pub use batch::{Items, Weights};
pub use label::{Integer, Kind, Label};
pub use space_saving::{ExtendError, Extent, Parameters, SpaceSaving};
pub use victims::Tie;
