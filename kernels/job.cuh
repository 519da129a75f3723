// What encoders and settle.cu are told, and how sums of squared errors are kept.
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
    // Of `bits`, its number and one over its largest integer; of `tolerance`, the step, else 0, and
    // one over it.
    u32 bits;
    // Which messages are raw: none, some perhaps, or all. The host has the same (`RawMessages`).
    u32 raw;
    double part, step, inverse;
    Queue queue;
};
// A message without elements is its numbers as they are even where none is: it has no header.
constexpr u32 NONE_RAW = 0, ALL_RAW = 2;

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
