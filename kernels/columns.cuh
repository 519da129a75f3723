// Tiles whose elements are loaded or stored column by column. Adjacent elements of the array are in
// different rows of the message.
#pragma once

#include "shared.cuh"

// The first element, not before this one, at which what must not be torn apart begins.
__device__ inline u32 next_whole(u32 element, u32 skew) { return (element + skew) & ~skew; }

// The elements of a tile with skewed rows. A quantum may go on in the next row of the box. Adjacent
// threads take elements of a column of the box, which are adjacent in the array and in different
// columns of the tile.
//
// In shared memory a column of the box is a line of 128 bytes. A tile has as many lines as a row
// has columns, and those that share one are as far apart as that, so that each row has one of them.
// Units are shuffled by the line, so that accesses by columns and by rows have no bank conflicts.
template <class E>
struct Skewed {
    const u32 log_rows, cols, skew, row;
    // Of the thread's row: the first of its columns, the one behind the last, and from which on
    // they are of the next row of the box, all counted from the tile's first.
    u32 begin, end, next;
    // Where these two rows of the box are.
    const E *own, *other;

    // `from` is where the box begins.
    __device__ Skewed(const Box& box, const Tile& tile, const E* from)
        : log_rows(box.log_rows), cols(1 << box.log_cols), skew(box.skew), row(threadIdx.x & ((1 << log_rows) - 1)),
          next(box.pitch - tile.start), own(from + tile.from + row), other(row + 1 < tile.rows ? own + 1 : from + tile.to)
    {
        const u32 first = tile.element + row * box.pitch, behind = first + next;
        begin = next_whole(first, skew) - first;
        end = row < tile.rows ? min(next_whole(behind, skew), box.elements) - first : begin;
    }
    // Bytes of as many elements as a tile has rows: the host has the same (`SHORT`).
    static constexpr u32 LINE = 128;
    // Where in shared memory a byte is that would be this one if no lines were shared, and none
    // shuffled.
    __device__ static u32 place(u32 byte) { return (byte & (TILE_BYTES - 1)) ^ (byte >> 5 & 7 << 4); }
    // Works out how far columns are from the first, in bytes.
    __device__ static void note(const Box& box, const Tile& tile, Places& places, Crew crew)
    {
        const u32 end = min((1 << box.log_cols) + box.skew, box.pitch + box.skew - tile.start);
        for (u32 i = crew.thread; i < end; i += crew.threads) {
            const u32 col = tile.start + i;
            places.of[i] = within_row(box, box.from, col < box.pitch ? col : col - box.pitch) * sizeof(E);
        }
    }
    // Begins to bring them. The address of one that is not there may be anything: it is not used.
    __device__ void bring(Shared shared, const Places& places) const
    {
        // All columns of most tiles are of one row of the box each.
        cols + skew <= next ? bring<true>(shared, places) : bring<false>(shared, places);
    }

  private:
    struct Found {
        u64 at;
        u32 place;
        bool wanted, there;
    };
    template <bool OWN> __device__ void bring(Shared shared, const Places& places) const
    {
        const u32 first = threadIdx.x >> log_rows, step = THREADS >> log_rows;
        const Nearby to = nearby(shared.memory);
        Nearby at = nearby(&places.of[first]);
        // From one turn to the next these are always as far apart.
        u32 byte = first * LINE + row * sizeof(E), col = first;
        by_turns<AT_ONCE<E>>(((cols + skew + step) << log_rows) / THREADS, [&] {
            const E* const from = OWN || col < next ? own : other;
            const u64 element = reinterpret_cast<u64>(from) + read_nearby(at);
            const Found found{element, place(byte), col - begin < cols, OWN ? end > begin : col < end};
            at += 8 * step;
            byte += step * LINE;
            col += step;
            return found;
        }, [&](const Found& found) {
            fetch_if<sizeof(E)>(found.wanted, to + found.place, found.at, found.there);
        });
    }
};

// The elements of a tile that is a run of the message over several rows of the box. Adjacent
// threads take elements of a column, which are adjacent in the array.
template <class E>
struct Folded {
    const Divisor by;
    // `before` elements of the first row are not of the tile.
    const u32 pitch, height, before, elements;
    const u64 from;

    __device__ Folded(const Box& box, const Tile& tile, const E* from)
        : by(box.by_height), pitch(box.pitch), height(box.height), before(tile.start), elements(tile.cols), from(reinterpret_cast<u64>(from))
    {
    }
    // Works out how far columns are from the first row's first, and then how far rows are, in
    // bytes.
    __device__ static void note(const Box& box, const Tile& tile, Places& places, Crew crew)
    {
        const u32 pitch = box.pitch, first = (tile.element - tile.start) / pitch, all = box.elements / pitch;
        for (u32 i = crew.thread; i < pitch; i += crew.threads) places.of[i] = within_row(box, box.from, i) * sizeof(E);
        for (u32 i = crew.thread; i < min(box.height, all - first); i += crew.threads)
            places.of[pitch + i] = distance(box, box.from, first + i, box.inner - 1, box.low) * sizeof(E);
    }
    // Calls `move` with where each is in the array, and its index in the tile, which may not have
    // it.
    template <class Move> __device__ void each(const Places& places, Move move) const
    {
        struct Found {
            u64 at;
            u32 local;
        };
        const Nearby cols = nearby(&places.of[0]), rows = cols + 8 * pitch;
        const u32 all = height * pitch;
        u32 i = threadIdx.x;
        auto find = [&] {
            const u32 col = by.of(i), row = i - col * height;
            i += THREADS;
            return Found{from + read_nearby(cols + 8 * col) + read_nearby(rows + 8 * row), row * pitch + col - before};
        };
        auto one = [&](const Found& found) { move(found.at, found.local); };
        // Of 16 bytes each, `tolerance` is slower with several at a time.
        by_turns<sizeof(E) == 16 ? 1 : AT_ONCE<E>>(all / THREADS, find, one);
        if (i < all) one(find());
    }
    // Begins to bring them; as above.
    __device__ void bring(Shared shared, const Places& places) const
    {
        const Nearby to = nearby(shared.memory);
        each(places, [&](u64 at, u32 local) {
            fetch_if<sizeof(E)>(local < TILE<E>, to + Shared::place(local * sizeof(E)), at, local < elements);
        });
    }
};
