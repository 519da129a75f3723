// A tile on its way: from an array into shared memory, and from there into another.
//
// Where 16 bytes or more are contiguous in the array, units of 16 bytes are moved; one thread works
// out where contiguous units begin. Elsewhere elements are moved, two loaded at a time, or warps go
// along whole rows.
#pragma once

#include "along.cuh"

// What tiles a kernel may be given: runs of the message; with those that are folded, too; with
// several rows, but neither folded nor skewed; or any. What is noted of the first three is noted
// alike.
enum class Cuts { RUNS, FOLDED, ROWS, ANY };
__device__ constexpr bool may_be_folded(Cuts cuts) { return cuts == Cuts::FOLDED || cuts == Cuts::ANY; }
// Whether they may be straight (`Shared`): those of elements of 4 bytes, but of transfers none.
template <class E> __device__ constexpr bool may_be_straight(Cuts cuts) { return sizeof(E) == 4 && cuts != Cuts::ROWS; }

// Works out where in an array what stands together in a tile begins.
template <class E, Cuts CUTS>
__device__ void note_tile(const Box& box, const Tile& tile, const E* src, Places& places, Crew crew)
{
    using U = Units<E>;
    if (CUTS == Cuts::ANY && box.skew != 0) return Skewed<E>::note(box, tile, places, crew);
    if (may_be_folded(CUTS) && box.height != 0) return Folded<E>::note(box, tile, places, crew);
    const E* base = src + (box.from.offset + tile.from);
    if (U::are(box.log_from, src)) {
        const u32 step = box.log_rows != 0 ? 1 : U::WIDE << box.log_from;
        U::note(box, box.from, tile, base, step, places, crew);
    } else {
        Finder<const E>(box, box.from, places, tile, base).note(tile, places, crew);
    }
}

// The element of a tile, in shared memory, that the thread moves in this turn. Of elements that lie
// apart, threads side by side take some that are apart in the message and nearer in memory: an
// access to many pages takes long.
template <class E> __device__ u32 index_of(u32 k, bool apart)
{
    constexpr u32 MANY = TILE<E> / 64;
    const u32 i = threadIdx.x + k * THREADS;
    return apart ? i % MANY * 64 + i / MANY : i;
}

// Begins to bring a tile into shared memory, with zeros where it has no element. It has been noted
// before, with a barrier in between.
template <class E, Cuts CUTS>
__device__ void bring_tile(const Box& box, const Tile& tile, const E* src, Shared shared, const Places& places)
{
    using U = Units<E>;
    const u32 shuffled = may_be_straight<E>(CUTS) ? Shared::shuffled<E>(box) : Shared::SHUFFLED;
    if (CUTS == Cuts::ANY && box.skew != 0) return Skewed<E>(box, tile, src + box.from.offset).bring(shared, places);
    if (may_be_folded(CUTS) && box.height != 0) return Folded<E>(box, tile, src + box.from.offset).bring(shared, places);
    const E* base = src + (box.from.offset + tile.from);
    const u32 log = box.log_from, log_rows = CUTS == Cuts::ROWS || CUTS == Cuts::ANY ? box.log_rows : 0, rows = tile.rows, cols = tile.cols;
    if (U::are(log, src)) {
        const bool turned = log_rows != 0;
        // Of what stands together a thread always has the same unit.
        const u32 unit = threadIdx.x & ((1 << log) - 1), place = Shared::place(16 * threadIdx.x);
        const u32 end = turned ? (unit * U::WIDE < rows ? cols : 0) : cols / U::WIDE >> log;
        const u32 first = threadIdx.x >> log, step = THREADS >> log;
        const uint4* at[U::EACH];
#pragma unroll
        for (u32 k = 0; k < U::EACH; k++) at[k] = reinterpret_cast<const uint4*>(places.of[first + k * step]) + unit;
        auto bring = [&](auto straight) {
#pragma unroll
            for (u32 k = 0; k < U::EACH; k++) {
                const u32 further = 16 * k * THREADS;
                u8* to = shared.memory + (straight.value ? 16 * threadIdx.x + further : place ^ Shared::place(further));
                fetch<16>(to, at[k], first + k * step < end);
            }
        };
        shuffled == Shared::STRAIGHT ? bring(Yes{}) : bring(No{});
        return;
    }
    const Finder<const E> from(box, box.from, places, tile, base);
    if (from.along) return bring_along<E, may_be_straight<E>(CUTS)>(from, cols, shared);
    const bool apart = box.lies_apart();
    auto index = [&](u32 k) { return index_of<E>(k, apart); };
    auto find = [&](u32 k, auto few) {
        const u32 i = index(k);
        return from.template at<few.value>(i & ((1 << log_rows) - 1), i >> log_rows);
    };
    auto move = [&](u32 k, const E* at) {
        const u32 i = index(k);
        u8* const to = shared.memory + Shared::place(i * sizeof(E), shuffled);
        const bool there = (i & ((1 << log_rows) - 1)) < rows && i >> log_rows < cols;
        // Of other sizes one copy, not two of which either may be.
        if (sizeof(E) == 16 && apart) fetch<sizeof(E), true>(to, at, there);
        else fetch<sizeof(E)>(to, at, there);
    };
    if (from.few) {
        by_some<PER_THREAD<E>, AT_ONCE<E>>([&](u32 k) { return find(k, Yes{}); }, move);
        return;
    }
#pragma unroll 1
    for (u32 k = 0; k < PER_THREAD<E>; k++) move(k, find(k, No{}));
}

// Both. Has a barrier.
template <class E, Cuts CUTS> __device__ void fetch_tile(const Box& box, const Tile& tile, const E* src, Shared shared, Places& places)
{
    note_tile<E, CUTS>(box, tile, src, places, Crew::block());
    __syncthreads();
    bring_tile<E, CUTS>(box, tile, src, shared, places);
}

// Takes units of a tile to where they belong: `read` gives one, in so many numbers of 32 bits, and
// says where it is. Several are read before they are stored. `ONCE` is as above.
template <u32 EACH, bool ONCE, class Read>
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
            if (inside[n]) store_unit<ONCE>(to[n], held[n]);
    }
}

// The reverse of `bring_tile`, of tiles without rows: takes one from shared memory to the array
// that it would be brought from. It has been noted before, with a barrier in between.
template <class E, Cuts CUTS>
__device__ void leave_tile(const Box& box, const Tile& tile, Shared shared, E* dst, const Places& places)
{
    using U = Units<E>;
    static_assert(CUTS == Cuts::RUNS || CUTS == Cuts::FOLDED, "others are in turned.cuh");
    if (CUTS == Cuts::FOLDED && box.height != 0) {
        const u32 cols = tile.cols;
        Folded<E>(box, tile, dst + box.from.offset).each(places, [&](u64 at, u32 local) {
            if (local < cols) store_element(reinterpret_cast<E*>(at), shared.at<E>(local));
        });
        return;
    }
    const u32 shuffled = Shared::shuffled<E>(box);
    E* base = dst + (box.from.offset + tile.from);
    const u32 log = box.log_from, cols = tile.cols;
    if (U::are(log, dst)) {
        auto store = [&](auto straight) {
            const u32 place = straight.value ? 16 * threadIdx.x : Shared::place(16 * threadIdx.x);
            store_units<U::EACH, false>([&](u32 k, uint4& held, u64& to) {
                const u32 unit = threadIdx.x + k * THREADS, further = 16 * k * THREADS;
                const u8* const from = shared.memory + (straight.value ? place + further : place ^ Shared::place(further));
                held = *reinterpret_cast<const uint4*>(from);
                to = places.of[unit >> log] + 16 * (unit & ((1 << log) - 1));
                return unit * U::WIDE < cols;
            });
        };
        return shuffled == Shared::STRAIGHT ? store(Yes{}) : store(No{});
    }
    const Finder<E> to(box, box.from, places, tile, base);
    if (to.along) return store_along<E, may_be_straight<E>(CUTS)>(to, cols, shared);
    const bool apart = box.lies_apart();
    auto find = [&](u32 k, auto few) {
        const u32 i = index_of<E>(k, apart);
        E* const at = to.template at<few.value>(0, i);
        return Placed<E>{at, *reinterpret_cast<const E*>(shared.memory + Shared::place(i * sizeof(E), shuffled))};
    };
    auto move = [&](u32 k, const Placed<E>& one) {
        if (index_of<E>(k, apart) < cols) store_element(one.at, one.held);
    };
    // Not unrolled: all places would be worked out before the first tile, and spilled.
#pragma unroll 1
    for (u32 first = 0; first < PER_THREAD<E> && to.few; first += AT_ONCE<E>)
        by_some<AT_ONCE<E>, AT_ONCE<E>>([&](u32 n) { return find(first + n, Yes{}); }, [&](u32 n, const Placed<E>& one) { move(first + n, one); });
#pragma unroll 1
    for (u32 k = 0; k < PER_THREAD<E> && !to.few; k++) move(k, find(k, No{}));
}

// Takes a tile from shared memory to where it belongs. Begins with a barrier.
template <class E>
__device__ void store_tile(const Box& box, const Tile& tile, Shared shared, E* dst, Places& places)
{
    using U = Units<E>;
    E* base = dst + (box.to.offset + tile.to);
    const u32 log = box.log_to, log_rows = box.log_rows, log_cols = box.log_cols, rows = tile.rows, cols = tile.cols;
    if (U::are(log, dst)) {
        U::note(box, box.to, tile, base, U::WIDE << log, places, Crew::block());
        __syncthreads();
        auto there = [&](u32 unit) { return places.of[unit >> log] + 16 * (unit & ((1 << log) - 1)); };
        if (log_rows == 0) {
            const u32 place = Shared::place(16 * threadIdx.x);
            store_units<U::EACH, false>([&](u32 k, uint4& held, u64& to) {
                const u32 unit = threadIdx.x + k * THREADS;
                held = *reinterpret_cast<const uint4*>(shared.memory + (place ^ Shared::place(16 * k * THREADS)));
                to = there(unit);
                return unit * U::WIDE < cols;
            });
            return;
        }
        // As many rows as a unit has elements are done by neighbours: their reads then meet in no
        // bank.
        constexpr u32 LOG_WIDE = U::WIDE == 4 ? 2 : U::WIDE == 2 ? 1 : 0;
        const u32 log_units = log_cols - LOG_WIDE;
        const u64 step = u64(box.to.row) * sizeof(E);
        store_units<U::EACH, true>([&](u32 k, uint4& held, u64& to) {
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
    to.note(tile, places, Crew::block());
    __syncthreads();
    if (to.along) return store_along<E, false>(to, cols, shared);
    auto row = [&](u32 k) { return threadIdx.x + k * THREADS >> log_cols; };
    auto col = [&](u32 k) { return threadIdx.x + k * THREADS & ((1 << log_cols) - 1); };
    auto find = [&](u32 k, auto few) {
        return Placed<E>{to.template at<few.value>(row(k), col(k)), shared.at<E>((col(k) << log_rows) + row(k))};
    };
    auto move = [&](u32 k, const Placed<E>& one) {
        if (row(k) < rows && col(k) < cols) store_element(one.at, one.held);
    };
    if (to.few) {
        by_some<PER_THREAD<E>, AT_ONCE<E>>([&](u32 k) { return find(k, Yes{}); }, move);
        return;
    }
#pragma unroll 1
    for (u32 k = 0; k < PER_THREAD<E>; k++) move(k, find(k, No{}));
}
