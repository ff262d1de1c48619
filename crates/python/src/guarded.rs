//! A lock around what counts, so that work goes on without the interpreter's lock.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;

use crate::errors::SourceError;

/// Something that one thread at a time works on.
pub struct Guarded<T>(Mutex<T>);

impl<T: Send> Guarded<T> {
    pub fn new(inner: T) -> Self {
        Self(Mutex::new(inner))
    }

    /// Run `f` on it. Whoever has to wait for it lets go of the interpreter meanwhile.
    pub fn with<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        match self.0.try_lock() {
            Ok(mut inner) => Ok(f(&mut inner)),
            Err(_) => py.detach(|| self.locked(f)),
        }
    }

    /// Run `f` on it, unless counting has panicked in the middle: then it is no summary of anything.
    pub fn locked<R>(&self, f: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        Ok(f(&mut *self.lock()?))
    }

    /// Run `f` on it and another one. Every thread takes the two locks in the same order, so that none waits for ever.
    pub fn locked_with<R>(&self, other: &Self, f: impl FnOnce(&mut T, &T) -> R) -> PyResult<R> {
        assert!(!std::ptr::eq(self, other), "one lock is not taken twice");
        let (mut own, others);
        if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
            own = self.lock()?;
            others = other.lock()?;
        } else {
            others = other.lock()?;
            own = self.lock()?;
        }
        Ok(f(&mut own, &others))
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, T>> {
        self.0.lock().map_err(|_| {
            SourceError::new_err(
                "counting broke off in the middle; the summary cannot be used. Count the stream again with a new one.",
            )
        })
    }
}
