//! Each text format, case by case: what is a label, and what is an error that says where and quotes nothing.

mod support;

use dptop_readers::{Block, Error, ErrorKind, Format, Input, Options, Place};
use support::{Label, bytes, drain, integers, options, read, texts};

#[test]
fn lines_are_labels_as_they_stand() {
    let lines = Options::new(Format::Lines);
    let cases: &[(&[u8], &[&[u8]])] = &[
        (b"", &[]),
        (b"\n\n\r\n\n", &[]),
        (b"a", &[b"a"]),
        (b"a\nb\n", &[b"a", b"b"]),
        (b"a\r\nb\r\n", &[b"a", b"b"]),
        (b"a\r\r\nb\rc\n", &[b"a\r", b"b\rc"]),
        (b"a\n\nb", &[b"a", b"b"]),
        (b" a \n\t\n", &[b" a ", b"\t"]),
        (b"\xEF\xBB\xBFa\n\xEF\xBB\xBFb\n", &[b"a", b"\xEF\xBB\xBFb"]),
        (b"\xEF\xBB\xBF", &[]),
        (
            b"\xFF\n\xFE\n\xEF\xBF\xBD\n",
            &[b"\xFF", b"\xFE", b"\xEF\xBF\xBD"],
        ),
        (b"a\0b\n\0\n", &[b"a\0b", b"\0"]),
        (b"\"a,b\"\n", &[b"\"a,b\""]),
    ];
    for (text, labels) in cases {
        assert_eq!(
            read(text, &lines),
            Ok(bytes(*labels)),
            "{:?}",
            text.escape_ascii().to_string()
        );
    }
}

#[test]
fn nulls_are_skipped_in_every_format() {
    let nulls = &["NA", "-"];
    let cases = [
        (Format::Lines, None, "NA\na\n-\nNA \n", bytes(["a", "NA "])),
        (
            Format::Csv,
            Some("x"),
            "x,y\nNA,1\na,2\n\"-\",3\n\"NA\",4\n,5\n",
            bytes(["a"]),
        ),
        (
            Format::Tsv,
            Some("x"),
            "x\ty\nNA\t1\na\t2\n\"-\"\t3\n\t4\n",
            bytes(["a", "\"-\""]),
        ),
        (
            Format::Jsonl,
            None,
            "\"NA\"\nnull\n\"a\"\n\"\\u002d\"\n",
            texts(&["a"]),
        ),
        (Format::Jsonl, None, "\"NA\"\n7\n", integers(&[7])),
    ];
    for (format, column, text, labels) in cases {
        assert_eq!(
            read(text, &options(format, column, nulls)),
            Ok(labels),
            "{format:?}"
        );
    }
}

#[test]
fn lines_have_no_columns() {
    let error = read("a\n", &options(Format::Lines, Some("x"), &[])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn csv_cells_of_one_column_are_labels() {
    let cases: &[(&str, Option<&str>, &[&str])] = &[
        ("x\na\nb", None, &["a", "b"]),
        ("x,y\n1,a\n2,b\n", Some("y"), &["a", "b"]),
        ("x,y\r\n1,a\r\n2,b\r\n", Some("y"), &["a", "b"]),
        ("x,y\r1,a\r2,b\r", Some("y"), &["a", "b"]),
        ("\u{FEFF}x,y\n1,a\n", Some("x"), &["1"]),
        ("\u{FEFF}\"x\",y\n1,a\n", Some("x"), &["1"]),
        ("\"x\",\"y, z\"\n1,a\n", Some("y, z"), &["a"]),
        ("\"a\"\"b\"\n1\n", Some("a\"b"), &["1"]),
        ("x\n\n\r\na\n\n", None, &["a"]),
        ("\n\r\nx,y\n1,a\n", Some("y"), &["a"]),
        ("x,y\n1,\n,a\n", Some("y"), &["a"]),
        ("x\n\"\"\n\"a\"\n", None, &["a"]),
        (
            "x,y\n\"1\",\"line\nbreak\"\n\"2\",\"a\r\nb\"\n",
            Some("y"),
            &["line\nbreak", "a\r\nb"],
        ),
        ("x,y\n1,\"say \"\"hi\"\"\"\n", Some("y"), &["say \"hi\""]),
        ("x,y\n1,5\" pipe\n", Some("y"), &["5\" pipe"]),
        ("x,y\n1,\"tab\there\"", Some("y"), &["tab\there"]),
        ("x,y\n1,a\0b\n", Some("y"), &["a\0b"]),
        ("x,y\n 1 ,  \n", Some("y"), &["  "]),
        (",y\n1,a\n", Some(""), &["1"]),
        ("X,x\n1,a\n", Some("x"), &["a"]),
        (
            "x,y\n1,\u{FEFF}\n\u{FEFF}2,\"b\"\n",
            Some("y"),
            &["\u{FEFF}", "b"],
        ),
        ("x,y\n\u{FEFF}2,\"b\"\n", Some("x"), &["\u{FEFF}2"]),
    ];
    for (text, column, labels) in cases {
        assert_eq!(
            read(text, &options(Format::Csv, *column, &[])),
            Ok(bytes(*labels)),
            "{text:?}"
        );
    }
    let invalid = read(
        b"x,y\n1,\xFF\n2,\"\xFE\"\n",
        &options(Format::Csv, Some("y"), &[]),
    );
    assert_eq!(invalid, Ok(bytes([b"\xFF", b"\xFE"])));
}

#[test]
fn tsv_has_no_quoting() {
    let cases: &[(&str, Option<&str>, &[&str])] = &[
        ("x\na\nb", None, &["a", "b"]),
        ("x\ty\n1\ta\r\n2\tb\r\n", Some("y"), &["a", "b"]),
        ("x\ty\r\n1\ta", Some("y"), &["a"]),
        (
            "\u{FEFF}x\ty\n1\t\"a\n\"2\tb,\"\n",
            Some("y"),
            &["\"a", "b,\""],
        ),
        ("\"x\"\n\"a\"\n\"\"\n", Some("\"x\""), &["\"a\"", "\"\""]),
        ("x\ty\n\n1\t\n\ta\n", Some("y"), &["a"]),
        ("x\ty\n1\ta\rb\n", Some("y"), &["a\rb"]),
        ("\n\r\nx\ty\n1\ta\n", Some("y"), &["a"]),
    ];
    for (text, column, labels) in cases {
        assert_eq!(
            read(text, &options(Format::Tsv, *column, &[])),
            Ok(bytes(*labels)),
            "{text:?}"
        );
    }
}

#[test]
fn a_table_without_rows_is_empty_and_no_error() {
    for format in [Format::Csv, Format::Tsv] {
        for text in [
            "",
            "\n\n",
            "\r\n",
            "\u{FEFF}",
            "x",
            "x\n",
            "x\r\n\n",
            "\u{FEFF}x\n",
        ] {
            assert_eq!(
                read(text, &options(format, Some("x"), &[])),
                Ok(vec![]),
                "{format:?} {text:?}"
            );
            assert_eq!(
                read(text, &options(format, None, &[])),
                Ok(vec![]),
                "{format:?} {text:?}"
            );
        }
    }
    for text in ["", "\n \n\t\r\n", "\u{FEFF}", "{\"x\": null}\n"] {
        assert_eq!(
            read(text, &options(Format::Jsonl, Some("x"), &[])),
            Ok(vec![]),
            "{text:?}"
        );
    }
    for text in ["", "\n \n", "null\nnull"] {
        assert_eq!(
            read(text, &options(Format::Jsonl, None, &[])),
            Ok(vec![]),
            "{text:?}"
        );
    }
}

/// The error of a table and of the same table with the other separator.
fn table_errors(csv: &str, column: Option<&str>) -> [Error; 2] {
    let tsv = csv.replace(',', "\t");
    [(csv, Format::Csv), (&tsv, Format::Tsv)]
        .map(|(text, f)| read(text, &options(f, column, &[])).expect_err(text))
}

#[test]
fn a_missing_column_lists_the_columns_there_are() {
    for column in [Some("z"), Some("X"), Some(" x"), None] {
        for error in table_errors("x,why\n1,secret\n", column) {
            assert_eq!(error.kind(), ErrorKind::MissingColumn);
            let text = error.to_string();
            assert!(
                text.contains("\"x\", \"why\"") && !text.contains("secret"),
                "{text}"
            );
        }
    }
    let many = (0..100)
        .map(|i| format!("column{i}"))
        .collect::<Vec<_>>()
        .join(",");
    let text = read(many, &options(Format::Csv, Some("x"), &[]))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("\"column29\" and 70 more") && !text.contains("column30"),
        "{text}"
    );
    let long = "y".repeat(5000) + ",\u{1b}[31mx";
    let text = read(long, &options(Format::Csv, Some("x"), &[]))
        .unwrap_err()
        .to_string();
    assert!(text.len() < 300 && !text.contains('\u{1b}'), "{text}");
    let invalid = read(b"\xFF,y\n", &options(Format::Csv, Some("x"), &[]))
        .unwrap_err()
        .to_string();
    assert!(invalid.contains("\u{FFFD}"), "{invalid}");
}

#[test]
fn a_chosen_column_that_is_there_twice_is_an_error() {
    for error in table_errors("x,y,x\n1,2,3\n", Some("x")) {
        assert_eq!(error.kind(), ErrorKind::DuplicateColumn);
        assert!(error.to_string().contains("\"x\" 2 times"), "{error}");
    }
    assert_eq!(
        read("x,y,x\n1,2,3\n", &options(Format::Csv, Some("y"), &[])),
        Ok(bytes(["2"]))
    );
}

#[test]
fn a_row_of_another_length_is_an_error_with_its_line() {
    for (text, line) in [
        ("x,y\n1,2\nsecret\n", 3),
        ("x,y\n1,2,secret\n", 2),
        ("x,y\n\n\n1,2\r\n\r\nsecret", 6),
        ("x,y\nsecret,2,\n", 2),
        ("x\nsecret,\n", 2),
    ] {
        for error in table_errors(text, Some("x")) {
            assert_eq!(
                (error.kind(), error.place()),
                (ErrorKind::Malformed, Some(Place::Line(line))),
                "{text:?}: {error}"
            );
            assert!(!error.to_string().contains("secret"));
        }
    }
    for (text, line) in [
        ("x,y\n\"1\n1\",2\n\"secret\"\n", 4),
        ("x,y\n\"1\r\n1\",2\r\nsecret\r\n", 4),
        ("x,y\r1,2\r\r\"secret\"\r", 4),
        ("\"x\n\",y\n1,2\nsecret\n", 4),
        ("x,y\n1,2\n\n\n\"secret\n\n\",3,4\n", 5),
    ] {
        let column = if text.starts_with('"') { "x\n" } else { "x" };
        let error = read(text, &options(Format::Csv, Some(column), &[])).unwrap_err();
        assert_eq!(
            (error.kind(), error.place()),
            (ErrorKind::Malformed, Some(Place::Line(line))),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn a_quote_left_open_is_an_error_with_its_line() {
    for (text, line) in [
        ("x,y\n1,\"secret", 2),
        ("x,y\n1,\"secret\n2,b\n3,c\n", 2),
        ("x,y\n\"1\n\",2\n\n\"secret,2\n", 5),
        ("x,y\n1,2\n3,\"\"\"\n", 3),
        ("x,y\n1,\"secret\n2,\"b\"\n", 2),
        ("x,y\n1,\"", 2),
        ("\"x,y\n1,2\n", 1),
    ] {
        let error = read(text, &options(Format::Csv, Some("x"), &[])).expect_err(text);
        assert_eq!(
            (error.kind(), error.place()),
            (ErrorKind::Malformed, Some(Place::Line(line))),
            "{text:?}: {error}"
        );
        assert!(
            error.to_string().contains("quote") && !error.to_string().contains("secret"),
            "{error}"
        );
    }
}

#[test]
fn json_strings_are_text_labels() {
    let cases: &[(&str, Option<&str>, &[&str])] = &[
        ("\"a\"\n\"b\"", None, &["a", "b"]),
        ("\u{FEFF} \"a\" \r\n\n \t\n\"b\"\r\n", None, &["a", "b"]),
        (
            "\"\"\n\"é\\u00e9\\ud83d\\ude00\\n\\t\\\"\\u0000\"\n",
            None,
            &["", "éé😀\n\t\"\0"],
        ),
        (
            "{\"x\":\"a\",\"y\":1}\n{\"y\":[{\"x\":9}],\"x\":\"b\"}\n",
            Some("x"),
            &["a", "b"],
        ),
        (
            "{\"y\":1}\n{}\n{\"x\":null}\n{\"x\":\"a\"}",
            Some("x"),
            &["a"],
        ),
        ("{\"\\u0078\":\"a\"}", Some("x"), &["a"]),
        ("{\"y\":\"a\",\"y\":\"b\",\"x\":\"c\"}", Some("x"), &["c"]),
        ("{\"\":\"a\"}", Some(""), &["a"]),
        ("{\"y\":1e999,\"x\":\"a\"}", Some("x"), &["a"]),
        (" {\"x\" : \"a\" } ", Some("x"), &["a"]),
    ];
    for (text, column, labels) in cases {
        assert_eq!(
            read(text, &options(Format::Jsonl, *column, &[])),
            Ok(texts(labels)),
            "{text:?}"
        );
    }
}

#[test]
fn json_integers_of_64_bits_are_exact() {
    let ends = [
        i64::MIN.into(),
        -1,
        0,
        1,
        i64::MAX.into(),
        i128::from(i64::MAX) + 1,
        u64::MAX.into(),
        5,
        -5,
        1 << 53 | 1,
    ];
    let text = ends.map(|value: i128| value.to_string()).join("\n");
    assert_eq!(
        read(&text, &options(Format::Jsonl, None, &[])),
        Ok(integers(&ends))
    );
    let objects = ends
        .map(|value: i128| format!("{{\"x\":{value}}}"))
        .join("\n");
    assert_eq!(
        read(&objects, &options(Format::Jsonl, Some("x"), &[])),
        Ok(integers(&ends))
    );
}

#[test]
fn integer_blocks_change_only_where_the_range_does() {
    let text = "1\n18446744073709551615\n2\n3\n-1\n4\n";
    let input = Input::from_read(Box::new(text.as_bytes()), None).unwrap();
    let mut reader = input.into_reader(Options::new(Format::Jsonl)).unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        blocks.push(block);
    }
    let expected = [
        Block::Signed(vec![1]),
        Block::Unsigned(vec![u64::MAX, 2, 3]),
        Block::Signed(vec![-1, 4]),
    ];
    assert_eq!(blocks, expected);
}

#[test]
fn other_json_values_are_no_labels() {
    for (value, word) in [
        ("true", "boolean"),
        ("false", "boolean"),
        ("1.0", "fraction"),
        ("1e3", "exponent"),
        ("-0.0", "fraction"),
        ("1e999", "exponent"),
        ("18446744073709551616", "64 bits"),
        ("-9223372036854775809", "64 bits"),
        ("[1]", "array"),
        ("{\"x\":1}", "object"),
    ] {
        for (text, column) in [
            (value.to_owned(), None),
            (format!("{{\"x\":{value}}}"), Some("x")),
        ] {
            let error =
                read(format!("\n{text}\n"), &options(Format::Jsonl, column, &[])).expect_err(&text);
            assert_eq!(
                (error.kind(), error.place()),
                (ErrorKind::UnsupportedLabel, Some(Place::Line(2))),
                "{error}"
            );
            assert!(
                error.to_string().contains(word) && error.to_string().contains("as a string"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_second_kind_of_json_label_is_an_error() {
    for text in [
        "\"secret\"\nnull\n1\n",
        "1\n\n\"secret\"\n",
        "18446744073709551615\n\n\"secret\"\n",
    ] {
        let error = read(text, &Options::new(Format::Jsonl)).expect_err(text);
        assert_eq!(
            (error.kind(), error.place()),
            (ErrorKind::UnsupportedLabel, Some(Place::Line(3))),
            "{error}"
        );
        assert!(!error.to_string().contains("secret"));
    }
    let far = "1\n".repeat(1 << 16) + "\"a\"\n";
    assert_eq!(
        read(far, &Options::new(Format::Jsonl)).unwrap_err().kind(),
        ErrorKind::UnsupportedLabel
    );
}

#[test]
fn a_line_that_is_not_json_is_an_error_with_its_line() {
    let bad: &[&[u8]] = &[
        b"secret",
        b"\"secret",
        b"\"secret\" 1",
        b"\"secret\",",
        b"{\"x\":\"secret\"",
        b"{\"x\":\"secret\",}",
        b"{\"x\":\"secret\"} {}",
        b"{\"x\":\"secret\\ud800\"}",
        b"{\"x\":\"\xFFsecret\"}",
        b"{\"x\":\"a\",\"y\":\"\xFFsecret\"}",
        b"{\"x\":\"secret\\q\"}",
        b"{\"x\":\"secret\x01\"}",
        b"{\"x\":01}",
        b"{\"x\":+1}",
        b"{\"x\":-}",
        b"{\"x\":NaN}",
        b"{'x':1}",
        b"{\"x\":\"a\"}\xEF\xBB\xBF",
        b"\0",
        b"[",
    ];
    for line in bad {
        for column in [None, Some("x")] {
            let good: &[u8] = if column.is_some() {
                b"{\"x\":\"a\"}\n\n"
            } else {
                b"\"a\"\n\n"
            };
            let error =
                read([good, line].concat(), &options(Format::Jsonl, column, &[])).unwrap_err();
            let wrong = line.starts_with(b"{")
                && column.is_none()
                && error.kind() == ErrorKind::UnsupportedLabel;
            assert!(
                error.kind() == ErrorKind::Malformed || wrong,
                "{}: {error}",
                line.escape_ascii()
            );
            assert_eq!(error.place(), Some(Place::Line(3)), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
    for line in ["\"secret\"", "1", "[1]", "true", "null"] {
        let error = read(line, &options(Format::Jsonl, Some("x"), &[])).unwrap_err();
        assert_eq!(
            (error.kind(), error.place()),
            (ErrorKind::Malformed, Some(Place::Line(1))),
            "{error}"
        );
        assert!(error.to_string().contains("object"), "{error}");
    }
}

#[test]
fn a_json_member_twice_in_one_object_is_an_error() {
    for text in [
        "{\"x\":1,\"x\":2}",
        "{\"x\":null,\"y\":0,\"\\u0078\":null}",
        "{\"x\":1,\"x\":1,\"x\":1}",
    ] {
        let error = read(text, &options(Format::Jsonl, Some("x"), &[])).expect_err(text);
        assert_eq!(
            (error.kind(), error.place()),
            (ErrorKind::DuplicateColumn, Some(Place::Line(1))),
            "{error}"
        );
    }
}

#[test]
fn a_json_member_that_no_object_has_lists_those_of_the_first() {
    let error = read(
        "{\"a\":\"secret\",\"b\":1}\n{\"c\":1}\n",
        &options(Format::Jsonl, Some("x"), &[]),
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingColumn);
    let text = error.to_string();
    assert!(
        text.contains("\"a\", \"b\"") && !text.contains("secret") && !text.contains("\"c\""),
        "{text}"
    );
    assert_eq!(
        read("{}\n", &options(Format::Jsonl, Some("x"), &[]))
            .unwrap_err()
            .kind(),
        ErrorKind::MissingColumn
    );
}

#[test]
fn deep_nesting_overflows_no_stack() {
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    let error = read(&deep, &Options::new(Format::Jsonl)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedLabel);
    let beside = format!("{{\"y\":{deep},\"x\":1}}");
    assert_eq!(
        read(beside, &options(Format::Jsonl, Some("x"), &[])),
        Ok(integers(&[1]))
    );
}

#[test]
fn a_utf_16_mark_is_refused_with_a_remedy() {
    for mark in [b"\xFF\xFEa\0\n\0", b"\xFE\xFF\0a\0\n"] {
        for format in [Format::Lines, Format::Csv, Format::Tsv, Format::Jsonl] {
            let error = read(mark, &Options::new(format)).unwrap_err();
            assert_eq!(
                (error.kind(), error.place()),
                (ErrorKind::Encoding, Some(Place::Byte(0)))
            );
            assert!(error.to_string().contains("iconv"), "{error}");
        }
    }
}

#[test]
fn labels_of_three_megabytes_and_odd_characters_come_back() {
    let long = "0123456789, \"\t\u{1}é".repeat(190_000);
    assert!(long.len() > 3_000_000);
    let odd = [
        "line\nbreak",
        "tab\there",
        "nul\0here",
        "quote\"here",
        "comma,here",
        "return\r\nhere",
        &long,
        "é",
        "'",
    ];

    let csv: String = odd
        .iter()
        .map(|label| format!("1,\"{}\",2\r\n", label.replace('"', "\"\"")))
        .collect();
    assert_eq!(
        read(
            "a,b,c\n".to_owned() + &csv,
            &options(Format::Csv, Some("b"), &[])
        ),
        Ok(bytes(odd))
    );
    // The long cell is not the chosen one.
    let ones = vec!["1"; odd.len()];
    assert_eq!(
        read(
            "a,b,c\n".to_owned() + &csv,
            &options(Format::Csv, Some("a"), &[])
        ),
        Ok(bytes(ones))
    );

    let json: String = odd
        .iter()
        .map(|label| serde_json::to_string(label).unwrap() + "\n")
        .collect();
    assert_eq!(read(json, &Options::new(Format::Jsonl)), Ok(texts(&odd)));

    let plain: Vec<&str> = odd
        .into_iter()
        .filter(|label| !label.contains('\n'))
        .collect();
    assert_eq!(
        read(plain.join("\n"), &Options::new(Format::Lines)),
        Ok(bytes(&plain))
    );
    let cells: Vec<&str> = plain
        .iter()
        .copied()
        .filter(|label| !label.contains('\t'))
        .collect();
    assert_eq!(
        read(
            "b\n".to_owned() + &cells.join("\n"),
            &Options::new(Format::Tsv)
        ),
        Ok(bytes(&cells))
    );
}

#[test]
fn blocks_are_bounded_unless_one_label_is_larger() {
    for (label, count) in [
        ("a".to_owned(), 200_000),
        ("b".repeat(100), 50_000),
        ("c".repeat(2_000_000), 3),
    ] {
        let text = format!("{label}\n").repeat(count);
        let input = Input::from_read(Box::new(std::io::Cursor::new(text)), None).unwrap();
        let mut reader = input.into_reader(Options::new(Format::Lines)).unwrap();
        let mut total = 0;
        while let Some(Block::Bytes(block)) = reader.next_block().unwrap() {
            assert!(block.len() <= 1 << 16 && block.bytes.len() < (1 << 20) + label.len());
            assert_eq!(block.ends.last(), Some(&block.bytes.len()));
            total += block.len();
        }
        assert_eq!(total, count);
    }
}

#[test]
fn an_error_is_repeated_so_that_nothing_before_it_counts() {
    let input = Input::from_read(Box::new(&b"x,y\n1,2\n3\n"[..]), None).unwrap();
    let mut reader = input
        .into_reader(options(Format::Csv, Some("x"), &[]))
        .unwrap();
    let error = reader.next_block().unwrap_err();
    assert_eq!(reader.next_block(), Err(error.clone()));
    assert_eq!(reader.next_block(), Err(error));
}

#[test]
fn the_end_is_repeated_too() {
    let input = Input::from_read(Box::new(&b"1\n"[..]), None).unwrap();
    let mut reader = input.into_reader(Options::new(Format::Jsonl)).unwrap();
    assert_eq!(reader.next_block(), Ok(Some(Block::Signed(vec![1]))));
    assert_eq!(reader.next_block(), Ok(None));
    assert_eq!(reader.next_block(), Ok(None));
    assert_eq!(drain(reader), Ok(Vec::<Label>::new()));
}
