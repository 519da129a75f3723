// Where a tile of a message goes whose predecessors are of unknown length: a scan in the same pass, by looking back
// (Merrill and Garland, Single-pass parallel prefix scan with decoupled look-back, NVIDIA NVR-2016-002).
//
// Each tile's length is published; then the tiles before it are asked until one knows where it ends, and where this one ends is published,
// too. Blocks draw tiles by number, so that whoever is waited for has been drawn by a block that runs.
#pragma once

#include "message.cuh"

// Set to zeros before a launch: one word for each tile, and the number of the next tile in front of them.
struct Queue {
    u64* words;

    // The number of the next tile, to the first thread of some. Nobody waits for it before it is asked for.
    __device__ u32 draw(u32 thread) const { return ::draw(words, thread); }
    __device__ u64* word(u32 tile) const { return words + 1 + tile; }
};

// A length is below 2^62; above it is what it is the length of.
constexpr u64 ALONE = 1ull << 62, WITH_ALL_BEFORE = 2ull << 62, LENGTH = ALONE - 1;

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

// Says how long a tile is, of those of a message that begin with the first. For one thread.
__device__ inline void publish_length(const Queue& queue, u32 tile, u32 first, u64 length)
{
    publish(queue.word(tile), (tile == first ? WITH_ALL_BEFORE : ALONE) | length);
}

// Where a tile begins whose length has been said: the sum of all before it in its message. For one warp, which asks 64 of those before it
// at once, takes what it is told from the nearest on, and asks again for the rest.
__device__ inline u64 look_back(const Queue& queue, u32 tile, u32 first, u64 length)
{
    // More are seldom wanted, and take longer.
    constexpr u32 MANY = 2;
    const u32 lane = threadIdx.x % 32;
    u64 before = 0;
    bool found = tile == first;
    for (u32 next = tile; !found;) {
        u64 words[MANY];
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            u32 back = 32 * k + lane + 1;
            words[k] = next >= first + back ? published(queue.word(next - back)) : WITH_ALL_BEFORE;
        }
        u32 taken = 0;
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            u32 unknown = __ballot_sync(0xFFFFFFFF, words[k] == 0), know = __ballot_sync(0xFFFFFFFF, words[k] >= WITH_ALL_BEFORE);
            // Lanes up to the nearest that knows where it ends, or all.
            u32 wanted = know ^ (know - 1);
            if (found || taken < k || (unknown & wanted) != 0) break;
            if (wanted >> lane & 1) before += words[k] & LENGTH;
            found = know != 0;
            taken++;
        }
        next -= 32 * taken;
        if (taken == 0) __nanosleep(40);
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) before += __shfl_xor_sync(0xFFFFFFFF, before, distance);
    if (lane == 0 && tile != first) publish(queue.word(tile), WITH_ALL_BEFORE | (before + length));
    return before;
}
