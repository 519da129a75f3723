// Shorter floating-point formats. CPU twin: crates/fft-core/src/codec/rounded.rs.
#pragma once

#include "message.cuh"

// The exponents that a scale may have.
constexpr int LEAST_SCALE = -1022, MOST_SCALE = 1022;

// A number in a short format: its code, and what that stands for, which single precision has as
// well.
struct Short {
    u32 code;
    float value;
};

// Two numbers of single precision in a short format: their codes, the first in the lower half, and
// what they stand for.
struct TwoShort {
    u32 codes;
    float values[2];
};

// A format has a code of `BITS` bits, of which the last `MANTISSA` are behind the leading one, and
// takes numbers up to an exponent of `TOP`. `round` is to nearest, ties to even, of a finite number
// in range; `special` is the code of another. Numbers of single precision may be scaled as such by
// 2^-scale for scales up to `MOST_SCALE_OF_FLOATS`: what the product then loses, below its normal
// numbers, rounds to 0 in any case.
template <u32 EXPONENT_BITS, u32 MANTISSA_BITS>
struct Format {
    static constexpr u32 BITS = 1 + EXPONENT_BITS + MANTISSA_BITS;
    static constexpr u32 MANTISSA = MANTISSA_BITS;
    static constexpr int TOP = (1 << (EXPONENT_BITS - 1)) - 2;
    static constexpr u32 SPECIAL = ((1u << EXPONENT_BITS) - 1) << MANTISSA;

    template <class T> __device__ static u32 special(T x)
    {
        return u32(signbit(x) != 0) << (BITS - 1) | SPECIAL | (isnan(x) ? 1u << (MANTISSA - 1) : 0);
    }
};

struct Single : Format<8, 23> {
    __device__ static Short round(double x)
    {
        float near = float(x);
        return {__float_as_uint(near), near};
    }
    // The first digits of a NaN stay.
    __device__ static u32 special(double x)
    {
        u64 word = bits_of(x);
        u32 rest = u32(word >> 29) & 0x7FFFFF;
        return u32(word >> 63) << 31 | SPECIAL | (isnan(x) ? rest | 1u << 22 : 0);
    }
    __device__ static u32 special(float x) { return __float_as_uint(x) | (isnan(x) ? 1u << 22 : 0); }
    static constexpr int MOST_SCALE_OF_FLOATS = 0;
    __device__ static Short round(float x) { return {__float_as_uint(x), x}; }
    __device__ static float value(u32 code) { return __uint_as_float(code); }
};

struct Half : Format<5, 10> {
    static constexpr int MOST_SCALE_OF_FLOATS = 126;
    __device__ static Short round(double x)
    {
        const u16 near = half_of(x);
        return {near, value(near)};
    }
    __device__ static TwoShort round_two(float first, float second)
    {
        const u32 near = halves_of(first, second);
        return {near, {value(near), value(near >> 16)}};
    }
    __device__ static float value(u32 code) { return of_half(u16(code)); }
};

struct Brain : Format<8, 7> {
    // Its numbers are as small as those of single precision.
    static constexpr int MOST_SCALE_OF_FLOATS = 0;
    // The upper half of a float. That is cut towards 0 first, and its last bit then says whether
    // anything was cut off, so that rounding it once more is as rounding once.
    __device__ static Short round(double x)
    {
        float cut = __double2float_rz(x);
        return round(__uint_as_float(__float_as_uint(cut) | (double(cut) != x ? 1 : 0)));
    }
    __device__ static Short round(float x)
    {
        u32 word = __float_as_uint(x), code = (word + 0x7FFF + (word >> 16 & 1)) >> 16;
        return {code, value(code)};
    }
    __device__ static TwoShort round_two(float first, float second)
    {
        const u32 near = brains_of(first, second);
        return {near, {value(near), __uint_as_float(near & 0xFFFF0000)}};
    }
    __device__ static float value(u32 code) { return __uint_as_float(code << 16); }
};

// Whether numbers of single precision can be scaled as such, down and back: conversions to double
// precision are slow.
template <class Format, class T> __device__ bool scales_floats(int scale)
{
    return sizeof(T) == 4 && scale >= -126 && scale <= Format::MOST_SCALE_OF_FLOATS;
}

// The warp's maximum of keys, of which each thread has those of eight numbers; of a NaN it may be
// the largest of all.
template <class T>
__device__ int largest_key(const T (&x)[8])
{
    int most = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) most = Real<T>::larger(most, x[i]);
    return __reduce_max_sync(0xFFFFFFFF, most);
}

// The same of those below one.
template <class T>
__device__ int largest_key(const T (&x)[8], int below)
{
    int most = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        int key = Real<T>::key(x[i]);
        most = key < below && key > most ? key : most;
    }
    return __reduce_max_sync(0xFFFFFFFF, most);
}

// The binary exponent of a number of which the key is known; of numbers that are not normal, that
// of the least normal one.
template <class T> __device__ int exponent_of(int key)
{
    if (sizeof(T) == 8) return (key >> 20) - 1023;
    if (key >= 1 << 23) return (key >> 23) - 127;
    return int(bits_of(double(__int_as_float(key))) >> 52) - 1023;
}

// Rounds a span of 256 numbers, of which each thread of a warp has eight, to a format, and returns
// its scale. `out` is the thread's block.
template <class Format, class T>
__device__ int encode_span(const T (&x)[8], u8* out, bool writes, Team team, double& error)
{
    // Larger numbers would round to one that `T` does not have: they are cut to this one.
    constexpr u32 DROP = Real<T>::MANTISSA > Format::MANTISSA ? Real<T>::MANTISSA - Format::MANTISSA : 0;
    const T limit = Real<T>::from_word((Real<T>::INFINITY_BITS - 1) >> DROP << DROP);
    int most = largest_key(x);
    // With all ones in the lower half of a word, the limit may seem exceeded where it is not: that
    // changes nothing.
    bool plain = most < Real<T>::key(limit);
    if (!plain) most = largest_key(x, int(Real<T>::INFINITY_BITS >> (sizeof(T) == 8 ? 32 : 0)));
    if (sizeof(T) == 8 && most == 0) {
        // All upper halves are 0: the exponent is the same whatever is in the lower, unless they
        // are 0 as well.
        bool any = false;
#pragma unroll
        for (u32 i = 0; i < 8; i++) any |= isfinite(x[i]) && x[i] != T(0);
        most = __any_sync(0xFFFFFFFF, any) ? 1 : 0;
    }
    int scale = most == 0 ? 0 : max(exponent_of<T>(most) - Format::TOP, LEAST_SCALE);
    u32 code[8];
    if (plain && scales_floats<Format, T>(scale)) {
        const float down = single_power(-scale), up = single_power(scale);
        auto add = [&](float near, u32 i) {
            // Of numbers so near to each other, exact.
            double wrong = near * up - float(x[i]);
            error = fma(wrong, wrong, error);
        };
        if constexpr (Format::BITS == 16) {
            u32 codes[4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const TwoShort near = Format::round_two(float(x[2 * i]) * down, float(x[2 * i + 1]) * down);
                add(near.values[0], 2 * i);
                add(near.values[1], 2 * i + 1);
                codes[i] = near.codes;
            }
            if (writes) store_16_bits(codes, out, team);
            return scale;
        } else {
#pragma unroll
            for (u32 i = 0; i < 8; i++) {
                Short near = Format::round(float(x[i]) * down);
                add(near.value, i);
                code[i] = near.code;
            }
        }
    } else if (plain) {
        const double factor = power(-scale), back = power(scale);
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            Short near = Format::round(double(x[i]) * factor);
            double wrong = rounded<T>(double(near.value) * back) - double(x[i]);
            error = fma(wrong, wrong, error);
            code[i] = near.code;
        }
    } else {
        const double factor = power(-scale), back = power(scale);
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            if (!isfinite(x[i])) {
                code[i] = Format::special(x[i]);
                continue;
            }
            double real = double(x[i]);
            Short near = Format::round(fmin(fmax(real, -double(limit)), double(limit)) * factor);
            double wrong = rounded<T>(double(near.value) * back) - real;
            error = fma(wrong, wrong, error);
            code[i] = near.code;
        }
    }
    if (writes) store_codes<false>(code, Format::BITS, out, team);
    return scale;
}

template <class Format, class T>
__device__ void decode_span(const u8* block, int scale, T (&x)[8], Team team)
{
    u32 code[8];
    load_codes(code, Format::BITS, block, team);
    if (sizeof(T) == 4 && scale >= -126 && scale <= 127) {
        const float back = single_power(scale);
#pragma unroll
        for (u32 i = 0; i < 8; i++) x[i] = T(Format::value(code[i]) * back);
        return;
    }
    const double back = power(scale);
#pragma unroll
    for (u32 i = 0; i < 8; i++) x[i] = T(double(Format::value(code[i])) * back);
}

// Cuts the mantissas of a block's numbers to so many bits, of which it makes codes, and adds up
// squared errors. Returns whether there is a NaN. For whole warps: nearly always all numbers are
// far from infinity.
template <class T>
__device__ bool trim(const T (&x)[8], u32 bits, typename Real<T>::Word (&code)[8], double& error)
{
    using Word = typename Real<T>::Word;
    constexpr Word INFINITY_WORD = Word(Real<T>::INFINITY_BITS), MAGNITUDES = Word(~Word(0)) >> 1, ONE = 1;
    // The key of numbers that are rounded to infinity at the earliest.
    constexpr int LARGE = int((INFINITY_WORD - (ONE << Real<T>::MANTISSA)) >> (8 * sizeof(T) - 32));
    const u32 dropped = bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0;
    // Added to a word, half of what is dropped rounds it; one less, for a word that is even behind
    // the cut.
    const Word half = dropped == 0 ? 0 : (ONE << (dropped - 1)) - 1, one = dropped == 0 ? 0 : 1;
    int most = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) most = Real<T>::larger(most, x[i]);
    const bool far = __all_sync(0xFFFFFFFF, most < LARGE);
    bool nans = false;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        const Word word = Word(Real<T>::word(x[i]));
        code[i] = (word + half + (word >> dropped & one)) >> dropped;
    }
    for (u32 i = 0; i < 8 && !far; i++) {
        const Word word = Word(Real<T>::word(x[i])), magnitude = word & MAGNITUDES;
        const bool nan = magnitude > INFINITY_WORD;
        // Neither upwards out of range nor from NaN to infinity.
        if (magnitude >= INFINITY_WORD || (Word(code[i] << dropped) & MAGNITUDES) >= INFINITY_WORD)
            code[i] = (word | (nan ? ONE << (Real<T>::MANTISSA - 1) : 0)) >> dropped;
        nans |= nan;
    }
    auto add = [&](u32 i) {
        // Of numbers so near to each other, exact.
        const T wrong = Real<T>::from_word(code[i] << dropped) - x[i];
        error = fma(double(wrong), double(wrong), error);
    };
    if (far) {
#pragma unroll
        for (u32 i = 0; i < 8; i++) add(i);
    } else {
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            if (isfinite(x[i])) add(i);
    }
    return nans;
}

template <class T>
__device__ void decode_trimmed(const u8* block, u32 bits, T (&x)[8], Team team)
{
    using Word = typename Real<T>::Word;
    u32 dropped = bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0;
    Word code[8];
    load_codes(code, 8 * sizeof(T) - dropped, block, team);
#pragma unroll
    for (u32 i = 0; i < 8; i++) x[i] = Real<T>::from_word(code[i] << dropped);
}
