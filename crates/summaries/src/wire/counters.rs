//! The saved form of counters: SpaceSaving and Misra-Gries.

use super::labels::{write_kind, write_label};
use super::sections::{COUNTERS, Form, Input, PARAMETERS, RECORD, open};
use super::{Corrupt, OUT_OF_RANGE};
use crate::counters::{Algorithm, Counters, Parameters};
use crate::label::{Kind, Label};
use crate::victims::Tie;

const SPACE_SAVING: u16 = 1;
const MISRA_GRIES: u16 = 2;

/// Write a summary, and the caller's record of what it may spend, to bytes.
pub fn encode(summary: &Counters, record: &[u8]) -> Vec<u8> {
    let summary_type = match summary.parameters().algorithm {
        Algorithm::SpaceSaving(_) => SPACE_SAVING,
        Algorithm::MisraGries => MISRA_GRIES,
    };
    let mut form = Form::new(Vec::new(), summary_type, 3);
    form.section(PARAMETERS, |out| {
        write_parameters(out, summary.parameters(), summary.kind());
    });
    form.section(COUNTERS, |out| write_counters(out, summary));
    form.section(RECORD, |out| out.extend_from_slice(record));
    form.seal()
}

fn write_parameters(out: &mut Vec<u8>, parameters: &Parameters, kind: Option<Kind>) {
    out.extend_from_slice(&(parameters.capacity as u64).to_le_bytes());
    out.extend_from_slice(&(parameters.partitions as u64).to_le_bytes());
    out.push(match parameters.algorithm {
        Algorithm::SpaceSaving(Tie::LeastRecent) | Algorithm::MisraGries => 0,
        Algorithm::SpaceSaving(Tie::MostRecent) => 1,
    });
    write_kind(out, kind);
    out.extend_from_slice(&parameters.max_label_bytes.to_le_bytes());
    out.extend_from_slice(&parameters.identity);
}

fn write_counters(out: &mut Vec<u8>, summary: &Counters) {
    if summary.parameters().algorithm == Algorithm::MisraGries {
        out.extend_from_slice(&summary.length().to_le_bytes());
    }
    for partition in 0..summary.parameters().partitions {
        let slots = summary.slots_in_saved_order(partition);
        out.extend_from_slice(&(slots.len() as u64).to_le_bytes());
        summary.for_each(partition, &slots, |label, count| {
            out.extend_from_slice(&count.to_le_bytes());
            write_label(out, label);
        });
    }
}

/// Read a summary and the caller's record back. Memory stays within a small multiple of the bytes given: at
/// most 64 bytes for each were seen, where partitions have a table and no label.
///
/// # Errors
/// The bytes are cut short, changed, foreign, or contradict themselves.
pub fn decode(bytes: &[u8]) -> Result<(Counters, Vec<u8>), Corrupt> {
    let types = [SPACE_SAVING, MISRA_GRIES];
    let (summary_type, sections) = open(bytes, &types, [PARAMETERS, COUNTERS, RECORD])?;
    let [mut parameters, mut counters, record] = sections;
    let (parameters, kind) = read_parameters(&mut parameters, summary_type)?;
    let summary = read_counters(&mut counters, parameters, kind)?;
    Ok((summary, record.rest().to_vec()))
}

fn read_parameters(
    input: &mut Input<'_>,
    summary_type: u16,
) -> Result<(Parameters, Option<Kind>), Corrupt> {
    let capacity = usize::try_from(input.u64()?).map_err(|_| OUT_OF_RANGE)?;
    let partitions = usize::try_from(input.u64()?).map_err(|_| OUT_OF_RANGE)?;
    let algorithm = match (summary_type, input.u8()?) {
        (SPACE_SAVING, 0) => Algorithm::SpaceSaving(Tie::LeastRecent),
        (SPACE_SAVING, 1) => Algorithm::SpaceSaving(Tie::MostRecent),
        (MISRA_GRIES, 0) => Algorithm::MisraGries,
        _ => return Err(OUT_OF_RANGE),
    };
    let kind = input.kind()?;
    let parameters = Parameters {
        capacity,
        partitions,
        algorithm,
        max_label_bytes: input.u32()?,
        identity: input.array()?,
    };
    input.end()?;
    if parameters.valid() {
        Ok((parameters, kind))
    } else {
        Err(OUT_OF_RANGE)
    }
}

fn read_counters(
    input: &mut Input<'_>,
    parameters: Parameters,
    kind: Option<Kind>,
) -> Result<Counters, Corrupt> {
    // each partition takes 8 bytes here, which bounds the tables that are made before a label is seen
    if input.length() / 8 < parameters.partitions {
        return Err(Corrupt("there are fewer counters than partitions"));
    }
    let misra_gries = parameters.algorithm == Algorithm::MisraGries;
    let length = if misra_gries { input.u64()? } else { 0 };
    let mut summary = Counters::new(parameters);
    let mut before = None;
    for partition in 0..parameters.partitions {
        for _ in 0..input.u64()? {
            let count = input.u64()?;
            let kind = kind.ok_or(Corrupt("there are labels of no kind"))?;
            let label = input.label(kind, parameters.max_label_bytes)?;
            if misra_gries && !follows(&mut before, label) {
                return Err(Corrupt("the labels are not in their order"));
            }
            if !summary.restore(kind, partition, label, count) {
                return Err(Corrupt("a label or its count contradicts the rest"));
            }
        }
    }
    input.end()?;
    if misra_gries && !summary.restore_length(length) {
        return Err(Corrupt("no stream of that length leaves these counters"));
    }
    if summary.kind() == kind {
        Ok(summary)
    } else {
        Err(Corrupt("there is a kind of label but no label"))
    }
}

/// Whether a label comes after the one before, in their order.
#[inline(never)] // it would slow down SpaceSaving's labels, which have another order
fn follows<'a>(before: &mut Option<Label<'a>>, label: Label<'a>) -> bool {
    before.replace(label) < Some(label)
}
