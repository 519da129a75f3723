// Messages of the wires that have a header: docs/wire.md.
#pragma once

#include "codes.cuh"

constexpr u32 HEADER = 32;
constexpr u32 BLOCK = 64;
constexpr u32 BLOCKS_AT_ONCE = TILE / BLOCK;

// What is known before a message is made or read.
struct Message {
    Box box;
    // Where it begins, in bytes, a multiple of 16.
    u64 place;
    // Bytes of its numbers as they are, which its body must stay below.
    u64 room;
    // Bytes of the body whose place does not depend on the data, of the table at its front, and of what that is filled with.
    u64 fixed, table, filled;
    // The first 16 bytes of the header, unless the body is raw.
    u64 head[2];
};
static_assert(sizeof(Message) == 240, "the host has the same");

// A message that does not, whatever the data, is left to settle.cu.
__device__ inline bool never_shrinks(const Message& message) { return message.fixed >= message.room; }

// What comes of it: set to zeros before a launch.
struct State {
    // Bytes of the message.
    u64 bytes;
    double squared_error;
    // Of the tolerance codec, units of 8 bytes behind the table.
    u64 units;
    // Blocks that are sent as they are, other than that of the tolerance codec.
    u32 raw_blocks;
    // Whether all of it is sent as it is.
    u32 raw;
    // What is wrong with a message that was read, or 0.
    u32 bad;
    u32 unused;
};
static_assert(sizeof(State) == 40, "the host has the same");

// Adds up what the threads of a block have, always in the same order; the sum is the first thread's. Has barriers.
__device__ inline double sum_of_block(double x)
{
    __shared__ double sums[THREADS / 32];
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xFFFFFFFF, x, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (double part : sums) sum += part;
    __syncthreads();
    return sum;
}

// An element of WIDTH reals: what is moved at once.
template <class T, u32 WIDTH> struct ElementOf;
template <> struct ElementOf<float, 1> { using Type = u32; };
template <> struct ElementOf<float, 2> { using Type = uint2; };
template <> struct ElementOf<double, 1> { using Type = uint2; };
template <> struct ElementOf<double, 2> { using Type = uint4; };
