//! Weights: how often each item of a batch counts.

use dptop_summaries::{ExtendError, Integer, Items, Kind, SignedWeights, Weights};
use pyo3::exceptions::{PyException, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::batch::{LabelBatch, Labels, Visit, with_array};
use crate::errors::InvalidParameter;

/// Which weights a summary takes.
struct Range {
    least: i64,
    words: &'static str,
}

/// Where items are not taken back.
const COUNTS: Range = Range {
    least: 0,
    words: "whole numbers from 0 to 2**63 - 1",
};

/// Where they are: the smallest number has no opposite.
const SIGNED: Range = Range {
    least: -i64::MAX,
    words: "whole numbers from -(2**63 - 1) to 2**63 - 1",
};

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
        let values = read(&batches, &COUNTS, |weight| weight as u64)?;
        Ok(Self { values })
    }

    /// The numbers.
    fn values(&self) -> Vec<u64> {
        self.values.clone()
    }
}

impl BatchWeights {
    /// The weights of each of some batches of labels.
    pub fn split(&self, batches: &[&LabelBatch]) -> Result<Vec<Weights<'_>>, ExtendError> {
        split(&self.values, batches, Weights::Each)
    }
}

/// Weights of one batch, or of several in a row: whole numbers, none of them null; negative ones take items back.
#[pyclass(frozen, module = "dptop._native")]
pub struct SignedBatchWeights {
    values: Vec<i64>,
}

#[pymethods]
impl SignedBatchWeights {
    /// Read labels as weights.
    #[new]
    fn new(batches: Vec<PyRef<'_, LabelBatch>>) -> PyResult<Self> {
        let values = read(&batches, &SIGNED, |weight| weight)?;
        Ok(Self { values })
    }
}

impl SignedBatchWeights {
    /// The weights of each of some batches of labels.
    pub fn split(&self, batches: &[&LabelBatch]) -> Result<Vec<SignedWeights<'_>>, ExtendError> {
        split(&self.values, batches, SignedWeights::Each)
    }
}

fn split<'a, T, W>(
    values: &'a [T],
    batches: &[&LabelBatch],
    each: impl Fn(&'a [T]) -> W,
) -> Result<Vec<W>, ExtendError> {
    let items = batches.iter().map(|batch| batch.len()).sum();
    let mut rest = values;
    if items != rest.len() {
        let weights = rest.len();
        return Err(ExtendError::WeightsMismatch { items, weights });
    }
    let parts = batches.iter().map(|batch| {
        let (part, after) = rest.split_at(batch.len());
        rest = after;
        each(part)
    });
    Ok(parts.collect())
}

fn read<T>(
    batches: &[PyRef<'_, LabelBatch>],
    range: &Range,
    value: impl Fn(i64) -> T,
) -> PyResult<Vec<T>> {
    let mut values = Vec::with_capacity(batches.iter().map(|batch| batch.len()).sum());
    for batch in batches.iter().filter(|batch| batch.len() > 0) {
        let integers = match &batch.labels {
            Labels::Wide(integers) => integers,
            Labels::Array(array) if batch.kind == Kind::Integer => &with_array(array, ReadIntegers),
            Labels::Array(_) | Labels::Block(_) => return Err(refused(range, "no numbers")),
        };
        for integer in integers {
            values.push(match integer {
                None => return Err(refused(range, "a null")),
                Some(weight) if weight.above_signed => {
                    return Err(refused(range, "one above that"));
                }
                Some(weight) if weight.bits as i64 >= range.least => value(weight.bits as i64),
                Some(_) if range.least == 0 => return Err(refused(range, "a negative one")),
                Some(_) => return Err(refused(range, "one below that")),
            });
        }
    }
    Ok(values)
}

fn refused(range: &Range, what: &str) -> PyErr {
    let words = range.words;
    InvalidParameter::new_err(format!(
        "weights must be {words}; got {what}. Cast, fill or filter them."
    ))
}

/// The weight of one item.
pub fn weight_of(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    number_of(object, &COUNTS).map(|weight| weight as u64)
}

/// The weight of one item that may be negative.
pub fn signed_weight_of(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    number_of(object, &SIGNED)
}

/// A weight is a part of the stream, and so may be what was passed in its place: it is not quoted.
fn number_of(object: &Bound<'_, PyAny>, range: &Range) -> PyResult<i64> {
    let py = object.py();
    let is_number = !object.is_instance_of::<PyBool>();
    let out_of_range = match object.extract::<i64>() {
        Ok(number) if is_number && number >= range.least => return Ok(number),
        Ok(_) => is_number,
        Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
        Err(error) => error.is_instance_of::<PyOverflowError>(py),
    };
    let given = match object.get_type().name() {
        Ok(name) if !out_of_range => format!("a value of type {name}"),
        _ => "a number out of that range".to_owned(),
    };
    let words = range.words.replacen("numbers", "number", 1);
    Err(InvalidParameter::new_err(format!(
        "weight must be a {words}; got {given}. Round it, or leave the item out."
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
