//! Exact discrete Gaussian noise.
//!
//! Source: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", Algorithms 1 and 3.
//! The plain-Python twin is `dptop/reference/discrete_gaussian.py`; both read the same words in the same order.

use super::words::Words;

/// The largest variance: it bounds what the sampler multiplies, and leaves noise of a million to a cell.
pub const MAX_VARIANCE: u64 = 1 << 40;

impl Words {
    /// True with probability exp(-numerator / denominator), for any numerator and 1 <= denominator <= 2^82.
    fn bernoulli_exp_wide(
        &mut self,
        numerator: u128,
        denominator: u128,
    ) -> Result<bool, getrandom::Error> {
        let mut rest = numerator;
        while rest > denominator {
            if !self.bernoulli_exp(1, 1)? {
                return Ok(false);
            }
            rest -= denominator;
        }
        let mut k = 1;
        while self.uniform_wide(denominator * k)? < rest {
            k += 1; // reaching 2^46, where the product would overflow, has probability 1 / 2^46!
        }
        Ok(k % 2 == 1)
    }

    /// One draw with P[Z = z] proportional to exp(-z^2 / (2 variance)), for 1 <= variance <= 2^40.
    fn discrete_gaussian(&mut self, variance: u64) -> Result<i64, getrandom::Error> {
        let t = variance.isqrt() + 1; // floor(sigma) + 1, at most 2^20 + 1
        let denominator = 2 * u128::from(variance) * u128::from(t * t); // at most 2^82
        loop {
            let candidate = self.discrete_laplace(1, t)?;
            // |y| t - variance: a candidate is at most t (v + 1), and v above 2^40 has probability exp(-2^40)
            let product = u128::from(candidate.unsigned_abs()) * u128::from(t);
            let distance = product.abs_diff(u128::from(variance));
            // a distance above 2^64 saturates the square: that takes |y| above 2^43, of probability exp(-2^22), and
            // the candidate is refused all the same, but for 2^46 successes in a row at chance exp(-1)
            let square = distance.saturating_mul(distance);
            if self.bernoulli_exp_wide(square, denominator)? {
                return Ok(candidate);
            }
        }
    }
}

/// Draw `count` independent discrete Gaussian variables: P[Z = z] proportional to exp(-z^2 / (2 `variance`)), exactly,
/// given that the operating system's entropy is uniform. The variance of Z is `variance`, or less by less than 1e-6.
///
/// `seed` is for tests: the draws are then determined by it and give no privacy.
///
/// # Errors
/// The operating system gave no entropy.
///
/// # Panics
/// If `variance` is 0 or above [`MAX_VARIANCE`].
pub fn discrete_gaussian(
    variance: u64,
    count: usize,
    seed: Option<[u8; 32]>,
) -> Result<Vec<i64>, getrandom::Error> {
    assert!(
        (1..=MAX_VARIANCE).contains(&variance),
        "the variance must be from 1 to 2^40"
    );
    let mut words = Words::new(seed);
    (0..count)
        .map(|_| words.discrete_gaussian(variance))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_the_system_does_not() {
        let seeded = || discrete_gaussian(1 << 20, 64, Some([7; 32])).unwrap();
        assert_eq!(seeded(), seeded());
        let fresh = || discrete_gaussian(1 << 40, 64, None).unwrap();
        assert_ne!(fresh(), fresh());
    }

    /// Both ends of the range, whose sums of squares are far from what half or twice the variance would give: the sum
    /// of 4096 squares, over the variance, is 4096 with standard deviation 91.
    #[test]
    fn squares_average_to_the_variance() {
        for variance in [1, 2, 1000, MAX_VARIANCE] {
            let draws = discrete_gaussian(variance, 4096, Some([1; 32])).unwrap();
            let sum: f64 = draws.iter().map(|&z| (z as f64).powi(2)).sum();
            let mean = sum / 4096.0 / variance as f64;
            assert!((0.9..1.1).contains(&mean), "{variance}: {mean}");
        }
    }
}
