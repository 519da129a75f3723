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
    // The number behind the colon of a wire; of `bits`, one over its largest integer; of
    // `tolerance`, the step and one over it.
    u32 bits;
    double part, step, inverse;
    Queue queue;
};

// The squared errors of a tile, which are added up always in the same order: by one warp for all,
// with a barrier before, and one behind before others are added.
struct Errors {
    double of[THREADS];

    __device__ void add(double error) { of[threadIdx.x] = error; }
    __device__ void keep(double* errors, const Tile& tile) const
    {
        const u32 lane = threadIdx.x % 32;
        double sum = 0;
#pragma unroll
        for (u32 k = 0; k < THREADS / 32; k++) sum += of[lane + 32 * k];
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, distance);
        if (lane == 0) errors[tile.number] = sum;
    }
};
