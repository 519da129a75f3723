// Tiles whose elements are found by the rows of the array along which they lie: as units of 16
// bytes, row by row, or one by one.
#pragma once

#include "columns.cuh"

// Units of 16 bytes of a tile, of one side.
template <class E>
struct Units {
    static constexpr u32 WIDE = 16 / sizeof(E);
    static constexpr u32 COUNT = TILE<E> / WIDE, EACH = COUNT / THREADS;

    // Whether a side has them.
    __device__ static bool are(u32 log, const void* array)
    {
        return log != APART && (WIDE == 1 || reinterpret_cast<uintptr_t>(array) % 16 == 0);
    }
    // Works out where those begin that stand together, `step` elements from one to the next.
    __device__ static void note(const Box& box, const Side& side, const Tile& tile, const E* base, u32 step, Places& places,
                                Crew crew)
    {
        for (u32 i = crew.thread; i * step < tile.cols; i += crew.threads)
            places.of[i] = reinterpret_cast<u64>(base + within_row(box, side, tile.start + i * step));
    }
};

// Elements of a row of a tile that are equally far apart: those of a row of the box.
struct Stretches {
    Divisor by;
    // Elements of one, the first of them, and how many of that come before the tile.
    u32 length, first, before;

    __device__ Stretches(const Box& box, const Tile& tile)
    {
        by = box.by[DIMS - 1];
        length = box.shape[DIMS - 1];
        first = by.of(tile.start) * length;
        before = tile.start - first;
    }
    // That of an element along a row, of which one has several: then the quotient is in the upper
    // half of the product.
    __device__ u32 of(u32 element) const { return __umulhi(element, by.multiplier) >> (by.shift - 32); }
    // Whether there is room for where all of so many elements begin.
    __device__ bool few(u32 cols) const { return before + cols <= Places::MOST * length; }
};

// The elements of a tile from this one on that make 16 bytes, two at most: their places in the
// array, and whether they are a unit there, too.
template <class E>
struct Unit {
    E *at, *second;
    u32 first;
    bool whole;
};

// How the elements of a tile are found in an array, held in registers: descriptors would be read
// again after every copy.
template <class E>
struct Finder {
    const Box& box;
    const Side& side;
    const Places& places;
    const Stretches stretches;
    E* base;
    const u32 start, stride, step;
    // Whether there are few stretches; and if so, whether the tile has one row and elements of a
    // stretch are neighbours, as nearly always where rows do not begin at multiples of 16 bytes.
    const bool few, along;

    // `base` is where the tile begins.
    __device__ Finder(const Box& box, const Side& side, const Places& places, const Tile& tile, E* base)
        : box(box), side(side), places(places), stretches(box, tile), base(base), start(tile.start),
          stride(side.stride[DIMS - 1]), step(side.row), few(stretches.few(1 << box.log_cols)),
          along(few && box.log_rows == 0 && stride == 1)
    {
    }
    // Works out where stretches begin, in the places it was made with: before any element is found,
    // with a barrier in between.
    __device__ void note(const Tile& tile, Places& noted, Crew crew) const
    {
        const u32 length = stretches.length, end = stretches.before + tile.cols;
        for (u32 i = crew.thread; few && i * length < end; i += crew.threads) {
            const u64 at = within_row(box, side, stretches.first + i * length);
            // Along a row, where the first element of the first stretch would be.
            noted.of[i] = along ? reinterpret_cast<u64>(base + at - i * length) : at;
        }
    }
    // With few stretches, or of any element.
    template <bool FEW> __device__ E* at(u32 row, u32 col) const
    {
        if (!FEW) return base + u64(row) * step + within_row(box, side, start + col);
        const u32 element = stretches.before + col, stretch = stretches.by.of(element);
        return base + places.of[stretch] + (u64(row) * step + u64(element - stretch * stretches.length) * stride);
    }
    // An element along a row, which takes half as much.
    __device__ E* at(u32 index) const
    {
        const u32 element = stretches.before + index;
        return reinterpret_cast<E*>(places.of[stretches.of(element)]) + element;
    }
    // The thread's own unit of 16 bytes along a row of so many elements, or one so many further.
    // `FULL` says that all of the tile is there.
    template <bool FULL> __device__ Unit<E> unit(u32 further, u32 cols) const
    {
        constexpr u32 WIDE = Units<E>::WIDE;
        const u32 first = (threadIdx.x + further) * WIDE, element = stretches.before + first, stretch = stretches.of(element);
        E* const at = reinterpret_cast<E*>(places.of[stretch]) + element;
        const u32 end = (stretch + 1) * stretches.length;
        const bool within = element + WIDE <= end && (FULL || first + WIDE <= cols);
        E* const other = reinterpret_cast<E*>(places.of[stretch + 1]) + element + 1;
        return {at, element + 1 < end ? at + 1 : other, first, within && reinterpret_cast<uintptr_t>(at) % 16 == 0};
    }
};

struct Yes { static constexpr bool value = true; };
struct No { static constexpr bool value = false; };

// Stretches of rows that are shorter than this are gone through element by element.
constexpr u32 LONG_ROW = 128;

// Visits a tile of one row along long rows of the array. Each warp takes a quarter, row by row, up
// to this element. Calls `move` with the place of the thread's first element of such a part, its
// index in the tile, and how many there are from that on, of which the thread has every 32nd.
template <class E, class Move> __device__ void each_row(const Stretches& rows, const Places& places, u32 cols, Move move)
{
    constexpr u32 QUARTER = TILE<E> / (THREADS / 32);
    const u32 lane = threadIdx.x % 32, begin = rows.before + threadIdx.x / 32 * QUARTER, end = min(begin + QUARTER, rows.before + cols);
    u32 row = rows.of(begin), next = (row + 1) * rows.length;
#pragma unroll 1
    for (u32 first = begin; first < end; first = next, row++, next += rows.length) {
        const u32 element = first + lane;
        move(places.of[row] + u64(element) * sizeof(E), element - rows.before, int(min(next, end) - element));
    }
}

// Begins to bring such a tile to where it is straight. `FULL` says that all of it is there.
template <class E, bool FULL> __device__ void bring_rows(const Finder<const E>& from, u32 cols, Shared shared)
{
    constexpr u32 SOME = 8, STEP = 32 * sizeof(E);
    const Nearby begin = nearby(shared.memory);
    // What is not there becomes zeros.
    each_row<E>(from.stretches, from.places, TILE<E>, [&](u64 at, u32 local, int left) {
        Nearby to = begin + local * sizeof(E);
        int there = int(cols - local);
#pragma unroll 1
        for (; left > 0; left -= 32 * SOME, there -= 32 * SOME, at += SOME * STEP, to += SOME * STEP)
#pragma unroll
            for (int n = 0; n < int(SOME); n++) fetch_if<sizeof(E)>(left > 32 * n, to + n * STEP, at + n * STEP, FULL || there > 32 * n);
    });
}

// Takes such a tile to where it stands along rows of the array.
template <class E> __device__ void store_rows(const Finder<E>& to, u32 cols, Shared shared)
{
    constexpr u32 SOME = 8;
    each_row<E>(to.stretches, to.places, cols, [&](u64 at, u32 local, int left) {
        const E* from = reinterpret_cast<const E*>(shared.memory) + local;
        E* element = reinterpret_cast<E*>(at);
#pragma unroll 1
        for (; left > 0; left -= 32 * SOME, from += 32 * SOME, element += 32 * SOME) {
            E held[SOME];
#pragma unroll
            for (int n = 0; n < int(SOME); n++)
                if (left > 32 * n) held[n] = from[32 * n];
#pragma unroll
            for (int n = 0; n < int(SOME); n++)
                if (left > 32 * n) store_element(element + 32 * n, held[n]);
        }
    });
}

// Begins to copy a tile of one row along rows of the array into shared memory. Elements of 8 bytes
// are copied by twos where these are aligned there, too. `STRAIGHT` says that shared memory has
// them in their order.
template <class E, bool STRAIGHT> __device__ void bring_along(const Finder<const E>& from, u32 cols, Shared shared)
{
    using U = Units<E>;
    if constexpr (sizeof(E) == 4) {
        if (STRAIGHT && from.stretches.length >= LONG_ROW)
            return cols == TILE<E> ? bring_rows<E, true>(from, cols, shared) : bring_rows<E, false>(from, cols, shared);
        const u32 place = STRAIGHT ? threadIdx.x * sizeof(E) : Shared::place(threadIdx.x * sizeof(E));
        // Three of four rows may begin elsewhere, where threads side by side would not take
        // neighbours.
        by_some<PER_THREAD<E>, AT_ONCE<E>>([&](u32 k) { return from.at(threadIdx.x + k * THREADS); }, [&](u32 k, const E* at) {
            const u32 further = k * THREADS * sizeof(E);
            u8* const to = shared.memory + (STRAIGHT ? place + further : place ^ Shared::place(further));
            fetch<sizeof(E)>(to, at, threadIdx.x + k * THREADS < cols);
        });
    } else {
        auto bring = [&](auto full) {
            const u32 place = Shared::place(16 * threadIdx.x);
            auto find = [&](u32 k) { return from.template unit<full.value>(k * THREADS, cols); };
            by_some<U::EACH, AT_ONCE<E>>(find, [&](u32 k, const Unit<const E>& unit) {
                u8* const to = shared.memory + (place ^ Shared::place(16 * k * THREADS));
                if (unit.whole) return fetch<16>(to, unit.at, true);
                fetch<sizeof(E)>(to, unit.at, full.value || unit.first < cols);
                if (U::WIDE == 2) fetch<sizeof(E)>(to + sizeof(E), unit.second, full.value || unit.first + 1 < cols);
            });
        };
        cols == TILE<E> ? bring(Yes{}) : bring(No{});
    }
}

// An element, and where it goes.
template <class E>
struct Placed {
    E* at;
    E held;
};

// Takes the elements of a tile of one row to where they stand along rows of the array.
template <class E, bool STRAIGHT>
__device__ void store_along(const Finder<E>& to, u32 cols, Shared shared)
{
    if (STRAIGHT && to.stretches.length >= LONG_ROW) return store_rows(to, cols, shared);
    const u32 place = STRAIGHT ? threadIdx.x * sizeof(E) : Shared::place(threadIdx.x * sizeof(E));
    auto find = [&](u32 k) {
        const u32 further = k * THREADS * sizeof(E);
        const u8* held = shared.memory + (STRAIGHT ? place + further : place ^ Shared::place(further));
        return Placed<E>{to.at(threadIdx.x + k * THREADS), *reinterpret_cast<const E*>(held)};
    };
    by_some<PER_THREAD<E>, AT_ONCE<E>>(find, [&](u32 k, const Placed<E>& one) {
        if (threadIdx.x + k * THREADS < cols) store_element(one.at, one.held);
    });
}
