//! Exact discrete noise: integers only, fresh entropy of the operating system in every call.

mod gaussian;
mod laplace;
mod words;

pub(crate) use words::Words;

pub use gaussian::{MAX_VARIANCE, discrete_gaussian};
pub use laplace::discrete_laplace;

/// Fill a fresh random identity.
///
/// # Errors
/// The operating system gave no entropy.
pub fn identity() -> Result<[u8; 16], getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
