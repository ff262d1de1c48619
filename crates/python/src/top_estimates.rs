//! The class that tracks the labels with the largest estimates, for `dptop.Tracked`.

use std::borrow::Cow;

use dptop_summaries::label::ByteString;
use dptop_summaries::{self as core, Kind, Label, Weights, noise, wire};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch::LabelBatch;
use crate::errors::{InvalidParameter, corrupt, no_entropy, refused};
use crate::guarded::Guarded;
use crate::label::{self, Owned};
use crate::sequence::{Item, with_item};
use crate::summary::Reading;
use crate::weights::BatchWeights;

#[pyclass(frozen, module = "dptop._native")]
pub struct TopEstimates {
    capacity: usize,
    max_label_bytes: u32,
    identity: [u8; 16],
    pub top: Guarded<core::TopEstimates>,
}

impl TopEstimates {
    fn of(top: core::TopEstimates) -> Self {
        Self {
            capacity: top.capacity(),
            max_label_bytes: top.max_label_bytes(),
            identity: top.identity(),
            top: Guarded::new(top),
        }
    }

    /// The labels at some positions, copied.
    pub fn owned(
        &self,
        py: Python<'_>,
        positions: Vec<usize>,
    ) -> PyResult<(Option<Kind>, Vec<Owned>)> {
        py.detach(|| {
            self.top.locked(|top| {
                let labels = top.labels();
                let label = |position: usize| Owned::of(labels[position].0);
                (
                    top.extent().kind(),
                    positions.into_iter().map(label).collect(),
                )
            })
        })
    }
}

#[pymethods]
impl TopEstimates {
    #[new]
    fn new(capacity: usize, max_label_bytes: u32) -> PyResult<Self> {
        if !core::TopEstimates::valid(capacity, max_label_bytes) {
            return Err(InvalidParameter::new_err(
                "a parameter of what tracks labels is out of range",
            ));
        }
        let identity = noise::identity().map_err(no_entropy)?;
        let top = core::TopEstimates::new(capacity, max_label_bytes, identity);
        Ok(Self::of(top))
    }

    #[getter]
    fn capacity(&self) -> usize {
        self.capacity
    }

    #[getter]
    fn max_label_bytes(&self) -> u32 {
        self.max_label_bytes
    }

    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.identity)
    }

    /// Check batches as what comes next in the stream, all or none, and take them into its length. Their items are to
    /// be offered next; the reading has begun.
    fn begin(
        &self,
        py: Python<'_>,
        batches: Vec<PyRef<'_, LabelBatch>>,
        weights: Option<&BatchWeights>,
        reading: &Reading,
    ) -> PyResult<()> {
        let batches: Vec<&LabelBatch> = batches.iter().map(|batch| &**batch).collect();
        let parts = match weights {
            None => vec![Weights::Unit; batches.len()],
            Some(weights) => weights.split(&batches).map_err(refused)?,
        };
        self.top
            .with(py, |top| {
                let mut after = top.extent();
                for (batch, &weights) in batches.iter().zip(&parts) {
                    batch.check(&mut after, weights)?;
                }
                reading.begin();
                top.extend(after);
                Ok(())
            })?
            .map_err(refused)
    }

    /// Take a label's estimate on its arrival.
    fn offer(&self, item: &Bound<'_, PyAny>, estimate: i64) -> PyResult<()> {
        let py = item.py();
        with_item(item, |item| {
            let byte_string = |bytes| {
                Label::ByteString(ByteString {
                    bytes,
                    shortened: false,
                })
            };
            let (kind, label) = match item {
                None => return Ok(()),
                Some(Item::Integer(label)) => (Kind::Integer, Label::Integer(label)),
                Some(Item::Text(label)) => (Kind::String, byte_string(label.as_bytes())),
                Some(Item::Bytes(label)) => (Kind::Bytes, byte_string(label)),
            };
            self.top
                .with(py, |top| top.offer(kind, label, estimate))?
                .map_err(refused)
        })
    }

    /// How many labels are tracked.
    fn tracked(&self, py: Python<'_>) -> PyResult<usize> {
        self.top.with(py, |top| top.tracked())
    }

    /// "integers", "strings", "bytes", or None before the first item.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.top.with(py, |top| top.extent().kind().map(Kind::name))
    }

    /// The sum of all weights.
    fn length(&self, py: Python<'_>) -> PyResult<u64> {
        self.top.with(py, |top| top.extent().length())
    }

    /// The labels at some positions, of one partition: the one whose estimate was stored first before the others.
    fn labels<'py>(
        &self,
        py: Python<'py>,
        partition: usize,
        positions: Vec<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let _ = partition;
        let (kind, labels) = self.owned(py, positions)?;
        label::objects(py, kind, labels)
    }

    /// The estimates as they were stored, in the order of the labels; for tests.
    fn stored(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        py.detach(|| {
            self.top.locked(|top| {
                top.labels()
                    .into_iter()
                    .map(|(_, estimate)| estimate)
                    .collect()
            })
        })
    }

    /// Bytes of memory that labels and estimates take; for benchmarks and tests.
    fn heap_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.top.with(py, |top| top.heap_bytes())
    }

    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        record: Cow<'_, [u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let encode = |top: &mut core::TopEstimates| wire::top_estimates::encode(top, &record);
        let bytes = py.detach(|| self.top.locked(encode))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What tracked labels, and the record that was saved.
    #[staticmethod]
    fn from_bytes<'py>(
        py: Python<'py>,
        data: Cow<'_, [u8]>,
    ) -> PyResult<(Self, Bound<'py, PyBytes>)> {
        let read = py.detach(|| wire::top_estimates::decode(&data));
        let (top, record) = read.map_err(corrupt)?;
        Ok((Self::of(top), PyBytes::new(py, &record)))
    }
}
