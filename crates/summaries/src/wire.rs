//! The saved form: versioned, checksummed, little-endian, in tagged sections.
//!
//! ```text
//! header     8 bytes "dptop\0\r\n", u16 version = 1, u16 type (1 = SpaceSaving, 2 = Misra-Gries), u32 number of
//!            sections
//! section    u32 tag, u64 length, then as many bytes; tags in ascending order, each once
//! trailer    u32 CRC-32 (IEEE) of everything before it
//!
//! 1 parameters   u64 capacity, u64 partitions, u8 tie (0 least, 1 most recent; 0 for Misra-Gries), u8 kind (0 none
//!                yet, 1 integers, 2 strings, 3 bytes), u32 max_label_bytes, 16 bytes identity
//! 2 counters     for Misra-Gries: u64 length of the stream. Then for each partition: u64 labels, then the labels in
//!                last-occurrence order, oldest first, or for Misra-Gries in the order of the labels: u64 count and the
//!                label. An integer: u8 (1 if it is 2^63 or more), u64 bits. A string or bytes: u32 length with the top
//!                bit set if shortened, then the bytes. Free slots are what is missing to the partition's share of the
//!                capacity. SpaceSaving has no count of 0, and the length is the sum of its counts.
//! 3 record       bytes of the caller: what was spent and what may be
//! ```

use std::fmt;

use crate::counters::{Algorithm, Counters, Parameters};
use crate::label::{ByteString, Integer, Kind, Label, SHORTENED};
use crate::victims::Tie;

const MAGIC: &[u8; 8] = b"dptop\0\r\n";
const VERSION: u16 = 1;
const SPACE_SAVING: u16 = 1;
const MISRA_GRIES: u16 = 2;
const PARAMETERS: u32 = 1;
const COUNTERS: u32 = 2;
const RECORD: u32 = 3;

/// Saved bytes that are not a whole, consistent summary; says the rule that they break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt(pub &'static str);

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Corrupt {}

/// Write a summary, and the caller's record of what it may spend, to bytes.
pub fn encode(summary: &Counters, record: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    let summary_type = match summary.parameters().algorithm {
        Algorithm::SpaceSaving(_) => SPACE_SAVING,
        Algorithm::MisraGries => MISRA_GRIES,
    };
    out.extend_from_slice(&summary_type.to_le_bytes());
    out.extend_from_slice(&3u32.to_le_bytes());
    section(&mut out, PARAMETERS, |out| {
        write_parameters(out, summary.parameters(), summary.kind());
    });
    section(&mut out, COUNTERS, |out| write_counters(out, summary));
    section(&mut out, RECORD, |out| out.extend_from_slice(record));
    let checksum = crc32fast::hash(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

fn section(out: &mut Vec<u8>, tag: u32, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&tag.to_le_bytes());
    let at = out.len();
    out.extend_from_slice(&[0; 8]);
    body(out);
    let length = (out.len() - at - 8) as u64;
    out[at..at + 8].copy_from_slice(&length.to_le_bytes());
}

fn write_parameters(out: &mut Vec<u8>, parameters: &Parameters, kind: Option<Kind>) {
    out.extend_from_slice(&(parameters.capacity as u64).to_le_bytes());
    out.extend_from_slice(&(parameters.partitions as u64).to_le_bytes());
    out.push(match parameters.algorithm {
        Algorithm::SpaceSaving(Tie::LeastRecent) | Algorithm::MisraGries => 0,
        Algorithm::SpaceSaving(Tie::MostRecent) => 1,
    });
    out.push(match kind {
        None => 0,
        Some(Kind::Integer) => 1,
        Some(Kind::String) => 2,
        Some(Kind::Bytes) => 3,
    });
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
            match label {
                Label::Integer(label) => {
                    out.push(label.above_signed.into());
                    out.extend_from_slice(&label.bits.to_le_bytes());
                }
                Label::ByteString(label) => {
                    let flag = if label.shortened { SHORTENED } else { 0 };
                    out.extend_from_slice(&(label.bytes.len() as u32 | flag).to_le_bytes());
                    out.extend_from_slice(label.bytes);
                }
            }
        });
    }
}

/// Read a summary and the caller's record back. Memory stays within a small multiple of the bytes given, plus what the
/// saved number of partitions takes.
///
/// # Errors
/// The bytes are cut short, changed, foreign, or contradict themselves.
pub fn decode(bytes: &[u8]) -> Result<(Counters, Vec<u8>), Corrupt> {
    if bytes.len() < MAGIC.len() || &bytes[..MAGIC.len()] != MAGIC {
        return Err(Corrupt("these bytes are not a saved dptop summary"));
    }
    let Some((body, checksum)) = bytes.split_last_chunk::<4>() else {
        return Err(Corrupt("the bytes are cut short"));
    };
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(Corrupt(
            "the checksum does not match: the bytes were cut short or changed",
        ));
    }
    let mut input = Input(&body[MAGIC.len()..]);
    if input.u16()? != VERSION {
        return Err(Corrupt(
            "the version of the saved form is not 1; a newer dptop may read it",
        ));
    }
    let summary_type = input.u16()?;
    if ![SPACE_SAVING, MISRA_GRIES].contains(&summary_type) {
        return Err(Corrupt("the saved summary is of another type"));
    }
    // a section of a later version may hold what this one must know to keep the promise, so it is not passed over
    if input.u32()? != 3 {
        return Err(Corrupt("the number of sections is not 3"));
    }
    let mut parameters = input.section(PARAMETERS)?;
    let mut counters = input.section(COUNTERS)?;
    let record = input.section(RECORD)?;
    input.end()?;
    let (parameters, kind) = read_parameters(&mut parameters, summary_type)?;
    let summary = read_counters(&mut counters, parameters, kind)?;
    Ok((summary, record.0.to_vec()))
}

fn read_parameters(
    input: &mut Input<'_>,
    summary_type: u16,
) -> Result<(Parameters, Option<Kind>), Corrupt> {
    let out_of_range = Corrupt("a parameter is out of range");
    let parameters = Parameters {
        capacity: usize::try_from(input.u64()?).map_err(|_| out_of_range)?,
        partitions: usize::try_from(input.u64()?).map_err(|_| out_of_range)?,
        algorithm: match (summary_type, input.u8()?) {
            (SPACE_SAVING, 0) => Algorithm::SpaceSaving(Tie::LeastRecent),
            (SPACE_SAVING, 1) => Algorithm::SpaceSaving(Tie::MostRecent),
            (MISRA_GRIES, 0) => Algorithm::MisraGries,
            _ => return Err(out_of_range),
        },
        identity: [0; 16],
        max_label_bytes: 0,
    };
    let kind = match input.u8()? {
        0 => None,
        1 => Some(Kind::Integer),
        2 => Some(Kind::String),
        3 => Some(Kind::Bytes),
        _ => return Err(out_of_range),
    };
    let max_label_bytes = input.u32()?;
    let mut identity = [0; 16];
    identity.copy_from_slice(input.take(16)?);
    input.end()?;
    let parameters = Parameters {
        max_label_bytes,
        identity,
        ..parameters
    };
    if parameters.valid() {
        Ok((parameters, kind))
    } else {
        Err(out_of_range)
    }
}

fn read_counters(
    input: &mut Input<'_>,
    parameters: Parameters,
    kind: Option<Kind>,
) -> Result<Counters, Corrupt> {
    // each partition takes 8 bytes here, which bounds the tables that are made before a label is seen
    if input.0.len() / 8 < parameters.partitions {
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
            let label = input.label(kind)?;
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

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(Corrupt("a length points past the end"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, Corrupt> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, Corrupt> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, Corrupt> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Corrupt> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn section(&mut self, tag: u32) -> Result<Self, Corrupt> {
        if self.u32()? != tag {
            return Err(Corrupt("a section is missing or unknown"));
        }
        let length = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        Ok(Self(self.take(length)?))
    }

    fn label(&mut self, kind: Kind) -> Result<Label<'a>, Corrupt> {
        if kind == Kind::Integer {
            let above_signed = match self.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Corrupt("an integer's range is unknown")),
            };
            let bits = self.u64()?;
            if above_signed && bits <= i64::MAX as u64 {
                return Err(Corrupt("an integer contradicts its range"));
            }
            return Ok(Label::Integer(Integer { bits, above_signed }));
        }
        let length = self.u32()?;
        let shortened = length & SHORTENED != 0;
        let bytes = self.take((length & !SHORTENED) as usize)?;
        let string = if shortened {
            bytes.len().checked_sub(32).map(|end| &bytes[..end])
        } else {
            Some(bytes)
        };
        let string = string.ok_or(Corrupt("a shortened label has no digest"))?;
        if kind == Kind::String && std::str::from_utf8(string).is_err() {
            return Err(Corrupt("a string is not UTF-8"));
        }
        Ok(Label::ByteString(ByteString { bytes, shortened }))
    }

    fn end(&self) -> Result<(), Corrupt> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Corrupt("there is more than the saved form holds"))
        }
    }
}
