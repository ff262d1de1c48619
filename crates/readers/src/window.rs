//! The stretch of text that is in memory: whole lines at its start, the beginning of one more at its end.

use memchr::memchr;

use crate::error::{Error, ErrorKind, Result};
use crate::input::Input;

/// The size to begin with; it doubles only for a line that does not fit.
const WINDOW_BYTES: usize = 1 << 18;

/// A window on the decompressed text that moves forward, without the byte order mark at its start.
pub(crate) struct Window {
    input: Input,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl Window {
    pub(crate) fn new(input: Input) -> Result<Window> {
        let mut window = Window {
            input,
            bytes: vec![0; WINDOW_BYTES],
            start: 0,
            end: 0,
            ended: false,
        };
        window.more()?;
        if window.rest().starts_with(b"\xEF\xBB\xBF") {
            window.consume(3);
        }
        Ok(window)
    }

    /// The text in memory that is not consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Whether no text follows [`Window::rest`].
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
    }

    /// Bytes consumed of the input as it is stored.
    pub(crate) fn position(&self) -> u64 {
        self.input.position()
    }

    /// Reads on until the window is full or the text ends, and doubles the window first if the rest fills it.
    /// So whoever begins again at the start of the rest after each call does no more than twice the work.
    pub(crate) fn more(&mut self) -> Result<()> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end > self.bytes.len() / 2 {
            let double = self.bytes.len() * 2;
            let room = self.bytes.try_reserve_exact(double - self.bytes.len());
            room.map_err(|_| {
                Error::new(
                    ErrorKind::Malformed,
                    "one line of the text is longer than the memory there is",
                )
            })?;
            self.bytes.resize(double, 0);
        }
        while !self.ended && self.end < self.bytes.len() {
            match self.input.read_bytes(&mut self.bytes[self.end..])? {
                0 => self.ended = true,
                count => self.end += count,
            }
        }
        Ok(())
    }

    /// Brings the next line into memory and returns its length with its `\n`, or without one at the end of the text.
    pub(crate) fn line(&mut self) -> Result<Option<usize>> {
        loop {
            if let Some(length) = memchr(b'\n', self.rest()) {
                return Ok(Some(length + 1));
            }
            if self.ended {
                let length = self.rest().len();
                return Ok((length > 0).then_some(length));
            }
            self.more()?;
        }
    }
}

/// A line without its `\n` and one `\r` directly before that; a line that ends with the text keeps its `\r`.
#[inline]
pub(crate) fn without_end(line: &[u8]) -> &[u8] {
    match line {
        [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] => text,
        text => text,
    }
}
