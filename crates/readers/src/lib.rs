//! Text inputs as blocks of labels: lines, CSV, TSV and JSON lines, plain or compressed.
//!
//! The path of the data is the order of the modules: a file or stream is decompressed ([`Compression`]),
//! its first bytes say what it is ([`Detected`]), and a [`Reader`] turns it into [`Block`]s of labels, in stream order.
//!
//! ```
//! use dptop_readers::{Block, Format, Input, Options};
//!
//! let table = "plane,miles\nN1,20\nN2,NA\nN1,7\n";
//! let options = Options { column: Some("plane".into()), ..Options::new(Format::Csv) };
//! let mut reader = Input::from_read(Box::new(table.as_bytes()), None)?.into_reader(options)?;
//! while let Some(block) = reader.next_block()? {
//!     let Block::Bytes(labels) = block else { unreachable!("CSV cells are bytes") };
//!     assert_eq!(labels.iter().collect::<Vec<_>>(), [b"N1", b"N2", b"N1"]);
//! }
//! # Ok::<(), dptop_readers::Error>(())
//! ```
//!
//! Memory is bounded by the longest line (or row), never by the length of the stream.
//! Every [`Error`] says the rule, the place and the remedy, and never quotes a label, cell or line of the stream.
#![forbid(unsafe_code)]

mod block;
mod columns;
mod compression;
mod delimited;
mod detect;
mod error;
mod input;
mod jsonl;
mod lines;
mod quoted;
mod reader;
mod source;
mod window;

pub use block::{Block, TextBlock};
pub use compression::Compression;
pub use detect::{DETECTION_BYTES, Detected, detect};
pub use error::{Error, ErrorKind, Place};
pub use input::{Input, standard_input};
pub use reader::{Format, Options, Reader};
