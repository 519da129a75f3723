// A tile on its way: from an array into shared memory, and from there into another.
//
// Where 16 bytes or more are neighbours in the array, as nearly always, units of 16 bytes are moved, and where such units stand
// together is worked out once by one thread. Where they are not, elements are moved.
#pragma once

#include "box.cuh"

// A tile in shared memory, in the order of the source: rows side by side, if there are several. Units of 16 bytes are shuffled
// within groups of eight, so that threads meet in no bank, neither when they come along rows or columns nor when each takes
// several neighbours.
struct Shared {
    u8* memory;

    // What belongs to the upper bits of a number and what belongs to the lower may be worked out apart.
    __device__ static constexpr u32 place(u32 byte)
    {
        u32 unit = byte >> 4;
        return byte ^ (((unit >> 3 ^ unit >> 6 ^ unit >> 9) & 7) << 4);
    }
    template <class E> __device__ E& at(u32 index) const
    {
        return *reinterpret_cast<E*>(memory + place(index * sizeof(E)));
    }
    // `N` numbers that begin at a multiple of their size, up to 128 bytes.
    template <u32 N, class T> __device__ void write(u32 byte, const T* x) const
    {
        u32 base = place(byte);
        const uint4* units = reinterpret_cast<const uint4*>(x);
#pragma unroll
        for (u32 unit = 0; unit < N * sizeof(T) / 16; unit++)
            *reinterpret_cast<uint4*>(memory + (base ^ unit << 4)) = units[unit];
    }
};

// Where in an array what stands together begins, as addresses in the memory of the device, or runs of a row, as distances.
struct Places {
    static constexpr u32 MOST = 256;
    u64 of[MOST];
};

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
    __device__ static void note(const Box& box, const Side& side, const Tile& tile, const E* base, u32 step, Places& places)
    {
        for (u32 i = threadIdx.x; i * step < tile.cols; i += THREADS)
            places.of[i] = reinterpret_cast<u64>(base + within_row(box, side, tile.start + i * step));
    }
};

// Stores a unit at an address in the memory of the device, which nobody reads soon. Of a pointer made of a number the compiler does
// not know what memory it is in, and would read nothing of shared memory before each store is done.
__device__ inline void store_unit(u64 address, uint4 unit)
{
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(unit.x), "r"(unit.y), "r"(unit.z),
                 "r"(unit.w));
}

// Elements of a row of a tile that are equally far apart: those of a row of the box, or fewer, by a power of two.
struct Stretches {
    Divisor by;
    // Elements of one, the first of them, and how many of that come before the tile.
    u32 length, first, before;

    __device__ Stretches(const Box& box, const Tile& tile)
    {
        const bool uneven = box.uneven();
        by = uneven ? box.by[DIMS - 1] : Divisor{1u << 31, 31 + box.log_run};
        length = uneven ? box.shape[DIMS - 1] : 1u << box.log_run;
        first = by.of(tile.start) * length;
        before = tile.start - first;
    }
    // Whether there is room for where all of them begin.
    __device__ bool few(const Tile& tile) const { return before + tile.cols <= Places::MOST * length; }
    // Works that out.
    __device__ void note(const Box& box, const Side& side, const Tile& tile, Places& places) const
    {
        for (u32 i = threadIdx.x; i * length < before + tile.cols; i += THREADS)
            places.of[i] = within_row(box, side, first + i * length);
    }
};

// How the elements of a tile are found in an array, held in registers: descriptors would be read again after every copy.
template <class E>
struct Finder {
    const Box& box;
    const Side& side;
    const Places& places;
    const Stretches stretches;
    E* base;
    const u32 start, stride, step;
    const bool few;

    // `base` is where the tile begins. Has a barrier.
    __device__ Finder(const Box& box, const Side& side, Places& places, const Tile& tile, E* base)
        : box(box), side(side), places(places), stretches(box, tile), base(base), start(tile.start),
          stride(side.stride[DIMS - 1]), step(side.row), few(stretches.few(tile))
    {
        if (few) stretches.note(box, side, tile, places);
        __syncthreads();
    }
    // With few stretches, or of any element.
    template <bool FEW> __device__ E* at(u32 row, u32 col) const
    {
        if (!FEW) return base + u64(row) * step + within_row(box, side, start + col);
        const u32 element = stretches.before + col, stretch = stretches.by.of(element);
        return base + places.of[stretch] + (u64(row) * step + u64(element - stretch * stretches.length) * stride);
    }
    // Whether there are few, of one row, and elements of one are neighbours, as nearly always where the length of rows is odd.
    __device__ bool along(const Box& box) const { return few && box.log_rows == 0 && stride == 1; }
    // Then it takes half as much to find an element.
    __device__ E* at(u32 col) const
    {
        const u32 element = stretches.before + col, stretch = stretches.by.of(element);
        return base + (places.of[stretch] + (element - stretch * stretches.length));
    }
};

struct Yes { static constexpr bool value = true; };
struct No { static constexpr bool value = false; };

// Calls `move` so many times: what is seldom is not unrolled.
template <u32 TIMES, class Move>
__device__ void repeat(bool few, Move move)
{
    if (few) {
#pragma unroll
        for (u32 k = 0; k < TIMES; k++) move(threadIdx.x + k * THREADS, Yes{});
    } else {
#pragma unroll 1
        for (u32 k = 0; k < TIMES; k++) move(threadIdx.x + k * THREADS, No{});
    }
}

// Begins to bring a tile into shared memory, with zeros where it has no element. Has a barrier.
template <class E>
__device__ void fetch_tile(const Box& box, const Tile& tile, const E* src, Shared shared, Places& places)
{
    using U = Units<E>;
    const E* base = src + (box.from.offset + tile.from);
    const u32 log = box.log_from, log_rows = box.log_rows, rows = tile.rows, cols = tile.cols;
    if (U::are(log, src)) {
        const bool turned = log_rows != 0;
        U::note(box, box.from, tile, base, turned ? 1 : U::WIDE << log, places);
        __syncthreads();
        // Of what stands together a thread always has the same unit.
        const u32 unit = threadIdx.x & ((1 << log) - 1), place = Shared::place(16 * threadIdx.x);
        const u32 end = turned ? (unit * U::WIDE < rows ? cols : 0) : cols / U::WIDE >> log;
        const u32 first = threadIdx.x >> log, step = THREADS >> log;
        const uint4* at[U::EACH];
#pragma unroll
        for (u32 k = 0; k < U::EACH; k++) at[k] = reinterpret_cast<const uint4*>(places.of[first + k * step]) + unit;
#pragma unroll
        for (u32 k = 0; k < U::EACH; k++) {
            u8* to = shared.memory + (place ^ Shared::place(16 * k * THREADS));
            __pipeline_memcpy_async(to, at[k], 16, first + k * step < end ? 0 : 16);
        }
        return;
    }
    const Finder<const E> from(box, box.from, places, tile, base);
    if (from.along(box)) {
#pragma unroll
        for (u32 k = 0; k < PER_THREAD<E>; k++) {
            const u32 col = threadIdx.x + k * THREADS;
            if (col < cols) __pipeline_memcpy_async(&shared.at<E>(col), from.at(col), sizeof(E));
            else shared.at<E>(col) = E{};
        }
        return;
    }
    // Of elements that lie apart, threads side by side take some that are apart in the message and nearer in memory: an access to many
    // pages takes long.
    constexpr u32 MANY = TILE<E> / 64;
    const bool apart = log_rows == 0 && box.from.stride[DIMS - 1] != 1;
    repeat<PER_THREAD<E>>(from.few, [&](u32 k, auto few) {
        const u32 i = apart ? k % MANY * 64 + k / MANY : k, row = i & ((1 << log_rows) - 1), col = i >> log_rows;
        E* to = &shared.at<E>(i);
        if (row < rows && col < cols) __pipeline_memcpy_async(to, from.template at<few.value>(row, col), sizeof(E));
        else *to = E{};
    });
}

// Takes units of a tile to where they belong: `read` gives one, in so many numbers of 32 bits, and says where it is. Several are read
// before they are stored.
template <u32 EACH, class Read>
__device__ void store_units(Read read)
{
    constexpr u32 MANY = 4;
#pragma unroll
    for (u32 first = 0; first < EACH; first += MANY) {
        uint4 held[MANY];
        u64 to[MANY];
        bool inside[MANY];
#pragma unroll
        for (u32 n = 0; n < MANY; n++) inside[n] = read(first + n, held[n], to[n]);
#pragma unroll
        for (u32 n = 0; n < MANY; n++)
            if (inside[n]) store_unit(to[n], held[n]);
    }
}

// Takes a tile from shared memory to where it belongs. `ROWS` says whether it may have several. Begins with a barrier.
template <class E, bool ROWS = true>
__device__ void store_tile(const Box& box, const Tile& tile, Shared shared, E* dst, Places& places)
{
    using U = Units<E>;
    E* base = dst + (box.to.offset + tile.to);
    const u32 log = box.log_to, log_rows = ROWS ? box.log_rows : 0, log_cols = box.log_cols, rows = tile.rows, cols = tile.cols;
    if (U::are(log, dst)) {
        U::note(box, box.to, tile, base, U::WIDE << log, places);
        __syncthreads();
        auto there = [&](u32 unit) { return places.of[unit >> log] + 16 * (unit & ((1 << log) - 1)); };
        if (log_rows == 0) {
            const u32 place = Shared::place(16 * threadIdx.x);
            store_units<U::EACH>([&](u32 k, uint4& held, u64& to) {
                const u32 unit = threadIdx.x + k * THREADS;
                held = *reinterpret_cast<const uint4*>(shared.memory + (place ^ Shared::place(16 * k * THREADS)));
                to = there(unit);
                return unit * U::WIDE < cols;
            });
            return;
        }
        // As many rows as a unit has elements are done by neighbours: their reads then meet in no bank.
        constexpr u32 LOG_WIDE = U::WIDE == 4 ? 2 : U::WIDE == 2 ? 1 : 0;
        const u32 log_units = log_cols - LOG_WIDE;
        const u64 step = u64(box.to.row) * sizeof(E);
        store_units<U::EACH>([&](u32 k, uint4& held, u64& to) {
            const u32 i = threadIdx.x + k * THREADS, unit = i >> LOG_WIDE & ((1 << log_units) - 1);
            const u32 row = i >> log_cols << LOG_WIDE | (i & (U::WIDE - 1));
#pragma unroll
            for (u32 j = 0; j < U::WIDE; j++)
                reinterpret_cast<E*>(&held)[j] = shared.at<E>(((unit * U::WIDE + j) << log_rows) + row);
            to = there(unit) + row * step;
            return row < rows && unit * U::WIDE < cols;
        });
        return;
    }
    const Finder<E> to(box, box.to, places, tile, base);
    if (to.along(box)) {
#pragma unroll
        for (u32 k = 0; k < PER_THREAD<E>; k++) {
            const u32 col = threadIdx.x + k * THREADS;
            if (col < cols) *to.at(col) = shared.at<E>(col);
        }
        return;
    }
    repeat<PER_THREAD<E>>(to.few, [&](u32 i, auto few) {
        u32 row = i >> log_cols, col = i & ((1 << log_cols) - 1);
        if (row < rows && col < cols) *to.template at<few.value>(row, col) = shared.at<E>((col << log_rows) + row);
    });
}
