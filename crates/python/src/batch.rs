//! Batches of labels. Whatever comes in becomes an Arrow array, uncopied where it is one or is laid out as one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, BinaryType, BinaryViewType, ByteArrayType,
    ByteViewType, Int8Type, Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type,
    StringViewType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, GenericByteArray, GenericByteViewArray, Int64Array, UInt64Array,
};
use arrow_schema::DataType;
use dptop_readers::TextBlock;
use dptop_summaries::{Counters, ExtendError, Extent, Integer, Items, Kind, Weighing, Weights};
use pyo3::prelude::*;

use crate::errors::{InvalidParameter, unsupported};
use crate::label::{self, Owned};
use crate::{arrow, buffer, sequence};

/// The labels of a batch.
pub enum Labels {
    /// Integers, text or bytes, possibly as a dictionary.
    Array(ArrayRef),
    /// Integers below 0 and above 2^63 side by side, which no Arrow type of 64 bits holds.
    Wide(Vec<Option<Integer>>),
    /// Text or bytes as the readers hand them over.
    Block(TextBlock),
}

impl Labels {
    pub fn signed(values: Vec<i64>) -> Self {
        Self::Array(Arc::new(Int64Array::from(values)))
    }

    pub fn unsigned(values: Vec<u64>) -> Self {
        Self::Array(Arc::new(UInt64Array::from(values)))
    }
}

/// Labels of one kind, checked, ready to be counted.
#[pyclass(frozen, module = "dptop._native")]
pub struct LabelBatch {
    pub kind: Kind,
    pub labels: Labels,
}

impl LabelBatch {
    pub fn new(kind: Kind, labels: Labels) -> Self {
        Self { kind, labels }
    }

    pub fn from_array(array: ArrayRef) -> PyResult<Self> {
        let kind = kind_of(array.data_type())?;
        if let DataType::Struct(_) = array.data_type() {
            return Self::from_array(only_column(&array)?);
        }
        Ok(Self::new(kind, Labels::Array(array)))
    }

    pub fn len(&self) -> usize {
        match &self.labels {
            Labels::Array(array) => array.len(),
            Labels::Wide(values) => values.len(),
            Labels::Block(block) => block.len(),
        }
    }

    /// Check the labels as what comes next in a stream.
    pub fn check(&self, extent: &mut Extent, weights: impl Weighing) -> Result<(), ExtendError> {
        let kind = self.kind;
        self.visit(Check {
            extent,
            kind,
            weights,
        })
    }

    /// Count the labels.
    pub fn extend(
        &self,
        summary: &mut Counters,
        weights: Weights<'_>,
        threads: usize,
    ) -> Result<(), ExtendError> {
        let kind = self.kind;
        self.visit(Extend {
            summary,
            kind,
            weights,
            threads,
        })
    }

    /// Call the visitor with the way to the items.
    pub fn visit<'a, V: Visit<'a>>(&'a self, visit: V) -> V::Output {
        match &self.labels {
            Labels::Wide(values) => visit.integers(Items::nullable(values.len(), |i| values[i])),
            Labels::Block(TextBlock { bytes, ends }) => {
                let start = |i: usize| if i == 0 { 0 } else { ends[i - 1] };
                visit.strings(Items::all(ends.len(), |i| Some(&bytes[start(i)..ends[i]])))
            }
            Labels::Array(array) => with_array(array, visit),
        }
    }
}

#[pymethods]
impl LabelBatch {
    /// Labels of a list or tuple; one Python object each.
    #[staticmethod]
    fn from_sequence(sequence: &Bound<'_, PyAny>) -> PyResult<Self> {
        sequence::from_sequence(sequence)
    }

    /// Labels of an object with `__arrow_c_array__`. A table of one column stands for it, unless the object is said to
    /// be a column itself.
    #[staticmethod]
    fn from_arrow(source: &Bound<'_, PyAny>, column: bool) -> PyResult<Self> {
        Self::from_array(arrow::to_array(source, column)?)
    }

    /// Labels of an object with the buffer protocol: one-dimensional, contiguous, in native byte order.
    #[staticmethod]
    fn from_buffer(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_array(buffer::to_array(source)?)
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// The items as Python objects, None for a null: for oracles of other libraries, which take one at a time.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let owned = self.visit(Own);
        let present = owned.iter().map(Option::is_some).collect::<Vec<_>>();
        let labels = owned.into_iter().flatten().collect();
        let mut objects = label::objects(py, Some(self.kind), labels)?.into_iter();
        let item = |there: bool| if there { objects.next() } else { None };
        Ok(present.into_iter().map(item).collect())
    }
}

pub fn not_one_column(columns: usize) -> PyErr {
    InvalidParameter::new_err(format!(
        "a table of labels must have one column; got {columns}. Select the column that holds the labels."
    ))
}

fn only_column(array: &ArrayRef) -> PyResult<ArrayRef> {
    let table = array.as_struct();
    if table.num_columns() != 1 {
        return Err(not_one_column(table.num_columns()));
    }
    if table.null_count() > 0 {
        return Err(unsupported("structures"));
    }
    Ok(table.column(0).clone())
}

/// The kind of label that an Arrow type holds, a table with one column standing for its column.
pub fn kind_of(data_type: &DataType) -> PyResult<Kind> {
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Ok(Kind::Integer),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            Ok(Kind::Integer)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(Kind::String),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(Kind::Bytes),
        DataType::FixedSizeBinary(_) | DataType::Null => Ok(Kind::Bytes),
        DataType::Dictionary(_, values)
            if !matches!(**values, DataType::Dictionary(..) | DataType::Struct(_)) =>
        {
            kind_of(values)
        }
        DataType::Struct(fields)
            if fields.len() == 1 && !matches!(fields[0].data_type(), DataType::Struct(_)) =>
        {
            kind_of(fields[0].data_type())
        }
        DataType::Struct(fields) if fields.len() != 1 => Err(not_one_column(fields.len())),
        other => Err(unsupported(&format!("the Arrow type {}", type_name(other)))),
    }
}

/// The name of a type without the names of its fields, time zones and the like.
fn type_name(data_type: &DataType) -> String {
    let name = data_type.to_string();
    name.split(['(', '[', '<', '{'])
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// What is done with an array once its type is known.
pub trait Visit<'a> {
    type Output;
    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output;
    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output;
}

struct Check<'a, W> {
    extent: &'a mut Extent,
    kind: Kind,
    weights: W,
}

impl<'a, W: Weighing> Visit<'a> for Check<'_, W> {
    type Output = Result<(), ExtendError>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output {
        self.extent.add(self.kind, &items, self.weights)
    }

    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output {
        self.extent.add(self.kind, &items, self.weights)
    }
}

struct Extend<'a> {
    summary: &'a mut Counters,
    kind: Kind,
    weights: Weights<'a>,
    threads: usize,
}

impl<'a> Visit<'a> for Extend<'_> {
    type Output = Result<(), ExtendError>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output {
        self.summary
            .extend_integers(items, self.weights, self.threads)
    }

    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output {
        self.summary
            .extend_byte_strings(self.kind, items, self.weights, self.threads)
    }
}

/// Visit the items of an array by the way to its values. Without nulls none are looked for.
macro_rules! visit_items {
    ($visit:ident.$method:ident, $array:expr, $value:expr) => {{
        let (length, value) = ($array.len(), $value);
        match $array.logical_nulls() {
            Some(present) if present.null_count() > 0 => $visit
                .$method(Items::nullable(length, |i| {
                    present.is_valid(i).then(|| value(i))
                })),
            _ => $visit.$method(Items::all(length, |i| Some(value(i)))),
        }
    }};
}

/// Call the visitor with the way to an array's items. Every array that [`kind_of`] accepts has one.
pub fn with_array<'a, V: Visit<'a>>(array: &'a ArrayRef, visit: V) -> V::Output {
    let DataType::Dictionary(key, _) = array.data_type() else {
        return plain(array, visit);
    };
    match **key {
        DataType::Int8 => dictionary::<Int8Type, V>(array, visit),
        DataType::Int16 => dictionary::<Int16Type, V>(array, visit),
        DataType::Int32 => dictionary::<Int32Type, V>(array, visit),
        DataType::Int64 => dictionary::<Int64Type, V>(array, visit),
        DataType::UInt8 => dictionary::<UInt8Type, V>(array, visit),
        DataType::UInt16 => dictionary::<UInt16Type, V>(array, visit),
        DataType::UInt32 => dictionary::<UInt32Type, V>(array, visit),
        DataType::UInt64 => dictionary::<UInt64Type, V>(array, visit),
        ref other => unreachable!("no dictionary has keys of {other}"),
    }
}

/// [`with_array`] for everything but dictionaries.
fn plain<'a, V: Visit<'a>>(array: &'a ArrayRef, visit: V) -> V::Output {
    match array.data_type() {
        DataType::Int8 => integers::<Int8Type, V>(array, visit),
        DataType::Int16 => integers::<Int16Type, V>(array, visit),
        DataType::Int32 => integers::<Int32Type, V>(array, visit),
        DataType::Int64 => integers::<Int64Type, V>(array, visit),
        DataType::UInt8 => integers::<UInt8Type, V>(array, visit),
        DataType::UInt16 => integers::<UInt16Type, V>(array, visit),
        DataType::UInt32 => integers::<UInt32Type, V>(array, visit),
        DataType::UInt64 => integers::<UInt64Type, V>(array, visit),
        DataType::Utf8 => strings(array.as_bytes::<Utf8Type>(), visit),
        DataType::LargeUtf8 => strings(array.as_bytes::<LargeUtf8Type>(), visit),
        DataType::Binary => strings(array.as_bytes::<BinaryType>(), visit),
        DataType::LargeBinary => strings(array.as_bytes::<LargeBinaryType>(), visit),
        DataType::Utf8View => views(array.as_byte_view::<StringViewType>(), visit),
        DataType::BinaryView => views(array.as_byte_view::<BinaryViewType>(), visit),
        DataType::FixedSizeBinary(_) => {
            let fixed = array.as_fixed_size_binary();
            visit_items!(visit.strings, fixed, |i| fixed.value(i))
        }
        DataType::Null => visit.strings(Items::nullable(array.len(), |_| None)),
        other => unreachable!("`kind_of` refuses {other}"),
    }
}

fn integers<'a, T, V>(array: &'a dyn Array, visit: V) -> V::Output
where
    T: ArrowPrimitiveType,
    Integer: FromNative<T::Native>,
    V: Visit<'a>,
{
    let values = array.as_primitive::<T>().values();
    visit_items!(visit.integers, array, |i: usize| Integer::from_native(
        values[i]
    ))
}

fn strings<'a, T: ByteArrayType, V: Visit<'a>>(
    array: &'a GenericByteArray<T>,
    visit: V,
) -> V::Output
where
    T::Native: AsRef<[u8]>,
{
    visit_items!(visit.strings, array, |i| array.value(i).as_ref())
}

fn views<'a, T: ByteViewType, V: Visit<'a>>(
    array: &'a GenericByteViewArray<T>,
    visit: V,
) -> V::Output
where
    T::Native: AsRef<[u8]>,
{
    visit_items!(visit.strings, array, |i| array.value(i).as_ref())
}

/// A dictionary counts its values: equal values under two codes are one label. The values are looked up once, as few
/// stand for many items; so counting is not compiled for every pair of types either.
fn dictionary<'a, K: ArrowDictionaryKeyType, V: Visit<'a>>(
    array: &'a dyn Array,
    visit: V,
) -> V::Output {
    let array = array.as_dictionary::<K>();
    let length = array.len();
    match plain(array.values(), LookUp) {
        Values::Integers(values) => visit.integers(Items::nullable(length, |i| {
            array.key(i).and_then(|code| values[code])
        })),
        Values::Strings(values) => visit.strings(Items::nullable(length, |i| {
            array.key(i).and_then(|code| values[code])
        })),
    }
}

enum Values<'a> {
    Integers(Vec<Option<Integer>>),
    Strings(Vec<Option<&'a [u8]>>),
}

struct LookUp;

impl<'a> Visit<'a> for LookUp {
    type Output = Values<'a>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Values<'a> {
        Values::Integers((0..items.length).map(items.get).collect())
    }

    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Values<'a> {
        Values::Strings((0..items.length).map(items.get).collect())
    }
}

/// A native integer as a label.
trait FromNative<T> {
    fn from_native(value: T) -> Self;
}

macro_rules! from_native {
    ($wide:ty: $($native:ty),*) => {
        $(impl FromNative<$native> for Integer {
            #[inline]
            fn from_native(value: $native) -> Self {
                <$wide>::from(value).into()
            }
        })*
    };
}

from_native!(i64: i8, i16, i32, i64);
from_native!(u64: u8, u16, u32, u64);

struct Own;

impl<'a> Visit<'a> for Own {
    type Output = Vec<Option<Owned>>;

    fn integers(self, items: Items<impl Fn(usize) -> Option<Integer> + Sync>) -> Self::Output {
        let own = |position| (items.get)(position).map(Owned::Integer);
        (0..items.length).map(own).collect()
    }

    fn strings(self, items: Items<impl Fn(usize) -> Option<&'a [u8]> + Sync>) -> Self::Output {
        let own = |position| (items.get)(position).map(|bytes| Owned::Bytes(bytes.to_vec()));
        (0..items.length).map(own).collect()
    }
}
