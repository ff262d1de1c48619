//! The saved form of labels that are tracked beside a sketch: the saved forms of both. Whoever reads it sees to it that
//! they agree.

use super::Corrupt;
use super::sections::{Form, LABELS, PARAMETERS, RECORD, SKETCH, around, open};

const TRACKED: u16 = 6;
const TAGS: [u32; 4] = [PARAMETERS, RECORD, SKETCH, LABELS];

/// The parts of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// What the caller says of the whole.
    pub parameters: &'a [u8],
    /// The caller's record of what it may spend.
    pub record: &'a [u8],
    /// The saved form of the sketch.
    pub sketch: &'a [u8],
    /// The saved form of what tracks the labels.
    pub labels: &'a [u8],
}

/// Write the parts to bytes.
pub fn encode(parts: &Parts<'_>) -> Vec<u8> {
    let bodies = [parts.parameters, parts.record, parts.sketch, parts.labels];
    let bytes = bodies.iter().map(|body| body.len()).sum::<usize>();
    let out = Vec::with_capacity(bytes + around(TAGS.len()));
    let mut form = Form::new(out, TRACKED, TAGS.len() as u32);
    for (tag, body) in TAGS.into_iter().zip(bodies) {
        form.section(tag, |out| out.extend_from_slice(body));
    }
    form.seal()
}

/// Tell the parts apart.
///
/// # Errors
/// The bytes are cut short, changed or foreign.
pub fn decode(bytes: &[u8]) -> Result<Parts<'_>, Corrupt> {
    let (_, [parameters, record, sketch, labels]) = open(bytes, &[TRACKED], TAGS)?;
    Ok(Parts {
        parameters: parameters.rest(),
        record: record.rest(),
        sketch: sketch.rest(),
        labels: labels.rest(),
    })
}
