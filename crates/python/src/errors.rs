//! Rust's errors as the ones of `dptop.errors`. None of them quotes an item.

use dptop_summaries::ExtendError;
use dptop_summaries::wire::Corrupt;
use pyo3::prelude::*;

pyo3::import_exception!(dptop.errors, CorruptSummary);
pyo3::import_exception!(dptop.errors, IncompatibleSummaries);
pyo3::import_exception!(dptop.errors, InvalidParameter);
pyo3::import_exception!(dptop.errors, SourceError);
pyo3::import_exception!(dptop.errors, UnsupportedLabel);

/// What to do with a type that is no label.
pub fn unsupported(what: &str) -> PyErr {
    UnsupportedLabel::new_err(format!(
        "labels are integers, strings or bytes; got {what}. Cast them, for example to strings."
    ))
}

pub fn lone_surrogate() -> PyErr {
    UnsupportedLabel::new_err(
        "strings must be encodable as UTF-8; one has a lone surrogate. Encode it to bytes with errors='surrogatepass'.",
    )
}

pub fn refused(error: ExtendError) -> PyErr {
    match error {
        ExtendError::OtherKind { .. } => UnsupportedLabel::new_err(error.to_string()),
        ExtendError::TooLong | ExtendError::TooHeavy | ExtendError::WeightsMismatch { .. } => {
            InvalidParameter::new_err(error.to_string())
        }
    }
}

pub fn corrupt(corrupt: Corrupt) -> PyErr {
    CorruptSummary::new_err(format!(
        "{corrupt}. Save the summary again, or read the stream again."
    ))
}

pub fn no_entropy(error: impl std::fmt::Display) -> PyErr {
    SourceError::new_err(format!(
        "the operating system gave no entropy ({error}); there is no noise without it. Try again."
    ))
}
