// Real numbers as words. CPU twin: crates/fft-core/src/codec/number.rs.
//
// Compiled with -fmad=false: a product and a sum round twice, as on the CPU. Where that cannot
// change a message, as in sums of squared errors, fma() is called by name.
#pragma once

#include "tile.cuh"

constexpr u64 INFINITE = 0x7FFull << 52;

__device__ inline double from_bits(u64 word) { return __longlong_as_double(word); }
__device__ inline u64 bits_of(double x) { return __double_as_longlong(x); }
// 2^exponent, for exponents of normal numbers.
__device__ constexpr u64 power_bits(int exponent) { return u64(exponent + 1023) << 52; }
__device__ inline double power(int exponent) { return from_bits(power_bits(exponent)); }

// What differs between double and single precision.
template <class T> struct Real;

template <> struct Real<double> {
    using Word = u64;
    static constexpr u64 INFINITY_BITS = INFINITE;
    // The word, as double, of what is too large to be sent as an integer: half the range.
    static constexpr u64 HUGE_BITS = INFINITE - (1ull << 52);
    __device__ static u64 word(double x) { return bits_of(x); }
    __device__ static double from_word(u64 word) { return from_bits(word); }
    // Of magnitudes, what maxima are taken of: the upper half of the word.
    __device__ static int key(double x) { return __double2hiint(x) & 0x7FFFFFFF; }
    // The larger of a key and that of a number.
    __device__ static int larger(int most, double x) { return max(most, key(x)); }
};

template <> struct Real<float> {
    using Word = u32;
    static constexpr u64 INFINITY_BITS = 0xFFull << 23;
    static constexpr u64 HUGE_BITS = (1023ull + 127) << 52;
    __device__ static u64 word(float x) { return __float_as_uint(x); }
    __device__ static float from_word(u64 word) { return __uint_as_float(u32(word)); }
    __device__ static int key(float x) { return __float_as_int(x) & 0x7FFFFFFF; }
    // One instruction.
    __device__ static int larger(int most, float x) { return __float_as_int(larger_or_nan(__int_as_float(most), fabsf(x))); }
};

// What arrives if `x` is sent.
template <class T> __device__ double rounded(double x) { return double(T(x)); }

// The eight threads that work on a block of 64 numbers, while others of their warp may do something
// else.
struct Team {
    u32 lane, mask;
    __device__ Team() : lane(threadIdx.x & 7), mask(0xFFu << (threadIdx.x & 24)) {}

    template <class N> __device__ N across(N x, u32 distance) const
    {
        return __shfl_xor_sync(mask, x, distance, 8);
    }
    // Bits that any of those who come by together has, of bits which are the same in a team.
    __device__ u32 all(u32 bits) const { return bits; }
};

// The same where the whole warp comes by, which is faster: it need not be found out who is there
// before each exchange.
struct Together {
    u32 lane;
    __device__ Together() : lane(threadIdx.x & 7) {}

    template <class N> __device__ N across(N x, u32 distance) const
    {
        return __shfl_xor_sync(0xFFFFFFFF, x, distance, 8);
    }
    __device__ bool any(bool x) const { return __any_sync(0xFFFFFFFF, x); }
    __device__ u32 all(u32 bits) const { return __reduce_or_sync(0xFFFFFFFF, bits); }
};

// The word, as double, of a magnitude of which the key is the largest; with all its lower 32 bits
// set if any of the upper is, as the CPU does it.
template <class T> __device__ u64 word_of_key(int key)
{
    // A number of single precision that is not 0 is not small in double precision.
    u64 word = sizeof(T) == 4 ? bits_of(double(__int_as_float(key))) : u64(u32(key)) << 32;
    return key == 0 ? 0 : word | 0xFFFFFFFFull;
}

// Maxima over a team of `N` numbers that each thread has, of which it keeps one: two or four, in a
// half or a third of the exchanges that all of them would take.
template <u32 N> __device__ u32 kept_by(Together team)
{
    return N == 4 ? (team.lane & 1) * 2 + (team.lane >> 1 & 1) : team.lane & 1;
}
// The lane that keeps one.
template <u32 N> __device__ u32 kept_in(u32 index) { return N == 4 ? (index >> 1) + (index & 1) * 2 : index; }
template <u32 N, class Number> __device__ Number largest_kept(Number (&x)[N], Together team)
{
    static_assert(N == 2 || N == 4, "as kept_by says");
#pragma unroll
    for (u32 distance = 1, n = N / 2; distance < 8; distance *= 2, n /= 2) {
        const bool upper = team.lane & distance;
        if (n == 0) x[0] = max(x[0], team.across(x[0], distance));
#pragma unroll
        for (u32 i = 0; i < n; i++) {
            Number other = team.across(upper ? x[i] : x[i + n], distance);
            x[i] = max(upper ? x[i + n] : x[i], other);
        }
    }
    return x[0];
}
