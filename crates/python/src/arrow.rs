//! The Arrow C data interface: arrays and streams of any library, uncopied.
#![allow(unsafe_code, reason = "the C data interface hands over raw pointers")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ArrayReader, ArrayRef, make_array};
use arrow_schema::{ArrowError, Field};
use pyo3::exceptions::{
    PyException, PyImportError, PyMemoryError, PyOverflowError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::batch::{LabelBatch, kind_of_field};
use crate::errors::{SourceError, UnsupportedLabel};

/// The array of an object with `__arrow_c_array__`.
pub fn to_array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = hand_over(object, "__arrow_c_array__")?;
    let (schema, array) = capsules
        .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
        .map_err(|_| arrow_failed())?;
    let schema = capsule_pointer(&schema, c"arrow_schema")?.cast::<FFI_ArrowSchema>();
    let array = capsule_pointer(&array, c"arrow_array")?.cast::<FFI_ArrowArray>();
    // SAFETY: the capsules' names say what they hold; the array is moved out, which leaves a released one behind,
    // and the schema is only read while its capsule is alive.
    let (schema, array) = unsafe { (schema.as_ref(), FFI_ArrowArray::from_raw(array.as_ptr())) };
    kind_of_field(&Field::try_from(schema).map_err(arrow_refused)?)?;
    // SAFETY: the producer says that the schema describes the array.
    let data = unsafe { from_ffi(array, schema) };
    checked(data.map(make_array))
}

/// Check what a producer only promises: offsets, codes and text that stay within the data. Reading relies on it.
fn checked(array: Result<ArrayRef, ArrowError>) -> PyResult<ArrayRef> {
    let array = array.map_err(arrow_refused)?;
    array.to_data().validate_full().map_err(arrow_refused)?;
    Ok(array)
}

/// An Arrow stream, as batches. The type of its labels is known before the first one is read.
#[pyclass(frozen, module = "dptop._native")]
pub struct ArrowStream(Mutex<Option<ArrayStreamReader>>);

#[pymethods]
impl ArrowStream {
    /// Take over the stream of an object with `__arrow_c_stream__`.
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = hand_over(source, "__arrow_c_stream__")?;
        let pointer =
            capsule_pointer(&capsule, c"arrow_array_stream")?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: the capsule's name says what it holds; the stream is moved out, which leaves a released one behind.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
        let reader = py
            .detach(|| ArrayStreamReader::try_new(stream))
            .map_err(arrow_refused)?;
        kind_of_field(reader.field())?;
        Ok(Self(Mutex::new(Some(reader))))
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<LabelBatch>> {
        let next = py.detach(|| {
            let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = reader.as_mut().and_then(Iterator::next);
            if !matches!(next, Some(Ok(_))) {
                *reader = None; // at its end or broken: not asked again
            }
            next
        });
        match next {
            None => Ok(None),
            Some(array) => LabelBatch::from_array(py.detach(|| checked(array))?).map(Some),
        }
    }
}

/// Ask an object for its Arrow data. The text of its library's error is left out: it may quote an item.
fn hand_over<'py>(object: &Bound<'py, PyAny>, method: &str) -> PyResult<Bound<'py, PyAny>> {
    object.call_method0(method).map_err(|error| {
        let py = object.py();
        if error.is_instance_of::<PyImportError>(py)
            || error.is_instance_of::<PyMemoryError>(py)
            || !error.is_instance_of::<PyException>(py)
        {
            error
        } else if error.is_instance_of::<PyTypeError>(py)
            || error.is_instance_of::<PyValueError>(py)
            || error.is_instance_of::<PyOverflowError>(py)
        {
            UnsupportedLabel::new_err(
                "labels are integers, strings or bytes; the library of this column cannot turn it into one of them. Cast it, for example to strings.",
            )
        } else {
            arrow_failed()
        }
    })
}

fn capsule_pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<c_void>> {
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| arrow_failed())?;
    capsule
        .pointer_checked(Some(name))
        .map_err(|_| arrow_failed())
}

/// An error of Arrow, without its text, which may quote an item.
fn arrow_refused(_: ArrowError) -> PyErr {
    arrow_failed()
}

fn arrow_failed() -> PyErr {
    SourceError::new_err(
        "the Arrow data cannot be read: its producer failed, or it breaks the format: text that is not UTF-8, offsets or codes out of range. Make it again.",
    )
}
