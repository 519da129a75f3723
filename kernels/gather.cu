// Reshapes on the way into a transform: what cuFFT calls instead of loading an element, linked into its own kernels when a plan is
// made (`cufftXtSetJITCallback`). Each element is read from the memory of the rank that has it, so that a reshape costs no pass.
// Compiled to the intermediate code that this takes.
//
// CPU twin: `Gather::source` in `crates/fft-gpu/src/gather.rs`, which makes the tables. Bytes moved: none but those of the transform.
#include "divisor.cuh"

// Where a rank has its part of the array: the address that the array's first element would have there, and elements from one
// index to the next along each axis.
struct Piece {
    u64 base;
    u32 strides[3];
    u32 unused;
};

// An array of three axes in pieces, cut at these indices of each: where there are fewer cuts, at none that exists.
struct Gather {
    // The lengths of the second and the third.
    u32 lens[2];
    Divisor by[2];
    // The pieces along them.
    u32 pieces[2];
    u32 first_cuts[7];
    u32 second_cuts[3];
    u32 third_cuts[3];
    u32 unused;
    // What elements are multiplied by.
    double factor;
    Piece piece[128];
};

// With so many cuts at most along the first axis, and along the others: each that is not looked at saves its share.
template <u32 FIRST, u32 OTHERS>
__device__ __forceinline__ double2 fetch(unsigned long long number, const void* told)
{
    const Gather* __restrict__ gather = static_cast<const Gather*>(told);
    const u32 row = gather->by[1].of(u32(number)), k = u32(number) - row * gather->lens[1];
    const u32 i = gather->by[0].of(row), j = row - i * gather->lens[0];
    u32 a = 0, b = 0, c = 0;
#pragma unroll
    for (u32 cut = 0; cut < FIRST; cut++) a += i >= gather->first_cuts[cut];
#pragma unroll
    for (u32 cut = 0; cut < OTHERS; cut++) {
        b += j >= gather->second_cuts[cut];
        c += k >= gather->third_cuts[cut];
    }
    const Piece& piece = gather->piece[(a * gather->pieces[0] + b) * gather->pieces[1] + c];
    const u64 place = u64(i) * piece.strides[0] + u64(j) * piece.strides[1] + u64(k) * piece.strides[2];
    const double2 z = reinterpret_cast<const double2*>(piece.base)[place];
    return {z.x * gather->factor, z.y * gather->factor};
}

// The arguments are cuFFT's: where the array would begin, the element's number there, and what the plan was told.
__device__ double2 gather_1_1(void*, unsigned long long number, void* told, void*)
{
    return fetch<1, 1>(number, told);
}

__device__ double2 gather_7_1(void*, unsigned long long number, void* told, void*)
{
    return fetch<7, 1>(number, told);
}

__device__ double2 gather_7_3(void*, unsigned long long number, void* told, void*)
{
    return fetch<7, 3>(number, told);
}
