//! gzip, Zstandard, bzip2 and xz, recognised by content, every member of a file.
//!
//! One member is one decoder. What follows a member is looked at here and not in the decoders, which differ on it:
//! the end of the input, another member of the same format, or an error.

use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::source::Source;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// bzip2.
    Bzip2,
    /// The .xz file format.
    Xz,
}

/// As many first bytes as the longest signature needs.
const SIGNATURE_BYTES: usize = 10;

impl Compression {
    const ALL: [Compression; 4] = [
        Compression::Gzip,
        Compression::Zstd,
        Compression::Bzip2,
        Compression::Xz,
    ];

    /// The format's name, as in "truncated gzip data".
    pub fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
        }
    }

    /// The compression that a file name claims, by its last extension.
    pub(crate) fn from_name(name: &Path) -> Option<Compression> {
        match name.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "gz" | "tgz" | "bgz" => Some(Compression::Gzip),
            "zst" | "zstd" => Some(Compression::Zstd),
            "bz2" => Some(Compression::Bzip2),
            "xz" => Some(Compression::Xz),
            _ => None,
        }
    }

    /// Whether `head` starts as this format does, as far as `head` goes.
    fn agrees(self, head: &[u8]) -> bool {
        let same = |signature: &[u8]| head.iter().zip(signature).all(|(a, b)| a == b);
        match self {
            Compression::Gzip => same(b"\x1F\x8B"),
            // A frame, or a skippable frame (pzstd starts with one).
            Compression::Zstd => {
                same(b"\x28\xB5\x2F\xFD")
                    || head.first().is_none_or(|first| first & 0xF0 == 0x50)
                        && head
                            .iter()
                            .skip(1)
                            .zip(b"\x2A\x4D\x18")
                            .all(|(a, b)| a == b)
            }
            // "BZh" and a digit begin many a text, so the mark of the first block (or of an empty file) has to follow.
            Compression::Bzip2 => {
                let level = head
                    .get(3)
                    .is_none_or(|level| (b'1'..=b'9').contains(level));
                level && same(b"BZh") && {
                    let mark = head.get(4..).unwrap_or_default();
                    [b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"]
                        .iter()
                        .any(|m| mark.iter().zip(*m).all(|(a, b)| a == b))
                }
            }
            Compression::Xz => same(b"\xFD7zXZ\0"),
        }
    }

    /// How many first bytes make the signature.
    fn signature_len(self) -> usize {
        match self {
            Compression::Gzip => 2,
            Compression::Zstd => 4,
            Compression::Bzip2 => SIGNATURE_BYTES,
            Compression::Xz => 6,
        }
    }

    /// Whether no text consists of `head`, the first bytes of this format's signature: then an input that ends there
    /// was cut short. A whole input such as `BZh` is a text, unless its name says otherwise.
    fn is_told_by(self, head: &[u8]) -> bool {
        match self {
            Compression::Bzip2 => head.len() > 4,
            _ => head.len() > 1 && head.iter().any(|byte| !byte.is_ascii_graphic()),
        }
    }
}

/// The content of a [`Source`], decompressed if it is compressed.
pub(crate) struct Content {
    compression: Option<Compression>,
    member: Member,
}

enum Member {
    Plain(Source),
    Gzip(Box<flate2::bufread::GzDecoder<Source>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Source>>),
    Bzip2(Box<bzip2::bufread::BzDecoder<Source>>),
    Xz(Box<liblzma::bufread::XzDecoder<Source>>),
    /// After the last member, or after an error.
    Ended {
        consumed: u64,
    },
}

impl Content {
    /// Recognises the compression by the first bytes; `name` decides only where the input ends within a signature.
    pub(crate) fn new(mut source: Source, name: Option<&Path>) -> Result<Content> {
        let claimed = name.and_then(Compression::from_name);
        let head = source.peek(SIGNATURE_BYTES)?;
        if let (true, Some(compression)) = (head.is_empty(), claimed) {
            return Err(truncated(compression, 0)); // even nothing has an end mark
        }
        let Some(compression) = Compression::ALL
            .into_iter()
            .find(|c| !head.is_empty() && c.agrees(head))
        else {
            return Ok(Content {
                compression: None,
                member: Member::Plain(source),
            });
        };
        if head.len() < compression.signature_len() {
            if claimed == Some(compression) || compression.is_told_by(head) {
                return Err(truncated(compression, head.len() as u64));
            }
            return Ok(Content {
                compression: None,
                member: Member::Plain(source),
            });
        }
        let member = Member::start(compression, source)?;
        Ok(Content {
            compression: Some(compression),
            member,
        })
    }

    /// How the input is compressed, if it is.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Bytes of the stored input that were consumed.
    pub(crate) fn consumed(&self) -> u64 {
        match &self.member {
            Member::Ended { consumed } => *consumed,
            other => other.source().map_or(0, Source::consumed),
        }
    }

    /// Reads decompressed bytes; 0 only at the end of a whole and sound input, or for an empty `into`.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            match self.member.read(into) {
                Ok(0) => {
                    let ended = Member::Ended {
                        consumed: self.consumed(),
                    };
                    match (
                        self.compression,
                        std::mem::replace(&mut self.member, ended).into_source(),
                    ) {
                        (Some(compression), Some(source)) => {
                            match next_member(compression, source)? {
                                Some(member) => self.member = member,
                                None => return Ok(0),
                            }
                        }
                        _ => return Ok(0),
                    }
                }
                Ok(count) => return Ok(count),
                Err(error) => return Err(self.explain(&error)),
            }
        }
    }

    /// Says in our words why a read failed: the input itself, or what a decoder found in it.
    fn explain(&self, error: &io::Error) -> Error {
        let source = self.member.source();
        if let Some(failure) = source.and_then(Source::failure) {
            return failure.clone();
        }
        let Some(compression) = self.compression else {
            return Error::io("the input cannot be read", error);
        };
        let at = self.consumed();
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return truncated(compression, at);
        }
        let name = compression.name();
        // zstd's code for it is gone in an io::Error; its text stays, and a test fails should it change
        if error.to_string().contains("too much memory") {
            let rule = "this zstd frame needs a window above 128 MiB; decompress it first (zstd -d --long=31) and read the result";
            return Error::at_byte(ErrorKind::Corrupt, at, rule);
        }
        Error::at_byte(
            ErrorKind::Corrupt,
            at,
            format!("corrupt {name} data at or before this byte; get a sound copy of the file"),
        )
    }
}

fn truncated(compression: Compression, at: u64) -> Error {
    let name = compression.name();
    Error::at_byte(
        ErrorKind::Truncated,
        at,
        format!("the {name} data ends before its end mark; get a whole copy of the file"),
    )
}

/// Goes on after the end of a member: with the next one, or with `None` where the input ends.
fn next_member(compression: Compression, mut source: Source) -> Result<Option<Member>> {
    if compression == Compression::Xz {
        // Stream padding: zero bytes in fours (section 2.2 of the .xz specification).
        while source.peek(4)? == [0; 4] {
            io::BufRead::consume(&mut source, 4);
        }
    }
    let at = source.consumed();
    let head = source.peek(SIGNATURE_BYTES)?;
    if head.is_empty() {
        return Ok(None);
    }
    if !compression.agrees(head) {
        let name = compression.name();
        let rule = format!(
            "the {name} data is followed by bytes that are not {name}; get a sound copy of the file, or cut them off"
        );
        return Err(Error::at_byte(ErrorKind::Corrupt, at, rule));
    }
    if head.len() < compression.signature_len() {
        return Err(truncated(compression, at + head.len() as u64));
    }
    Member::start(compression, source).map(Some)
}

impl Member {
    /// A decoder of one member, which starts where `source` stands.
    fn start(compression: Compression, source: Source) -> Result<Member> {
        Ok(match compression {
            Compression::Gzip => Member::Gzip(Box::new(flate2::bufread::GzDecoder::new(source))),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(source)
                    .map_err(|error| Error::io("the zstd decoder cannot start", &error))?;
                Member::Zstd(Box::new(decoder.single_frame()))
            }
            Compression::Bzip2 => Member::Bzip2(Box::new(bzip2::bufread::BzDecoder::new(source))),
            Compression::Xz => Member::Xz(Box::new(liblzma::bufread::XzDecoder::new(source))),
        })
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Member::Plain(source) => source.read(into),
            Member::Gzip(decoder) => decoder.read(into),
            Member::Zstd(decoder) => decoder.read(into),
            Member::Bzip2(decoder) => decoder.read(into),
            Member::Xz(decoder) => decoder.read(into),
            Member::Ended { .. } => Ok(0),
        }
    }

    fn source(&self) -> Option<&Source> {
        match self {
            Member::Plain(source) => Some(source),
            Member::Gzip(decoder) => Some(decoder.get_ref()),
            Member::Zstd(decoder) => Some(decoder.get_ref()),
            Member::Bzip2(decoder) => Some(decoder.get_ref()),
            Member::Xz(decoder) => Some(decoder.get_ref()),
            Member::Ended { .. } => None,
        }
    }

    fn into_source(self) -> Option<Source> {
        match self {
            Member::Plain(source) => Some(source),
            Member::Gzip(decoder) => Some(decoder.into_inner()),
            Member::Zstd(decoder) => Some(decoder.finish()),
            Member::Bzip2(decoder) => Some(decoder.into_inner()),
            Member::Xz(decoder) => Some(decoder.into_inner()),
            Member::Ended { .. } => None,
        }
    }
}
