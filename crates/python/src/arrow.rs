//! The Arrow C data interface: arrays and streams of any library, uncopied.
//!
//! The interface does not say how large buffers are, so that a producer has to be believed on that. What can be checked
//! is, before anything is followed: the shape of the type, offsets, codes and text.
#![allow(unsafe_code, reason = "the C data interface hands over raw pointers")]

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, NullArray, OffsetSizeTrait, make_array};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use pyo3::exceptions::{
    PyException, PyImportError, PyMemoryError, PyOverflowError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::batch::{LabelBatch, kind_of, not_one_column};
use crate::errors::{SourceError, UnsupportedLabel, unsupported};
use dptop_summaries::Kind;

/// The array of an object with `__arrow_c_array__`.
pub fn to_array(object: &Bound<'_, PyAny>, column: bool) -> PyResult<ArrayRef> {
    let capsules = hand_over(object, "__arrow_c_array__")?;
    let (schema, array) = capsules
        .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
        .map_err(|_| arrow_failed())?;
    let schema = capsule_pointer(&schema, c"arrow_schema")?.cast::<FFI_ArrowSchema>();
    let array = capsule_pointer(&array, c"arrow_array")?.cast::<FFI_ArrowArray>();
    // SAFETY: the capsules' names say what they hold; the array is moved out, which leaves a released one behind,
    // and the schema is only read while its capsule is alive.
    let (schema, array) = unsafe { (schema.as_ref(), FFI_ArrowArray::from_raw(array.as_ptr())) };
    check_type(schema, column)?;
    import(array, schema)
}

/// An Arrow stream, as batches. The type of its labels is known before the first one is read.
#[pyclass(frozen, module = "dptop._native")]
pub struct ArrowStream(Mutex<Option<Stream>>);

struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: FFI_ArrowSchema,
}

impl Stream {
    fn new(mut stream: FFI_ArrowArrayStream, column: bool) -> PyResult<Self> {
        let get_schema = stream
            .release()
            .and_then(|_| stream.get_schema())
            .ok_or_else(arrow_failed)?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the callback is the stream's own, and the stream is not released.
        if unsafe { get_schema(&raw mut stream, &raw mut schema) } != 0 {
            return Err(arrow_failed());
        }
        check_type(&schema, column)?;
        Ok(Self { stream, schema })
    }

    fn next(&mut self) -> PyResult<Option<ArrayRef>> {
        let get_next = self.stream.get_next().ok_or_else(arrow_failed)?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        if unsafe { get_next(&raw mut self.stream, &raw mut array) } != 0 {
            return Err(arrow_failed());
        }
        if array.is_released() {
            return Ok(None); // the end
        }
        import(array, &self.schema).map(Some)
    }
}

#[pymethods]
impl ArrowStream {
    /// Take over the stream of an object with `__arrow_c_stream__`; see [`LabelBatch::from_arrow`].
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>, column: bool) -> PyResult<Self> {
        let capsule = hand_over(source, "__arrow_c_stream__")?;
        let pointer =
            capsule_pointer(&capsule, c"arrow_array_stream")?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: the capsule's name says what it holds; the stream is moved out, which leaves a released one behind.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
        let stream = py.detach(|| Stream::new(stream, column))?;
        Ok(Self(Mutex::new(Some(stream))))
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<LabelBatch>> {
        let next = py.detach(|| {
            let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = stream.as_mut().map_or(Ok(None), Stream::next);
            if !matches!(next, Ok(Some(_))) {
                *stream = None; // at its end or broken: not asked again
            }
            next
        });
        next?.map(LabelBatch::from_array).transpose()
    }
}

/// Refuse a type that holds no labels, without following more of it than a column and its dictionary.
fn check_type(schema: &FFI_ArrowSchema, column: bool) -> PyResult<()> {
    if schema.release().is_none() {
        return Err(arrow_failed());
    }
    let column = guarded(|| match schema.format() {
        "+s" if column => Err(unsupported("a nested Arrow type")),
        "+s" => match schema.children().size_hint().0 {
            1 => Ok(schema.child(0)),
            columns => Err(not_one_column(columns)),
        },
        _ => Ok(schema),
    })?;
    guarded(|| {
        for part in std::iter::once(column).chain(column.dictionary()) {
            if part.format().starts_with('+') {
                return Err(unsupported("a nested Arrow type"));
            }
        }
        if column
            .dictionary()
            .is_some_and(|values| values.dictionary().is_some())
        {
            return Err(unsupported("an Arrow dictionary of dictionaries"));
        }
        let labels = column.dictionary().unwrap_or(column);
        let kind = kind_of(&data_type(labels)?)?;
        // an extension that stores integers means something else by them: a period of time, a boolean
        for part in [column, labels] {
            let metadata = part.metadata().map_err(|_| arrow_failed())?;
            if let (Some(name), Kind::Integer) = (metadata.get(EXTENSION), kind) {
                return Err(unsupported(&format!("the Arrow extension type {name}")));
            }
        }
        data_type(column).map(|_| ())
    })
}

/// The key of metadata under which an extension type has its name.
const EXTENSION: &str = "ARROW:extension:name";

fn data_type(schema: &FFI_ArrowSchema) -> PyResult<DataType> {
    DataType::try_from(schema).map_err(|_| unsupported("an Arrow type that is not known here"))
}

/// The array that a checked type describes, its own content checked: reading relies on it.
fn import(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> PyResult<ArrayRef> {
    guarded(|| {
        check_layout(&array, schema)?;
        if is_null(schema) || (schema.format() == "+s" && is_null(schema.child(0))) {
            return Ok(Arc::new(NullArray::new(array.len())) as ArrayRef); // some libraries give it buffers
        }
        // SAFETY: the producer says that the schema describes the array, whose buffers are as long as that needs.
        let data = unsafe { from_ffi(array, schema) }.map_err(|_| arrow_failed())?;
        check_content(&data)?;
        Ok(make_array(data))
    })
}

/// Refuse offsets, codes and views that lead outside, and text that is not UTF-8.
fn check_content(data: &ArrayData) -> PyResult<()> {
    match data.data_type() {
        DataType::Struct(_) => {
            data.validate().map_err(|_| arrow_failed())?;
            data.child_data().iter().try_for_each(check_content)
        }
        DataType::Utf8 => check_text::<i32>(data),
        DataType::LargeUtf8 => check_text::<i64>(data),
        _ => data.validate_full().map_err(|_| arrow_failed()),
    }
}

/// Values that are looked at together: as many as fit into a fast cache, mostly.
const CHECKED_VALUES: usize = 1 << 12;

/// As `validate_full`, which reads all text twice; here the bytes of a block are at hand for its offsets too.
fn check_text<O: ArrowNativeType + OffsetSizeTrait>(data: &ArrayData) -> PyResult<()> {
    data.validate().map_err(|_| arrow_failed())?;
    if data.is_empty() {
        return Ok(());
    }
    let (offsets, bytes) = (data.buffer::<O>(0), data.buffers()[1].as_slice());
    let offsets = &offsets[..=data.len()];
    for start in (0..data.len()).step_by(CHECKED_VALUES) {
        let offsets = &offsets[start..=data.len().min(start + CHECKED_VALUES)];
        if offsets[0] < O::zero() || !offsets.is_sorted() {
            return Err(arrow_failed());
        }
        let position = |at: usize| offsets[at].as_usize();
        let all = bytes.get(position(0)..position(offsets.len() - 1));
        let all = all.ok_or_else(arrow_failed)?;
        let text = |at| std::str::from_utf8(&bytes[position(at)..position(at + 1)]).is_ok();
        if !all.is_ascii() && !(0..offsets.len() - 1).all(text) {
            return Err(arrow_failed());
        }
    }
    Ok(())
}

fn is_null(schema: &FFI_ArrowSchema) -> bool {
    schema.format() == "n"
}

/// Refuse a layout that the import would follow to where nothing is.
fn check_layout(array: &FFI_ArrowArray, schema: &FFI_ArrowSchema) -> PyResult<()> {
    let range = i64::MAX as usize;
    if array.is_released() || array.len() > range || array.offset() > range - array.len() {
        return Err(arrow_failed());
    }
    match schema.format() {
        "+s" if array.num_children() == 1 => check_layout(array.child(0), schema.child(0))?,
        "+s" => return Err(arrow_failed()),
        // validity, views, any number of data buffers, and their sizes
        "vu" | "vz" => match array.num_buffers() {
            0..3 => return Err(arrow_failed()),
            3 => {}
            buffers if array.buffer(buffers - 1).is_null() => return Err(arrow_failed()),
            _ => {}
        },
        _ => {}
    }
    match (array.dictionary(), schema.dictionary()) {
        (Some(values), Some(type_of_values)) => check_layout(values, type_of_values),
        (None, None) => Ok(()),
        _ => Err(arrow_failed()),
    }
}

/// Run code of a library that panics on data that breaks the format.
fn guarded<R>(read: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(arrow_failed()))
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

/// What is said of Arrow data that cannot be read; without a library's own words, which may quote an item.
fn arrow_failed() -> PyErr {
    SourceError::new_err(
        "the Arrow data cannot be read: its producer failed, or it breaks the format: text that is not UTF-8, offsets or codes out of range. Make it again.",
    )
}
