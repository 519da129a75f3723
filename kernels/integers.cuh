// Blocks of integers in units of a step. CPU twin: crates/fft-core/src/codec/integers.rs.
#pragma once

#include "message.cuh"

constexpr u64 ROUNDER = (1023ull + 52) << 52;
constexpr u32 SINGLE_ROUNDER = (127 + 23) << 23;
// The most bits of integers of which single precision has multiples of steps of six digits.
constexpr u32 SINGLE_BITS = 18;

template <class T> constexpr u32 RAW_BYTES = BLOCK * sizeof(T);

// Of `tolerance`: bytes of the step, bits of a width, and the width of a block that is sent as it
// is.
constexpr u32 STEP_BYTES = 8, WIDTH_BITS = 6, RAW = 63;
// The most bits of other blocks, which are shorter.
template <class T> constexpr u32 WIDEST = sizeof(T) == 8 ? 52 : 31;

struct Integers {
    double step, inverse;
    u32 bits;
    // Whether single precision has multiples of the step by integers of up to 18 bits, as they are.
    bool few;

    __device__ Integers(double step, double inverse, u32 bits, bool few) : step(step), inverse(inverse), bits(bits), few(few) {}

    // Whether a step has at most 6 digits, as scales have and steps that `tolerance` takes, and is
    // from 2^-126 to 2^100.
    __device__ static bool few_digits(double step)
    {
        constexpr u32 LEAST = u32(power_bits(-126) >> 32), MOST = u32(power_bits(100) >> 32);
        u32 high = u32(bits_of(step) >> 32);
        return high - LEAST <= MOST - LEAST && bits_of(step) << 17 == 0;
    }

    // What the code 0 stands for, before the exponent of the rounder is taken off: 2^52 + 2^(bits -
    // 1).
    __device__ double middle() const { return from_bits(ROUNDER | 1ull << (bits - 1)); }

    // Whether what all codes stand for need not be rounded: conversions are slow.
    template <class T> __device__ bool is_single() const { return sizeof(T) == 4 && bits <= SINGLE_BITS && few; }

    // Makes and writes codes of any number of bits, and returns the sum of squared errors. Nothing
    // is written of no bits.
    template <bool SHARED, u32 STEP, class T>
    __device__ double encode(const T* x, u32 bits, u8* block, Team team) const
    {
        u64 code[8];
        double error = 0;
        round<true, STEP, false>(x, code, error);
        store_codes<SHARED>(code, bits, block, team);
        return error;
    }

    // Codes of the eight numbers that a thread has, `STEP` apart; adds up squared errors. `SINGLE`
    // says that single precision has what codes stand for, and `CLIP` that integers may come out
    // too large.
    template <bool CLIP, u32 STEP, bool SINGLE, class Code, class T>
    __device__ void round(const T* x, Code (&code)[8], double& error) const
    {
        double middle = this->middle(), top = double((1ull << (bits - 1)) - 1);
        // To scale is wrong by less than half an integer of up to 50 bits.
        bool clip = CLIP && (bits <= 5 || bits > 50);
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            double real = double(x[STEP * i]), scaled = real * inverse;
            if (clip) {
                scaled = scaled < top ? scaled : top;
                scaled = scaled > -top ? scaled : -top;
            }
            double near = scaled + middle;
            double integer = near - middle;
            double wrong = SINGLE ? fma(integer, step, -real) : rounded<T>(integer * step) - real;
            error = fma(wrong, wrong, error);
            code[i] = sizeof(Code) == 4 ? Code(__double2loint(near)) : Code(bits_of(near));
        }
    }

    // What a code stands for.
    __device__ double value(u64 code) const { return (from_bits(ROUNDER | code) - middle()) * step; }

    // What the codes of a block stand for.
    template <u32 STEP, class T>
    __device__ void decode(const u8* block, T* x, Team team) const
    {
        if (is_single<T>()) {
            decode_single<STEP>(float(this->step), bits, block, x, team);
        } else if (bits <= 32) decode_as<u32, STEP>(block, x, team);
        else decode_as<u64, STEP>(block, x, team);
    }

    // As `value`, of codes of up to 18 bits, with a rounder of single precision.
    template <u32 STEP, class T>
    __device__ static void decode_single(float step, u32 bits, const u8* block, T* x, Team team)
    {
        u32 code[8];
        load_few<(SINGLE_ROUNDER | SINGLE_ROUNDER >> 16)>(code, bits, block, team.lane);
        const float middle = __uint_as_float(SINGLE_ROUNDER | 1u << (bits - 1));
#pragma unroll
        for (u32 i = 0; i < 8; i++) x[STEP * i] = T((__uint_as_float(code[i]) - middle) * step);
    }

    template <class Code, u32 STEP, class T>
    __device__ void decode_as(const u8* block, T* x, Team team) const
    {
        Code code[8];
        load_codes(code, bits, block, team);
#pragma unroll
        for (u32 i = 0; i < 8; i++) x[STEP * i] = T(value(code[i]));
    }
};

// Numbers as they are, into shared memory, and back.
template <u32 STEP, class T>
__device__ void put_raw(const T* x, u8* block, Team team)
{
    typename Real<T>::Word code[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) code[i] = Real<T>::word(x[STEP * i]);
    store_codes<true>(code, 8 * sizeof(T), block, team);
}

template <u32 STEP, class T>
__device__ void get_raw(const u8* block, T* x, Team team)
{
    typename Real<T>::Word code[8];
    load_codes(code, 8 * sizeof(T), block, team);
#pragma unroll
    for (u32 i = 0; i < 8; i++) x[STEP * i] = Real<T>::from_word(code[i]);
}
