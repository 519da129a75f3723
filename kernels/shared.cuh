// A tile in shared memory, where in an array its parts are, and elements that are found and moved
// by some at a time.
#pragma once

#include "box.cuh"

// A tile in shared memory, in the order of the source: row after row, if there are several. (Those
// of skewed tiles: `Skewed`.) Units of 16 bytes are shuffled within groups of eight, unless the
// tile is straight, so that accesses along rows, along columns and of several adjacent elements
// have no bank conflicts.
struct Shared {
    u8* memory;

    // What belongs to the upper bits of a number and what belongs to the lower may be worked out
    // apart.
    __device__ static constexpr u32 place(u32 byte, u32 shuffled = SHUFFLED)
    {
        u32 unit = byte >> 4;
        return byte ^ ((unit >> 3 ^ unit >> 6 ^ unit >> 9) << 4 & shuffled);
    }
    // The bits of a place that are shuffled. Of codecs, tiles of elements of 4 bytes that lie along
    // rows are straight, which has none: threads meet in no bank there, and row after row is as it
    // is in the array.
    static constexpr u32 SHUFFLED = 7 << 4, STRAIGHT = 0;
    template <class E> __device__ static u32 shuffled(const Box& box) { return sizeof(E) == 4 && box.lies_along() ? STRAIGHT : SHUFFLED; }
    template <class E> __device__ E& at(u32 index) const
    {
        return *reinterpret_cast<E*>(memory + place(index * sizeof(E)));
    }
    // A unit that is so many bytes behind a place, which has none of their bits before it is
    // shuffled.
    __device__ uint4& unit(u32 place, u32 further, u32 shuffled = SHUFFLED) const
    {
        // No more than the place within 128 bytes is shuffled: by a constant, as nearly always,
        // what is more is in the instruction.
        return *reinterpret_cast<uint4*>(memory + (place ^ (Shared::place(further, shuffled) & 127)) + (further & ~127u));
    }
};

// Where in an array what stands together begins, as addresses in the memory of the device, or as
// distances in elements; of skewed and folded tiles in bytes. One more may be read.
struct Places {
    static constexpr u32 MOST = 256;
    u64 of[MOST + 1];
};

// Threads that do something together: all of a block, or one warp of it.
struct Crew {
    u32 thread, threads;

    __device__ static Crew block() { return {threadIdx.x, THREADS}; }
    __device__ static Crew warp() { return {threadIdx.x % 32, 32}; }
};

// So many elements are found before any is moved, as none then waits for another: more would want
// registers that there are not.
template <class E> constexpr u32 AT_ONCE = sizeof(E) == 4 ? 2 : 4;

// Calls `find` so many times and, with what it gives, `move`, by `SOME`.
template <u32 TIMES, u32 SOME, class Find, class Move>
__device__ void by_some(Find find, Move move)
{
#pragma unroll
    for (u32 first = 0; first < TIMES; first += SOME) {
        decltype(find(0)) found[SOME];
#pragma unroll
        for (u32 n = 0; n < SOME; n++) found[n] = find(first + n);
#pragma unroll
        for (u32 n = 0; n < SOME; n++) move(first + n, found[n]);
    }
}

// The same of what comes one after the other, so many times, of which the last few are by
// themselves.
template <u32 SOME, class Find, class Move>
__device__ void by_turns(u32 turns, Find find, Move move)
{
#pragma unroll 1
    for (; turns >= SOME; turns -= SOME) by_some<SOME, SOME>([&](u32) { return find(); }, [&](u32, const auto& found) { move(found); });
#pragma unroll 1
    for (; turns > 0; turns--) move(find());
}
