//! A release as an Arrow stream, without an Arrow library on the Python side.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BinaryArray, Decimal128Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray, UInt64Array,
};
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A column of one kind: integers in the first type that holds them all.
#[derive(FromPyObject)]
pub enum Items {
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
    Mixed(Vec<i128>),
    Text(Vec<String>),
    Bytes(Vec<Vec<u8>>),
}

fn column(items: Items) -> Result<ArrayRef, ArrowError> {
    Ok(match items {
        Items::Signed(items) => Arc::new(Int64Array::from(items)),
        Items::Unsigned(items) => Arc::new(UInt64Array::from(items)),
        Items::Mixed(items) => {
            Arc::new(Decimal128Array::from(items).with_precision_and_scale(20, 0)?)
        }
        Items::Text(items) => Arc::new(StringArray::from(items)),
        Items::Bytes(items) => Arc::new(BinaryArray::from_iter_values(items)),
    })
}

/// A capsule "arrow_array_stream" of a table with columns item, count, low and high.
#[pyfunction]
pub fn table_stream(
    py: Python<'_>,
    items: Items,
    counts: Items,
    lows: Items,
    highs: Items,
) -> PyResult<Bound<'_, PyCapsule>> {
    let table = column(items).and_then(|items| {
        RecordBatch::try_from_iter([
            ("item", items),
            ("count", column(counts)?),
            ("low", column(lows)?),
            ("high", column(highs)?),
        ])
    });
    let table =
        table.map_err(|_| PyValueError::new_err("the columns of a release have one length"))?;
    let schema = table.schema();
    let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(table)], schema)));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
