//! Labels on their way out of a summary.

use dptop_summaries::label::{ByteString, DIGEST_BYTES};
use dptop_summaries::{Integer, Kind, Label};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::summary::Counters;
use crate::top_estimates::TopEstimates;

/// A label that outlives the lock on its table.
pub enum Owned {
    Integer(Integer),
    Bytes(Vec<u8>),
    Shortened(Vec<u8>),
}

impl Owned {
    pub fn of(label: Label<'_>) -> Self {
        match label {
            Label::Integer(label) => Self::Integer(label),
            Label::ByteString(label) if label.shortened => Self::Shortened(label.bytes.to_vec()),
            Label::ByteString(label) => Self::Bytes(label.bytes.to_vec()),
        }
    }

    pub fn borrowed(&self) -> Label<'_> {
        let byte_string = |bytes, shortened| Label::ByteString(ByteString { bytes, shortened });
        match self {
            Self::Integer(label) => Label::Integer(*label),
            Self::Bytes(bytes) => byte_string(bytes, false),
            Self::Shortened(bytes) => byte_string(bytes, true),
        }
    }
}

/// Labels of one kind as int, str, bytes, or (prefix, digest) for a shortened one.
pub fn objects<'py>(
    py: Python<'py>,
    kind: Option<Kind>,
    labels: Vec<Owned>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let string = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(valid) if kind == Some(Kind::String) => PyString::new(py, valid).into_any(),
        _ => PyBytes::new(py, bytes).into_any(),
    };
    let object = |label| match label {
        Owned::Integer(Integer {
            bits,
            above_signed: false,
        }) => Ok((bits as i64).into_pyobject(py)?.into_any()),
        Owned::Integer(Integer { bits, .. }) => Ok(bits.into_pyobject(py)?.into_any()),
        Owned::Shortened(bytes) => {
            let (prefix, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
            let pair = (string(prefix), PyBytes::new(py, digest));
            Ok(pair.into_pyobject(py)?.into_any())
        }
        Owned::Bytes(bytes) => Ok(string(&bytes)),
    };
    labels.into_iter().map(object).collect()
}

/// The labels at some positions of whatever tracks them.
pub fn tracked(
    tracker: &Bound<'_, PyAny>,
    partition: usize,
    positions: Vec<usize>,
) -> PyResult<Vec<Owned>> {
    let py = tracker.py();
    if let Ok(counters) = tracker.cast::<Counters>() {
        Ok(counters.get().owned(py, partition, positions)?.1)
    } else if let Ok(top) = tracker.cast::<TopEstimates>() {
        Ok(top.get().owned(py, positions)?.1)
    } else {
        Err(PyTypeError::new_err(
            "labels are tracked by counters or by estimates",
        ))
    }
}
