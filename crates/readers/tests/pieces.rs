//! How a stream is cut into reads changes nothing, and CSV agrees with the csv crate.

mod support;

use dptop_readers::{Error, Format, Options};
use proptest::prelude::*;
use support::{COMPRESSIONS, Label, Pieces, bytes, options, read, read_from};

/// What a place in the text depends on: every byte that some format treats as special, and a few that none does.
const ALPHABET: &[u8] = b"a,\"\n\r\tb\0{}[]:1-.e\\u \xEF\xBB\xBF\xFF";

/// Any text, with or without a byte order mark or a header at its start.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let starts: &[&[u8]] = &[
        b"",
        b"\xEF\xBB\xBF",
        b"\xFF\xFE",
        b"a\n",
        b"\xEF\xBB\xBFa,b\r\n",
        b"a\tb\n",
        b"{\"a\":",
    ];
    let rest = prop::collection::vec(prop::sample::select(ALPHABET), 0..200);
    (prop::sample::select(starts), rest).prop_map(|(start, rest)| [start, &rest].concat())
}

/// The rows of a table with a header of as many cells.
fn table() -> impl Strategy<Value = Vec<Vec<String>>> {
    (1..5usize).prop_flat_map(|fields| {
        let cell = "[ab,\"\n\r\t é]{0,6}";
        prop::collection::vec(prop::collection::vec(cell, fields..=fields), 1..30)
    })
}

/// Every format, with and without a column.
fn all_options() -> Vec<Options> {
    let mut all = vec![Options::new(Format::Lines)];
    for format in [Format::Csv, Format::Tsv, Format::Jsonl] {
        all.extend([
            options(format, None, &["b"]),
            options(format, Some("a"), &[]),
        ]);
    }
    all
}

/// Labels as the csv crate reads them, of one column, empty cells left out.
fn twin(csv: &[u8], index: usize) -> Vec<Label> {
    let mut reader = csv::ReaderBuilder::new().from_reader(csv);
    let records = reader
        .byte_records()
        .map(|record| record.expect("a valid table")[index].to_vec());
    bytes(records.filter(|cell| !cell.is_empty()))
}

/// Written out with each cell quoted, or only where it must be.
fn written(table: &[Vec<String>], style: csv::QuoteStyle, terminator: csv::Terminator) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new()
        .quote_style(style)
        .terminator(terminator)
        .from_writer(Vec::new());
    for row in table {
        writer.write_record(row).unwrap();
    }
    writer.into_inner().unwrap()
}

proptest! {
    /// The same labels or the same error, whatever the text.
    #[test]
    fn pieces_of_any_size_read_as_the_whole(text in text(), largest in 1..40usize, seed: u64) {
        for options in all_options() {
            let whole = read(&text, &options);
            prop_assert_eq!(read_from(Pieces::new(&text, largest, seed), &options), whole);
        }
    }

    /// Errors too, but for their place in the stored bytes.
    #[test]
    fn a_compressed_text_reads_as_the_text(text in text(), largest in 1..40usize, seed: u64) {
        let text_alone = |result: Result<Vec<Label>, Error>| result.map_err(|error| error.message().to_owned());
        let options = options(Format::Csv, Some("a"), &[]);
        let whole = text_alone(read(&text, &options));
        for (_, compress) in COMPRESSIONS {
            let pieces = Pieces::new(compress(&text), largest, seed);
            prop_assert_eq!(&text_alone(read_from(pieces, &options)), &whole);
        }
    }

    /// Rows of any valid table, however quoted and ended.
    #[test]
    fn csv_agrees_with_the_csv_crate(mut table in table(), index: prop::sample::Index) {
        let fields = table[0].len();
        table[0] = (0..fields).map(|i| format!("name {i}")).collect();
        let index = index.index(fields);
        for style in [csv::QuoteStyle::Necessary, csv::QuoteStyle::Always] {
            for terminator in [csv::Terminator::Any(b'\n'), csv::Terminator::CRLF, csv::Terminator::Any(b'\r')] {
                let text = written(&table, style, terminator);
                let column = format!("name {index}");
                prop_assert_eq!(
                    read(&text, &options(Format::Csv, Some(&column), &[])),
                    Ok(twin(&text, index)),
                    "{:?}", text.escape_ascii().to_string()
                );
            }
        }
    }

    /// Any text that we take, the csv crate takes the same way: we are only stricter.
    #[test]
    fn csv_is_the_csv_crate_or_an_error(text in "(a|a,b)\n[a,\"\n\r\t é]{0,60}") {
        let ours = read(&text, &options(Format::Csv, Some("a"), &[]));
        if let Ok(labels) = ours {
            prop_assert_eq!(labels, twin(text.as_bytes(), 0));
        }
    }
}

/// Lines, rows and labels at every place relative to the window of 256 KiB and the block of 1 MiB.
#[test]
fn lines_across_the_edges_of_buffers_come_back() {
    for length in [
        1,
        7,
        4095,
        65_537,
        (1 << 18) - 1,
        1 << 18,
        (1 << 18) + 1,
        (1 << 20) + 3,
    ] {
        let label: Vec<u8> = (0..length).map(|i| b'a' + (i % 23) as u8).collect();
        let count = ((5 << 18) / length).min(150_000) + 2;
        let labels = vec![label; count];
        for end in [&b"\n"[..], b"\r\n"] {
            let text = labels.join(end);
            let expected = Ok(bytes(&labels));
            assert!(
                read(&text, &Options::new(Format::Lines)) == expected,
                "lines of {length}"
            );
            let table = [b"x".as_slice(), end, &text].concat();
            assert!(
                read(&table, &Options::new(Format::Csv)) == expected,
                "cells of {length}"
            );
            assert!(
                read(&table, &Options::new(Format::Tsv)) == expected,
                "cells of {length}"
            );
            let quoted: Vec<u8> = labels
                .iter()
                .flat_map(|label| [b"\"", &label[..], b"\"", end].concat())
                .collect();
            let table = [b"x".as_slice(), end, &quoted].concat();
            assert!(
                read(&table, &Options::new(Format::Csv)) == expected,
                "quoted cells of {length}"
            );
        }
    }
}

/// A carriage return alone ends a row of CSV: the whole text has no newline, and is still read in bounded memory.
#[test]
fn csv_rows_that_end_with_a_return_alone_are_rows() {
    let text = "x,y\r".to_owned() + &"1,abc\r".repeat(500_000);
    let labels = read(text, &options(Format::Csv, Some("y"), &[])).unwrap();
    assert_eq!(labels.len(), 500_000);
}
