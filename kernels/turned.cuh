// Messages of `tolerance` whose neighbours are no neighbours in the array: a tile has rows of one or several groups of 64 elements, each
// somewhere else in its message, and columns that are written as whole lines of memory.
//
// What is written here is where they are; how they are decoded is as in decode.cu. It is known where all codes begin (measure.cuh), so
// that no tile waits for another: therefore the receiver turns axes and not the sender.
#pragma once

#include "measure.cuh"

// A team's numbers of a block of so many bits, none of which may be, in units of the number whose word this is.
template <u32 WIDTH, class T> __device__ void decode_block(u64 step, u32 bits, const u8* from, T* x)
{
    if (bits == 0) {
#pragma unroll
        for (u32 i = 0; i < 8; i++) x[WIDTH * i] = 0;
    } else if (bits == RAW) {
        get_raw<WIDTH>(from, x, Team());
    } else {
        Integers{from_bits(step), 0, bits, Integers::few_digits(from_bits(step))}.decode<WIDTH>(from, x, Team());
    }
}

template <class T, u32 WIDTH, class Job>
struct Turned {
    using E = Element<T, WIDTH>;
    static constexpr u32 GROUPS = TILE<E> / BLOCK, GROUP_BYTES = BLOCK * sizeof(E), N = 8 * WIDTH, EACH = GROUPS / TEAMS;
    // Room for the codes of a group, which are never longer than its numbers, so that teams of a warp meet in no bank.
    static constexpr u32 SLOT = GROUP_BYTES + 32;

    // In shared memory, of the turns to come: codes, and then numbers in their place; tiles; lengths of their messages, where the codes of
    // these begin, and their steps; what is known of groups.
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
            const u32 group = body(turn).element_at(tile, k * BLOCK, there) / BLOCK;
            if (!there) continue;
            __pipeline_memcpy_async(held.groups[slot] + k, job.groups + (u64(tile.first) * GROUPS + group), 4);
            __pipeline_memcpy_async(held.begins[slot] + k, job.begins + (tile.first + group / GROUPS), 8);
        }
        if (lane == 0) __pipeline_memcpy_async(held.firsts + slot, job.begins + tile.first, 8);
        if (lane == 1) __pipeline_memcpy_async(held.lengths + slot, job.lengths + tile.item, 8);
    }

    // Begins to fetch codes, or numbers as they are, when that has been answered. Not what is not in a message, nor what is before it.
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
                const u32 element = body.element_at(tile, k * BLOCK, there);
                const u32 bytes = there ? min(BLOCK, body.elements - element) * u32(sizeof(E)) : 0;
                for (u32 at = 4 * lane; at < bytes; at += 4 * 32)
                    __pipeline_memcpy_async(memory + k * SLOT + at, first + (u64(element) * sizeof(E) + at), 4);
            }
            return;
        }
        if (threadIdx.x == 0) __pipeline_memcpy_async(held.steps + turn % 2, body.bytes, 8);
        // Each lane finds one of those that its warp fetches; of fewer than lanes several find the same. Then two are fetched at a time.
        constexpr u32 OWN = GROUPS / (THREADS / 32), HALF = 16;
        static_assert(OWN <= HALF && OWN % 2 == 0, "a lane for each, two at a time");
        const u32 own = warp * OWN + lane % OWN, slot = turn % 4;
        bool there;
        const u32 element = body.element_at(tile, own * BLOCK, there);
        u32 begin = 0, units = 0;
        if (there) {
            const Group group = held.groups[slot][own];
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) units += units_of<T>(group.width(plane));
            const u64 first = held.begins[slot][own] - held.firsts[slot] + group.before();
            const u64 end = body.table + 8 * (first + units), behind = held.lengths[slot] - HEADER;
            if (end > behind || (element + BLOCK >= body.elements && end != behind)) refuse(job.states[tile.item]);
            if (end > behind) units = 0;
            begin = u32(first);
        }
        const u8* const codes = body.bytes + body.table;
#pragma unroll
        for (u32 k = 0; k < OWN; k += 2) {
            const u32 which = k + lane / HALF, unit = lane % HALF;
            const u32 many = __shfl_sync(0xFFFFFFFF, units, which);
            const u8* const from = codes + 8 * (u64(__shfl_sync(0xFFFFFFFF, begin, which)) + unit);
            u8* const to = memory + (warp * OWN + which) * SLOT + 8 * unit;
#pragma unroll
            for (u32 step = 0; step < GROUP_BYTES / 8; step += HALF)
                if (unit + step < many) __pipeline_memcpy_async(to + 8 * step, from + 8 * step, 8);
        }
    }

    // Makes a thread's numbers of its groups, of which it has 4 neighbours and 4 that are half a group behind.
    __device__ void decode(u32 turn, T (&x)[EACH][N]) const
    {
        const Tile& tile = work(turn).tile;
        const Body body = this->body(turn);
        const bool raw = this->raw(turn);
        const u64 step = held.steps[turn % 2];
        if (threadIdx.x == 0 && !raw) {
            const bool head = tile.element != 0 || reinterpret_cast<const u64*>(body.bytes)[-1] == work(turn).item.head;
            // A step is a normal number above 0.
            if (!head || step >> 52 == 0 || step >= INFINITE) refuse(job.states[tile.item]);
        }
#pragma unroll
        for (u32 n = 0; n < EACH; n++) {
            const u32 k = threadIdx.x / 8 + n * TEAMS;
            bool there;
            body.element_at(tile, k * BLOCK, there);
            const u8* from = held.memory[turn % 2] + k * SLOT;
            if (!there) continue;
            if (raw) {
                constexpr u32 UNITS = N * sizeof(T) / 32;
                const uint4* units = reinterpret_cast<const uint4*>(from) + UNITS * Team().lane;
#pragma unroll
                for (u32 unit = 0; unit < 2 * UNITS; unit++)
                    reinterpret_cast<uint4*>(x[n])[unit] = units[unit % UNITS + (unit < UNITS ? 0 : 8 * UNITS)];
                continue;
            }
            const Group group = held.groups[turn % 4][k];
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                const u32 units = units_of<T>(group.width(plane));
                decode_block<WIDTH>(step, units == 0 ? 0 : group.width(plane), from, x[n] + plane);
                from += 8 * units;
            }
        }
    }

    __device__ void run() const
    {
        auto nothing = [](const Work<Message>&) {};
        held.ahead.begin(job.batch, nothing);
        if (warp == 1) ask(0), ask(1);
        await_tile();
        fetch(0);
        Numbers numbers(job.states, job.batch.count, held.ahead.DEALT);
        for (u32 turn = 0; there(turn); turn++) {
            const u32 number = numbers.next();
            await_tile();
            fetch(turn + 1);
            if (warp == 1) ask(turn + 2);
            held.ahead.next(turn, job.batch, number, nothing);
            alignas(16) T x[EACH][N];
            decode(turn, x);
            __syncthreads();
            const Shared shared{held.memory[turn % 2]};
#pragma unroll
            for (u32 n = 0; n < EACH; n++) write_turned<E>(shared, body(turn), (threadIdx.x / 8 + n * TEAMS) * BLOCK, x[n], Team());
            numbers.draw();
            leave_tile<E, true>(work(turn).item.box, work(turn).tile, shared, reinterpret_cast<E*>(job.dst), held.places);
        }
    }
};

template <class T, u32 WIDTH, class Job>
__device__ void decode_turned(const Job& job)
{
    __shared__ typename Turned<T, WIDTH, Job>::Held held;
    Turned<T, WIDTH, Job>(job, held).run();
}
