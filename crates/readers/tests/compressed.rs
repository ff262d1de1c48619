//! Compressed inputs: all members, to the end, and nothing after it.

mod support;

use std::io::{self, Read};

use dptop_readers::{Compression, Detected, ErrorKind, Format, Options, Place};
use support::{COMPRESSIONS, Pieces, bytes, drain, named, read, read_from};

const TEXT: &[u8] = b"red\ngreen\nred\nblue\n";

fn lines() -> Options {
    Options::new(Format::Lines)
}

#[test]
fn the_compression_is_recognised_by_content() {
    let formats = [
        Compression::Gzip,
        Compression::Zstd,
        Compression::Bzip2,
        Compression::Xz,
    ];
    for ((extension, compress), format) in COMPRESSIONS.into_iter().zip(formats) {
        let input = named(&compress(TEXT), "misleading.txt").unwrap();
        assert_eq!(input.compression(), Some(format), "{extension}");
        assert_eq!(
            drain(input.into_reader(lines()).unwrap()),
            read(TEXT, &lines()),
            "{extension}"
        );
        let plain = named(TEXT, &format!("plain.{extension}")).unwrap();
        assert_eq!(
            (plain.compression(), plain.detected()),
            (None, Detected::Text)
        );
    }
}

#[test]
fn every_member_is_read() {
    for (extension, compress) in COMPRESSIONS {
        let members = [
            compress(b"a\nb"),
            compress(b""),
            compress(b"c\n"),
            compress(b"d"),
        ]
        .concat();
        assert_eq!(
            read(&members, &lines()),
            Ok(bytes(["a", "bc", "d"])),
            "{extension}"
        );
        for largest in [1, 3, 50] {
            let pieces = Pieces::new(&members, largest, 7);
            assert_eq!(
                read_from(pieces, &lines()),
                Ok(bytes(["a", "bc", "d"])),
                "{extension}"
            );
        }
    }
}

#[test]
fn an_empty_member_is_an_empty_text() {
    for (extension, compress) in COMPRESSIONS {
        assert_eq!(read(compress(b""), &lines()), Ok(vec![]), "{extension}");
    }
}

#[test]
fn every_truncation_is_an_error_except_between_members() {
    for (extension, compress) in COMPRESSIONS {
        let first = compress(TEXT);
        let both = [first.clone(), compress(b"more\n")].concat();
        let name = format!("words.{extension}");
        for length in 0..both.len() {
            let cut = &both[..length];
            let result = named(cut, &name)
                .and_then(|input| input.into_reader(lines()))
                .and_then(drain);
            if length == first.len() {
                assert_eq!(
                    result,
                    read(TEXT, &lines()),
                    "{extension} at the end of the first member"
                );
                continue;
            }
            let error = result.expect_err(&format!("{extension} cut at byte {length}"));
            assert_eq!(
                error.kind(),
                ErrorKind::Truncated,
                "{extension} cut at byte {length}: {error}"
            );
            assert_eq!(
                error.place(),
                Some(Place::Byte(length as u64)),
                "{extension}: {error}"
            );
        }
    }
}

/// Through a pipe there is no name to say that a few bytes were meant as a signature.
#[test]
fn without_a_name_only_the_first_bytes_of_a_signature_can_pass_for_text() {
    for (extension, compress) in COMPRESSIONS {
        let whole = compress(TEXT);
        let shortest = if extension == "bz2" { 5 } else { 2 };
        for length in shortest..whole.len() {
            let error = read(&whole[..length], &lines()).expect_err(extension);
            assert_eq!(
                error.kind(),
                ErrorKind::Truncated,
                "{extension} cut at byte {length}: {error}"
            );
        }
    }
    for text in [
        "B",
        "BZ",
        "BZh",
        "BZh9",
        "(",
        "BZh9 is a text",
        "P*",
        "P*M",
        "x",
    ] {
        assert_eq!(read(text, &lines()), Ok(bytes([text])));
    }
}

#[test]
fn large_truncated_inputs_are_errors_too() {
    let text: Vec<u8> = (0..50_000u32)
        .flat_map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761)).into_bytes())
        .collect();
    for (extension, compress) in COMPRESSIONS {
        let whole = compress(&text);
        for length in [
            whole.len() / 3,
            whole.len() / 2,
            whole.len() - 13,
            whole.len() - 1,
        ] {
            let error = read(&whole[..length], &lines()).expect_err(extension);
            assert_eq!(error.kind(), ErrorKind::Truncated, "{extension}: {error}");
            assert_eq!(error.place(), Some(Place::Byte(length as u64)));
        }
    }
}

#[test]
fn bytes_after_the_last_member_are_an_error_with_their_place() {
    for (extension, compress) in COMPRESSIONS {
        let whole = compress(TEXT);
        for garbage in [
            &b"x"[..],
            b"\n",
            b"\0",
            b"\0\0\0",
            b"garbage after the end",
            &[0; 5],
            b"\xFF\xFE",
        ] {
            let error = read([&whole, garbage].concat(), &lines()).expect_err(extension);
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{extension}: {error}");
            let padding = if extension == "xz" && garbage.len() > 4 && garbage[0] == 0 {
                4
            } else {
                0
            };
            assert_eq!(
                error.place(),
                Some(Place::Byte((whole.len() + padding) as u64)),
                "{extension}: {error}"
            );
        }
    }
}

#[test]
fn another_format_after_the_last_member_is_garbage() {
    for (extension, compress) in COMPRESSIONS {
        for (other, compress_other) in COMPRESSIONS {
            if extension != other {
                let error =
                    read([compress(TEXT), compress_other(TEXT)].concat(), &lines()).unwrap_err();
                assert_eq!(
                    error.kind(),
                    ErrorKind::Corrupt,
                    "{other} after {extension}"
                );
            }
        }
    }
}

#[test]
fn a_changed_byte_never_changes_the_labels_silently() {
    for (extension, compress) in COMPRESSIONS {
        let whole = compress(TEXT);
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            // The first bytes decide whether it is compressed at all; gzip's name, time and system are not checked by
            // anyone.
            let signature = at < 10;
            let result = read(&changed, &lines());
            assert!(
                result.is_err() || signature || result == read(TEXT, &lines()),
                "{extension}, byte {at}"
            );
        }
    }
}

#[test]
fn xz_padding_and_zstd_skippable_frames_are_part_of_the_formats() {
    use support::{xz, zstd};
    let padded = [xz(b"a\n"), vec![0; 8], xz(b"b\n"), vec![0; 4]].concat();
    assert_eq!(read(padded, &lines()), Ok(bytes(["a", "b"])));
    let skippable = b"\x5A\x2A\x4D\x18\x03\0\0\0abc".to_vec();
    for frames in [
        [skippable.clone(), zstd(b"a\n"), zstd(b"b\n")].concat(),
        [
            zstd(b"a\n"),
            skippable.clone(),
            zstd(b"b\n"),
            skippable.clone(),
        ]
        .concat(),
    ] {
        assert_eq!(read(frames, &lines()), Ok(bytes(["a", "b"])));
    }
    let cut = [zstd(b"a\n"), skippable[..9].to_vec()].concat();
    assert_eq!(
        read(cut, &lines()).unwrap_err().kind(),
        ErrorKind::Truncated
    );
}

#[test]
fn a_zstd_frame_without_its_size_or_checksum_is_read_to_its_end() {
    let frame = zstd::stream::encode_all(&b"a\nb\n"[..], 1).unwrap();
    assert_eq!(read(&frame, &lines()), Ok(bytes(["a", "b"])));
    for length in 4..frame.len() {
        assert_eq!(
            read(&frame[..length], &lines()).unwrap_err().kind(),
            ErrorKind::Truncated
        );
    }
}

#[test]
fn a_zstd_window_beyond_the_limit_is_refused_with_a_remedy() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder
        .set_parameter(zstd::zstd_safe::CParameter::WindowLog(30))
        .unwrap();
    io::Write::write_all(&mut encoder, TEXT).unwrap();
    let error = read(encoder.finish().unwrap(), &lines()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("--long=31"), "{error}");
}

#[test]
fn compressed_data_inside_compressed_data_is_recognised_and_not_unpacked() {
    for (extension, compress) in COMPRESSIONS {
        let input = named(&compress(&compress(TEXT)), "twice").unwrap();
        assert!(
            matches!(input.detected(), Detected::Foreign(name) if name.contains("inside")),
            "{extension}"
        );
    }
}

#[test]
fn the_raw_bytes_come_whole_and_their_errors_are_ours() {
    let content: Vec<u8> = [b"PAR1\x15", TEXT].concat().repeat(20_000);
    for (extension, compress) in COMPRESSIONS {
        let whole = compress(&content);
        let mut input = named(&whole, "table.parquet").unwrap();
        assert_eq!(input.detected(), Detected::Parquet);
        let mut raw = Vec::new();
        input.read_to_end(&mut raw).unwrap();
        assert_eq!(raw, content, "{extension}");
        assert_eq!(input.position(), whole.len() as u64);

        let mut input = named(&whole[..whole.len() - 1], "table.parquet").unwrap();
        let error = input.read_to_end(&mut raw).unwrap_err();
        let ours = error
            .get_ref()
            .unwrap()
            .downcast_ref::<dptop_readers::Error>()
            .unwrap();
        assert_eq!(
            (error.kind(), ours.kind()),
            (io::ErrorKind::UnexpectedEof, ErrorKind::Truncated),
            "{extension}"
        );
    }
}

/// A disk that fails after some bytes.
struct Failing(io::Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into)? {
            0 if !into.is_empty() => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "a text of someone else: secret",
            )),
            count => Ok(count),
        }
    }
}

#[test]
fn a_failed_read_is_told_from_corrupt_data() {
    for (extension, compress) in COMPRESSIONS {
        let whole = compress(TEXT);
        let half = Failing(io::Cursor::new(whole[..whole.len() / 2].to_vec()));
        let error = read_from(half, &lines()).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Io(io::ErrorKind::UnexpectedEof),
            "{extension}"
        );
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let error = read_from(Failing(io::Cursor::new(TEXT.to_vec())), &lines()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::UnexpectedEof));
}

#[test]
fn the_position_grows_to_the_size_of_the_input() {
    let text = "0123456789abcdef\n".repeat(80_000);
    let mut inputs = vec![text.clone().into_bytes()];
    inputs.extend(COMPRESSIONS.map(|(_, compress)| compress(text.as_bytes())));
    for data in inputs {
        let size = data.len() as u64;
        let mut reader = named(&data, "x").unwrap().into_reader(lines()).unwrap();
        let mut last = 0;
        while reader.next_block().unwrap().is_some() {
            assert!((last..=size).contains(&reader.position()));
            last = reader.position();
        }
        assert_eq!(reader.position(), size);
    }
}
