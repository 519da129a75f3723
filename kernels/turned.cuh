// Messages of `tolerance` whose adjacent elements are apart in the array. A tile has rows of one or
// several groups of 64 elements, each somewhere else in its message. Its columns are written as
// whole lines of memory, or half lines where rows have no whole groups.
//
// This file finds the places of codes; decode.cu decodes them. All places are known beforehand
// (measure.cuh), so that no tile waits for another. Therefore the receiver transposes, and not the
// sender.
#pragma once

#include "measure.cuh"

// A team's numbers of a block of so many bits, none of which may be, in units of the number whose
// word this is.
template <u32 WIDTH, class T> __device__ void decode_block(u64 step, u32 bits, const u8* from, T* x)
{
    if (bits == 0) {
#pragma unroll
        for (u32 i = 0; i < 8; i++) x[WIDTH * i] = 0;
    } else if (bits == RAW) {
        get_raw<WIDTH>(from, x, Team());
    } else {
        const Integers integers{from_bits(step), 0, bits, Integers::few_digits(from_bits(step))};
        if constexpr (WIDEST<T> <= 32) {
            // As below, without what never comes.
            if (integers.template is_single<T>()) Integers::decode_single<WIDTH>(float(integers.step), bits, from, x, Team());
            else integers.template decode_as<u32, WIDTH>(from, x, Team());
        } else {
            integers.template decode<WIDTH>(from, x, Team());
        }
    }
}

// The elements of a tile whose rows are not of whole groups of 64 elements: each is as many as a
// group has, but begins anywhere, and what it has a part of is decoded for another tile, too.
// Threads side by side take elements of a column of the box, which are neighbours in the array.
template <class E>
struct Covered {
    const Places& places;
    const u32 log_rows, row, begin, end;
    E* const own;

    // `to` is where the box begins.
    __device__ Covered(const Box& box, const Tile& tile, const Places& places, E* to)
        : places(places), log_rows(box.log_rows), row(threadIdx.x & ((1 << log_rows) - 1)),
          begin(tile.element + row * box.pitch & box.skew), end(row < tile.rows ? tile.cols : 0), own(to + tile.from + row)
    {
    }
    __device__ static void note(const Box& box, const Tile& tile, Places& places, Crew crew)
    {
        for (u32 i = crew.thread; i < tile.cols; i += crew.threads) places.of[i] = within_row(box, box.from, tile.start + i);
    }
    template <class Move> __device__ void each(Move move) const
    {
#pragma unroll 4
        for (u32 col = threadIdx.x >> log_rows; col < end; col += THREADS >> log_rows)
            move(own + places.of[col], row, begin + col);
    }
};

// The groups of a tile in shared memory: the codes of each, and then its numbers in their place.
// Units of 16 bytes are shuffled by the row of the tile, which avoids bank conflicts of threads
// that read columns.
template <class E>
struct Slots {
    static constexpr u32 GROUP_BYTES = BLOCK * sizeof(E), LOG_WIDE = Units<E>::WIDE == 4 ? 2 : Units<E>::WIDE == 2 ? 1 : 0;
    // Codes of a group are never longer than its numbers, and may begin 8 bytes into its slot; with
    // room in between, so that teams of a warp meet in no bank.
    static constexpr u32 BYTES = GROUP_BYTES + 32;
    u8* const memory;
    // A row has so many groups, as a power of two.
    const u32 log_groups;

    __device__ Slots(u8* memory, const Box& box) : memory(memory), log_groups(box.log_cols - LOG_BLOCK) {}
    __device__ u8* of(u32 group) const { return memory + group * BYTES; }
    // Rows of which elements make up a unit of the array are shuffled alike.
    __device__ static u32 shuffle(u32 row) { return (row >> LOG_WIDE & 7) << 4; }
    // A byte of the numbers of a group.
    __device__ u8* byte(u32 group, u32 at) const { return of(group) + (at ^ shuffle(group >> log_groups)); }
    // An element, in the order of the message.
    __device__ const E& at(u32 local) const { return *reinterpret_cast<const E*>(byte(local / BLOCK, local % BLOCK * sizeof(E))); }
    // A thread's numbers: of each half of a group some neighbours.
    template <u32 N, class T> __device__ void put(u32 group, const T (&x)[N], Team team) const
    {
        constexpr u32 UNITS = N * sizeof(T) / 32;
#pragma unroll
        for (u32 unit = 0; unit < 2 * UNITS; unit++) {
            const u32 at = 16 * (UNITS * team.lane + unit % UNITS) + (unit < UNITS ? 0 : GROUP_BYTES / 2);
            *reinterpret_cast<uint4*>(byte(group, at)) = reinterpret_cast<const uint4*>(x)[unit];
        }
    }
};

template <class T, u32 WIDTH, class Job>
struct Turned {
    using E = Element<T, WIDTH>;
    using U = Units<E>;
    static constexpr u32 GROUPS = TILE<E> / BLOCK, N = 8 * WIDTH, SLOT = Slots<E>::BYTES;

    // In shared memory, of the turns to come: codes, and then numbers in their place; tiles;
    // lengths of their messages, where the codes of these begin, and their steps; what is known of
    // groups.
    struct Held {
        __align__(128) u8 memory[2][GROUPS * SLOT];
        Ahead<Message, 3> ahead;
        u64 lengths[4], firsts[4], steps[2], begins[4][GROUPS];
        Group groups[4][GROUPS];
        Places places;
    };

    const Job& job;
    Held& held;
    const u32 warp, lane;

    __device__ Turned(const Job& job, Held& held) : job(job), held(held), warp(threadIdx.x / 32), lane(threadIdx.x % 32) {}

    __device__ const Work<Message>& work(u32 turn) const { return held.ahead.work(turn); }
    __device__ bool there(u32 turn) const { return work(turn).number < job.batch.tiles; }
    __device__ bool raw(u32 turn) const { return held.lengths[turn % 4] == work(turn).item.room; }
    __device__ Body body(u32 turn) const { return Body(work(turn).item, job.messages); }

    // Begins to ask what was measured of a tile, when it is described. For one warp.
    __device__ void ask(u32 turn) const
    {
        if (!there(turn)) return;
        const Tile& tile = work(turn).tile;
        const u32 slot = turn % 4;
#pragma unroll
        for (u32 k = lane; k < GROUPS; k += 32) {
            bool there;
            const u32 group = body(turn).read_at(tile, k * BLOCK, there) / BLOCK;
            if (!there) continue;
            __pipeline_memcpy_async(held.groups[slot] + k, job.groups + (u64(tile.first) * GROUPS + group), 4);
            __pipeline_memcpy_async(held.begins[slot] + k, job.begins + (tile.first + group / GROUPS), 8);
        }
        if (lane == 0) __pipeline_memcpy_async(held.firsts + slot, job.begins + tile.first, 8);
        if (lane == 1) __pipeline_memcpy_async(held.lengths + slot, job.lengths + tile.item, 8);
    }

    // Begins to fetch codes, or numbers as they are, when that has been answered. Not what is not
    // in a message, nor what is before it.
    __device__ void fetch(u32 turn) const
    {
        if (!there(turn)) return;
        const Tile& tile = work(turn).tile;
        const Body body = this->body(turn);
        u8* const memory = held.memory[turn % 2];
        if (raw(turn)) {
            const u8* const first = body.bytes - HEADER;
#pragma unroll 1
            for (u32 k = warp; k < GROUPS; k += THREADS / 32) {
                bool there;
                const u32 element = body.read_at(tile, k * BLOCK, there);
                const u32 bytes = there ? min(BLOCK, body.elements - element) * u32(sizeof(E)) : 0;
                for (u32 at = 4 * lane; at < bytes; at += 4 * 32)
                    __pipeline_memcpy_async(memory + k * SLOT + at, first + (u64(element) * sizeof(E) + at), 4);
            }
            return;
        }
        if (threadIdx.x == 0) __pipeline_memcpy_async(held.steps + turn % 2, body.bytes, 8);
        // Each lane finds one of those that its warp fetches; of fewer than lanes several find the
        // same. Then four are fetched at a time.
        constexpr u32 OWN = GROUPS / (THREADS / 32), LANES = 8;
        static_assert(OWN <= 32 && OWN % (32 / LANES) == 0, "a lane for each, four at a time");
        const u32 own = warp * OWN + lane % OWN, slot = turn % 4;
        const u8* const codes = body.bytes + body.table;
        bool there;
        const u32 element = body.read_at(tile, own * BLOCK, there);
        // Where its codes begin, in units of 8 bytes, and how many bytes are fetched, from a
        // multiple of 16 on.
        u32 begin = 0, bytes = 0;
        Group group{0};
        if (there) {
            group = held.groups[slot][own];
            u32 units = 0;
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) units += units_of<T>(group.width(plane));
            const u64 first = held.begins[slot][own] - held.firsts[slot] + group.before();
            const u64 end = body.table + 8 * (first + units), behind = held.lengths[slot] - HEADER;
            if (end > behind || (element + BLOCK >= body.elements && end != behind)) refuse(job.states[tile.item]);
            begin = u32(first);
            group.skip(reinterpret_cast<uintptr_t>(codes) / 8 + begin);
            if (units != 0 && end <= behind) bytes = 8 * units + group.skipped();
        }
        __syncwarp();
        if (lane < OWN) held.groups[slot][own] = group;
        // Not unrolled: of so much that is done once for a tile instructions are waited for.
#pragma unroll 1
        for (u32 k = 0; k < OWN; k += 32 / LANES) {
            const u32 which = k + lane / LANES, end = __shfl_sync(0xFFFFFFFF, bytes, which);
            const u8* from = codes + 8 * u64(__shfl_sync(0xFFFFFFFF, begin, which));
            from -= reinterpret_cast<uintptr_t>(from) % 16;
            u8* const to = memory + (warp * OWN + which) * SLOT;
#pragma unroll 1
            for (u32 at = lane % LANES * 16; at < end; at += LANES * 16) {
                if (end - at >= 16) __pipeline_memcpy_async(to + at, from + at, 16);
                else __pipeline_memcpy_async(to + at, from + at, 8);
            }
        }
    }

    // Makes the numbers of a tile.
    __device__ void decode(u32 turn) const
    {
        const Slots<E> slots(held.memory[turn % 2], work(turn).item.box);
        if (raw(turn)) return take_raw(slots);
        const u64 step = held.steps[turn % 2];
        if (threadIdx.x == 0) {
            const Tile& tile = work(turn).tile;
            const bool head = tile.element != 0 || reinterpret_cast<const u64*>(body(turn).bytes)[-1] == work(turn).item.head;
            // A step is a normal number above 0.
            if (!head || step >> 52 == 0 || step >= INFINITE) refuse(job.states[tile.item]);
        }
        // Once for all groups: of instructions that are not repeated soon there are more than are
        // at hand.
#pragma unroll 1
        for (u32 k = threadIdx.x / 8; k < GROUPS; k += TEAMS) {
            // One that the message does not have is as one of zeros, which nobody wants.
            const Group group = held.groups[turn % 4][k];
            const u8* from = slots.of(k) + group.skipped();
            alignas(16) T x[N];
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                const u32 units = units_of<T>(group.width(plane));
                decode_block<WIDTH>(step, units == 0 ? 0 : group.width(plane), from, x + plane);
                from += 8 * units;
            }
            __syncwarp();
            slots.put(k, x, Team());
        }
    }

    // The same of a message that is its numbers as they are: they only change places.
    __device__ void take_raw(const Slots<E>& slots) const
    {
        constexpr u32 UNITS = N * sizeof(T) / 32;
#pragma unroll 1
        for (u32 k = threadIdx.x / 8; k < GROUPS; k += TEAMS) {
            alignas(16) T x[N];
            const uint4* units = reinterpret_cast<const uint4*>(slots.of(k)) + UNITS * Team().lane;
#pragma unroll
            for (u32 unit = 0; unit < 2 * UNITS; unit++)
                reinterpret_cast<uint4*>(x)[unit] = units[unit % UNITS + (unit < UNITS ? 0 : 8 * UNITS)];
            __syncwarp();
            slots.put(k, x, Team());
        }
    }

    // Works out where a tile belongs. For one warp.
    __device__ void note(u32 turn) const
    {
        const Box& box = work(turn).item.box;
        const Tile& tile = work(turn).tile;
        if (box.skew != 0) return Covered<E>::note(box, tile, held.places, Crew::warp());
        note_tile<E, Cuts::FOLDED>(box, tile, reinterpret_cast<E*>(job.dst), held.places, Crew::warp());
    }

    // Takes it there. Begins with a barrier.
    __device__ void leave(u32 turn) const
    {
        const Box& box = work(turn).item.box;
        const Tile& tile = work(turn).tile;
        const Slots<E> slots(held.memory[turn % 2], box);
        E* const dst = reinterpret_cast<E*>(job.dst);
        E* const from = dst + box.from.offset;
        const Places& places = held.places;
        __syncthreads();
        const u32 log = box.log_from, log_rows = box.log_rows, log_cols = box.log_cols, rows = tile.rows, cols = tile.cols;
        if (box.skew != 0) {
            Covered<E>(box, tile, places, from).each(
                [&](E* at, u32 row, u32 col) { store_element(at, slots.at((row << log_cols) + col)); });
        } else if (box.height != 0) {
            Folded<E>(box, tile, from).each(places, [&](u64 at, u32 local) {
                if (local < cols) store_element(reinterpret_cast<E*>(at), slots.at(local));
            });
        } else if (U::are(log, dst)) {
            // Units that stand together are of a column, or of the only row. Of a column a thread
            // has the same rows in all of them.
            const u32 first = log_rows != 0 ? (threadIdx.x & ((1 << log) - 1)) * U::WIDE : 0, next = SLOT << slots.log_groups;
            const u8* const begin = slots.of(first << slots.log_groups);
            store_units<U::EACH, true>([&](u32 k, uint4& held, u64& to) {
                const u32 unit = threadIdx.x + k * THREADS, group = unit >> log;
                if (log_rows == 0) {
                    held = *reinterpret_cast<const uint4*>(&slots.at(unit * U::WIDE));
                    to = places.of[group] + 16 * (unit & ((1 << log) - 1));
                    return unit * U::WIDE < cols;
                }
                const u32 col = (threadIdx.x >> log) + k * (THREADS >> log);
                const u8* const at = begin + col / BLOCK * SLOT + (col % BLOCK * sizeof(E) ^ Slots<E>::shuffle(first));
#pragma unroll
                for (u32 i = 0; i < U::WIDE; i++) reinterpret_cast<E*>(&held)[i] = *reinterpret_cast<const E*>(at + i * next);
                to = places.of[col] + first * sizeof(E);
                return first < rows && col < cols;
            });
        } else {
            const Finder<E> to(box, box.from, places, tile, from + tile.from);
#pragma unroll 1
            for (u32 i = threadIdx.x; i < TILE<E>; i += THREADS) {
                const u32 row = i & ((1 << log_rows) - 1), col = i >> log_rows;
                if (row >= rows || col >= cols) continue;
                E* const at = to.along ? to.at(i) : to.few ? to.template at<true>(row, col) : to.template at<false>(row, col);
                store_element(at, slots.at((row << log_cols) + col));
            }
        }
    }

    __device__ void run() const
    {
        auto nothing = [](const Work<Message>&) {};
        held.ahead.begin(job.batch, nothing);
        if (warp == 3) ask(0), ask(1);
        await_tile();
        fetch(0);
        Numbers numbers(job.states, job.batch.count, held.ahead.DEALT);
        for (u32 turn = 0; there(turn); turn++) {
            const u32 number = numbers.next();
            await_tile();
            fetch(turn + 1);
            if (warp == 3) ask(turn + 2);
            if (warp == 2) note(turn);
            held.ahead.next(turn, job.batch, number, nothing);
            decode(turn);
            numbers.draw();
            leave(turn);
        }
    }
};

template <class T, u32 WIDTH, class Job>
__device__ void decode_turned(const Job& job)
{
    __shared__ typename Turned<T, WIDTH, Job>::Held held;
    Turned<T, WIDTH, Job>(job, held).run();
}
