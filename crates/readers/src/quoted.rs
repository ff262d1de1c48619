//! One CSV row with all that quoting allows, by the csv crate's automaton, on a row that lies whole in memory.
//!
//! The automaton takes any text for CSV. What RFC 4180 does not allow around quotes is refused here.

use csv_core::ReadRecordResult;
use memchr::memchr;

/// What is wrong with the quotes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text ends inside a quoted cell.
    Open,
    /// Something other than a comma or the end of the row follows a closing quote. Mostly it is an earlier quote that
    /// was never closed, and closing at the next one would join two rows.
    TextAfterQuote,
}

/// Parses rows one at a time and holds the cells of the last one.
pub(crate) struct QuotedRow {
    /// Between two calls it stands at the start of a row. (A clone of it would not work: csv-core 0.1 loses its table.)
    automaton: csv_core::Reader,
    cells: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
}

impl QuotedRow {
    pub(crate) fn new() -> QuotedRow {
        let mut row = QuotedRow {
            automaton: csv_core::Reader::new(),
            cells: Vec::new(),
            ends: vec![0; 64],
            fields: 0,
        };
        row.restart();
        row
    }

    /// Puts the automaton at the start of a row, past the start of the text, where it would drop a byte order mark.
    fn restart(&mut self) {
        self.automaton.reset();
        self.automaton.read_record(b"\n", &mut [0; 1], &mut [0; 1]);
    }

    /// Parses the row at the start of `text`, which does not start with a line end. Returns its length with its line
    /// end, or `None` if `text` does not hold all of it; `ended` says that nothing follows `text`.
    pub(crate) fn parse(&mut self, text: &[u8], ended: bool) -> Result<Option<usize>, Fault> {
        if self.cells.len() < text.len() {
            self.cells.resize(text.len(), 0);
        }
        let (mut length, mut written) = (0, 0);
        self.fields = 0;
        let mut input = text;
        loop {
            let (result, read, wrote, fields) = self.automaton.read_record(
                input,
                &mut self.cells[written..],
                &mut self.ends[self.fields..],
            );
            written += wrote;
            self.fields += fields;
            length += read;
            input = &input[read..];
            match result {
                ReadRecordResult::Record => break,
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::OutputFull => self.cells.resize(self.cells.len() * 2 + 1, 0),
                ReadRecordResult::InputEmpty if !ended => {
                    self.restart();
                    return Ok(None);
                }
                // A line end after the last row changes nothing, except inside quotes.
                ReadRecordResult::InputEmpty if length == text.len() => input = b"\n",
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return Err(Fault::Open),
            }
        }
        length = length.min(text.len());
        if text[length - 1] == b'\r' {
            match text.get(length) {
                Some(b'\n') => length += 1,
                None if !ended => return Ok(None),
                _ => {}
            }
        }
        if text_after_quote(&text[..length]) {
            Err(Fault::TextAfterQuote)
        } else {
            Ok(Some(length))
        }
    }

    /// The number of cells of the row.
    pub(crate) fn fields(&self) -> usize {
        self.fields
    }

    /// A cell of the row, without its quotes.
    pub(crate) fn cell(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.cells[start..self.ends[index]]
    }
}

/// Whether a closing quote in the row is followed by anything but a comma or the end of the row.
fn text_after_quote(row: &[u8]) -> bool {
    let mut at = 0;
    loop {
        if row.get(at) == Some(&b'"') {
            at += 1;
            // To the closing quote: the first one that is not doubled.
            loop {
                match memchr(b'"', &row[at..]) {
                    Some(skip) if row.get(at + skip + 1) == Some(&b'"') => at += skip + 2,
                    Some(skip) => break at += skip + 1,
                    None => return false,
                }
            }
            if !matches!(row.get(at), None | Some(b',' | b'\r' | b'\n')) {
                return true;
            }
        }
        match memchr(b',', &row[at..]) {
            Some(skip) => at += skip + 1,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of the first row and what follows it, or why there is none.
    fn row(text: &str, ended: bool) -> Result<Option<(Vec<String>, String)>, Fault> {
        let mut row = QuotedRow::new();
        let length = row.parse(text.as_bytes(), ended)?;
        Ok(length.map(|length| {
            let cells = (0..row.fields()).map(|i| String::from_utf8(row.cell(i).to_vec()).unwrap());
            (cells.collect(), text[length..].to_owned())
        }))
    }

    #[test]
    fn a_row_ends_where_its_line_ends_outside_quotes() {
        for (text, cells, rest) in [
            ("a,b\nc", vec!["a", "b"], "c"),
            ("a,b\r\nc", vec!["a", "b"], "c"),
            ("a,b\rc", vec!["a", "b"], "c"),
            ("\"a\nx\",\"b\"\"y\"\nc", vec!["a\nx", "b\"y"], "c"),
            ("\"\",\n", vec!["", ""], ""),
            ("5\" pipe,b\n", vec!["5\" pipe", "b"], ""),
        ] {
            let cells = cells.into_iter().map(String::from).collect::<Vec<_>>();
            assert_eq!(
                row(text, false),
                Ok(Some((cells, rest.to_owned()))),
                "{text:?}"
            );
        }
    }

    #[test]
    fn the_last_row_needs_no_line_end() {
        for text in ["a,\"b\"", "a,b", "\"a\",b\r", "a,b\n"] {
            assert_eq!(
                row(text, true),
                Ok(Some((vec!["a".into(), "b".into()], String::new()))),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_row_that_may_go_on_needs_more_text() {
        for text in ["a", "a,\"b", "a,\"b\"", "a,b\r", "\"a\n"] {
            assert_eq!(row(text, false), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn a_quote_that_is_still_open_at_the_end_is_a_fault() {
        for text in ["\"", "a,\"b", "a,\"b\n", "\"a\"\"", "\"a\"\"\n", "a,\"\r"] {
            assert_eq!(row(text, true), Err(Fault::Open), "{text:?}");
        }
    }

    #[test]
    fn text_after_a_closing_quote_is_a_fault() {
        for text in ["\"a\"b,c\n", "1,\"open\n2,\"closed\"\n", "\"a\" ,b\n"] {
            assert_eq!(row(text, true), Err(Fault::TextAfterQuote), "{text:?}");
        }
    }

    #[test]
    fn a_row_may_have_many_cells() {
        let text = "x,".repeat(1000) + "\"y\"\n";
        let (cells, rest) = row(&text, false).unwrap().unwrap();
        assert_eq!(
            (cells.len(), cells[1000].as_str(), rest.as_str()),
            (1001, "y", "")
        );
    }

    #[test]
    fn a_byte_order_mark_is_data_here() {
        assert_eq!(
            row("\u{FEFF}a\n", false),
            Ok(Some((vec!["\u{FEFF}a".into()], String::new())))
        );
    }
}
