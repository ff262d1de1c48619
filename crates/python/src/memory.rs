//! How much memory the machine has.

use pyo3::prelude::*;

/// Bytes of memory of the machine; None where it is not known how to ask.
#[pyfunction]
pub fn memory_bytes() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let info = rustix::system::sysinfo();
        // both fields have other widths on other processors
        #[allow(
            clippy::useless_conversion,
            reason = "on this processor they may be what is asked for"
        )]
        let (units, unit) = (u64::from(info.totalram), u64::from(info.mem_unit));
        units.checked_mul(unit)
    }
    #[cfg(not(target_os = "linux"))]
    None
}
