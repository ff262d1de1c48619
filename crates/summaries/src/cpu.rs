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
