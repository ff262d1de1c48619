//! Lines: the label is the line.

use memchr::memchr_iter;

use crate::block::TextBlock;
use crate::error::Result;
use crate::reader::is_null;
use crate::window::{Window, without_end};

/// Each line that is not blank, as its bytes stand.
pub(crate) struct Lines {
    window: Window,
    nulls: Vec<Vec<u8>>,
}

impl Lines {
    pub(crate) fn new(window: Window, nulls: Vec<Vec<u8>>) -> Lines {
        Lines { window, nulls }
    }

    pub(crate) fn position(&self) -> u64 {
        self.window.position()
    }

    pub(crate) fn next_block(&mut self) -> Result<Option<TextBlock>> {
        let mut block = TextBlock::with_room();
        loop {
            let rest = self.window.rest();
            let mut start = 0;
            for newline in memchr_iter(b'\n', rest) {
                take(&mut block, &self.nulls, without_end(&rest[start..=newline]));
                start = newline + 1;
                if block.is_full() {
                    break;
                }
            }
            self.window.consume(start);
            if block.is_full() {
                break;
            }
            if self.window.ended() {
                let last = self.window.rest();
                take(&mut block, &self.nulls, last);
                self.window.consume(last.len());
                break;
            }
            self.window.more()?;
        }
        Ok(block.into_option())
    }
}

#[inline]
fn take(block: &mut TextBlock, nulls: &[Vec<u8>], line: &[u8]) {
    if !line.is_empty() && !is_null(nulls, line) {
        block.push(line);
    }
}
