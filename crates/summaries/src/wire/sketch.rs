//! The saved form of the linear sketches: Count-Min and CountSketch.

use super::labels::write_kind;
use super::sections::{CELLS, Form, Input, KEYS, NOISE, PARAMETERS, RECORD, around, open};
use super::{Corrupt, OUT_OF_RANGE};
use crate::cells::{Cells, OutOfMemory};
use crate::counters::Extent;
use crate::row_hash::{Keys, RowHash};
use crate::sketch::{Sketch, SketchParameters, SketchRule};

const COUNT_MIN: u16 = 3;
const COUNT_SKETCH: u16 = 4;
const TAGS: [u32; 5] = [PARAMETERS, RECORD, KEYS, CELLS, NOISE];

const PARAMETER_BYTES: usize = 8 + 8 + 1 + 1 + 4 + 16 + 8;
const ROW_KEY_BYTES: usize = 24;
const CELL_BYTES: usize = size_of::<i64>();

/// What was saved of a sketch.
pub struct Saved {
    /// The sketch.
    pub sketch: Sketch,
    /// The caller's record of what it may spend.
    pub record: Vec<u8>,
    /// What the caller says of the noise in its cells; empty if there is none.
    pub noise: Vec<u8>,
}

/// Why a sketch is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The bytes are cut short, changed, foreign, or contradict themselves.
    Corrupt(Corrupt),
    /// There is not enough memory for the cells once more.
    Memory(OutOfMemory),
}

impl From<Corrupt> for ReadError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Corrupt(corrupt)
    }
}

/// Write a sketch, the caller's record of what it may spend, and what the caller says of the noise in its cells,
/// nothing if there is none, to bytes.
///
/// # Errors
/// There is not enough memory for the cells once more.
pub fn encode(sketch: &Sketch, record: &[u8], noise: &[u8]) -> Result<Vec<u8>, OutOfMemory> {
    let parameters = sketch.parameters();
    let summary_type = match parameters.rule {
        SketchRule::CountMin => COUNT_MIN,
        SketchRule::CountSketch => COUNT_SKETCH,
    };
    let cells = parameters.width * parameters.depth * CELL_BYTES;
    let keys = 8 + parameters.depth * ROW_KEY_BYTES;
    let bytes = PARAMETER_BYTES + record.len() + keys + cells + noise.len() + around(TAGS.len());
    let mut out = Vec::new();
    out.try_reserve_exact(bytes).map_err(|_| OutOfMemory)?;
    let mut form = Form::new(out, summary_type, TAGS.len() as u32);
    form.section(PARAMETERS, |out| write_parameters(out, sketch));
    form.section(RECORD, |out| out.extend_from_slice(record));
    form.section(KEYS, |out| write_keys(out, sketch.keys()));
    form.section(CELLS, |out| {
        for cell in sketch.rows().flatten() {
            out.extend_from_slice(&cell.to_le_bytes());
        }
    });
    form.section(NOISE, |out| out.extend_from_slice(noise));
    Ok(form.seal())
}

fn write_parameters(out: &mut Vec<u8>, sketch: &Sketch) {
    let parameters = sketch.parameters();
    out.extend_from_slice(&(parameters.width as u64).to_le_bytes());
    out.extend_from_slice(&(parameters.depth as u64).to_le_bytes());
    out.push(match (sketch.keys().seeded(), sketch.seeded()) {
        (true, _) => 2,
        (false, seeded) => seeded.into(),
    });
    write_kind(out, sketch.kind());
    out.extend_from_slice(&parameters.max_label_bytes.to_le_bytes());
    out.extend_from_slice(&parameters.identity);
    out.extend_from_slice(&sketch.length().to_le_bytes());
}

fn write_keys(out: &mut Vec<u8>, keys: &Keys) {
    out.extend_from_slice(&keys.fingerprint().to_le_bytes());
    for RowHash { a, b, c } in keys.rows() {
        for number in [a, b, c] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Read a sketch, and what the caller added, back. Memory stays within a small multiple of the bytes given.
///
/// # Errors
/// See [`ReadError`].
pub fn decode(bytes: &[u8]) -> Result<Saved, ReadError> {
    let (summary_type, sections) = open(bytes, &[COUNT_MIN, COUNT_SKETCH], TAGS)?;
    let [mut parameters, record, mut keys, cells, noise] = sections;
    let read = Parameters::read(&mut parameters, summary_type)?;
    let SketchParameters { width, depth, .. } = read.parameters;
    // both before anything is allocated; neither product exceeds 2^50, see `MAX_WIDTH` and `MAX_DEPTH`
    if keys.length() as u64 != 8 + depth as u64 * ROW_KEY_BYTES as u64
        || cells.length() as u64 != width as u64 * depth as u64 * CELL_BYTES as u64
    {
        return Err(Corrupt("keys or cells contradict width and depth").into());
    }
    let keys = read_keys(&mut keys, depth, read.keys_seeded)?;
    let (cells, _) = cells.rest().as_chunks::<CELL_BYTES>();
    let cells = cells.iter().map(|&cell| i64::from_le_bytes(cell));
    let cells = Cells::restored(width, cells).map_err(ReadError::Memory)?;
    let noise = noise.rest();
    if noise.is_empty() {
        if read.seeded && !read.keys_seeded {
            return Err(Corrupt("there is a seed of noise but no noise").into());
        }
        let signs = read.parameters.rule == SketchRule::CountSketch;
        if !cells.could_count(signs, read.extent.length()) {
            return Err(Corrupt("no stream of that length leaves these cells").into());
        }
    }
    Ok(Saved {
        sketch: Sketch::restored(read.parameters, keys, read.seeded, read.extent, cells),
        record: record.rest().to_vec(),
        noise: noise.to_vec(),
    })
}

/// What stands in the section of parameters.
struct Parameters {
    parameters: SketchParameters,
    keys_seeded: bool,
    seeded: bool,
    extent: Extent,
}

impl Parameters {
    fn read(input: &mut Input<'_>, summary_type: u16) -> Result<Self, Corrupt> {
        let width = usize::try_from(input.u64()?).map_err(|_| OUT_OF_RANGE)?;
        let depth = usize::try_from(input.u64()?).map_err(|_| OUT_OF_RANGE)?;
        let seeds = input.u8()?;
        let kind = input.kind()?;
        let parameters = SketchParameters {
            rule: if summary_type == COUNT_MIN {
                SketchRule::CountMin
            } else {
                SketchRule::CountSketch
            },
            width,
            depth,
            max_label_bytes: input.u32()?,
            identity: input.array()?,
        };
        let length = input.u64()?;
        input.end()?;
        if !parameters.valid() || seeds > 2 {
            return Err(OUT_OF_RANGE);
        }
        Ok(Self {
            parameters,
            keys_seeded: seeds == 2,
            seeded: seeds > 0,
            extent: Extent::restored(kind, length)
                .ok_or(Corrupt("the length contradicts the kind of label"))?,
        })
    }
}

fn read_keys(input: &mut Input<'_>, depth: usize, seeded: bool) -> Result<Keys, Corrupt> {
    let fingerprint = input.u64()?;
    let mut rows = Vec::with_capacity(depth);
    for _ in 0..depth {
        let (a, b, c) = (input.u64()?, input.u64()?, input.u64()?);
        rows.push(RowHash { a, b, c });
    }
    Ok(Keys::restored(fingerprint, rows, seeded))
}
