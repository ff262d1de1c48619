//! The saved form of what tracks labels by their estimates.

use super::labels::{write_kind, write_label};
use super::sections::{ESTIMATES, Form, PARAMETERS, RECORD, open};
use super::{Corrupt, OUT_OF_RANGE};
use crate::counters::Extent;
use crate::top_estimates::TopEstimates;

const TOP_ESTIMATES: u16 = 5;
const TAGS: [u32; 3] = [PARAMETERS, RECORD, ESTIMATES];

/// Write what tracks labels, and the caller's record, to bytes.
pub fn encode(top: &TopEstimates, record: &[u8]) -> Vec<u8> {
    let mut form = Form::new(Vec::new(), TOP_ESTIMATES, TAGS.len() as u32);
    form.section(PARAMETERS, |out| {
        out.extend_from_slice(&(top.capacity() as u64).to_le_bytes());
        write_kind(out, top.extent().kind());
        out.extend_from_slice(&top.max_label_bytes().to_le_bytes());
        out.extend_from_slice(&top.identity());
        out.extend_from_slice(&top.extent().length().to_le_bytes());
    });
    form.section(RECORD, |out| out.extend_from_slice(record));
    form.section(ESTIMATES, |out| {
        let labels = top.labels();
        out.extend_from_slice(&(labels.len() as u64).to_le_bytes());
        for (label, estimate) in labels {
            out.extend_from_slice(&estimate.to_le_bytes());
            write_label(out, label);
        }
    });
    form.seal()
}

/// Read what tracks labels, and the caller's record, back. Memory stays within a small multiple of the bytes given.
///
/// # Errors
/// The bytes are cut short, changed, foreign, or contradict themselves.
pub fn decode(bytes: &[u8]) -> Result<(TopEstimates, Vec<u8>), Corrupt> {
    let (_, [mut parameters, record, mut estimates]) = open(bytes, &[TOP_ESTIMATES], TAGS)?;
    let capacity = usize::try_from(parameters.u64()?).map_err(|_| OUT_OF_RANGE)?;
    let kind = parameters.kind()?;
    let (max_label_bytes, identity) = (parameters.u32()?, parameters.array()?);
    let length = parameters.u64()?;
    parameters.end()?;
    if !TopEstimates::valid(capacity, max_label_bytes) {
        return Err(OUT_OF_RANGE);
    }
    let extent = Extent::restored(kind, length)
        .ok_or(Corrupt("the length contradicts the kind of label"))?;
    let mut top = TopEstimates::new(capacity, max_label_bytes, identity);
    let labels = estimates.u64()?;
    if labels > length || (labels == 0) != (length == 0) {
        return Err(Corrupt("no stream of that length has as many labels"));
    }
    for _ in 0..labels {
        let estimate = estimates.i64()?;
        let kind = kind.ok_or(Corrupt("there are labels of no kind"))?;
        let label = estimates.label(kind, max_label_bytes)?;
        if !top.restore(kind, label, estimate) {
            return Err(Corrupt("a label contradicts the rest"));
        }
    }
    estimates.end()?;
    top.extend(extent);
    Ok((top, record.rest().to_vec()))
}
