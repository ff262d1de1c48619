//! One input, opened, decompressed and looked at, before it is decided who reads it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use crate::compression::{Compression, Content};
use crate::detect::{DETECTION_BYTES, Detected, detect};
use crate::error::{Error, Result};
use crate::reader::{Format, Options, Reader};
use crate::source::Source;

/// An open input whose first bytes are known and not yet consumed, so that a pipe can be looked at as well as a file.
///
/// [`Input::into_reader`] makes labels of it. As a [`Read`] it gives the decompressed bytes, all of them, such as for
/// spooling a Parquet file that came through a pipe or compressed; its errors are [`Error`]s inside [`io::Error`]s.
pub struct Input {
    content: Content,
    head: Vec<u8>,
    given: usize,
    detected: Detected,
    format: Format,
}

impl Input {
    /// Takes any stream of bytes. `name` is the file name, if it has one: it decides among the text formats.
    ///
    /// A read that fails with [`io::ErrorKind::Interrupted`] is repeated; every other error ends the input. So a stream
    /// that shall stop at a signal looks for signals itself when its own read is interrupted, and returns another error
    /// then.
    pub fn from_read(stream: Box<dyn Read + Send>, name: Option<&Path>) -> Result<Input> {
        let mut content = Content::new(Source::new(stream), name)?;
        let mut head = vec![0; DETECTION_BYTES];
        let mut len = 0;
        while len < head.len() {
            match content.read(&mut head[len..])? {
                0 => break,
                count => len += count,
            }
        }
        head.truncate(len);
        let detected = detect(&head);
        let format = name.map_or(Format::Lines, Format::from_name);
        Ok(Input {
            content,
            head,
            given: 0,
            detected,
            format,
        })
    }

    /// What the first bytes of the decompressed content say.
    pub fn detected(&self) -> Detected {
        self.detected
    }

    /// The text format that the file name says; lines if it says none. It holds only where the content is text.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How the input is compressed, by its content; `None` if it is not.
    pub fn compression(&self) -> Option<Compression> {
        self.content.compression()
    }

    /// Bytes consumed of the input as it is stored, for a progress bar; never more than its size, and its size at the
    /// end.
    pub fn position(&self) -> u64 {
        self.content.consumed()
    }

    /// Reads the content as text of the format that `options` say, whatever was detected.
    ///
    /// Errors that the start of the text shows come here: a UTF-16 mark, an unknown column of a header, a column of
    /// lines.
    pub fn into_reader(self, options: Options) -> Result<Reader> {
        Reader::new(self, options)
    }

    /// Reads decompressed bytes; 0 only at the end of a whole and sound input, or for an empty `into`.
    pub(crate) fn read_bytes(&mut self, into: &mut [u8]) -> Result<usize> {
        if self.given < self.head.len() {
            let waiting = &self.head[self.given..];
            let count = waiting.len().min(into.len());
            into[..count].copy_from_slice(&waiting[..count]);
            self.given += count;
            return Ok(count);
        }
        self.content.read(into)
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_bytes(into)?)
    }
}

/// Standard input as a stream, for [`Input::from_read`].
///
/// It is descriptor 0 itself: a closed one is an error, where the standard library would show an empty input.
pub fn standard_input() -> Result<File> {
    let descriptor = io::stdin().as_fd().try_clone_to_owned();
    let descriptor =
        descriptor.map_err(|error| Error::io("standard input cannot be read", &error))?;
    Ok(File::from(descriptor))
}
