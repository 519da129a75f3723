// `f32`: numbers of double precision in single precision, of which 256 share a scale. CPU twin:
// crates/fft-core/src/codec/rounded.rs.
#pragma once

#include "message.cuh"

constexpr u32 SPAN = 256;
// The exponents that a scale may have, and the largest that scaled numbers have.
constexpr int LEAST_SCALE = -1022, MOST_SCALE = 1022, LARGEST_EXPONENT = 126;

// The code of a number that is not finite. The first digits of a NaN stay.
__device__ inline u32 special_code(double x)
{
    const u64 word = bits_of(x);
    const u32 digits = u32(word >> 29) & 0x7FFFFF;
    return u32(word >> 63) << 31 | 0xFFu << 23 | (isnan(x) ? digits | 1u << 22 : 0);
}

// The warp's largest key below one, of keys of which each thread has those of eight numbers. That
// of a NaN may be the largest of all.
__device__ inline int largest_key(const double (&x)[8], u32 below = 1u << 31)
{
    int most = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        const int key = Real<double>::key(x[i]);
        most = u32(key) < below ? max(most, key) : most;
    }
    return __reduce_max_sync(0xFFFFFFFF, most);
}

// Rounds a span of numbers, of which each thread of a warp has eight, to nearest, ties to even, and
// returns its scale. `out` is the thread's block.
__device__ inline int encode_span(const double (&x)[8], u8* out, bool writes, Team team, double& error)
{
    // Larger numbers would round to one that double precision does not have: they are cut to this
    // one.
    const double limit = from_bits((INFINITE - 1) >> 29 << 29);
    int most = largest_key(x);
    // With all ones in the lower half of a word, the limit may seem exceeded where it is not: that
    // changes nothing.
    const bool plain = most < Real<double>::key(limit);
    if (!plain) most = largest_key(x, u32(INFINITE >> 32));
    if (most == 0) {
        // All upper halves are 0: the exponent is the same whatever is in the lower, unless they
        // are 0 as well.
        bool any = false;
#pragma unroll
        for (u32 i = 0; i < 8; i++) any |= isfinite(x[i]) && x[i] != 0;
        most = __any_sync(0xFFFFFFFF, any) ? 1 : 0;
    }
    // The key begins with the exponent.
    const int scale = most == 0 ? 0 : max((most >> 20) - 1023 - LARGEST_EXPONENT, LEAST_SCALE);
    const double down = power(-scale), up = power(scale);
    u32 code[8];
    auto round = [&](u32 i, double cut) {
        const float near = float(cut * down);
        const double wrong = double(near) * up - x[i];
        error = fma(wrong, wrong, error);
        code[i] = __float_as_uint(near);
    };
    if (plain) {
#pragma unroll
        for (u32 i = 0; i < 8; i++) round(i, x[i]);
    } else {
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            if (isfinite(x[i])) round(i, fmin(fmax(x[i], -limit), limit));
            else code[i] = special_code(x[i]);
        }
    }
    if (writes) store_codes<false>(code, 32, out, team);
    return scale;
}

__device__ inline void decode_span(const u8* block, int scale, double (&x)[8], Team team)
{
    u32 code[8];
    load_codes(code, 32, block, team);
    const double up = power(scale);
#pragma unroll
    for (u32 i = 0; i < 8; i++) x[i] = double(__uint_as_float(code[i])) * up;
}
