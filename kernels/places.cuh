// The place of a tile of a message whose predecessors have unknown lengths: a scan in the same
// pass, with decoupled look-back (Merrill and Garland, Single-pass parallel prefix scan with
// decoupled look-back, NVIDIA NVR-2016-002), in two steps.
//
// Each tile publishes its length, and adds it to its series of 64. To find where a tile begins, a
// warp reads those of its series before it, and 32 series before that, all at once. That is further
// back than resident blocks are, so that little is left to read. The last tile of a series
// publishes where it ends. Blocks draw tiles by number, so that each awaited tile has been drawn by
// a running block.
#pragma once

#include "message.cuh"

// Tiles of a message one behind the other, so many but for the last: how long those are that have
// said it, and how many these are, above; and where the last of them ends, when that is known.
struct Series {
    u64 sum, end;
};
constexpr u32 SERIES = 64;
static_assert(SERIES == 64 && sizeof(Series) == 16, "the host has the same");
// One tile, in `sum`. What the tiles of a series are long together is below it.
constexpr u64 ONE_TILE = 1ull << 56;
// Said together with a length, which may be 0.
constexpr u64 SAID = 1ull << 63;

// Set to zeros before a launch: the number of the next tile, and one word for each tile behind it;
// and all series of all messages.
struct Queue {
    u64* words;
    Series* series;

    // The number of the next tile, to the first thread of some. Nobody waits for it before it is
    // asked for.
    __device__ u32 draw(u32 thread) const { return ::draw(words, thread); }
};

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

// A tile among those of its message.
struct InLine {
    u64* const lengths;
    Series* const series;
    const u32 index;

    // The tile of this number, of an item whose first tile has that one. Series of an item begin
    // where no other has one.
    __device__ InLine(const Queue& queue, u32 number, u32 item, u32 first)
        : lengths(queue.words + 1 + first), series(queue.series + (first / SERIES + item)), index(number - first)
    {
    }
    // Says how long it is. For one thread.
    __device__ void say(u64 length) const
    {
        publish(lengths + index, SAID | length);
        count_in(&series[index / SERIES].sum, ONE_TILE | length);
    }
    // Where it begins, of which the length has been said. For one warp.
    __device__ u64 begin(u64 length) const
    {
        const u32 lane = threadIdx.x % 32, first = index / SERIES * SERIES;
        u64 before = 0;
        // Who has not been asked yet: tiles of the own series up to one, and so many series before
        // it.
        for (u32 tile = index, left = index / SERIES;;) {
            u64 tiles[SERIES / 32];
#pragma unroll
            for (u32 k = 0; k < SERIES / 32; k++) {
                const u32 at = first + 32 * k + lane;
                tiles[k] = at < tile ? published(lengths + at) : SAID;
            }
            // Before the first one nothing is.
            Series one{0, SAID};
            if (lane < left) one = {published(&series[left - 1 - lane].sum), published(&series[left - 1 - lane].end)};
            bool told = true;
            for (u64 word : tiles) told &= word != 0;
            const bool ends = one.end != 0;
            const u32 know = __ballot_sync(0xFFFFFFFF, ends), miss = __ballot_sync(0xFFFFFFFF, !ends && one.sum / ONE_TILE != SERIES);
            // Lanes up to the nearest that knows where it ends, or all.
            const u32 wanted = know ^ (know - 1);
            if (!__all_sync(0xFFFFFFFF, told) || (miss & wanted) != 0) {
                __nanosleep(40);
                continue;
            }
            for (u64 word : tiles) before += word & ~SAID;
            if (wanted >> lane & 1) before += ends ? one.end & ~SAID : one.sum % ONE_TILE;
            if (know != 0) break;
            tile = first;
            left -= 32;
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) before += __shfl_xor_sync(0xFFFFFFFF, before, distance);
        if (lane == 0 && index % SERIES == SERIES - 1) publish(&series[index / SERIES].end, SAID | (before + length));
        return before;
    }
};
