//! The one reader: options in, blocks of labels out.

use std::path::Path;

use crate::block::Block;
use crate::compression::Compression;
use crate::delimited::Delimited;
use crate::detect::Detected;
use crate::error::{Error, ErrorKind, Result};
use crate::input::Input;
use crate::jsonl::Jsonl;
use crate::lines::Lines;
use crate::window::Window;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Each line is a label.
    Lines,
    /// Comma-separated values with a header (RFC 4180).
    Csv,
    /// Tab-separated values with a header (IANA text/tab-separated-values: no quoting).
    Tsv,
    /// One JSON value a line.
    Jsonl,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::Lines, Format::Csv, Format::Tsv, Format::Jsonl];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Lines => "lines",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Jsonl => "jsonl",
        }
    }

    /// The format that users call so.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format that a file name says, extensions of compression aside; lines if it says none.
    pub fn from_name(name: &Path) -> Format {
        if Compression::from_name(name).is_some() {
            return name
                .file_stem()
                .map_or(Format::Lines, |stem| Format::from_name(Path::new(stem)));
        }
        let extension = name
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "jsonl" | "ndjson" => Format::Jsonl,
            _ => Format::Lines,
        }
    }
}

/// How to read a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The text's format.
    pub format: Format,
    /// The column of a CSV or TSV header, byte for byte, or the member of each JSON object, whose values are the
    /// labels. `None` takes the only column of a table, or the whole JSON value of each line.
    pub column: Option<Vec<u8>>,
    /// Texts that are skipped like empty cells: they stand for a missing value.
    pub nulls: Vec<Vec<u8>>,
}

impl Options {
    /// Reads `format` without choosing a column and without further nulls.
    pub fn new(format: Format) -> Options {
        Options {
            format,
            column: None,
            nulls: Vec::new(),
        }
    }
}

/// Reads labels in stream order, in bounded memory.
pub struct Reader {
    labels: Labels,
    failed: Option<Error>,
}

enum Labels {
    Lines(Lines),
    Delimited(Delimited),
    Jsonl(Jsonl),
}

impl Reader {
    pub(crate) fn new(input: Input, options: Options) -> Result<Reader> {
        if options.format == Format::Lines && options.column.is_some() {
            let rule = "lines have no columns; leave the column out, or name the format: csv, tsv or jsonl";
            return Err(Error::new(ErrorKind::Usage, rule));
        }
        if input.detected() == Detected::Utf16 {
            let rule = "the text starts with a UTF-16 mark and is not UTF-8; convert it first, such as with iconv -f UTF-16 -t UTF-8";
            return Err(Error::at_byte(ErrorKind::Encoding, 0, rule));
        }
        let window = Window::new(input)?;
        let labels = match options.format {
            Format::Lines => Labels::Lines(Lines::new(window, options.nulls)),
            Format::Csv | Format::Tsv => Labels::Delimited(Delimited::new(window, options)?),
            Format::Jsonl => Labels::Jsonl(Jsonl::new(window, options)?),
        };
        Ok(Reader {
            labels,
            failed: None,
        })
    }

    /// The next labels; `None` after the last one of a whole and sound input.
    ///
    /// After an error every call returns that error: labels read before it are no result.
    pub fn next_block(&mut self) -> Result<Option<Block>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let block = match &mut self.labels {
            Labels::Lines(lines) => lines.next_block().map(|block| block.map(Block::Bytes)),
            Labels::Delimited(table) => table.next_block().map(|block| block.map(Block::Bytes)),
            Labels::Jsonl(values) => values.next_block(),
        };
        block.inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// Bytes consumed of the input as it is stored, for a progress bar; never more than its size, and its size at the
    /// end.
    pub fn position(&self) -> u64 {
        match &self.labels {
            Labels::Lines(lines) => lines.position(),
            Labels::Delimited(table) => table.position(),
            Labels::Jsonl(values) => values.position(),
        }
    }
}

/// Whether a text is one of those that stand for a missing value.
#[inline]
pub(crate) fn is_null(nulls: &[Vec<u8>], text: &[u8]) -> bool {
    nulls.iter().any(|null| null == text)
}
