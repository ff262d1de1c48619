//! CSV and TSV: the label is a cell of the chosen column.
//!
//! A row without a quote is a line split at the separators, in CSV as in TSV. Only a CSV row with a quote in it, or
//! with a carriage return that ends no line, goes to the automaton of [`QuotedRow`].

use memchr::{memchr, memchr_iter, memchr2};

use crate::block::TextBlock;
use crate::columns;
use crate::error::{Error, ErrorKind, Result};
use crate::quoted::{Fault, QuotedRow};
use crate::reader::{Format, Options, is_null};
use crate::window::{Window, without_end};

/// A row that is longer than this inside quotes is taken for a quote left open, so that memory stays bounded.
const LONGEST_QUOTED_ROW: usize = 1 << 28;

/// The cells of one column, as their bytes stand; empty ones are skipped.
pub(crate) struct Delimited {
    window: Window,
    /// The physical line on which the rest of the window starts, counted from 1.
    line: u64,
    separator: u8,
    /// The automaton for quoted rows; TSV has none.
    quoted: Option<Box<QuotedRow>>,
    column: Column,
}

/// The chosen column, and which of its cells are labels.
struct Column {
    index: usize,
    /// The number of cells that the header has, and so each row.
    fields: usize,
    nulls: Vec<Vec<u8>>,
}

impl Column {
    fn take(&self, block: &mut TextBlock, cell: &[u8]) {
        if !cell.is_empty() && !is_null(&self.nulls, cell) {
            block.push(cell);
        }
    }

    /// The chosen cell of a row that has no quotes, or the number of its cells if it is not the header's.
    #[inline]
    fn cell_of<'a>(&self, row: &'a [u8], separator: u8) -> std::result::Result<&'a [u8], usize> {
        let (mut index, mut start) = (0, 0);
        let mut cell = &row[..0];
        for end in memchr_iter(separator, row) {
            if index == self.index {
                cell = &row[start..end];
            }
            index += 1;
            start = end + 1;
        }
        if index == self.index {
            cell = &row[start..];
        }
        if index + 1 == self.fields {
            Ok(cell)
        } else {
            Err(index + 1)
        }
    }

    fn ragged(&self, line: u64, fields: usize) -> Error {
        let rule = format!(
            "this row does not have as many cells as the header ({fields}, not {}); mend the row",
            self.fields
        );
        Error::at_line(ErrorKind::Malformed, line, rule)
    }
}

impl Delimited {
    pub(crate) fn new(window: Window, options: Options) -> Result<Delimited> {
        let (separator, quoted) = match options.format {
            Format::Tsv => (b'\t', None),
            _ => (b',', Some(Box::new(QuotedRow::new()))),
        };
        let column = Column {
            index: 0,
            fields: 0,
            nulls: options.nulls,
        };
        let mut table = Delimited {
            window,
            line: 1,
            separator,
            quoted,
            column,
        };
        if let Some(names) = table.header()? {
            table.column.index = columns::choose(&names, options.column.as_deref())?;
            table.column.fields = names.len();
        }
        Ok(table)
    }

    pub(crate) fn position(&self) -> u64 {
        self.window.position()
    }

    pub(crate) fn next_block(&mut self) -> Result<Option<TextBlock>> {
        let mut block = TextBlock::with_room();
        loop {
            self.plain_rows(&mut block)?;
            if block.is_full() || !self.other_rows(&mut block)? {
                return Ok(block.into_option());
            }
        }
    }

    /// The names in the header; `None` if the text is blank.
    fn header(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        loop {
            self.skip_line_ends()?;
            if self.window.rest().is_empty() {
                return Ok(None);
            }
            let Some(quoted) = &mut self.quoted else {
                let length = self.window.line()?.unwrap_or_default();
                let row = without_end(&self.window.rest()[..length]);
                let names = row
                    .split(|byte| *byte == self.separator)
                    .map(<[u8]>::to_vec)
                    .collect();
                self.advance(length);
                return Ok(Some(names));
            };
            match parse(quoted, &self.window, self.line)? {
                Some(length) => {
                    let names = (0..quoted.fields())
                        .map(|index| quoted.cell(index).to_vec())
                        .collect();
                    self.advance(length);
                    return Ok(Some(names));
                }
                None => self.window.more()?,
            }
        }
    }

    /// Takes whole lines without quotes, until the block is full or another row comes.
    fn plain_rows(&mut self, block: &mut TextBlock) -> Result<()> {
        let rest = self.window.rest();
        let mut start = 0;
        while !block.is_full() {
            let Some(length) = memchr(b'\n', &rest[start..]) else {
                break;
            };
            let row = without_end(&rest[start..=start + length]);
            if self.quoted.is_some() && is_special(row) {
                break;
            }
            if !row.is_empty() {
                let cell = self.column.cell_of(row, self.separator);
                let cell = cell.map_err(|fields| self.column.ragged(self.line, fields))?;
                self.column.take(block, cell);
            }
            start += length + 1;
            self.line += 1;
        }
        self.window.consume(start);
        Ok(())
    }

    /// Takes what [`Delimited::plain_rows`] leaves: rows for the automaton as far as the line at the start of the rest
    /// goes, the last row if no line end follows it, or else more text. False at the end of the text.
    fn other_rows(&mut self, block: &mut TextBlock) -> Result<bool> {
        let rest = self.window.rest();
        let newline = memchr(b'\n', rest);
        let line = newline.map_or(rest, |at| without_end(&rest[..=at]));
        if self.quoted.is_some() && is_special(line) {
            let length = newline.map_or(rest.len(), |at| at + 1);
            self.special_rows(block, length)?;
        } else if newline.is_none() && !self.window.ended() {
            self.window.more()?;
        } else if newline.is_none() {
            if rest.is_empty() {
                return Ok(false);
            }
            let cell = self.column.cell_of(rest, self.separator);
            let cell = cell.map_err(|fields| self.column.ragged(self.line, fields))?;
            self.column.take(block, cell);
            self.window.consume(rest.len());
        }
        Ok(true)
    }

    /// Takes rows by the automaton from the next `length` bytes; the last one may go beyond them.
    fn special_rows(&mut self, block: &mut TextBlock, length: usize) -> Result<()> {
        let target = self.window.rest().len() - length;
        loop {
            self.skip_line_ends()?;
            if self.window.rest().len() <= target || block.is_full() {
                return Ok(());
            }
            let Some(quoted) = &mut self.quoted else {
                return Ok(());
            };
            let Some(length) = parse(quoted, &self.window, self.line)? else {
                return self.window.more();
            };
            if quoted.fields() != self.column.fields {
                return Err(self.column.ragged(self.line, quoted.fields()));
            }
            self.column.take(block, quoted.cell(self.column.index));
            self.advance(length);
        }
    }

    /// Skips blank lines.
    fn skip_line_ends(&mut self) -> Result<()> {
        loop {
            let length = match self.window.rest() {
                [] | [b'\r'] if !self.window.ended() => {
                    self.window.more()?;
                    continue;
                }
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                [b'\r', ..] if self.quoted.is_some() => 1,
                _ => return Ok(()),
            };
            self.advance(length);
        }
    }

    /// Consumes text and counts the lines that end in it: with `\n`, or in CSV with a `\r` that no `\n` follows.
    fn advance(&mut self, length: usize) {
        let text = &self.window.rest()[..length];
        let newlines = memchr_iter(b'\n', text).count();
        let returns = match self.quoted {
            Some(_) => memchr_iter(b'\r', text)
                .filter(|at| text.get(at + 1) != Some(&b'\n'))
                .count(),
            None => 0,
        };
        self.line += (newlines + returns) as u64;
        self.window.consume(length);
    }
}

/// Whether a line of CSV is not just cells between commas.
#[inline]
fn is_special(line: &[u8]) -> bool {
    memchr2(b'"', b'\r', line).is_some()
}

/// Parses the row at the start of the window and puts its faults into words; `None` asks for more text.
fn parse(quoted: &mut QuotedRow, window: &Window, line: u64) -> Result<Option<usize>> {
    let rest = window.rest();
    let rule = match quoted.parse(rest, window.ended()) {
        Ok(None) if rest.len() >= LONGEST_QUOTED_ROW => {
            "a quote opens in this row and stays open for 256 MiB; close it"
        }
        Ok(length) => return Ok(length),
        Err(Fault::Open) => {
            "a quote opens in this row and is not closed before the text ends; close it"
        }
        Err(Fault::TextAfterQuote) => {
            "text follows a closing quote in this row; close the quote before it, or double the quotes inside a cell"
        }
    };
    Err(Error::at_line(ErrorKind::Malformed, line, rule))
}
