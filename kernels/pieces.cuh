// An array in pieces that lie in several ranks' memory, as cuFFT's kernels read it (`gather.cu`) or
// write it (`scatter.cu`): a reshape on the way into a transform, or out of it.
//
// CPU twin: `Pieces::place` in `crates/fft-gpu/src/abi/pieces.rs`, which makes the tables.
#pragma once

#include "divisor.cuh"

// A rank's part of the array: the address that the array's first element would have there, and the
// stride of each axis in elements.
struct Piece {
    u64 base;
    u32 strides[3];
    u32 unused;
};

// An array of three axes in pieces, cut at these indices of each. Unused cuts are at an index that
// does not exist.
struct Pieces {
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

// The place of an element, with at most so many cuts along the first axis and along the others.
// Fewer cuts are faster.
template <u32 FIRST, u32 OTHERS>
__device__ __forceinline__ double2* place(unsigned long long number, const Pieces* __restrict__ pieces)
{
    const u32 row = pieces->by[1].of(u32(number)), k = u32(number) - row * pieces->lens[1];
    const u32 i = pieces->by[0].of(row), j = row - i * pieces->lens[0];
    u32 a = 0, b = 0, c = 0;
#pragma unroll
    for (u32 cut = 0; cut < FIRST; cut++) a += i >= pieces->first_cuts[cut];
#pragma unroll
    for (u32 cut = 0; cut < OTHERS; cut++) {
        b += j >= pieces->second_cuts[cut];
        c += k >= pieces->third_cuts[cut];
    }
    const Piece& piece = pieces->piece[(a * pieces->pieces[0] + b) * pieces->pieces[1] + c];
    const u64 at = u64(i) * piece.strides[0] + u64(j) * piece.strides[1] + u64(k) * piece.strides[2];
    return reinterpret_cast<double2*>(piece.base) + at;
}
