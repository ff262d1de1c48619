//! Run-time choice of instructions: the same code, compiled once more for processors with AVX2.
#![allow(
    unsafe_code,
    reason = "calling code compiled for more instructions is unsafe until they are known to be there"
)]

/// Run `f` with the best instructions that this processor has. `f` must be inlined for that to have an effect.
#[inline]
pub(crate) fn best<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn wide<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        let there = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        if there {
            // SAFETY: the processor has these instructions, as was just asked.
            return unsafe { wide(f) };
        }
    }
    f()
}

/// Ask for the memory of `items[index]`, if there is such an item, ahead of its use.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, which reads nothing and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}
