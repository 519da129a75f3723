// Scales of `bits`, and its blocks with numbers that are not finite, or so large that rounding
// might make them so. The latter are rare and compiled once, out of line.
//
// CPU twin: crates/fft-core/src/codec/edge.rs.
#pragma once

#include "integers.cuh"

// The scale of a block that has numbers that are not finite.
constexpr u32 STRANGE = 0xFFFF;

// A normal step, or 0, rounded upwards to 11 bits of exponent and 5 of mantissa.
__device__ inline u32 scale_of_normal(double step) { return u32((bits_of(step) + (1ull << 47) - 1) >> 47); }

// The same of any step, not below the smallest normal number.
__device__ inline u32 scale_of(double step)
{
    double least = from_bits(1ull << 52);
    return scale_of_normal(step > least ? step : least);
}

// That of a block, of its largest magnitude and one over the largest integer. Of single precision
// no step is below the normal numbers.
template <class T> __device__ u32 scale_for(u64 most, double part)
{
    const double step = from_bits(most) * part;
    const u32 scale = sizeof(T) == 4 ? scale_of_normal(step) : most == 0 ? 0 : scale_of(step);
    return most < INFINITE ? scale : STRANGE;
}

__device__ inline double step_of(u32 scale) { return from_bits(u64(scale) << 47); }

// The same in single precision, of 0 and of steps from 2^-126 to 2^100, and whether a scale is of
// these.
constexpr u32 SINGLE_LEAST = (1023 - 126) << 5, SINGLE_MOST = (1023 + 100) << 5;
__device__ inline bool is_single_scale(u32 scale) { return scale == 0 || (scale >= SINGLE_LEAST && scale <= SINGLE_MOST); }
__device__ inline float single_step_of(u32 scale)
{
    return scale == 0 ? 0.0f : __uint_as_float((scale << 18) - ((1023u - 127) << 23));
}

// One over a scale's step; of 0, which only zeros have, any finite number.
template <class T> __device__ double inverse_of(u32 scale)
{
    const double step = step_of(max(scale, 1u << 5));
    return sizeof(T) == 4 ? one_over(step) : __drcp_rn(step);
}

// Eight numbers of a thread, of one plane, to be passed to a function that is not inlined.
struct Eight {
    double x[8];
};

// The elements of a tile that these are of, as `read_block` and `write_blocks` have them: a block's
// first is given.
__device__ inline u32 element_of(u32 first, u32 i) { return first + 4 * (threadIdx.x & 7) + (i & 3) + 32 * (i / 4); }

// Integers in units of a step, cut to the range of the receiver's numbers.
template <class T>
struct Edge {
    double step;
    u32 bits;
    // Whether the outermost codes are not integers: NaN, -infinity, and at the other end infinity.
    bool strange;

    // Bits of the codes of a block whose outermost codes are not integers, where others have
    // `bits`.
    __device__ static u32 strange_bits(u32 bits) { return max(bits - 1, 2u); }
    // The largest finite number.
    __device__ static double most() { return double(T(Real<T>::from_word(Real<T>::INFINITY_BITS - 1))); }
    // Whether integers of so many bits all stay in range; not if the step is not finite.
    __device__ static bool is_far(double step, u32 bits) { return double(1ull << (bits - 1)) * step <= most(); }

    __device__ long long middle() const { return 1ll << (bits - 1); }
    // The largest integer.
    __device__ long long top() const { return middle() - (strange ? 2 : 1); }

    __device__ u64 code(double x) const
    {
        if (isnan(x)) return 0;
        if (isinf(x)) return u64(middle() + (x > 0 ? top() + 1 : -top() - 1));
        double inverse = step == 0 ? 0 : __drcp_rn(step), most = double(top());
        return u64((long long)rint(fmin(fmax(x * inverse, -most), most)) + middle());
    }
    __device__ double value(u64 code) const
    {
        long long integer = (long long)code - middle();
        if (!strange || (integer <= top() && -integer <= top())) return fmin(fmax(double(integer) * step, -most()), most());
        if (code == 0) return from_bits(INFINITE | 1ull << 51);
        return from_bits(integer < 0 ? INFINITE | 1ull << 63 : INFINITE);
    }
};

// Writes a block, whose scale is known unless it is strange: then it has a scale of its own, which
// follows the codes if there are other integers than 0. Returns the squared errors of the finite of
// a thread's numbers.
template <class T>
__device__ __noinline__ double encode_edge(u32 scale, u32 bits, const Eight& eight, u8* out)
{
    Team team;
    Edge<T> edge{0, bits, scale == STRANGE};
    if (edge.strange) {
        edge.bits = Edge<T>::strange_bits(bits);
        // Words of finite numbers above 0 are in the order of these.
        u64 most = 0;
        for (double x : eight.x) most = isfinite(x) ? max(most, bits_of(fabs(x))) : most;
        for (u32 distance = 1; distance < 8; distance *= 2) most = max(most, team.across(most, distance));
        scale = edge.top() > 0 && most > 0 ? scale_of(__ddiv_rn(from_bits(most), double(edge.top()))) : 0;
        if (bits > edge.bits && team.lane == 0) *reinterpret_cast<u64*>(out + 8 * edge.bits) = scale;
    }
    edge.step = step_of(scale);
    double error = 0;
    u64 code[8];
    for (u32 i = 0; i < 8; i++) {
        double x = eight.x[i];
        code[i] = edge.code(x);
        if (!isfinite(x)) continue;
        double wrong = rounded<T>(edge.value(code[i])) - x;
        error = fma(wrong, wrong, error);
    }
    store_codes<false>(code, edge.bits, out, team);
    return error;
}

// Reads a block. Returns whether its scale, or that of its own, is one of a finite number.
template <class T>
__device__ __noinline__ bool decode_edge(u32 scale, u32 bits, const u8* from, Eight& eight)
{
    Team team;
    Edge<T> edge{0, bits, scale == STRANGE};
    if (edge.strange) {
        edge.bits = Edge<T>::strange_bits(bits);
        scale = bits > edge.bits ? *reinterpret_cast<const u16*>(from + 8 * edge.bits) : 0;
    }
    edge.step = step_of(scale);
    if (!isfinite(edge.step)) return false;
    u64 code[8];
    load_codes(code, edge.bits, from, team);
    for (u32 i = 0; i < 8; i++) eight.x[i] = edge.value(code[i]);
    return true;
}
