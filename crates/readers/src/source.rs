//! The stored bytes, as a file or a pipe hands them over: buffered, counted, with room to look ahead.

use std::io::{self, BufRead, Read};

use crate::error::{Error, Result};

/// Bytes asked of the operating system at a time.
const BUFFER_BYTES: usize = 1 << 18;

/// A buffered reader that counts what was consumed, looks ahead, retries interrupted reads, and remembers a failed read
/// so that it can be told from a decoder's complaint about the content.
pub(crate) struct Source {
    inner: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    consumed: u64,
    failure: Option<Error>,
}

impl Source {
    pub(crate) fn new(inner: Box<dyn Read + Send>) -> Source {
        Source {
            inner,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
            consumed: 0,
            failure: None,
        }
    }

    /// Bytes consumed so far.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The error of the last read, if that read failed.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// The next `count` bytes without consuming them; fewer only where the input ends.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8]> {
        while self.end - self.start < count && !self.ended {
            if let Err(error) = self.refill() {
                return Err(Error::io("the input cannot be read", &error));
            }
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + count)])
    }

    /// One read into the free end of the buffer.
    fn refill(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER_BYTES];
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let Source {
            inner, buffer, end, ..
        } = self;
        let count = retrying(inner, &mut buffer[*end..]).inspect_err(|error| {
            self.failure = Some(Error::io("the input cannot be read", error));
        })?;
        self.end += count;
        self.ended = count == 0;
        Ok(())
    }
}

/// A read that an interruption does not end.
fn retrying(inner: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match inner.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end && !self.ended {
            self.refill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.consumed += count as u64;
    }
}

impl Read for Source {
    /// Large reads of an empty buffer go straight to the input: plain text is copied once less.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && into.len() >= BUFFER_BYTES / 4 && !self.ended {
            let count = retrying(&mut self.inner, into).inspect_err(|error| {
                self.failure = Some(Error::io("the input cannot be read", error));
            })?;
            self.ended = count == 0;
            self.consumed += count as u64;
            return Ok(count);
        }
        let waiting = self.fill_buf()?;
        let count = waiting.len().min(into.len());
        into[..count].copy_from_slice(&waiting[..count]);
        self.consume(count);
        Ok(count)
    }
}
