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

    // The number of the next tile, to the first thread. Nobody waits for it before it is asked for.
    __device__ u32 draw() const { return ::draw(words); }
    __device__ u64* word(u32 tile) const { return words + 1 + tile; }
};

// A tile that a block has drawn. Not long before its length is known, since others wait for that.
template <class Item>
struct Drawn {
    Work<Item> work;

    // Begins to fetch the description of the tile of this number, which the first thread knows.
    __device__ void find(const Batch<Item>& batch, u32 number)
    {
        if (threadIdx.x < 32) work.find(batch, __shfl_sync(0xFFFFFFFF, number, 0));
    }
    // Fetches that of its item, or takes it over from another tile's where it is the same: for all to see after a barrier.
    __device__ void describe(const Batch<Item>& batch, const Work<Item>* other)
    {
        if (threadIdx.x >= 32) return;
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncwarp();
        if (other != nullptr && other->number < batch.tiles && other->tile.item == work.tile.item) {
            u32 i = threadIdx.x;
            if (i < sizeof(Item) / 8)
                reinterpret_cast<u64*>(&work.item)[i] = reinterpret_cast<const u64*>(&other->item)[i];
        } else {
            work.describe(batch);
            asm volatile("cp.async.wait_all;" ::: "memory");
        }
    }
};

// A length is below 2^62; above it is what it is the length of.
constexpr u64 ALONE = 1ull << 62, WITH_ALL_BEFORE = 2ull << 62, LENGTH = ALONE - 1;

__device__ inline u64 published(const u64* word)
{
    u64 value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
__device__ inline void publish(u64* word, u64 value)
{
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

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

// Says how long a tile is, to one thread's knowledge.
__device__ inline void publish_length(const Queue& queue, u32 tile, u32 first_tile, u64 length)
{
    publish(queue.word(tile), (tile == first_tile ? WITH_ALL_BEFORE : ALONE) | length);
}

// Where a tile begins that has said how long it is: the sum of all before it in its message. One warp asks 64 of those before it at
// once, takes what it is told from the nearest on, and asks again for the rest. That is the second, as the first adds up lengths
// meanwhile. Has a barrier.
__device__ inline u64 look_back(const Queue& queue, u32 tile, u32 first_tile, u64 length)
{
    // More are seldom wanted, and take longer.
    constexpr u32 MANY = 2;
    __shared__ u64 begin;
    const u32 lane = threadIdx.x % 32;
    if (threadIdx.x / 32 == 1) {
        u64 before = 0;
        bool found = tile == first_tile;
        for (u32 next = tile; !found;) {
            u64 words[MANY];
#pragma unroll
            for (u32 k = 0; k < MANY; k++) {
                u32 back = 32 * k + lane + 1;
                words[k] = next >= first_tile + back ? published(queue.word(next - back)) : WITH_ALL_BEFORE;
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
        if (lane == 0) {
            begin = before;
            if (tile != first_tile) publish(queue.word(tile), WITH_ALL_BEFORE | (before + length));
        }
    }
    __syncthreads();
    return begin;
}
