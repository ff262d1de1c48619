//! Weights: how often each item of a batch counts.

use dptop_summaries::{ExtendError, Integer, Items, Kind, Weights};
use pyo3::exceptions::{PyException, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::batch::{LabelBatch, Labels, Visit, with_array};
use crate::errors::InvalidParameter;

/// Weights of one batch, or of several in a row: whole numbers, none of them null or negative.
#[pyclass(frozen, module = "dptop._native")]
pub struct BatchWeights {
    values: Vec<u64>,
}

#[pymethods]
impl BatchWeights {
    /// Read labels as weights.
    #[new]
    fn new(batches: Vec<PyRef<'_, LabelBatch>>) -> PyResult<Self> {
        let mut values = Vec::with_capacity(batches.iter().map(|batch| batch.len()).sum());
        for batch in &batches {
            read(batch, &mut values)?;
        }
        Ok(Self { values })
    }
}

impl BatchWeights {
    /// The weights of each of some batches of labels.
    pub fn split(&self, batches: &[&LabelBatch]) -> Result<Vec<Weights<'_>>, ExtendError> {
        let items = batches.iter().map(|batch| batch.len()).sum();
        let mut rest = self.values.as_slice();
        if items != rest.len() {
            let weights = rest.len();
            return Err(ExtendError::WeightsMismatch { items, weights });
        }
        let parts = batches.iter().map(|batch| {
            let (part, after) = rest.split_at(batch.len());
            rest = after;
            Weights::Each(part)
        });
        Ok(parts.collect())
    }
}

fn read(batch: &LabelBatch, values: &mut Vec<u64>) -> PyResult<()> {
    if batch.len() == 0 {
        return Ok(());
    }
    let integers = match &batch.labels {
        Labels::Wide(integers) => integers,
        Labels::Array(array) if batch.kind == Kind::Integer => &with_array(array, ReadIntegers),
        Labels::Array(_) | Labels::Block(_) => return Err(refused("no numbers")),
    };
    for integer in integers {
        values.push(match integer {
            None => return Err(refused("a null")),
            Some(weight) if (weight.bits as i64) >= 0 => weight.bits,
            Some(weight) if weight.above_signed => return Err(refused("one above that")),
            Some(_) => return Err(refused("a negative one")),
        });
    }
    Ok(())
}

fn refused(what: &str) -> PyErr {
    InvalidParameter::new_err(format!(
        "weights must be whole numbers from 0 to 2**63 - 1; got {what}. Cast, fill or filter them."
    ))
}

/// The weight of one item. It is a part of the stream, and so may be what was passed in its place: it is not quoted.
pub fn weight_of(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = object.py();
    let is_number = !object.is_instance_of::<PyBool>();
    let out_of_range = match object.extract::<i64>() {
        Ok(number) if is_number && number >= 0 => return Ok(number as u64),
        Ok(_) => is_number,
        Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
        Err(error) => error.is_instance_of::<PyOverflowError>(py),
    };
    let given = match object.get_type().name() {
        Ok(name) if !out_of_range => format!("a value of type {name}"),
        _ => "a number out of that range".to_owned(),
    };
    Err(InvalidParameter::new_err(format!(
        "weight must be a whole number from 0 to 2**63 - 1; got {given}. Round it, or leave the item out."
    )))
}

struct ReadIntegers;

impl<'a> Visit<'a> for ReadIntegers {
    type Output = Vec<Option<Integer>>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output {
        (0..items.length).map(items.get).collect()
    }

    fn strings(self, _: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output {
        Vec::new()
    }
}
