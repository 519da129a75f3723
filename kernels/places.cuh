// Where a tile of a message goes whose predecessors are of unknown length: a scan in the same pass, by looking back
// (Merrill and Garland, Single-pass parallel prefix scan with decoupled look-back, NVIDIA NVR-2016-002).
//
// Each tile publishes its length, then asks those before it until one knows where it ends, and publishes where it ends
// itself. Blocks draw tiles by number, so that whoever is waited for has been drawn by a block that runs.
#pragma once

#include "message.cuh"

// Set to zeros before a launch: one word per tile, and the number of the next tile in front of them.
struct Queue {
    u64* words;

    // The next tile. Has barriers.
    __device__ u32 draw() const
    {
        __shared__ u32 drawn;
        __syncthreads();
        if (threadIdx.x == 0) drawn = u32(atomicAdd(words, 1ull));
        __syncthreads();
        return drawn;
    }
};

// A length is below 2^62; above it is what it is the length of.
constexpr u64 ALONE = 1ull << 62, WITH_ALL_BEFORE = 2ull << 62, LENGTH = ALONE - 1;

__device__ inline u64 published(const u64* word) { return *reinterpret_cast<const volatile u64*>(word); }
__device__ inline void publish(u64* word, u64 value) { *reinterpret_cast<volatile u64*>(word) = value; }

// The sum over this and all earlier lanes of a warp.
template <class N> __device__ N running_sum(N x)
{
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        N before = __shfl_up_sync(0xFFFFFFFF, x, distance);
        if (threadIdx.x % 32 >= distance) x += before;
    }
    return x;
}

// For each team of eight threads, where in the message it is to write `units`, as all of its threads say: behind all teams
// and tiles of the message before it. `end` is where the tile ends. Has barriers.
__device__ inline u64 place_of(u32 units, const Queue& queue, u32 tile, u32 first_tile, u64& end)
{
    __shared__ u32 lengths[THREADS / 8];
    __shared__ u64 begin, sum;
    if (threadIdx.x % 8 == 0) lengths[threadIdx.x / 8] = units;
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 mine = lengths[threadIdx.x], ends = running_sum(mine);
        lengths[threadIdx.x] = ends - mine;
        u64 length = __shfl_sync(0xFFFFFFFF, ends, 31), before = 0;
        u64* words = queue.words + 1;
        if (tile == first_tile) {
            if (threadIdx.x == 0) publish(words + tile, WITH_ALL_BEFORE | length);
        } else {
            if (threadIdx.x == 0) publish(words + tile, ALONE | length);
            // Lanes ask 32 tiles at once, the nearest by lane 0.
            for (u32 next = tile;; next -= 32) {
                u64 word = WITH_ALL_BEFORE;
                if (next >= first_tile + threadIdx.x + 1)
                    while ((word = published(words + next - threadIdx.x - 1)) == 0) __nanosleep(20);
                u32 know = __ballot_sync(0xFFFFFFFF, word >= WITH_ALL_BEFORE);
                u32 wanted = know == 0 ? 32 : __ffs(know);
                u64 part = threadIdx.x < wanted ? word & LENGTH : 0;
#pragma unroll
                for (u32 distance = 16; distance > 0; distance /= 2)
                    part += __shfl_xor_sync(0xFFFFFFFF, part, distance);
                before += part;
                if (know != 0) break;
            }
            if (threadIdx.x == 0) publish(words + tile, WITH_ALL_BEFORE | (before + length));
        }
        if (threadIdx.x == 0) begin = before, sum = before + length;
    }
    __syncthreads();
    end = sum;
    return begin + lengths[threadIdx.x / 8];
}
