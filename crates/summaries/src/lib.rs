//! Summaries of data streams in bounded memory, and exact discrete noise. No Python in sight.
//!
//! [`Counters`] are a summary by SpaceSaving or Misra-Gries: one or more partitions that share the capacity, a table
//! each (`partitions.rs`), into which [`Items`] are counted in stream order (`batch.rs`). A table has its labels
//! ([`label`]) in slots, where it finds them by hash (`slots.rs`). That of SpaceSaving (`table.rs`) asks its victims
//! (`victims.rs`) which label to evict, that of Misra-Gries (`misra_gries.rs`) a heap; small tables stand side by side
//! (`small_tables.rs`). A [`Sketch`] adds up weights in rows of cells (`cells.rs`), which hashes lead a label to
//! ([`row_hash`]); [`TopEstimates`] track labels beside it. [`noise`] draws discrete Laplace and discrete Gaussian
//! noise with integers only. [`wire`] is the saved form.
#![deny(unsafe_code)] // cpu.rs alone allows it, and says why

mod batch;
mod cells;
pub mod counters;
mod cpu;
mod fingerprints;
mod key;
pub mod label;
mod misra_gries;
pub mod noise;
mod partitions;
mod radix_heap;
#[cfg(test)]
#[path = "../tests/reference/mod.rs"]
mod reference;
pub mod row_hash;
pub mod sketch;
mod sketch_parameters;
mod slots;
mod small_tables;
mod sums;
mod table;
mod tags;
#[cfg(test)]
mod testing;
mod top_estimates;
mod victims;
mod weights;
pub mod wire;

pub use batch::Items;
pub use counters::{Algorithm, Counters, ExtendError, Extent, Parameters};
pub use label::{Integer, Kind, Label};
pub use sketch::{Sketch, SketchParameters, SketchRule};
pub use top_estimates::TopEstimates;
pub use victims::Tie;
pub use weights::{SignedWeights, Weighing, Weights};
