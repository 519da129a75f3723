// A box of elements of several numbers, and sums over the threads of a block.
#pragma once

#include "box.cuh"

// Elements of `width` numbers; `run` says that they lie one after the other.
struct Part {
    u64 offset, elements;
    u64 stride[DIMS];
    u32 shape[DIMS];
    u32 width, run;
};
static_assert(sizeof(Part) == 88, "the host has the same");

__device__ inline u64 place_of(const Part& part, u64 element)
{
    if (part.run) return part.offset + element;
    u64 at = part.offset;
#pragma unroll
    for (int axis = DIMS - 1; axis >= 0; axis--) {
        u64 above = element / part.shape[axis];
        at += (element - above * part.shape[axis]) * part.stride[axis];
        element = above;
    }
    return at;
}

// Adds up what the threads of a block have; the sum is the first thread's.
__device__ inline double sum_of_block(double x, double* sums)
{
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xFFFFFFFF, x, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    for (u32 warp = 0; warp < THREADS / 32; warp++) sum += sums[warp];
    __syncthreads();
    return sum;
}
