//! The class behind `dptop.SpaceSaving`. A lock guards the tables, so that work goes on without the interpreter's lock.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dptop_summaries::{self as core, Integer, Kind, Label, Tie, Weights, wire};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::batch::LabelBatch;
use crate::errors::{CorruptSummary, InvalidParameter, no_entropy, refused};
use crate::sequence::{Item, with_item};
use crate::weights::BatchWeights;

/// A label that outlives the lock on its table.
enum Owned {
    Integer(Integer),
    Bytes(Vec<u8>),
    Shortened(Vec<u8>),
}

#[pyclass(frozen, module = "dptop._native")]
pub struct SpaceSaving(Mutex<core::SpaceSaving>);

impl SpaceSaving {
    fn tables(&self) -> MutexGuard<'_, core::SpaceSaving> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl SpaceSaving {
    #[new]
    fn new(
        capacity: usize,
        partitions: usize,
        most_recent: bool,
        max_label_bytes: u32,
    ) -> PyResult<Self> {
        let parameters = core::Parameters {
            capacity,
            partitions,
            tie: if most_recent {
                Tie::MostRecent
            } else {
                Tie::LeastRecent
            },
            max_label_bytes,
            identity: core::noise::identity().map_err(no_entropy)?,
        };
        if parameters.valid() {
            Ok(Self(Mutex::new(core::SpaceSaving::new(parameters))))
        } else {
            Err(InvalidParameter::new_err(
                "a parameter of the summary is out of range",
            ))
        }
    }

    #[getter]
    fn capacity(&self) -> usize {
        self.tables().parameters().capacity
    }

    #[getter]
    fn partitions(&self) -> usize {
        self.tables().parameters().partitions
    }

    #[getter]
    fn most_recent(&self) -> bool {
        self.tables().parameters().tie == Tie::MostRecent
    }

    #[getter]
    fn max_label_bytes(&self) -> u32 {
        self.tables().parameters().max_label_bytes
    }

    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.tables().parameters().identity)
    }

    /// "integer", "text", "bytes", or None before the first item.
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        self.tables().kind().map(|kind| match kind {
            Kind::Integer => "integer",
            Kind::Text => "text",
            Kind::Bytes => "bytes",
        })
    }

    fn update(&self, item: &Bound<'_, PyAny>, weight: u64) -> PyResult<()> {
        if weight > i64::MAX as u64 {
            return Err(refused(core::ExtendError::TooLong)); // a null's weight counts for nothing, but has a range
        }
        with_item(item, |item| {
            let weights = [weight];
            let weights = Weights::Each(&weights);
            let mut tables = self.tables();
            match item {
                None => Ok(()),
                Some(Item::Integer(label)) => {
                    tables.extend_integers(1, |_| Some(label), weights, 1)
                }
                Some(Item::Text(label)) => {
                    tables.extend_strings(Kind::Text, 1, |_| Some(label.as_bytes()), weights, 1)
                }
                Some(Item::Bytes(label)) => {
                    tables.extend_strings(Kind::Bytes, 1, |_| Some(label), weights, 1)
                }
            }
            .map_err(refused)
        })
    }

    /// Count a batch, all of it or, on an error, none. With weights, those from `offset` on belong to the batch.
    #[pyo3(signature = (batch, weights, offset, threads))]
    fn extend(
        &self,
        py: Python<'_>,
        batch: &LabelBatch,
        weights: Option<&BatchWeights>,
        offset: usize,
        threads: usize,
    ) -> PyResult<()> {
        py.detach(|| {
            let weights = match weights {
                None => Weights::Unit,
                Some(weights) => {
                    let end = (offset + batch.len()).min(weights.values.len());
                    Weights::Each(&weights.values[offset.min(end)..end])
                }
            };
            batch.extend(&mut self.tables(), weights, threads)
        })
        .map_err(refused)
    }

    /// The sum of all weights.
    fn length(&self) -> u64 {
        self.tables().length()
    }

    /// How many labels a partition tracks.
    fn tracked(&self, partition: usize) -> usize {
        self.tables().tracked(partition)
    }

    /// The counters of a partition in the order of their labels' last occurrences, oldest first.
    fn counts(&self, partition: usize) -> Vec<u64> {
        let tables = self.tables();
        let slots = tables.slots_by_last_occurrence(partition).into_iter();
        slots.map(|slot| tables.count(partition, slot)).collect()
    }

    /// The minimum counter of a partition, 0 while a slot is free.
    fn minimum(&self, partition: usize) -> u64 {
        self.tables().minimum(partition)
    }

    /// The labels at positions of [`counts`](Self::counts): int, str, bytes, or (prefix, digest) for a shortened one.
    fn labels<'py>(
        &self,
        py: Python<'py>,
        partition: usize,
        positions: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        // the labels are copied first: making Python objects may run any code, also code that asks this summary
        let (text, labels) = {
            let tables = self.tables();
            let slots = tables.slots_by_last_occurrence(partition);
            let labels = positions.into_iter().map(|position| {
                match tables.label(partition, slots[position]) {
                    Label::Integer(label) => Owned::Integer(label),
                    Label::Bytes(label) if label.shortened => {
                        Owned::Shortened(label.bytes.to_vec())
                    }
                    Label::Bytes(label) => Owned::Bytes(label.bytes.to_vec()),
                }
            });
            (
                tables.kind() == Some(Kind::Text),
                labels.collect::<Vec<_>>(),
            )
        };
        let string = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(valid) if text => PyString::new(py, valid).into_any(),
            _ => PyBytes::new(py, bytes).into_any(),
        };
        let object = |label| match label {
            Owned::Integer(Integer {
                bits,
                above_signed: false,
            }) => Ok((bits as i64).into_pyobject(py)?.into_any()),
            Owned::Integer(Integer { bits, .. }) => Ok(bits.into_pyobject(py)?.into_any()),
            Owned::Shortened(bytes) => {
                let (prefix, digest) = bytes.split_at(bytes.len() - 32);
                let pair = (string(prefix), PyBytes::new(py, digest));
                Ok(pair.into_pyobject(py)?.into_any())
            }
            Owned::Bytes(bytes) => Ok(string(&bytes)),
        };
        labels.into_iter().map(object).collect()
    }

    /// Bytes of memory that the counters take.
    fn heap_bytes(&self) -> usize {
        self.tables().heap_bytes()
    }

    fn to_bytes<'py>(&self, py: Python<'py>, record: Cow<'_, [u8]>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| wire::encode(&self.tables(), &record));
        PyBytes::new(py, &bytes)
    }

    /// The summary and the record that were saved.
    #[staticmethod]
    fn from_bytes<'py>(
        py: Python<'py>,
        data: Cow<'_, [u8]>,
    ) -> PyResult<(Self, Bound<'py, PyBytes>)> {
        let (summary, record) = py.detach(|| wire::decode(&data)).map_err(|corrupt| {
            CorruptSummary::new_err(format!(
                "{corrupt}. Save the summary again, or read the stream again."
            ))
        })?;
        Ok((Self(Mutex::new(summary)), PyBytes::new(py, &record)))
    }
}
