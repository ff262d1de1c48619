//! Labels and their kind.

use super::sections::Input;
use super::{Corrupt, OUT_OF_RANGE};
use crate::label::{ByteString, DIGEST_BYTES, Integer, Kind, Label, SHORTENED};

/// The bytes of a character that a shortened string may leave out at the end, so that it ends between two of them.
const CHARACTER_CUT: u32 = 3;

pub(super) fn write_kind(out: &mut Vec<u8>, kind: Option<Kind>) {
    out.push(match kind {
        None => 0,
        Some(Kind::Integer) => 1,
        Some(Kind::String) => 2,
        Some(Kind::Bytes) => 3,
    });
}

pub(super) fn write_label(out: &mut Vec<u8>, label: Label<'_>) {
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
}

impl<'a> Input<'a> {
    pub(super) fn kind(&mut self) -> Result<Option<Kind>, Corrupt> {
        match self.u8()? {
            0 => Ok(None),
            1 => Ok(Some(Kind::Integer)),
            2 => Ok(Some(Kind::String)),
            3 => Ok(Some(Kind::Bytes)),
            _ => Err(OUT_OF_RANGE),
        }
    }

    /// A label; one that was shortened is about as long as the limit of labels.
    pub(super) fn label(&mut self, kind: Kind, limit: u32) -> Result<Label<'a>, Corrupt> {
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
            bytes
                .len()
                .checked_sub(DIGEST_BYTES)
                .map(|end| &bytes[..end])
        } else {
            Some(bytes)
        };
        let string = string.ok_or(Corrupt("a shortened label has no digest"))?;
        let cut = if kind == Kind::String {
            CHARACTER_CUT
        } else {
            0
        };
        if shortened && !(limit - cut..=limit).contains(&(bytes.len() as u32)) {
            return Err(Corrupt("a shortened label contradicts the limit of labels"));
        }
        if kind == Kind::String && std::str::from_utf8(string).is_err() {
            return Err(Corrupt("a string is not UTF-8"));
        }
        Ok(Label::ByteString(ByteString { bytes, shortened }))
    }
}
