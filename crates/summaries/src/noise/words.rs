//! Uniform words: fresh entropy of the operating system, or the stream of a seed in tests.

use sha2::{Digest, Sha256};

/// Bytes asked of the operating system at a time.
const BLOCK_BYTES: usize = 4096;

/// A source of uniform 64-bit words. It lives within one call, so that neither a fork nor a copy can repeat it.
pub(crate) enum Words {
    System {
        block: Box<[u8; BLOCK_BYTES]>,
        used: usize,
    },
    /// SHA-256 of a seed and a block number, for tests only.
    Seeded {
        seed: [u8; 32],
        number: u64,
        block: [u8; 32],
        used: usize,
    },
}

impl Words {
    pub(crate) fn new(seed: Option<[u8; 32]>) -> Self {
        match seed {
            None => Self::System {
                block: Box::new([0; BLOCK_BYTES]),
                used: BLOCK_BYTES,
            },
            Some(seed) => Self::Seeded {
                seed,
                number: 0,
                block: [0; 32],
                used: 32,
            },
        }
    }

    #[inline(always)] // with several callers it is left out of line, and noise takes 1.4 times the instructions
    pub(crate) fn next(&mut self) -> Result<u64, getrandom::Error> {
        let (block, used): (&[u8], &mut usize) = match self {
            Self::System { block, used } => {
                if *used == BLOCK_BYTES {
                    getrandom::fill(&mut block[..])?;
                    *used = 0;
                }
                (&block[..], used)
            }
            Self::Seeded {
                seed,
                number,
                block,
                used,
            } => {
                if *used == block.len() {
                    let hasher = Sha256::new().chain_update(*seed);
                    *block = hasher.chain_update(number.to_le_bytes()).finalize().into();
                    *number += 1;
                    *used = 0;
                }
                (&block[..], used)
            }
        };
        let mut word = [0; 8];
        word.copy_from_slice(&block[*used..*used + 8]);
        *used += 8;
        Ok(u64::from_le_bytes(word))
    }

    /// A uniform number below `n`, for 1 <= n <= 2^63.
    #[inline(always)]
    pub(super) fn uniform(&mut self, n: u64) -> Result<u64, getrandom::Error> {
        if n == 1 {
            return Ok(0);
        }
        let mask = u64::MAX >> (n - 1).leading_zeros();
        loop {
            let candidate = self.next()? & mask;
            if candidate < n {
                return Ok(candidate);
            }
        }
    }

    /// The same for 1 <= n < 2^128: of two words, the first is the lower half; up to 2^64 one word is enough.
    pub(super) fn uniform_wide(&mut self, n: u128) -> Result<u128, getrandom::Error> {
        if n == 1 {
            return Ok(0);
        }
        let mask = u128::MAX >> (n - 1).leading_zeros();
        loop {
            let mut candidate = u128::from(self.next()?);
            if mask > u128::from(u64::MAX) {
                candidate |= u128::from(self.next()?) << 64;
            }
            candidate &= mask;
            if candidate < n {
                return Ok(candidate);
            }
        }
    }
}
