//! What an input is taken for.

use std::path::Path;

use dptop_readers::{Detected, Format, Input, detect};

#[test]
fn first_bytes_say_what_it_is() {
    let mut tar = vec![b'a'; 512];
    tar[257..263].copy_from_slice(b"ustar\0");
    let foreign: &[&[u8]] = &[
        b"PK\x03\x04\x14\0",
        b"%PDF-1.7",
        b"\x89PNG\r\n\x1A\n",
        b"GIF89a \0",
        b"\xFF\xD8\xFF\xE0",
        b"\x7FELF\x02",
        b"SQLite format 3\0",
        b"ORC\n\x13\0\x0A",
        b"Obj\x01\x04",
        b"7z\xBC\xAF\x27\x1C\0",
        b"Rar!\x1A\x07\x01\0",
        b"\x04\x22\x4D\x18d",
        b"\xFF\x06\0\0sNaPpY",
        b"\xD4\xC3\xB2\xA1\x02\0",
        b"\n\r\r\n\x1C\0\0\0\x4D\x3C\x2B\x1A",
        b"\x89HDF\r\n\x1A\n",
        b"FEA1\0\0\0\0",
        &tar,
    ];
    for head in foreign {
        assert!(
            matches!(detect(head), Detected::Foreign(_)),
            "{}",
            head.escape_ascii()
        );
    }
    let others: &[(&[u8], Detected)] = &[
        (b"PAR1\x15\x04", Detected::Parquet),
        (b"PAR1", Detected::Parquet),
        (b"ARROW1\0\0\xFF\xFF\xFF\xFF", Detected::ArrowFile),
        (b"\xFF\xFF\xFF\xFF\x78\0\0\0", Detected::ArrowStream),
        (b"\xFF\xFEa\0", Detected::Utf16),
        (b"\xFE\xFF\0a", Detected::Utf16),
    ];
    for (head, what) in others {
        assert_eq!(detect(head), *what, "{}", head.escape_ascii());
    }
}

#[test]
fn a_text_may_start_with_the_words_of_a_signature() {
    for text in [
        "",
        "PAR1,x\n",
        "PAR1\n",
        "ORCHARD\n",
        "ORC\n",
        "PARENT\n",
        "FEA1\n",
        "ARROW1\n",
        "BZh9\n",
        "Obj\n",
        "%PDF",
        "\u{FEFF}a",
        "\0",
    ] {
        assert_eq!(detect(text.as_bytes()), Detected::Text, "{text:?}");
    }
    assert_eq!(detect(b"\xFF\n"), Detected::Text);
}

#[test]
fn a_file_name_decides_among_text_formats() {
    for (name, format) in [
        ("a.csv", Format::Csv),
        ("a.CSV.gz", Format::Csv),
        ("dir.csv/a.tsv.zst", Format::Tsv),
        ("a.tab.xz", Format::Tsv),
        ("a.jsonl", Format::Jsonl),
        ("a.ndjson.bz2", Format::Jsonl),
        ("a.log", Format::Lines),
        ("a.gz", Format::Lines),
        ("csv", Format::Lines),
        (".csv", Format::Lines),
        ("", Format::Lines),
    ] {
        assert_eq!(Format::from_name(Path::new(name)), format, "{name}");
        let input = Input::from_read(Box::new(&b"text"[..]), Some(Path::new(name))).unwrap();
        assert_eq!((input.format(), input.detected()), (format, Detected::Text));
    }
}
