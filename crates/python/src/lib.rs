//! The border: Python objects in, Python objects out. `dptop/_native.pyi` has its types; users meet it through the
//! documented classes of the Python side.
//!
//! Every input becomes a `LabelBatch` (`batch.rs`), and every batch goes through `Counters.extend` (`summary.rs`) or
//! `Sketch.extend` (`sketch.rs`); no Python code runs per item of an array.

mod arrow;
mod batch;
mod buffer;
mod errors;
mod guarded;
mod input;
mod label;
mod memory;
mod sequence;
mod sketch;
mod summary;
mod table;
mod top_estimates;
mod tracked;
mod weights;

use std::borrow::Cow;

use dptop_summaries::{counters, noise, sketch as linear};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::InvalidParameter;

/// The seed of a test, which must have 32 bytes.
fn seed_bytes(seed: Option<Cow<'_, [u8]>>) -> PyResult<Option<[u8; 32]>> {
    let bytes = seed.map(|seed| seed.as_ref().try_into()).transpose();
    bytes.map_err(|_| InvalidParameter::new_err("a seed must have 32 bytes"))
}

/// Draw exact discrete Laplace noise with epsilon = numerator / 2^32. A seed is for tests.
#[pyfunction]
#[pyo3(signature = (numerator, count, seed=None))]
fn discrete_laplace(
    py: Python<'_>,
    numerator: u64,
    count: usize,
    seed: Option<Cow<'_, [u8]>>,
) -> PyResult<Vec<i64>> {
    let seed = seed_bytes(seed)?;
    if numerator == 0 {
        return Err(InvalidParameter::new_err("epsilon must be positive"));
    }
    py.detach(|| noise::discrete_laplace(numerator, count, seed))
        .map_err(errors::no_entropy)
}

/// Draw exact discrete Gaussian noise of a whole variance. A seed is for tests.
#[pyfunction]
#[pyo3(signature = (variance, count, seed=None))]
fn discrete_gaussian(
    py: Python<'_>,
    variance: u64,
    count: usize,
    seed: Option<Cow<'_, [u8]>>,
) -> PyResult<Vec<i64>> {
    let seed = seed_bytes(seed)?;
    if !(1..=noise::MAX_VARIANCE).contains(&variance) {
        return Err(InvalidParameter::new_err(
            "the variance must be from 1 to 2**40",
        ));
    }
    py.detach(|| noise::discrete_gaussian(variance, count, seed))
        .map_err(errors::no_entropy)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<batch::LabelBatch>()?;
    module.add_class::<weights::BatchWeights>()?;
    module.add_class::<weights::SignedBatchWeights>()?;
    module.add_class::<arrow::ArrowStream>()?;
    module.add_class::<input::Input>()?;
    module.add_class::<input::LabelReader>()?;
    module.add_class::<summary::Reading>()?;
    module.add_class::<summary::Counters>()?;
    module.add_class::<sketch::Sketch>()?;
    module.add_class::<top_estimates::TopEstimates>()?;
    module.add_function(wrap_pyfunction!(discrete_gaussian, module)?)?;
    module.add_function(wrap_pyfunction!(discrete_laplace, module)?)?;
    module.add_function(wrap_pyfunction!(memory::memory_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(table::table_stream, module)?)?;
    module.add_function(wrap_pyfunction!(tracked::tracked_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(tracked::tracked_to_bytes, module)?)?;
    let text_formats = dptop_readers::Format::ALL.map(|format| format.name());
    module.add("TEXT_FORMATS", PyTuple::new(module.py(), text_formats)?)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_CAPACITY", counters::MAX_CAPACITY)?;
    module.add("MAX_DEPTH", linear::MAX_DEPTH)?;
    module.add("MAX_WIDTH", linear::MAX_WIDTH)?;
    module.add("MAX_LENGTH", counters::MAX_LENGTH)?;
    module.add("MAX_PARTITIONS", counters::MAX_PARTITIONS)?;
    module.add("MAX_THREADS", counters::MAX_THREADS)?;
    module.add("MAX_VARIANCE", noise::MAX_VARIANCE)?;
    module.add("MIN_LABEL_BYTES", counters::MIN_LABEL_BYTES)?;
    module.add("MAX_LABEL_BYTES", counters::MAX_LABEL_BYTES)?;
    Ok(())
}
