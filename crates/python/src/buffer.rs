//! Arrays of NumPy and other exporters of the buffer protocol, as Arrow arrays.
#![allow(unsafe_code, reason = "Python lends raw memory")]

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::prelude::*;

use crate::errors::{InvalidParameter, lone_surrogate, unsupported};

/// The labels of a one-dimensional, contiguous buffer in native byte order.
pub fn to_array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let buffer = PyUntypedBuffer::get(object).map_err(|_| {
        InvalidParameter::new_err(
            "an array of labels must have one dimension and be contiguous. Copy or ravel it.",
        )
    })?;
    if buffer.dimensions() != 1 || !buffer.is_c_contiguous() {
        return Err(InvalidParameter::new_err(format!(
            "an array of labels must have one dimension and be contiguous; got {} dimensions. Copy or ravel it.",
            buffer.dimensions()
        )));
    }
    let format = buffer.format().to_bytes();
    if matches!(format, [b'>' | b'!', ..]) && buffer.item_size() > 1 {
        return Err(InvalidParameter::new_err(
            "an array of labels must be in native byte order; got the other one. Convert its dtype.",
        ));
    }
    match (ElementType::from_format(buffer.format()), format.last()) {
        (_, Some(b'c')) => Err(unsupported("an array of characters")),
        (ElementType::SignedInteger { bytes }, _) => match bytes {
            1 => primitive::<Int8Type>(buffer),
            2 => primitive::<Int16Type>(buffer),
            4 => primitive::<Int32Type>(buffer),
            _ => primitive::<Int64Type>(buffer),
        },
        (ElementType::UnsignedInteger { bytes }, _) => match bytes {
            1 => primitive::<UInt8Type>(buffer),
            2 => primitive::<UInt16Type>(buffer),
            4 => primitive::<UInt32Type>(buffer),
            _ => primitive::<UInt64Type>(buffer),
        },
        (_, Some(b'w')) => fixed_text(object, &buffer),
        (_, Some(b's')) => fixed_bytes(object, &buffer),
        (ElementType::Bool, _) => Err(unsupported("booleans")),
        (ElementType::Float { .. }, _) => Err(unsupported("floats")),
        _ => Err(unsupported("an array of another type")),
    }
}

/// The memory of a buffer as an array, uncopied where it is aligned.
fn primitive<T: ArrowPrimitiveType>(buffer: PyUntypedBuffer) -> PyResult<ArrayRef> {
    if buffer.item_size() != size_of::<T::Native>() {
        return Err(unsupported("an array of another layout")); // its format says one width, its size another
    }
    let (length, bytes) = (buffer.item_count(), buffer.len_bytes());
    let start = buffer.buf_ptr().cast::<u8>();
    let Some(start) = NonNull::new(start).filter(|_| bytes > 0) else {
        return Ok(Arc::new(PrimitiveArray::<T>::new_null(0)));
    };
    let memory = if start.cast::<T::Native>().is_aligned() {
        // SAFETY: the exporter keeps `bytes` bytes from `start` on until the buffer, which the array now owns, is
        // released. That nobody writes to them meanwhile is asked of the caller, as every reader of an array asks.
        unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(Exported(buffer))) }
    } else {
        // SAFETY: as above, and the bytes are copied while the buffer is held.
        Buffer::from(unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes) })
    };
    let values = ScalarBuffer::<T::Native>::new(memory, 0, length);
    Ok(Arc::new(PrimitiveArray::<T>::new(values, None)))
}

/// Keeps a buffer until the last array on it is gone.
struct Exported(#[expect(dead_code, reason = "held for its release on drop")] PyUntypedBuffer);

// no code panics while it changes the buffer: it is never changed
impl std::panic::RefUnwindSafe for Exported {}

/// The cells of a fixed-width array, as copied bytes.
fn cells(object: &Bound<'_, PyAny>, buffer: &PyUntypedBuffer) -> PyResult<Vec<u8>> {
    object
        .call_method0("tobytes")?
        .extract::<Vec<u8>>()
        .and_then(|bytes| {
            if bytes.len() == buffer.len_bytes() {
                Ok(bytes)
            } else {
                Err(unsupported("an array of another layout"))
            }
        })
}

/// NumPy's fixed-width text: UCS-4, padded with zeros.
fn fixed_text(object: &Bound<'_, PyAny>, buffer: &PyUntypedBuffer) -> PyResult<ArrayRef> {
    let bytes = cells(object, buffer)?;
    let mut builder = StringBuilder::with_capacity(buffer.item_count(), bytes.len() / 4);
    let mut text = String::new();
    let (points, _) = bytes.as_chunks::<4>();
    let width = buffer.item_size() / 4;
    for cell in 0..buffer.item_count() {
        let cell = &points[cell * width..(cell + 1) * width];
        let end = cell
            .iter()
            .rposition(|point| *point != [0; 4])
            .map_or(0, |last| last + 1);
        text.clear();
        for point in &cell[..end] {
            let point = char::from_u32(u32::from_ne_bytes(*point));
            text.push(point.ok_or_else(lone_surrogate)?);
        }
        builder.append_value(&text);
    }
    Ok(Arc::new(builder.finish()))
}

/// NumPy's fixed-width bytes, padded with zeros.
fn fixed_bytes(object: &Bound<'_, PyAny>, buffer: &PyUntypedBuffer) -> PyResult<ArrayRef> {
    let bytes = cells(object, buffer)?;
    let width = buffer.item_size();
    let mut builder = LargeBinaryBuilder::with_capacity(buffer.item_count(), bytes.len());
    for cell in 0..buffer.item_count() {
        let cell = &bytes[cell * width..(cell + 1) * width];
        let end = cell
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1);
        builder.append_value(&cell[..end]);
    }
    Ok(Arc::new(builder.finish()))
}
