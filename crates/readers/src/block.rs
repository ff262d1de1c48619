//! Labels in blocks: large enough that the cost per block vanishes, small enough to stay in cache.

/// A block is handed over once it holds this many label bytes ...
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// ... or this many labels, whichever comes first. One label may be larger than a block.
pub(crate) const BLOCK_LABELS: usize = 1 << 16;

/// Consecutive labels of the stream, all of one kind, in stream order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Labels from lines, CSV and TSV: bytes as they stand, UTF-8 or not.
    Bytes(TextBlock),
    /// Labels from JSON strings: each is valid UTF-8.
    Text(TextBlock),
    /// Labels from JSON integers within the range of `i64`.
    Signed(Vec<i64>),
    /// Labels from JSON integers of a stretch that needs the upper half of `u64`; equal values are equal labels, so
    /// `Unsigned` 5 is the same label as `Signed` 5.
    Unsigned(Vec<u64>),
}

impl Block {
    /// The number of labels, at least 1.
    pub fn len(&self) -> usize {
        match self {
            Block::Bytes(labels) | Block::Text(labels) => labels.len(),
            Block::Signed(labels) => labels.len(),
            Block::Unsigned(labels) => labels.len(),
        }
    }

    /// Whether there is no label: never true of a block that a reader returned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Labels one after the other: label `i` is `bytes[ends[i - 1]..ends[i]]`, where `ends[-1]` reads as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextBlock {
    /// All labels, concatenated.
    pub bytes: Vec<u8>,
    /// Where each label ends; not decreasing, and the last one is `bytes.len()`.
    pub ends: Vec<usize>,
}

impl TextBlock {
    /// The number of labels.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The labels, in stream order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends
            .iter()
            .map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// An empty block that will not grow under short labels.
    pub(crate) fn with_room() -> TextBlock {
        TextBlock {
            bytes: Vec::with_capacity(BLOCK_BYTES + (BLOCK_BYTES >> 4)),
            ends: Vec::with_capacity(BLOCK_LABELS),
        }
    }

    /// The block, unless it is empty.
    pub(crate) fn into_option(self) -> Option<TextBlock> {
        (!self.is_empty()).then_some(self)
    }

    #[inline]
    pub(crate) fn push(&mut self, label: &[u8]) {
        self.bytes.extend_from_slice(label);
        self.ends.push(self.bytes.len());
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES || self.ends.len() >= BLOCK_LABELS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_in_order_with_empty_ones_kept() {
        let mut block = TextBlock::default();
        for label in [&b"a"[..], b"", b"b\0c"] {
            block.push(label);
        }
        assert_eq!(block.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"b\0c"]);
        assert_eq!((block.len(), block.ends.as_slice()), (3, &[1, 1, 4][..]));
    }
}
