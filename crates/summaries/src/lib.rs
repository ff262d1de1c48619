//! Summaries of data streams in bounded memory, and exact discrete noise. No Python in sight.
//!
//! A [`SpaceSaving`] summary is one or more [tables](table::Table) that share the capacity; a table is a
//! [label store](label), an index from hash to slot, a cell (count, last occurrence) per slot, and a
//! [queue](victims::Victims) that yields the label to evict. [`noise`] draws discrete Laplace noise with integers only.
//! [`wire`] is the saved form.
#![forbid(unsafe_code)]

pub mod label;
pub mod noise;
pub mod space_saving;
mod table;
mod victims;
pub mod wire;

pub use label::{Integer, Kind, Label};
pub use space_saving::{ExtendError, Parameters, SpaceSaving, Weights};
pub use victims::Tie;
