// What all encoders are told, and how they keep the sums of their squared errors.
#pragma once

#include "places.cuh"

// Everything that a launch is told.
template <class T>
struct Job {
    Batch<Message> batch;
    const T* src;
    u8* messages;
    State* states;
    // One for each tile: the sum of its squared errors.
    double* errors;
    // The number behind the colon of a wire; of `bits`, one over its largest integer; of `tolerance`, the step and one over it.
    u32 bits;
    double part, step, inverse;
    Queue queue;
};

// Keeps the errors of a tile, which are added up always in the same order. `sums` is for four warps, and the sum is written
// by a later call, after a barrier.
struct Errors {
    double sums[2][THREADS / 32];

    __device__ void add(u32 turn, double error)
    {
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2)
            error += __shfl_xor_sync(0xFFFFFFFF, error, distance);
        if (threadIdx.x % 32 == 0) sums[turn % 2][threadIdx.x / 32] = error;
    }
    __device__ double sum(u32 turn) const
    {
        double sum = 0;
        for (double part : sums[turn % 2]) sum += part;
        return sum;
    }
};
