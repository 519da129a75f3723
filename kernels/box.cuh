// Boxes of an array: where their elements are, and how a grid of blocks shares them.
//
// A box is read in the order of the message, which is the order of the receiver's memory: its last axis is that of
// neighbours there. Work is cut into tiles of 16 KiB at most, and a block of 128 threads takes one tile at a time. Where the
// sender's neighbours lie along another axis, a tile has rows along that axis, so that whole lines of memory are used on both
// sides; everywhere else it is a run of elements of the message.
#pragma once

#include <cstdint>
#include <cuda_pipeline.h>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = unsigned long long;

constexpr u32 DIMS = 5;
constexpr u32 THREADS = 128;
// Elements of a tile, by their size, and how many of them a thread moves.
template <class E> constexpr u32 TILE = sizeof(E) == 16 ? 1024 : 2048;
template <class E> constexpr u32 PER_THREAD = TILE<E> / THREADS;

// Division by a number that the host knows, of numbers below 2^31.
struct Divisor {
    u32 multiplier, shift;
    __device__ u32 of(u32 n) const { return u32(u64(n) * multiplier >> shift); }
};

// Where the elements of a box are in an array, in units of elements.
struct Side {
    u64 offset;
    u32 stride[DIMS];
    // What a step from one row of a tile to the next is.
    u32 row;
};

struct Box {
    Side from, to;
    u32 shape[DIMS];
    Divisor by[DIMS];
    u32 elements;
    // The number of its first tile in the batch.
    u32 first_tile;
    // Axes from `inner` on are within a row of a tile, one less is that of rows, unless there is but one row.
    u32 inner;
    // The first axis that has more than one element.
    u32 low;
    // Rows and elements of a row of a tile: their product is the tile.
    u32 log_rows, log_cols;
    // Rows and elements in a row of the box, not of the tile.
    u32 rows, pitch;
    Divisor tiles_down, tiles_across;
    u32 down, across;
    // So many elements of a row of a tile are equally far apart, from a multiple of as many on; `uneven` says if they are not.
    u32 log_run, uneven;
    // Whether four or two elements that are neighbours in the message are so in the array, aligned to 16 bytes.
    u32 wide;
};
static_assert(sizeof(Box) == 192, "the host has the same");

// Boxes with their tiles numbered through: box `i` has those from `firsts[i]` up to `firsts[i + 1]`.
template <class Item>
struct Batch {
    const Item* items;
    const u32* firsts;
    u32 count, tiles;
};

// Which item a tile belongs to. The guess is that of the block's last tile.
__device__ inline u32 item_of(const u32* firsts, u32 count, u32 tile, u32 guess)
{
    if (firsts[guess] <= tile && tile < firsts[guess + 1]) return guess;
    u32 low = 0, high = count;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (firsts[middle] <= tile) low = middle;
        else high = middle;
    }
    return low;
}

// What a block works on: `rows` rows of `cols` elements, which begin at these places.
struct Tile {
    u64 from, to;
    // Of the first element, in the message and in its row of the box.
    u32 element, start;
    u32 rows, cols;
};

// The distance of an element of a row, or of a row among all, from the first. `low` is the first axis that counts.
__device__ inline u64 distance(const Box& box, const Side& side, u32 index, u32 last, u32 low)
{
    u64 at = 0;
#pragma unroll
    for (u32 step = 0; step < DIMS; step++) {
        u32 axis = last - step;
        if (axis <= low || axis >= DIMS) break;
        u32 above = box.by[axis].of(index);
        at += u64(index - above * box.shape[axis]) * side.stride[axis];
        index = above;
    }
    return at + u64(index) * side.stride[low];
}

__device__ inline u64 within_row(const Box& box, const Side& side, u32 index)
{
    return distance(box, side, index, DIMS - 1, box.inner > box.low ? box.inner : box.low);
}

__device__ inline Tile tile_at(const Box& box, u32 number)
{
    u32 tile = number - box.first_tile;
    u32 rest = box.tiles_down.of(tile);
    u32 row = (tile - rest * box.down) << box.log_rows;
    u32 outer = box.tiles_across.of(rest);
    u32 cols = 1 << box.log_cols, rows = 1 << box.log_rows;
    Tile found;
    found.start = (rest - outer * box.across) * cols;
    found.element = (outer * box.rows + row) * box.pitch + found.start;
    found.rows = min(rows, box.rows - row);
    found.cols = min(cols, box.pitch - found.start);
    found.from = box.from.offset + u64(row) * box.from.row;
    found.to = box.to.offset + u64(row) * box.to.row;
    if (outer != 0) {
        found.from += distance(box, box.from, outer, box.inner - 2, box.low);
        found.to += distance(box, box.to, outer, box.inner - 2, box.low);
    }
    return found;
}

// A tile in shared memory, in the order of the message. Units of 16 bytes are shuffled within groups of eight, so that
// threads meet in no bank, neither when they come along rows or columns nor when each takes several neighbours.
struct Shared {
    u8* memory;

    __device__ static u32 place(u32 byte)
    {
        u32 unit = byte >> 4;
        return byte ^ (((unit >> 3 ^ unit >> 6 ^ unit >> 9) & 7) << 4);
    }
    template <class E> __device__ E& at(u32 index) const
    {
        return *reinterpret_cast<E*>(memory + place(index * sizeof(E)));
    }
    // `N` numbers that begin at a multiple of their size, up to 128 bytes.
    template <u32 N, class T> __device__ void read(u32 byte, T* x) const
    {
        u32 base = place(byte);
        uint4* units = reinterpret_cast<uint4*>(x);
#pragma unroll
        for (u32 unit = 0; unit < N * sizeof(T) / 16; unit++)
            units[unit] = *reinterpret_cast<const uint4*>(memory + (base ^ unit << 4));
    }
    template <u32 N, class T> __device__ void write(u32 byte, const T* x) const
    {
        u32 base = place(byte);
        const uint4* units = reinterpret_cast<const uint4*>(x);
#pragma unroll
        for (u32 unit = 0; unit < N * sizeof(T) / 16; unit++)
            *reinterpret_cast<uint4*>(memory + (base ^ unit << 4)) = units[unit];
    }
};

// Where the elements of a row of a tile are, worked out once for each run of them: a thread has one.
struct Runs {
    u64 places[THREADS];

    __device__ void note(const Box& box, const Side& side, const Tile& tile)
    {
        u32 col = threadIdx.x << box.log_run;
        if (!box.uneven && col < tile.cols) places[threadIdx.x] = within_row(box, side, tile.start + col);
    }
};

// How the elements of a tile are found in an array, held in registers: descriptors would be read again after every copy.
template <class E>
struct Finder {
    const Box& box;
    const Side& side;
    const Runs& runs;
    E* base;
    const u32 start, stride, step, log_run;

    // `base` is where the tile begins.
    __device__ Finder(const Box& box, const Side& side, const Runs& runs, const Tile& tile, E* base)
        : box(box), side(side), runs(runs), base(base), start(tile.start), stride(side.stride[DIMS - 1]),
          step(side.row), log_run(box.log_run)
    {
    }
    // After the runs were noted, and a barrier; or of any element.
    template <bool EVEN> __device__ E* at(u32 row, u32 col) const
    {
        if (!EVEN) return base + u64(row) * step + within_row(box, side, start + col);
        u32 rest = col & ((1 << log_run) - 1);
        return base + runs.places[col >> log_run] + (u64(row) * step + u64(rest) * stride);
    }
};

struct Even { static constexpr bool value = true; };
struct Uneven { static constexpr bool value = false; };

// Calls `move` so many times: what is seldom is not unrolled.
template <u32 TIMES, class Move>
__device__ void repeat(bool uneven, Move move)
{
    if (!uneven) {
#pragma unroll
        for (u32 k = 0; k < TIMES; k++) move(threadIdx.x + k * THREADS, Even{});
    } else {
#pragma unroll 1
        for (u32 k = 0; k < TIMES; k++) move(threadIdx.x + k * THREADS, Uneven{});
    }
}

// Begins to bring a tile into shared memory, with zeros where it has no element. Has a barrier.
template <class E>
__device__ void fetch_tile(const Box& box, const Tile& tile, const E* src, Shared shared, Runs& runs)
{
    constexpr u32 WIDE = 16 / sizeof(E);
    const Finder<const E> from(box, box.from, runs, tile, src + tile.from);
    const u32 log_rows = box.log_rows, log_cols = box.log_cols, rows = tile.rows, cols = tile.cols;
    const bool wide = WIDE > 1 && box.wide && reinterpret_cast<uintptr_t>(src) % 16 == 0;
    const bool uneven = box.uneven;
    runs.note(box, box.from, tile);
    __syncthreads();
    if (wide) {
        repeat<PER_THREAD<E> / WIDE>(uneven, [&](u32 i, auto even) {
            u32 col = i * WIDE;
            uint4* to = &shared.at<uint4>(i);
            if (col < cols) __pipeline_memcpy_async(to, from.template at<even.value>(0, col), 16);
            else *to = uint4{};
        });
    } else {
        repeat<PER_THREAD<E>>(uneven, [&](u32 i, auto even) {
            u32 row = i & ((1 << log_rows) - 1), col = i >> log_rows;
            E* to = &shared.at<E>((row << log_cols) + col);
            if (row < rows && col < cols) __pipeline_memcpy_async(to, from.template at<even.value>(row, col), sizeof(E));
            else *to = E{};
        });
    }
}

// Waits for what was fetched, by everybody. Ends with a barrier.
//
// To wait for all but the last commit, with the next tile under way, does not do: on an H200 a warp's last copies of the tile
// before were now and then not there yet.
__device__ inline void await_tile()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

// Takes a tile from shared memory to where it belongs, along rows. Begins with a barrier.
template <class E>
__device__ void store_tile(const Box& box, const Tile& tile, Shared shared, E* dst, Runs& runs)
{
    constexpr u32 WIDE = 16 / sizeof(E);
    const Finder<E> to(box, box.to, runs, tile, dst + tile.to);
    const u32 log_cols = box.log_cols, rows = tile.rows, cols = tile.cols;
    const bool wide = WIDE > 1 && box.wide && reinterpret_cast<uintptr_t>(dst) % 16 == 0;
    const bool uneven = box.uneven;
    runs.note(box, box.to, tile);
    __syncthreads();
    if (wide) {
        repeat<PER_THREAD<E> / WIDE>(uneven, [&](u32 i, auto even) {
            u32 col = i * WIDE;
            if (col < cols) *reinterpret_cast<uint4*>(to.template at<even.value>(0, col)) = shared.at<uint4>(i);
        });
    } else {
        repeat<PER_THREAD<E>>(uneven, [&](u32 i, auto even) {
            u32 row = i >> log_cols, col = i & ((1 << log_cols) - 1);
            if (row < rows && col < cols) *to.template at<even.value>(row, col) = shared.at<E>(i);
        });
    }
}
