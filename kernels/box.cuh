// Boxes of an array: where their elements are, and how a grid of blocks shares them.
//
// A box is read in the order of the message, which is that of the receiver's memory or of the
// sender's. Work is cut into tiles of 16 KiB, and a block of 128 threads takes one tile at a time.
// Where the contiguous axis of the sender's memory is not the message's last axis, a tile has rows
// along it, so that both sides access whole lines of memory. Everywhere else a tile is a run of the
// message.
#pragma once

#include "ptx.cuh"

constexpr u32 DIMS = 5;
// Said where nothing is together.
constexpr u32 APART = 32;
constexpr u32 THREADS = 128;
// Elements of a tile, by their size, and how many of them a thread moves.
constexpr u32 TILE_BYTES = 16 << 10;
template <class E> constexpr u32 TILE = TILE_BYTES / sizeof(E);
template <class E> constexpr u32 PER_THREAD = TILE<E> / THREADS;

// Where the elements of a box are in an array, in units of elements.
struct Side {
    u64 offset;
    u32 stride[DIMS];
    // What a step from one row of a tile to the next is.
    u32 row;
};

// A copy from an array into a message or another array. Of messages that are read, the array that
// is written is `from`, too.
struct Box {
    Side from, to;
    u32 shape[DIMS];
    Divisor by[DIMS];
    u32 elements;
    // Axes from `inner` on are within a row of a tile, or of the box if a tile is folded
    // (`height`). The axis before them is that of rows. Otherwise 0.
    u32 inner;
    // The first axis that has more than one element.
    u32 low;
    // Rows and elements of a row of a tile: their product is the tile.
    u32 log_rows, log_cols;
    // Elements in a row of the box, not of the tile.
    u32 pitch;
    // The logarithm of how many units of 16 bytes of a tile are contiguous and aligned in an array,
    // or `APART`. In `from` that is along rows, if there are several.
    u32 log_from, log_to;
    // Where rows of the box cut quanta, elements that are coded together: the quantum, a power of
    // two, less one. Otherwise 0. A row of a tile is all quanta that begin in it, and so may end in
    // the next row of the box (`Skewed`). Of messages that are read it is its columns, out of all
    // quanta that have some of them (`Covered`).
    u32 skew;
    // Where a tile is a run of the message over several rows of the box, contiguous across rows in
    // `from`: the most rows. Otherwise 0.
    u32 height;
    Divisor by_height;
    // Up to a multiple of 8 bytes.
    u32 none;

    // Whether the elements of a tile of one row are apart in `from`. Whether tiles are runs of the
    // message along its rows.
    __device__ bool lies_apart() const { return log_rows == 0 && from.stride[DIMS - 1] != 1; }
    __device__ bool lies_along() const { return log_rows == 0 && height == 0 && from.stride[DIMS - 1] == 1; }
};
static_assert(sizeof(Box) == 176, "the host has the same");

// The work of a block: `rows` rows of `cols` elements, relative to where their box begins. Some
// skewed rows have fewer; `to` is then where the row of the box behind the last one begins in
// `from`.
struct Tile {
    u64 from, to;
    // Of the first element, in the message and in its row of the box.
    u32 element, start;
    u32 rows, cols;
    // The box or message that it is of, the number of the first tile of that, and its own.
    u32 item, first, number;
    // Up to a multiple of 8 bytes.
    u32 none;
};
static_assert(sizeof(Tile) == 48, "the host has the same");

// Boxes or messages, and their tiles, numbered through: those of item `i` from `firsts[i]` up to
// `firsts[i + 1]`. They may be listed in the order of an array, so that adjacent memory is accessed
// at about the same time. Encoders that transpose are faster without. Those of `tolerance` list
// tiles by number, as each waits for those before it.
template <class Item>
struct Batch {
    const Item* items;
    const Tile* list;
    const u32* firsts;
    u32 count, tiles;
};

// The distance of an element of a row, or of a row among all, from the first. `low` is the first
// axis that counts.
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

// Waits for what was fetched, by everybody. Ends with a barrier.
//
// To wait for all but the last commit, with the next tile under way, does not do: on an H200 a
// warp's last copies of the tile before were now and then not there yet.
__device__ inline void await_tile()
{
    await_fetched();
    __syncthreads();
}

// Counts on, for the first of some threads.
__device__ inline u32 draw(u64* counter, u32 thread = threadIdx.x) { return thread == 0 ? count_on(counter) : 0; }

// A tile of this or a later turn, and its box or message. Both are kept in shared memory, as
// streaming data evicts everything from the caches.
template <class Item>
struct Work {
    Tile tile;
    Item item;
    // The tile's place in the list.
    u32 number;

    // Begins to fetch the tile's description. For one warp, as what follows.
    __device__ void find(const Batch<Item>& batch, u32 next)
    {
        if (threadIdx.x % 32 == 0) number = next;
        if (next < batch.tiles) fetch(&tile, batch.list + next);
    }
    // Begins to fetch the item's, when the tile's is there.
    __device__ void describe(const Batch<Item>& batch)
    {
        if (number < batch.tiles) fetch(&item, batch.items + tile.item);
    }

    // Takes over the item's description, which is there when the warp meets.
    __device__ void take(const Item& from)
    {
        for (u32 i = threadIdx.x % 32; i < sizeof(Item) / 8; i += 32)
            reinterpret_cast<u64*>(&item)[i] = reinterpret_cast<const u64*>(&from)[i];
    }

  private:
    template <class Record> __device__ static void fetch(Record* to, const Record* from)
    {
        static_assert(sizeof(Record) % 8 == 0 && sizeof(Record) <= 256, "8 bytes for each thread of a warp");
        u32 i = threadIdx.x % 32;
        if (i < sizeof(Record) / 8)
            __pipeline_memcpy_async(reinterpret_cast<u64*>(to) + i, reinterpret_cast<const u64*>(from) + i, 8);
    }
};

// The tiles of a block: that of this turn, those of the next turns, and two whose descriptors are
// on their way. An item's descriptor arrives so many turns ahead, and its tile's one turn before
// that.
template <class Item, u32 EARLY = 2>
struct Ahead {
    // So many numbers are assigned in advance. There is room for that many tiles and one more,
    // which is a power of two.
    static constexpr u32 DEALT = EARLY + 1, SLOTS = EARLY == 2 ? 4 : 8;
    static_assert(DEALT < SLOTS, "a tile that is found takes the place of one that is done with");
    Work<Item> works[SLOTS];

    __device__ Work<Item>& work(u32 turn) { return works[turn % SLOTS]; }
    // Has barriers. Whenever an item's description is fetched, so is what `also` does.
    template <class Also> __device__ void begin(const Batch<Item>& batch, Also also)
    {
        if (threadIdx.x < 32)
            for (u32 turn = 0; turn < DEALT; turn++) work(turn).find(batch, blockIdx.x + turn * gridDim.x);
        await_tile();
        if (threadIdx.x < 32)
            for (u32 turn = 0; turn < EARLY; turn++) work(turn).describe(batch), also(work(turn));
        await_tile();
    }
    // At the beginning of a turn, when all that was fetched is there. The tile after those has this
    // number, to the first thread.
    template <class Also> __device__ void next(u32 turn, const Batch<Item>& batch, u32 number, Also also)
    {
        if (threadIdx.x >= 32) return;
        work(turn + EARLY).describe(batch);
        also(work(turn + EARLY));
        work(turn + DEALT).find(batch, __shfl_sync(0xFFFFFFFF, number, 0));
    }
};
