//! Exact discrete Laplace noise.
//!
//! Source: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", Algorithms 1 and 2.
//! The plain-Python twin is `dptop/reference/discrete_laplace.py`; both read the same words in the same order.

use super::words::Words;

/// The denominator of every epsilon.
const EPSILON_DENOMINATOR: u64 = 1 << 32;

impl Words {
    /// True with probability exp(-numerator / denominator), for 0 <= numerator <= denominator <= 2^32.
    pub(super) fn bernoulli_exp(
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
    pub(super) fn discrete_laplace(&mut self, s: u64, t: u64) -> Result<i64, getrandom::Error> {
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
