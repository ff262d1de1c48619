//! Python lists and tuples, and single objects, as labels.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder, LargeBinaryBuilder};
use dptop_summaries::{Integer, Kind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyList, PyString, PyTuple};

use crate::batch::{LabelBatch, Labels};
use crate::errors::{InvalidParameter, UnsupportedLabel, lone_surrogate, unsupported};

/// One Python object as a label.
pub enum Item<'a> {
    Integer(Integer),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Item<'_> {
    fn kind(&self) -> Kind {
        match self {
            Self::Integer(_) => Kind::Integer,
            Self::Text(_) => Kind::String,
            Self::Bytes(_) => Kind::Bytes,
        }
    }
}

/// Call `f` with the label that an object is; `None` is a null.
pub fn with_item<R>(
    object: &Bound<'_, PyAny>,
    f: impl FnOnce(Option<Item<'_>>) -> PyResult<R>,
) -> PyResult<R> {
    // most are of the very types, which takes no call to see
    if object.is_exact_instance_of::<PyInt>() {
        return f(Some(Item::Integer(integer(object)?)));
    }
    if let Ok(text) = object.cast::<PyString>() {
        let text = text.to_str().map_err(|_| lone_surrogate())?;
        return f(Some(Item::Text(text)));
    }
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        return f(Some(Item::Integer(integer(object)?)));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return f(Some(Item::Bytes(bytes.as_bytes())));
    }
    if object.is_none() {
        return f(None);
    }
    // integers of NumPy and others; its booleans and floats have no __index__
    let kind = object.get_type();
    if !kind.name()?.to_string_lossy().starts_with("bool") // NumPy before 2.2 lets its booleans be an index
        && kind.hasattr("__index__")?
        && !kind.hasattr("__len__")?
    {
        return match object.call_method0("__index__") {
            Ok(index) => f(Some(Item::Integer(integer(&index)?))),
            Err(error) if error.is_instance_of::<PyException>(object.py()) => {
                Err(unsupported(&format!("{}", kind.name()?))) // its text may quote the item
            }
            Err(interruption) => Err(interruption),
        };
    }
    Err(unsupported(&format!("{}", kind.name()?)))
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<Integer> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(value.into());
    }
    object.extract::<u64>().map(Integer::from).map_err(|_| {
        UnsupportedLabel::new_err(
            "integer labels must lie between -2**63 and 2**64 - 1; one does not. Cast them to strings.",
        )
    })
}

/// Labels of a list or tuple, checked whole.
pub fn from_sequence(sequence: &Bound<'_, PyAny>) -> PyResult<LabelBatch> {
    let mut labels = Collected::Nothing { nulls: 0 };
    if let Ok(list) = sequence.cast::<PyList>() {
        for object in list.iter() {
            with_item(&object, |item| labels.push(item))?;
        }
    } else if let Ok(tuple) = sequence.cast::<PyTuple>() {
        for object in tuple.iter() {
            with_item(&object, |item| labels.push(item))?;
        }
    } else {
        return Err(InvalidParameter::new_err("a sequence is a list or a tuple"));
    }
    Ok(labels.finish())
}

/// What a walk over a sequence has found so far.
enum Collected {
    Nothing {
        nulls: usize,
    },
    Signed(Int64Builder),
    /// Integers of which at least one is above the range of 64 bits with a sign.
    Wide(Vec<Option<Integer>>),
    Strings(Kind, LargeBinaryBuilder),
}

impl Collected {
    fn push(&mut self, item: Option<Item<'_>>) -> PyResult<()> {
        if let (Self::Nothing { nulls }, Some(first)) = (&*self, &item) {
            *self = match first.kind() {
                Kind::Integer => {
                    let mut builder = Int64Builder::new();
                    builder.append_nulls(*nulls);
                    Self::Signed(builder)
                }
                kind => {
                    let mut builder = LargeBinaryBuilder::new();
                    (0..*nulls).for_each(|_| builder.append_null());
                    Self::Strings(kind, builder)
                }
            };
        }
        if let (Self::Signed(builder), Some(Item::Integer(value))) = (&mut *self, &item)
            && value.above_signed
        {
            let signed = builder.finish();
            let wide = signed.iter().map(|value| value.map(Integer::from));
            *self = Self::Wide(wide.collect());
        }
        match (self, item) {
            (Self::Nothing { nulls }, _) => *nulls += 1,
            (Self::Signed(builder), None) => builder.append_null(),
            (Self::Signed(builder), Some(Item::Integer(value))) => {
                builder.append_value(value.bits as i64);
            }
            (Self::Wide(values), None) => values.push(None),
            (Self::Wide(values), Some(Item::Integer(value))) => values.push(Some(value)),
            (Self::Strings(_, builder), None) => builder.append_null(),
            (Self::Strings(Kind::String, builder), Some(Item::Text(text))) => {
                builder.append_value(text)
            }
            (Self::Strings(Kind::Bytes, builder), Some(Item::Bytes(bytes))) => {
                builder.append_value(bytes)
            }
            _ => {
                return Err(UnsupportedLabel::new_err(
                    "a summary holds one kind of label; these items are of two. Cast them to one.",
                ));
            }
        }
        Ok(())
    }

    fn finish(self) -> LabelBatch {
        match self {
            Self::Nothing { nulls } => {
                let mut builder = BinaryBuilder::new();
                (0..nulls).for_each(|_| builder.append_null());
                LabelBatch::new(Kind::Bytes, Labels::Array(Arc::new(builder.finish())))
            }
            Self::Signed(mut builder) => {
                LabelBatch::new(Kind::Integer, Labels::Array(Arc::new(builder.finish())))
            }
            Self::Wide(values) => LabelBatch::new(Kind::Integer, Labels::Wide(values)),
            Self::Strings(kind, mut builder) => {
                LabelBatch::new(kind, Labels::Array(Arc::new(builder.finish())))
            }
        }
    }
}
