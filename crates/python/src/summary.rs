//! The class behind `dptop.SpaceSaving`, and Misra-Gries. A lock guards the tables, so that work goes on without the
//! interpreter's lock.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use dptop_summaries::{self as core, Algorithm, Items, Kind, Parameters, Tie, Weights, wire};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch::LabelBatch;
use crate::errors::{InvalidParameter, corrupt, no_entropy, refused};
use crate::guarded::Guarded;
use crate::label::{self, Owned};
use crate::sequence::{Item, with_item};
use crate::weights::{BatchWeights, weight_of};

/// The minimum counter of a partition, and its counters.
type Snapshot = (u64, Vec<u64>);

const ALGORITHMS: [Algorithm; 3] = [
    Algorithm::SpaceSaving(Tie::LeastRecent),
    Algorithm::SpaceSaving(Tie::MostRecent),
    Algorithm::MisraGries,
];

/// What an algorithm is called at the border.
fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::SpaceSaving(Tie::LeastRecent) => "space-saving-least-recent",
        Algorithm::SpaceSaving(Tie::MostRecent) => "space-saving-most-recent",
        Algorithm::MisraGries => "misra-gries",
    }
}

/// An input that is being read into a summary.
#[pyclass(frozen, module = "dptop._native")]
pub struct Reading {
    /// Whether anything of it has been counted; set together with that, as an error may arrive just after.
    counted: AtomicBool,
}

#[pymethods]
impl Reading {
    #[new]
    fn new() -> Self {
        Self {
            counted: AtomicBool::new(false),
        }
    }

    #[getter]
    fn counted(&self) -> bool {
        self.counted.load(Ordering::Relaxed)
    }
}

impl Reading {
    /// Something of it has been counted.
    pub fn begin(&self) {
        self.counted.store(true, Ordering::Relaxed);
    }
}

#[pyclass(frozen, module = "dptop._native")]
pub struct Counters {
    parameters: Parameters,
    tables: Guarded<core::Counters>,
}

impl Counters {
    /// The labels of counters, copied: making Python objects may run any code, also code that asks this summary.
    pub fn owned(
        &self,
        py: Python<'_>,
        partition: usize,
        positions: Vec<usize>,
    ) -> PyResult<(Option<Kind>, Vec<Owned>)> {
        py.detach(|| {
            self.locked(|tables| {
                let slots = tables.slots_in_saved_order(partition);
                let label = |position: usize| Owned::of(tables.label(partition, slots[position]));
                (tables.kind(), positions.into_iter().map(label).collect())
            })
        })
    }

    fn of(summary: core::Counters) -> Self {
        Self {
            parameters: *summary.parameters(),
            tables: Guarded::new(summary),
        }
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut core::Counters) -> R + Send,
    ) -> PyResult<R> {
        self.tables.with(py, f)
    }

    fn locked<R>(&self, f: impl FnOnce(&mut core::Counters) -> R) -> PyResult<R> {
        self.tables.locked(f)
    }
}

/// A single item.
pub fn one<T: Copy + Sync>(label: T) -> Items<impl Fn(usize) -> Option<T> + Sync> {
    Items::all(1, move |_| Some(label))
}

#[pymethods]
impl Counters {
    /// An empty summary. Its identity is drawn, or given by whoever has the parts of a stream counted elsewhere, where
    /// nothing may be drawn.
    #[new]
    #[pyo3(signature = (algorithm, capacity, partitions, max_label_bytes, identity=None))]
    fn new(
        algorithm: &str,
        capacity: usize,
        partitions: usize,
        max_label_bytes: u32,
        identity: Option<Cow<'_, [u8]>>,
    ) -> PyResult<Self> {
        let mut known = ALGORITHMS.into_iter();
        let algorithm = known
            .find(|&known| name(known) == algorithm)
            .ok_or_else(|| InvalidParameter::new_err("there is no such algorithm"))?;
        let identity = match identity {
            None => core::noise::identity().map_err(no_entropy)?,
            Some(given) => given
                .as_ref()
                .try_into()
                .map_err(|_| InvalidParameter::new_err("an identity must have 16 bytes"))?,
        };
        let parameters = Parameters {
            capacity,
            partitions,
            algorithm,
            max_label_bytes,
            identity,
        };
        if parameters.valid() {
            Ok(Self::of(core::Counters::new(parameters)))
        } else {
            Err(InvalidParameter::new_err(
                "a parameter of the summary is out of range",
            ))
        }
    }

    #[getter]
    fn capacity(&self) -> usize {
        self.parameters.capacity
    }

    #[getter]
    fn partitions(&self) -> usize {
        self.parameters.partitions
    }

    /// As it was given at construction.
    #[getter]
    fn algorithm(&self) -> &'static str {
        name(self.parameters.algorithm)
    }

    #[getter]
    fn max_label_bytes(&self) -> u32 {
        self.parameters.max_label_bytes
    }

    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.parameters.identity)
    }

    /// "integers", "strings", "bytes", or None before the first item.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.with(py, |tables| tables.kind().map(Kind::name))
    }

    fn update(&self, item: &Bound<'_, PyAny>, weight: &Bound<'_, PyAny>) -> PyResult<()> {
        let weight = weight_of(weight)?;
        let py = item.py();
        with_item(item, |item| {
            self.with(py, |tables| {
                let weights = [weight];
                let weights = Weights::Each(&weights);
                match item {
                    None => Ok(()),
                    Some(Item::Integer(label)) => tables.extend_integers(one(label), weights, 1),
                    Some(Item::Text(label)) => {
                        tables.extend_byte_strings(Kind::String, one(label.as_bytes()), weights, 1)
                    }
                    Some(Item::Bytes(label)) => {
                        tables.extend_byte_strings(Kind::Bytes, one(label), weights, 1)
                    }
                }
            })?
            .map_err(refused)
        })
    }

    /// Count batches in their order, all of them or, on an error, none; the reading knows which. Weights are those of
    /// all batches one after the other.
    fn extend(
        &self,
        py: Python<'_>,
        batches: Vec<PyRef<'_, LabelBatch>>,
        weights: Option<&BatchWeights>,
        threads: usize,
        reading: &Reading,
    ) -> PyResult<()> {
        let batches: Vec<&LabelBatch> = batches.iter().map(|batch| &**batch).collect();
        py.detach(|| {
            let parts = match weights {
                None => vec![Weights::Unit; batches.len()],
                Some(weights) => weights.split(&batches).map_err(refused)?,
            };
            self.locked(|tables| {
                let mut after = tables.extent();
                for (batch, &weights) in batches.iter().zip(&parts) {
                    batch.check(&mut after, weights)?;
                }
                for (batch, &weights) in batches.iter().zip(&parts) {
                    batch.extend(tables, weights, threads)?;
                    reading.begin();
                }
                Ok(())
            })?
            .map_err(refused)
        })
    }

    /// The sum of all weights.
    fn length(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |tables| tables.length())
    }

    /// The sum of all weights, and for each partition the minimum counter, which is 0 while a slot is free, and the
    /// counters in the order of their labels' last occurrences, oldest first. Of Misra-Gries: 0, and the counters,
    /// zeros included, in the order of the labels.
    fn snapshot(&self, py: Python<'_>) -> PyResult<(u64, Vec<Snapshot>)> {
        py.detach(|| {
            self.locked(|tables| {
                let partitions = (0..self.parameters.partitions).map(|partition| {
                    let slots = tables.slots_in_saved_order(partition).into_iter();
                    let counts = slots.map(|slot| tables.count(partition, slot)).collect();
                    (tables.minimum(partition), counts)
                });
                (tables.length(), partitions.collect())
            })
        })
    }

    /// The labels of counters of a partition, by their positions in the [`snapshot`](Self::snapshot): int, str, bytes,
    /// or (prefix, digest) for a shortened one.
    fn labels<'py>(
        &self,
        py: Python<'py>,
        partition: usize,
        positions: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (kind, labels) = self.owned(py, partition, positions)?;
        label::objects(py, kind, labels)
    }

    /// Bytes of memory that the counters take; for benchmarks and tests.
    fn heap_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |tables| tables.heap_bytes())
    }

    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        record: Cow<'_, [u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.locked(|tables| wire::counters::encode(tables, &record)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The summary and the record that were saved.
    #[staticmethod]
    fn from_bytes<'py>(
        py: Python<'py>,
        data: Cow<'_, [u8]>,
    ) -> PyResult<(Self, Bound<'py, PyBytes>)> {
        let read = py.detach(|| wire::counters::decode(&data));
        let (summary, record) = read.map_err(corrupt)?;
        Ok((Self::of(summary), PyBytes::new(py, &record)))
    }
}
