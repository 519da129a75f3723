//! Registers in the order of the source.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m256d;

/// Returns `x`, which the compiler computes before and uses after whatever is pinned before and
/// after it. Compilers move the parts of a long computation apart otherwise, until registers do not
/// suffice.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn pin(_: pulp::x86::V3, x: __m256d) -> __m256d {
    // SAFETY: a `V3` is made only for processors with AVX.
    unsafe { pin_register(x) }
}

/// # Safety
/// The processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn pin_register(mut x: __m256d) -> __m256d {
    // SAFETY: there are no instructions.
    unsafe {
        std::arch::asm!("/* {0} */", inout(ymm_reg) x, options(nomem, nostack, preserves_flags));
    }
    x
}
