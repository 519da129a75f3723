// Shorter floating-point formats. CPU twin: crates/fft-core/src/codec/rounded.rs.
#pragma once

#include "message.cuh"

// The exponents that a scale may have.
constexpr int LEAST_SCALE = -1022, MOST_SCALE = 1022;

struct Code {
    u32 bits;
    // What it stands for.
    double value;
};

// A format with a sign, an exponent of fewer bits than that of double, and a mantissa of fewer bits.
template <u32 EXPONENT, u32 MANTISSA_BITS>
struct Short {
    static constexpr u32 BITS = 1 + EXPONENT + MANTISSA_BITS;
    static constexpr u32 MANTISSA = MANTISSA_BITS;
    // The exponent to which the largest number is brought.
    static constexpr int TOP = (1 << (EXPONENT - 1)) - 2;
    static constexpr u64 REBIAS = (1024ull - (1 << (EXPONENT - 1))) << 52;
    static constexpr u32 DROPPED = 52 - MANTISSA;
    static constexpr u32 SPECIAL = ((1u << EXPONENT) - 1) << MANTISSA;

    // Rounds a finite number in range, ties to even.
    __device__ static Code round(double x)
    {
        double magnitude = fabs(x), least = power(-TOP);
        // A number that is larger by so many binary digits leaves those that are kept, and rounds the others away.
        double leading = from_bits(u64(u32(__double2hiint(magnitude)) & 0x7FF00000) << 32);
        double larger = (leading > least ? leading : least) * double(1ull << DROPPED);
        double near = (magnitude + larger) - larger;
        // Numbers below the normal ones have no leading digit: they borrow one.
        bool small = near < least;
        double normal = near + (small ? least : 0.0);
        // What is kept is in the upper half of the word.
        u32 code = (u32(__double2hiint(normal)) - u32(REBIAS >> 32)) >> (DROPPED - 32);
        code -= small ? 1 << MANTISSA : 0;
        u32 sign = u32(__double2hiint(x)) >> 31;
        return {sign << (BITS - 1) | code, copysign(near, x)};
    }
    // The word of a number, as double or as float, that is not finite.
    template <class T> __device__ static u32 special(T x)
    {
        return u32(signbit(x)) << (BITS - 1) | SPECIAL | (isnan(x) ? 1u << (MANTISSA - 1) : 0);
    }
    __device__ static double value(u32 code)
    {
        u32 magnitude = code & ((1u << (BITS - 1)) - 1), exponent = magnitude >> MANTISSA;
        double rounder = power(52 - TOP - int(MANTISSA));
        u64 shifted = u64(magnitude) << DROPPED;
        double small = from_bits(bits_of(rounder) + magnitude) - rounder;
        u64 normal = exponent == 0 ? bits_of(small) : shifted + REBIAS;
        bool special = exponent == (1u << EXPONENT) - 1;
        return from_bits(u64(code >> (BITS - 1)) << 63 | (special ? shifted | INFINITE : normal));
    }
};

using Half = Short<5, 10>;
using Brain = Short<8, 7>;

// Processors have this one.
struct Single : Short<8, 23> {
    __device__ static Code round(double x)
    {
        float near = float(x);
        return {__float_as_uint(near), double(near)};
    }
    // The first digits of a NaN stay.
    __device__ static u32 special(double x)
    {
        u64 word = bits_of(x);
        u32 rest = u32(word >> 29) & 0x7FFFFF;
        return u32(word >> 63) << 31 | SPECIAL | (isnan(x) ? rest | 1u << 22 : 0);
    }
    __device__ static u32 special(float x)
    {
        return __float_as_uint(x) | (isnan(x) ? 1u << 22 : 0);
    }
    __device__ static double value(u32 code) { return double(__uint_as_float(code)); }
};

// The warp's maximum of keys, of which each thread has those of eight numbers.
template <class T>
__device__ int largest_key(const T (&x)[8], int below)
{
    int most = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        int key = Real<T>::key(x[i]);
        most = key < below && key > most ? key : most;
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2)
        most = max(most, __shfl_xor_sync(0xFFFFFFFF, most, distance));
    return most;
}

// The binary exponent of a number of which the key is known; of numbers that are not normal, that of the least normal one.
template <class T> __device__ int exponent_of(int key)
{
    if (sizeof(T) == 8) return (key >> 20) - 1023;
    return int(bits_of(double(__int_as_float(key))) >> 52) - 1023;
}

// Rounds a span of 256 numbers, of which each thread of a warp has eight, to a format, and returns its scale. `out` is
// the thread's block.
template <class Format, class T>
__device__ int encode_span(const T (&x)[8], u8* out, bool writes, Team team, double& error)
{
    // Larger numbers would round to one that `T` does not have: they are cut to this one.
    constexpr u32 DROP = Real<T>::MANTISSA > Format::MANTISSA ? Real<T>::MANTISSA - Format::MANTISSA : 0;
    const T limit = Real<T>::from_word((Real<T>::INFINITY_BITS - 1) >> DROP << DROP);
    int most = largest_key(x, 0x7FFFFFFF);
    // With all ones in the lower half of a word, the limit may seem exceeded where it is not: that changes nothing.
    bool plain = most < Real<T>::key(limit);
    if (!plain) most = largest_key(x, int(Real<T>::INFINITY_BITS >> (sizeof(T) == 8 ? 32 : 0)));
    if (sizeof(T) == 8 && most == 0) {
        // All upper halves are 0: the exponent is the same whatever is in the lower, unless they are 0 as well.
        bool any = false;
#pragma unroll
        for (u32 i = 0; i < 8; i++) any |= isfinite(x[i]) && x[i] != T(0);
        most = __any_sync(0xFFFFFFFF, any) ? 1 : 0;
    }
    int scale = most == 0 ? 0 : max(exponent_of<T>(most) - Format::TOP, LEAST_SCALE);
    double factor = power(-scale), back = power(scale);
    u32 code[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        double real = double(x[i]);
        if (!plain && !isfinite(x[i])) {
            code[i] = Format::special(x[i]);
            continue;
        }
        double kept = plain ? real : fmin(fmax(real, -double(limit)), double(limit));
        Code rounded_to = Format::round(kept * factor);
        double wrong = rounded<T>(rounded_to.value * back) - real;
        error = fma(wrong, wrong, error);
        code[i] = rounded_to.bits;
    }
    if (writes) store_codes(code, Format::BITS, out, team);
    return scale;
}

template <class Format, class T>
__device__ void decode_span(const u8* block, int scale, T (&x)[8], Team team)
{
    u32 code[8];
    load_codes(code, Format::BITS, block, team);
    double back = power(scale);
#pragma unroll
    for (u32 i = 0; i < 8; i++) x[i] = T(Format::value(code[i]) * back);
}

// Cuts the mantissas of a block to so many bits. Returns whether there was a NaN.
template <class T>
__device__ bool encode_trimmed(const T (&x)[8], u32 bits, u8* out, bool writes, Team team, double& error)
{
    using Word = typename Real<T>::Word;
    constexpr Word INFINITY_WORD = Word(Real<T>::INFINITY_BITS);
    constexpr Word MAGNITUDES = Word(~Word(0)) >> 1, ONE = 1;
    u32 dropped = bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0;
    // Added to a word, half of what is dropped rounds it; one less, for a word that is even behind the cut.
    Word half = dropped == 0 ? 0 : (ONE << (dropped - 1)) - 1, one = dropped == 0 ? 0 : 1;
    Word code[8];
    bool nans = false;
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
        Word word = Word(Real<T>::word(x[i])), magnitude = word & MAGNITUDES;
        bool nan = magnitude > INFINITY_WORD, finite = magnitude < INFINITY_WORD;
        Word up = word + half + (word >> dropped & one);
        // Neither upwards out of range nor from NaN to infinity.
        bool within = finite && (up & MAGNITUDES) < INFINITY_WORD;
        Word quiet = nan ? ONE << (Real<T>::MANTISSA - 1) : 0;
        code[i] = (within ? up : word | quiet) >> dropped;
        nans |= nan;
        if (finite) {
            double wrong = double(Real<T>::from_word(code[i] << dropped)) - double(x[i]);
            error = fma(wrong, wrong, error);
        }
    }
    if (writes) store_codes(code, 8 * sizeof(T) - dropped, out, team);
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
