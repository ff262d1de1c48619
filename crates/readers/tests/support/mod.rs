//! What the tests share: labels as values, streams that come in pieces, every compression.
#![allow(dead_code)] // each test file uses its own part

use std::io::{self, Read, Write};
use std::path::Path;

use dptop_readers::{Block, Error, Format, Input, Options, Reader};

/// A label as a value: what the blocks of any kind hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    Bytes(Vec<u8>),
    Text(String),
    Integer(i128),
}

/// Options with a column and nulls.
pub fn options(format: Format, column: Option<&str>, nulls: &[&str]) -> Options {
    Options {
        format,
        column: column.map(|name| name.as_bytes().to_vec()),
        nulls: nulls.iter().map(|null| null.as_bytes().to_vec()).collect(),
    }
}

/// All labels of a reader, in order.
pub fn drain(mut reader: Reader) -> Result<Vec<Label>, Error> {
    let mut labels = Vec::new();
    while let Some(block) = reader.next_block()? {
        assert!(!block.is_empty(), "a reader returns no empty block");
        match block {
            Block::Bytes(block) => {
                labels.extend(block.iter().map(|label| Label::Bytes(label.to_vec())))
            }
            Block::Text(block) => labels.extend(block.iter().map(|label| {
                Label::Text(String::from_utf8(label.to_vec()).expect("text is UTF-8"))
            })),
            Block::Signed(block) => {
                labels.extend(block.iter().map(|label| Label::Integer((*label).into())))
            }
            Block::Unsigned(block) => {
                labels.extend(block.iter().map(|label| Label::Integer((*label).into())))
            }
        }
    }
    Ok(labels)
}

/// All labels of a stream.
pub fn read_from(
    stream: impl Read + Send + 'static,
    options: &Options,
) -> Result<Vec<Label>, Error> {
    drain(Input::from_read(Box::new(stream), None)?.into_reader(options.clone())?)
}

/// All labels of a text.
pub fn read(text: impl AsRef<[u8]>, options: &Options) -> Result<Vec<Label>, Error> {
    read_from(io::Cursor::new(text.as_ref().to_vec()), options)
}

/// Labels that are bytes.
pub fn bytes<L: AsRef<[u8]>>(labels: impl IntoIterator<Item = L>) -> Vec<Label> {
    labels
        .into_iter()
        .map(|label| Label::Bytes(label.as_ref().to_vec()))
        .collect()
}

/// Labels that are texts.
pub fn texts(labels: &[&str]) -> Vec<Label> {
    labels
        .iter()
        .map(|label| Label::Text((*label).to_owned()))
        .collect()
}

/// Labels that are integers.
pub fn integers(labels: &[i128]) -> Vec<Label> {
    labels.iter().map(|label| Label::Integer(*label)).collect()
}

/// A stream that hands over a few bytes at a time, `1..=largest` of them, and is interrupted now and then.
pub struct Pieces {
    data: Vec<u8>,
    at: usize,
    largest: usize,
    state: u64,
}

impl Pieces {
    pub fn new(data: impl AsRef<[u8]>, largest: usize, seed: u64) -> Pieces {
        Pieces {
            data: data.as_ref().to_vec(),
            at: 0,
            largest,
            state: seed | 1,
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Xorshift: the sizes need to differ, not to be random.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        if self.state.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = 1 + (self.state >> 8) as usize % self.largest;
        let count = count.min(into.len()).min(self.data.len() - self.at);
        into[..count].copy_from_slice(&self.data[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// A file extension, and what writes one whole member of its format.
pub type Named = (&'static str, fn(&[u8]) -> Vec<u8>);

/// Every compression.
pub const COMPRESSIONS: [Named; 4] = [("gz", gzip), ("zst", zstd), ("bz2", bzip2), ("xz", xz)];

pub fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// A frame with a checksum, as the zstd command writes it.
pub fn zstd(data: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub fn bzip2(data: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub fn xz(data: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Opens bytes as if they were a file of that name.
pub fn named(data: &[u8], name: &str) -> Result<Input, Error> {
    Input::from_read(
        Box::new(io::Cursor::new(data.to_vec())),
        Some(Path::new(name)),
    )
}
