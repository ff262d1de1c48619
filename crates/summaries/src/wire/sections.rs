//! What all types share: header, sections, checksum.

use super::Corrupt;

const MAGIC: &[u8; 8] = b"dptop\0\r\n";
const VERSION: u16 = 1;

pub(super) const PARAMETERS: u32 = 1;
pub(super) const COUNTERS: u32 = 2;
pub(super) const RECORD: u32 = 3;
pub(super) const KEYS: u32 = 4;
pub(super) const CELLS: u32 = 5;
pub(super) const NOISE: u32 = 6;
pub(super) const ESTIMATES: u32 = 7;
pub(super) const SKETCH: u32 = 8;
pub(super) const LABELS: u32 = 9;

/// Bytes of a form besides those in its sections.
pub(super) fn around(sections: usize) -> usize {
    MAGIC.len() + 2 + 2 + 4 + sections * 12 + 4
}

/// A form that is being written.
pub(super) struct Form(Vec<u8>);

impl Form {
    /// The header. `out` is empty; whatever room it has is used.
    pub(super) fn new(mut out: Vec<u8>, summary_type: u16, sections: u32) -> Self {
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&summary_type.to_le_bytes());
        out.extend_from_slice(&sections.to_le_bytes());
        Self(out)
    }

    pub(super) fn section(&mut self, tag: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let out = &mut self.0;
        out.extend_from_slice(&tag.to_le_bytes());
        let at = out.len();
        out.extend_from_slice(&[0; 8]);
        body(out);
        let length = (out.len() - at - 8) as u64;
        out[at..at + 8].copy_from_slice(&length.to_le_bytes());
    }

    /// The form with its checksum.
    pub(super) fn seal(self) -> Vec<u8> {
        let mut out = self.0;
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }
}

/// The sections of a form of one of these types, which are those with these tags and no others; and the type.
pub(super) fn open<'a, const N: usize>(
    bytes: &'a [u8],
    types: &[u16],
    tags: [u32; N],
) -> Result<(u16, [Input<'a>; N]), Corrupt> {
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
    let body = body.get(MAGIC.len()..).unwrap_or_default();
    let mut input = Input(body);
    if input.u16()? != VERSION {
        return Err(Corrupt(
            "the version of the saved form is not 1; a newer dptop may read it",
        ));
    }
    let summary_type = input.u16()?;
    if !types.contains(&summary_type) {
        return Err(Corrupt("the saved summary is of another type"));
    }
    // a section of a later version may hold what this one must know to keep the promise, so it is not passed over
    if input.u32()? as usize != N {
        return Err(Corrupt(
            "there are more or fewer sections than of this type",
        ));
    }
    let mut sections = [const { Input(&[]) }; N];
    for (section, tag) in sections.iter_mut().zip(tags) {
        *section = input.section(tag)?;
    }
    input.end()?;
    Ok((summary_type, sections))
}

/// What is left to read.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(Corrupt("a length points past the end"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Corrupt> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, Corrupt> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Corrupt> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Corrupt> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Corrupt> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Bytes that are left.
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    /// All that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    fn section(&mut self, tag: u32) -> Result<Self, Corrupt> {
        if self.u32()? != tag {
            return Err(Corrupt("a section is missing or unknown"));
        }
        let length = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        Ok(Self(self.take(length)?))
    }

    pub(super) fn end(&self) -> Result<(), Corrupt> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Corrupt("there is more than the saved form holds"))
        }
    }
}
