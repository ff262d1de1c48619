//! The class behind Count-Min and CountSketch. A lock guards the cells, so that work goes on without the interpreter's.

use std::borrow::Cow;

use dptop_summaries::row_hash::Keys;
use dptop_summaries::sketch::{MergeError, NoisyError, OutOfMemory};
use dptop_summaries::wire::sketch::{self as saved, ReadError};
use dptop_summaries::{
    self as core, ExtendError, Integer, Items, Kind, SignedWeights, SketchParameters, SketchRule,
    noise,
};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch::{LabelBatch, Visit};
use crate::errors::{IncompatibleSummaries, InvalidParameter, corrupt, no_entropy, refused};
use crate::guarded::Guarded;
use crate::label;
use crate::memory::memory_bytes;
use crate::seed_bytes;
use crate::sequence::{Item, with_item};
use crate::summary::{Reading, one};
use crate::top_estimates::TopEstimates;
use crate::weights::{SignedBatchWeights, signed_weight_of};

/// The numbers a, b, c of a row's hash.
type RowKey = (u64, u64, u64);
/// A sketch, the record, and what is said of its noise.
type Read<'py> = (Sketch, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyclass(frozen, module = "dptop._native")]
pub struct Sketch {
    parameters: SketchParameters,
    sketch: Guarded<core::Sketch>,
}

impl Sketch {
    fn of(sketch: core::Sketch) -> Self {
        Self {
            parameters: *sketch.parameters(),
            sketch: Guarded::new(sketch),
        }
    }

    fn too_large(parameters: &SketchParameters) -> PyErr {
        let SketchParameters { width, depth, .. } = parameters;
        let bytes = parameters.bytes_needed();
        InvalidParameter::new_err(format!(
            "a sketch must fit into memory; got width {width} and depth {depth}, which take {bytes} bytes. \
             Use a smaller width or depth."
        ))
    }

    /// What was made under the lock, as an object.
    fn made(&self, made: Result<core::Sketch, OutOfMemory>) -> PyResult<Self> {
        let made = made.map_err(|_| Self::too_large(&self.parameters))?;
        Ok(Self::of(made))
    }
}

fn no_memory() -> PyErr {
    PyMemoryError::new_err("a sketch and its saved form must fit into memory together")
}

fn incompatible(error: MergeError) -> PyErr {
    IncompatibleSummaries::new_err(error.to_string())
}

#[pymethods]
impl Sketch {
    /// An empty sketch with keys from the operating system. A seed is for tests.
    #[new]
    #[pyo3(signature = (rule, width, depth, max_label_bytes, seed=None))]
    fn new(
        py: Python<'_>,
        rule: &str,
        width: usize,
        depth: usize,
        max_label_bytes: u32,
        seed: Option<Cow<'_, [u8]>>,
    ) -> PyResult<Self> {
        let rules = [SketchRule::CountMin, SketchRule::CountSketch];
        let parameters = SketchParameters {
            rule: *rules
                .iter()
                .find(|known| known.name() == rule)
                .ok_or_else(|| {
                    InvalidParameter::new_err(
                        "a sketch counts by the rule count-min or count-sketch",
                    )
                })?,
            width,
            depth,
            max_label_bytes,
            identity: noise::identity().map_err(no_entropy)?,
        };
        if !parameters.valid() {
            return Err(InvalidParameter::new_err(
                "a parameter of the sketch is out of range",
            ));
        }
        if memory_bytes().is_some_and(|bytes| parameters.bytes_needed() > bytes) {
            return Err(Self::too_large(&parameters));
        }
        let seed = seed_bytes(seed)?;
        let made = py.detach(|| {
            let keys = Keys::draw(depth, seed).map_err(no_entropy)?;
            core::Sketch::new(parameters, keys).map_err(|_| Self::too_large(&parameters))
        });
        Ok(Self::of(made?))
    }

    /// Bytes that the cells and keys of a sketch take.
    #[staticmethod]
    fn bytes_needed(width: usize, depth: usize) -> u64 {
        SketchParameters::bytes_of(width, depth)
    }

    #[getter]
    fn rule(&self) -> &'static str {
        self.parameters.rule.name()
    }

    #[getter]
    fn width(&self) -> usize {
        self.parameters.width
    }

    #[getter]
    fn depth(&self) -> usize {
        self.parameters.depth
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
        self.sketch.with(py, |sketch| sketch.kind().map(Kind::name))
    }

    /// Whether its keys, or noise in its cells, came from a seed.
    #[getter]
    fn seeded(&self, py: Python<'_>) -> PyResult<bool> {
        self.sketch.with(py, |sketch| sketch.seeded())
    }

    fn update(&self, item: &Bound<'_, PyAny>, weight: &Bound<'_, PyAny>) -> PyResult<()> {
        let weight = signed_weight_of(weight)?;
        let py = item.py();
        with_item(item, |item| {
            self.sketch
                .with(py, |sketch| {
                    let weights = [weight];
                    let weights = SignedWeights::Each(&weights);
                    match item {
                        None => Ok(()),
                        Some(Item::Integer(label)) => sketch.extend_integers(one(label), weights),
                        Some(Item::Text(label)) => {
                            sketch.extend_byte_strings(Kind::String, one(label.as_bytes()), weights)
                        }
                        Some(Item::Bytes(label)) => {
                            sketch.extend_byte_strings(Kind::Bytes, one(label), weights)
                        }
                    }
                })?
                .map_err(refused)
        })
    }

    /// Count batches, all of them or, on an error, none; the reading knows which. Weights are those of all batches one
    /// after the other. With what tracks labels, each item's estimate is offered to it.
    #[pyo3(signature = (batches, weights, reading, top=None))]
    fn extend(
        &self,
        py: Python<'_>,
        batches: Vec<PyRef<'_, LabelBatch>>,
        weights: Option<&SignedBatchWeights>,
        reading: &Reading,
        top: Option<&TopEstimates>,
    ) -> PyResult<()> {
        let batches: Vec<&LabelBatch> = batches.iter().map(|batch| &**batch).collect();
        py.detach(|| {
            let parts = match weights {
                None => vec![SignedWeights::Unit; batches.len()],
                Some(weights) => weights.split(&batches).map_err(refused)?,
            };
            let count = |sketch: &mut core::Sketch, mut top: Option<&mut core::TopEstimates>| {
                let mut after = sketch.extent();
                for (batch, &weights) in batches.iter().zip(&parts) {
                    batch.check(&mut after, weights)?;
                }
                for (batch, &weights) in batches.iter().zip(&parts) {
                    batch.visit(Extend {
                        sketch: &mut *sketch,
                        top: top.as_deref_mut(),
                        kind: batch.kind,
                        weights,
                    })?;
                    reading.begin();
                }
                Ok(())
            };
            // always in this order: a sketch, then what tracks its labels
            self.sketch
                .locked(|sketch| match top {
                    None => Ok(count(sketch, None)),
                    Some(top) => top.top.locked(|top| count(sketch, Some(top))),
                })??
                .map_err(refused)
        })
    }

    /// Estimated counts of tracked labels, by their positions as in what tracks them.
    fn estimates_of(
        &self,
        py: Python<'_>,
        tracker: &Bound<'_, PyAny>,
        partition: usize,
        positions: Vec<usize>,
    ) -> PyResult<Vec<i64>> {
        let labels = label::tracked(tracker, partition, positions)?;
        py.detach(|| {
            self.sketch.locked(|sketch| {
                let estimate = |label: &label::Owned| sketch.estimate_label(label.borrowed());
                labels.iter().map(estimate).collect()
            })
        })
    }

    /// The sum of the squared cells of each row.
    fn squares(&self, py: Python<'_>) -> PyResult<Vec<u128>> {
        py.detach(|| self.sketch.locked(|sketch| sketch.squares()))
    }

    /// Estimated counts, 0 for a null.
    fn estimate(&self, py: Python<'_>, batch: &LabelBatch) -> PyResult<Vec<i64>> {
        let kind = batch.kind;
        let estimate = |sketch: &mut core::Sketch| batch.visit(Estimate { sketch, kind });
        py.detach(|| self.sketch.locked(estimate))?.map_err(refused)
    }

    /// Add what another sketch with the same keys has counted; it may be this one.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        py.detach(|| {
            if std::ptr::eq(self, other) {
                let twin = self.made(self.sketch.locked(|sketch| sketch.copy())?)?;
                return self.sketch.locked_with(&twin.sketch, core::Sketch::merge);
            }
            self.sketch.locked_with(&other.sketch, core::Sketch::merge)
        })?
        .map_err(incompatible)
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| self.made(self.sketch.locked(|sketch| sketch.copy())?))
    }

    /// A sketch of nothing with the same keys, and an identity of its own.
    fn empty_copy(&self, py: Python<'_>) -> PyResult<Self> {
        let identity = noise::identity().map_err(no_entropy)?;
        py.detach(|| self.made(self.sketch.locked(|sketch| sketch.empty_copy(identity))?))
    }

    /// A copy with exact noise in each cell: discrete Laplace with epsilon = numerator / 2^32, or discrete Gaussian. A
    /// seed is for tests.
    #[pyo3(signature = (laplace_numerator=None, gaussian_variance=None, seed=None))]
    fn noisy(
        &self,
        py: Python<'_>,
        laplace_numerator: Option<u64>,
        gaussian_variance: Option<u64>,
        seed: Option<Cow<'_, [u8]>>,
    ) -> PyResult<Self> {
        let seed = seed_bytes(seed)?;
        let variances = 1..=noise::MAX_VARIANCE;
        let draw = |count, seed| match (laplace_numerator, gaussian_variance) {
            (Some(numerator), _) => noise::discrete_laplace(numerator, count, seed),
            (None, variance) => noise::discrete_gaussian(variance.unwrap_or(1), count, seed),
        };
        match (laplace_numerator, gaussian_variance) {
            (Some(numerator), None) if numerator > 0 => {}
            (None, Some(variance)) if variances.contains(&variance) => {}
            _ => {
                return Err(InvalidParameter::new_err(
                    "noise has one law: give a positive epsilon or a variance up to 2**40",
                ));
            }
        }
        let noisy = py.detach(|| self.sketch.locked(|sketch| sketch.noisy(seed, draw)))?;
        match noisy {
            Ok(noisy) => Ok(Self::of(noisy)),
            Err(NoisyError::Entropy(error)) => Err(no_entropy(error)),
            Err(NoisyError::Memory(OutOfMemory)) => Err(Self::too_large(&self.parameters)),
        }
    }

    /// The sum of all weights without their signs.
    fn length(&self, py: Python<'_>) -> PyResult<u64> {
        self.sketch.with(py, |sketch| sketch.length())
    }

    /// The cells, row by row.
    fn cells(&self, py: Python<'_>) -> PyResult<Vec<Vec<i64>>> {
        py.detach(|| {
            self.sketch
                .locked(|sketch| sketch.rows().map(<[i64]>::to_vec).collect())
        })
    }

    /// The key of the fingerprints and those of the rows' hashes; for tests.
    fn keys(&self, py: Python<'_>) -> PyResult<(u64, Vec<RowKey>)> {
        self.sketch.with(py, |sketch| {
            let rows = sketch.keys().rows().iter();
            let rows = rows.map(|row| (row.a, row.b, row.c)).collect();
            (sketch.keys().fingerprint(), rows)
        })
    }

    /// What labels are reduced to before the rows' hashes, None for a null; for tests.
    fn fingerprints(&self, py: Python<'_>, batch: &LabelBatch) -> PyResult<Vec<Option<u64>>> {
        let kind = batch.kind;
        let fingerprints = |sketch: &mut core::Sketch| batch.visit(Fingerprints { sketch, kind });
        py.detach(|| self.sketch.locked(fingerprints))
    }

    /// Bytes of memory that the cells and keys take.
    fn heap_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.sketch.with(py, |sketch| sketch.heap_bytes())
    }

    /// The saved form, with a record of what may be spent and what is to be said of the noise in the cells.
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        record: Cow<'_, [u8]>,
        noise: Cow<'_, [u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let encode = |sketch: &mut core::Sketch| saved::encode(sketch, &record, &noise);
        let encoded = py.detach(|| self.sketch.locked(encode))?;
        let bytes = encoded.map_err(|OutOfMemory| no_memory())?;
        PyBytes::new_with(py, bytes.len(), |out| {
            out.copy_from_slice(&bytes);
            Ok(())
        })
    }

    /// The sketch, the record, and what was said of the noise.
    #[staticmethod]
    fn from_bytes<'py>(py: Python<'py>, data: Cow<'_, [u8]>) -> PyResult<Read<'py>> {
        let read = py.detach(|| saved::decode(&data));
        let saved = read.map_err(|error| match error {
            ReadError::Corrupt(rule) => corrupt(rule),
            ReadError::Memory(OutOfMemory) => no_memory(),
        })?;
        Ok((
            Self::of(saved.sketch),
            PyBytes::new(py, &saved.record),
            PyBytes::new(py, &saved.noise),
        ))
    }
}

struct Extend<'a> {
    sketch: &'a mut core::Sketch,
    top: Option<&'a mut core::TopEstimates>,
    kind: Kind,
    weights: SignedWeights<'a>,
}

impl<'a> Visit<'a> for Extend<'_> {
    type Output = Result<(), ExtendError>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output {
        match self.top {
            None => self.sketch.extend_integers(items, self.weights),
            Some(top) => self.sketch.track_integers(items, self.weights, top),
        }
    }

    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output {
        let Self {
            sketch,
            top,
            kind,
            weights,
        } = self;
        match top {
            None => sketch.extend_byte_strings(kind, items, weights),
            Some(top) => sketch.track_byte_strings(kind, items, weights, top),
        }
    }
}

struct Estimate<'a> {
    sketch: &'a core::Sketch,
    kind: Kind,
}

impl<'a> Visit<'a> for Estimate<'_> {
    type Output = Result<Vec<i64>, ExtendError>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output {
        self.sketch.estimate_integers(items)
    }

    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output {
        self.sketch.estimate_byte_strings(self.kind, items)
    }
}

struct Fingerprints<'a> {
    sketch: &'a core::Sketch,
    kind: Kind,
}

impl<'a> Visit<'a> for Fingerprints<'_> {
    type Output = Vec<Option<u64>>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output {
        self.sketch.integer_fingerprints(items)
    }

    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output {
        self.sketch.byte_string_fingerprints(self.kind, items)
    }
}
