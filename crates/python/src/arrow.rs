//! The Arrow C data interface: arrays and streams of any library, uncopied.
#![allow(unsafe_code, reason = "the C data interface hands over raw pointers")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ArrayReader, ArrayRef, make_array};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::batch::{LabelBatch, kind_of};
use crate::errors::SourceError;

/// The array of an object with `__arrow_c_array__`.
pub fn to_array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = object.call_method0("__arrow_c_array__")?;
    let capsules = capsules.cast::<PyTuple>()?;
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema = capsule_pointer(&schema, c"arrow_schema")?.cast::<FFI_ArrowSchema>();
    let array = capsule_pointer(&array, c"arrow_array")?.cast::<FFI_ArrowArray>();
    // SAFETY: the capsules' names say what they hold; the array is moved out, which leaves a released one behind,
    // and the schema is only read while its capsule is alive.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    data.map(make_array).map_err(arrow_refused)
}

/// An Arrow stream, as batches. The type of its labels is known before the first one is read.
#[pyclass(frozen, module = "dptop._native")]
pub struct ArrowStream(Mutex<Option<ArrayStreamReader>>);

#[pymethods]
impl ArrowStream {
    /// Take over the stream of an object with `__arrow_c_stream__`.
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = source.call_method0("__arrow_c_stream__")?;
        let pointer =
            capsule_pointer(&capsule, c"arrow_array_stream")?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: the capsule's name says what it holds; the stream is moved out, which leaves a released one behind.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
        let reader = py
            .detach(|| ArrayStreamReader::try_new(stream))
            .map_err(arrow_refused)?;
        kind_of(reader.field().data_type())?;
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
            Some(array) => LabelBatch::from_array(array.map_err(arrow_refused)?).map(Some),
        }
    }
}

fn capsule_pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<c_void>> {
    capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))
}

/// An error of Arrow, without its text, which may quote an item.
fn arrow_refused(_: arrow_schema::ArrowError) -> PyErr {
    SourceError::new_err(
        "the Arrow data cannot be read: its producer failed or it breaks the format.",
    )
}
