//! The saved form of labels that are tracked beside a sketch, put together from its parts and taken apart.

use std::borrow::Cow;

use dptop_summaries::wire::tracked::{Parts, decode, encode};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::corrupt;

/// Parameters, record, sketch, labels.
type Apart<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

#[pyfunction]
pub fn tracked_to_bytes<'py>(
    py: Python<'py>,
    parameters: Cow<'_, [u8]>,
    record: Cow<'_, [u8]>,
    sketch: Cow<'_, [u8]>,
    labels: Cow<'_, [u8]>,
) -> Bound<'py, PyBytes> {
    let parts = Parts {
        parameters: &parameters,
        record: &record,
        sketch: &sketch,
        labels: &labels,
    };
    PyBytes::new(py, &py.detach(|| encode(&parts)))
}

#[pyfunction]
pub fn tracked_from_bytes<'py>(py: Python<'py>, data: Cow<'_, [u8]>) -> PyResult<Apart<'py>> {
    let parts = py.detach(|| decode(&data)).map_err(corrupt)?;
    Ok((
        PyBytes::new(py, parts.parameters),
        PyBytes::new(py, parts.record),
        PyBytes::new(py, parts.sketch),
        PyBytes::new(py, parts.labels),
    ))
}
