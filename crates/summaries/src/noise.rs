//! Exact discrete Laplace noise: integers only, fresh entropy of the operating system in every call.
//!
//! Source: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", Algorithms 1 and 2.
//! The plain-Python twin is `dptop/reference/discrete_laplace.py`; both read the same words in the same order.

use sha2::{Digest, Sha256};

/// The denominator of every epsilon.
const EPSILON_DENOMINATOR: u64 = 1 << 32;

/// Bytes asked of the operating system at a time.
const BLOCK_BYTES: usize = 4096;

/// A source of uniform 64-bit words. It lives within one call, so that neither a fork nor a copy can repeat it.
enum Words {
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
    fn new(seed: Option<[u8; 32]>) -> Self {
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

    #[inline]
    fn next(&mut self) -> Result<u64, getrandom::Error> {
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
    fn uniform(&mut self, n: u64) -> Result<u64, getrandom::Error> {
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

    /// True with probability exp(-numerator / denominator), for 0 <= numerator <= denominator <= 2^32.
    fn bernoulli_exp(
        &mut self,
        numerator: u64,
        denominator: u64,
    ) -> Result<bool, getrandom::Error> {
        let mut k = 1;
        while self.uniform(denominator * k)? < numerator {
            k += 1; // reaching 2^31, where the product would overflow, has probability 1 / 2^31!
        }
        Ok(k % 2 == 1)
    }

    /// One draw with P[Z = z] proportional to exp(-|z| s / t).
    fn discrete_laplace(&mut self, s: u64, t: u64) -> Result<i64, getrandom::Error> {
        loop {
            let u = self.uniform(t)?;
            if !self.bernoulli_exp(u, t)? {
                continue;
            }
            let mut v = 0;
            while self.bernoulli_exp(1, 1)? {
                v += 1;
            }
            let magnitude = ((u + t * v) / s) as i64; // below 2^32 * v: v above 2^30 has probability exp(-2^30)
            let negative = self.uniform(2)? == 1;
            if negative && magnitude == 0 {
                continue;
            }
            return Ok(if negative { -magnitude } else { magnitude });
        }
    }
}

/// Draw `count` independent discrete Laplace variables: P[Z = z] = (1-a)/(1+a) * a^|z| with a = exp(-epsilon),
/// epsilon = `numerator` / 2^32, exactly, given that the operating system's entropy is uniform.
///
/// `seed` is for tests: the draws are then determined by it and give no privacy.
///
/// # Errors
/// The operating system gave no entropy.
///
/// # Panics
/// If `numerator` is 0.
pub fn discrete_laplace(
    numerator: u64,
    count: usize,
    seed: Option<[u8; 32]>,
) -> Result<Vec<i64>, getrandom::Error> {
    assert!(numerator > 0, "epsilon must be positive");
    let mut words = Words::new(seed);
    let common = 1u64 << numerator.trailing_zeros().min(32); // the denominator is a power of two
    let (s, t) = (numerator / common, EPSILON_DENOMINATOR / common);
    (0..count).map(|_| words.discrete_laplace(s, t)).collect()
}

/// Fill a fresh random identity.
///
/// # Errors
/// The operating system gave no entropy.
pub fn identity() -> Result<[u8; 16], getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_the_system_does_not() {
        let seeded = || discrete_laplace(1 << 30, 64, Some([7; 32])).unwrap();
        assert_eq!(seeded(), seeded());
        let fresh = || discrete_laplace(1 << 20, 64, None).unwrap();
        assert_ne!(fresh(), fresh());
    }
}
