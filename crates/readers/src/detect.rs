//! What an input is, by its first bytes.

/// As many first bytes as [`detect`] looks at.
pub const DETECTION_BYTES: usize = 512;

/// What the first bytes of the decompressed content say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detected {
    /// Text in UTF-8, or bytes of no known format; also an empty input.
    Text,
    /// An Apache Parquet file.
    Parquet,
    /// An Arrow IPC file (also called Feather version 2).
    ArrowFile,
    /// An Arrow IPC stream.
    ArrowStream,
    /// Text that starts with a UTF-16 or UTF-32 byte order mark.
    Utf16,
    /// A format that holds no labels for us, by its name, such as "a ZIP archive".
    Foreign(&'static str),
}

impl Detected {
    /// A name of the content.
    pub fn name(self) -> &'static str {
        match self {
            Detected::Text => "text",
            Detected::Parquet => "parquet",
            Detected::ArrowFile => "arrow-file",
            Detected::ArrowStream => "arrow-stream",
            Detected::Utf16 => "utf-16",
            Detected::Foreign(name) => name,
        }
    }
}

/// First bytes and what they are the first bytes of.
const FOREIGN: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "a ZIP archive (or a spreadsheet)"),
    (b"PK\x05\x06", "a ZIP archive (or a spreadsheet)"),
    (
        b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
        "an old Microsoft Office file",
    ),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1A\n", "a PNG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"\xFF\xD8\xFF", "a JPEG image"),
    (b"\x7FELF", "an ELF program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"Obj\x01", "an Avro file"),
    (b"\x89HDF\r\n\x1A\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array file"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive"),
    (b"Rar!\x1A\x07", "a RAR archive"),
    (b"\x04\x22\x4D\x18", "an LZ4 file"),
    (b"\xFF\x06\0\0sNaPpY", "a Snappy file"),
    (b"LZIP\x01", "an lzip file"),
    (b"\x1F\x9D", "a compress (.Z) file"),
    (b"\xD4\xC3\xB2\xA1", "a packet capture"),
    (b"\xA1\xB2\xC3\xD4", "a packet capture"),
    (b"\x4D\x3C\xB2\xA1", "a packet capture"),
    (b"\xA1\xB2\x3C\x4D", "a packet capture"),
    (b"\x1F\x8B\x08", "gzip data inside compressed data"),
    (b"\x28\xB5\x2F\xFD", "Zstandard data inside compressed data"),
    (b"\xFD7zXZ\0", "xz data inside compressed data"),
];

/// Signatures that a text may well start with: they count only where a NUL byte follows somewhere in the first bytes.
const FOREIGN_WORDS: &[(&[u8], &str)] = &[
    (b"ORC", "an ORC file"),
    (b"FEA1", "a Feather version 1 file"),
    (b"PARE", "an encrypted Parquet file"),
];

/// Says what the content is, from its first [`DETECTION_BYTES`] bytes after decompression (fewer only if it is
/// shorter).
pub fn detect(head: &[u8]) -> Detected {
    // The first page or the footer follows with 0x15 (a Thrift integer field); a text may start with the word.
    if head.starts_with(b"PAR1") && head.get(4).is_none_or(|&next| next == 0x15) {
        return Detected::Parquet;
    }
    if head.starts_with(b"ARROW1\0\0") {
        return Detected::ArrowFile;
    }
    if head.starts_with(b"\xFF\xFF\xFF\xFF") {
        return Detected::ArrowStream;
    }
    let words: &[_] = if head.contains(&0) {
        FOREIGN_WORDS
    } else {
        &[]
    };
    if let Some((_, name)) = FOREIGN
        .iter()
        .chain(words)
        .find(|(signature, _)| head.starts_with(signature))
    {
        return Detected::Foreign(name);
    }
    if head.starts_with(b"\xFF\xFE")
        || head.starts_with(b"\xFE\xFF")
        || head.starts_with(b"\0\0\xFE\xFF")
    {
        return Detected::Utf16;
    }
    if head.get(257..262) == Some(b"ustar") {
        return Detected::Foreign("a tar archive");
    }
    if head.starts_with(b"\n\r\r\n")
        && matches!(
            head.get(8..12),
            Some(b"\x1A\x2B\x3C\x4D" | b"\x4D\x3C\x2B\x1A")
        )
    {
        return Detected::Foreign("a packet capture");
    }
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return Detected::Foreign("bzip2 data inside compressed data");
    }
    Detected::Text
}
