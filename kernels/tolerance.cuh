// Messages of `tolerance`. The place of a block's codes is known only when the lengths of all
// before it are.
//
// CPU twin: crates/fft-core/src/codec/tolerance.rs. The codes of a tile replace its numbers in
// shared memory, a turn after it was measured. They are written in whole sectors when their place
// is known: the tiles before have had a turn to publish their lengths.
#pragma once

#include "job.cuh"
#include "pairs.cuh"

// The bits of the integers of a block, or `RAW` if it is smaller as it is or cannot be sent
// otherwise.
template <class T>
__device__ u32 width_of(u64 most, double inverse)
{
    if (most >= Real<T>::HUGE_BITS) return RAW;
    double integer = from_bits(most) * inverse;
    if (integer >= double((1ull << 51) - 1)) return RAW;
    u64 rounded = __double2ull_rn(integer);
    u32 bits = rounded == 0 ? 0 : 64 - __clzll(rounded) + 1;
    return 8 * bits < RAW_BYTES<T> ? bits : RAW;
}

// Bits of the codes of a block of such a width.
template <class T> __device__ u32 bits_of(u32 width) { return width == RAW ? 8 * sizeof(T) : width; }

// What is known of a tile before it is known where it goes.
template <class E, u32 WIDTH>
struct Measured {
    static constexpr u32 GROUPS = TILE<E> / BLOCK, BLOCKS = GROUPS * WIDTH;
    // The width of each block; units of 8 bytes of codes before each group of 64 elements, and of
    // all.
    __align__(4) u8 widths[BLOCKS];
    u32 before[GROUPS];
    u32 units;
};

// Widths of a tile into the table of its message, by one warp: each lane packs four into 24 bits,
// and three of four lanes write the words that these make. All bits of a word are of one tile.
template <u32 WIDTH, class E>
__device__ void put_widths(const Body& body, const Tile& tile, const Measured<E, WIDTH>& found)
{
    constexpr u32 FOURS = Measured<E, WIDTH>::BLOCKS / 4;
    static_assert(FOURS <= 32 && FOURS % 4 == 0 && WIDTH_BITS == 6, "words are shared by tiles, or there are too many");
    const u32 lane = threadIdx.x % 32, which = lane % 4;
    const u32 four = lane < FOURS ? reinterpret_cast<const u32*>(found.widths)[lane] : 0;
    const u32 packed = (four & 0x3F) | (four >> 2 & 0xFC0) | (four >> 4 & 0x3F000) | (four >> 6 & 0xFC0000);
    const u32 next = __shfl_down_sync(0xFFFFFFFF, packed, 1);
    const u64 at = STEP_BYTES + u64(tile.element / BLOCK * WIDTH) * WIDTH_BITS / 8 + lane / 4 * 12 + 4 * which;
    if (lane < FOURS && which < 3 && at < body.table)
        *reinterpret_cast<u32*>(body.bytes + at) = packed >> 8 * which | next << (24 - 8 * which);
}

// The sum of all before, in place; returns that of all to the last lane. For a warp.
template <u32 N> __device__ u32 sum_up(u32 (&x)[N])
{
    constexpr u32 EACH = (N + 31) / 32;
    u32 first = threadIdx.x % 32 * EACH, mine[EACH], sum = 0;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) sum += mine[i] = first + i < N ? x[first + i] : 0;
    u32 end = running_sum(sum);
#pragma unroll
    for (u32 i = 0, before = end - sum; i < EACH; before += mine[i], i++)
        if (first + i < N) x[first + i] = before;
    return end;
}

// In each turn a tile is brought while the one before it becomes codes; then it is measured, the
// one before it placed and written, and the next one found.
template <class T, u32 WIDTH>
struct Tolerance {
    using E = Element<T, WIDTH>;
    using P = Pairs<T, WIDTH>;
    using Found = Measured<E, WIDTH>;

    // In shared memory: tiles or their codes; which three tiles these are, and what was measured of
    // two; where the next one is in the array, and where the codes of the last begin in its
    // message.
    struct Held {
        __align__(128) u8 memory[2][TILE<E> * sizeof(E)];
        Work<Message> works[3];
        Found measured[2];
        Places places;
        u64 begin;
        Errors errors;
    };

    const Job<T>& job;
    Held& held;
    const E* src;
    const u32 warp, lane;

    __device__ Tolerance(const Job<T>& job, Held& held)
        : job(job), held(held), src(reinterpret_cast<const E*>(job.src)), warp(threadIdx.x / 32), lane(threadIdx.x % 32)
    {
    }

    __device__ Work<Message>& work(u32 turn) const { return held.works[turn % 3]; }
    __device__ bool there(u32 turn) const { return work(turn).number < job.batch.tiles; }
    __device__ Body body(u32 turn) const { return Body(work(turn).item, job.messages, false); }

    // Begins to find the tile of this number, which the first lane knows. For one warp.
    __device__ void seek(u32 turn, u32 number) const { work(turn).find(job.batch, __shfl_sync(0xFFFFFFFF, number, 0)); }

    // Finds it, or the next one that can shrink, and where its parts are in the array. For one
    // warp, too.
    __device__ void find(u32 turn) const
    {
        Work<Message>& next = work(turn);
        for (;; seek(turn, job.queue.draw(lane))) {
            await_fetched();
            __syncwarp();
            if (next.number >= job.batch.tiles) return;
            const bool same = turn > 0 && work(turn - 1).tile.item == next.tile.item;
            if (same) next.take(work(turn - 1).item);
            else next.take(job.batch.items[next.tile.item]);
            __syncwarp();
            if (!never_shrinks(next.item)) break;
        }
        note_tile<E, Cuts::FOLDED>(next.item.box, next.tile, src, held.places, Crew::warp());
    }

    // Begins to bring a tile that was found. For all threads, as what says nothing else.
    __device__ void bring(u32 turn) const
    {
        const Work<Message>& next = work(turn);
        bring_tile<E, Cuts::FOLDED>(next.item.box, next.tile, src, Shared{held.memory[turn % 2]}, held.places);
    }

    // Finds out how long all blocks of a tile are, for all to see after a barrier.
    __device__ void measure(u32 turn) const
    {
        const Together team;
        const Tile& tile = work(turn).tile;
        const Body body = this->body(turn);
        const u32 mine = P::mine(), group = P::group(mine / 2, mine % 2);
        const u64 word = P::largest([&](u32 pair, T (&x)[16]) { P::read(Shared{held.memory[turn % 2]}, body, pair, x); });
        // Behind the last block the table has zeros.
        const u32 width = group * BLOCK < tile.rows * tile.cols ? width_of<T>(word, job.inverse) : 0;
        u32 units = bits_of<T>(width);
        if (WIDTH == 2) units += team.across(units, P::BLOCKS / 2);
        Found& found = held.measured[turn % 2];
        if (team.lane < P::BLOCKS) {
            found.widths[group * WIDTH + mine % WIDTH] = u8(width);
            if (mine % WIDTH == 0) found.before[group] = units;
        }
    }

    __device__ InLine line(u32 turn) const
    {
        const Work<Message>& work = this->work(turn);
        return {job.queue, work.tile.number, work.tile.item, work.tile.first};
    }

    // Adds up what was measured, and says how long the tile is. For one warp.
    __device__ void publish(u32 turn) const
    {
        Found& found = held.measured[turn % 2];
        const u32 units = sum_up(found.before);
        if (lane != 31) return;
        found.units = units;
        line(turn).say(units);
    }

    // Asks where the codes of a tile begin. For one warp.
    __device__ void place(u32 turn) const
    {
        const u64 begin = line(turn).begin(held.measured[turn % 2].units);
        if (lane == 0) held.begin = begin;
    }

    // Makes the codes of a tile that has been measured, block behind block, where its numbers were.
    // Has a barrier.
    __device__ void encode(u32 turn) const
    {
        const Together team;
        const Found& found = held.measured[turn % 2];
        u8* const codes = held.memory[turn % 2];
        alignas(16) T numbers[P::PAIRS][16];
        {
            const Body body = this->body(turn);
#pragma unroll
            for (u32 pair = 0; pair < P::PAIRS; pair++) P::read(Shared{codes}, body, pair, numbers[pair]);
        }
        __syncthreads();
        const bool few = Integers::few_digits(job.step);
        double error = 0;
#pragma unroll
        for (u32 pair = 0; pair < P::PAIRS; pair++) {
            T (&x)[16] = numbers[pair];
            u32 widths[2], bits[2], at[2];
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                const u32 group = P::group(pair, k);
                widths[k] = found.widths[group * WIDTH + k % WIDTH];
                bits[k] = bits_of<T>(widths[k]);
                at[k] = k % WIDTH == 1 ? at[0] + bits[0] : found.before[group];
            }
            auto integers = [&](u32 k) { return Integers{job.step, job.inverse, max(widths[k], 2), few}; };
            if constexpr (sizeof(T) == 4) {
                // Nothing is clipped, as bits are for the largest number; of zeros any will do.
                const Integers both[2] = {integers(0), integers(1)};
                u32 code[2][8];
                const bool counts[2] = {widths[0] != RAW, widths[1] != RAW};
                const bool raws = !round_two<T, WIDTH, false>(both, x, counts, code, error);
#pragma unroll
                for (u32 i = 0; i < 16 && raws; i++) {
                    const u32 k = i / 8, word = u32(Real<T>::word(x[P::NEXT * k + WIDTH * (i % 8)]));
                    code[k][i % 8] = counts[k] ? code[k][i % 8] : word;
                }
                store_two<true>(code, bits, team.all(bits[0] | bits[1]), codes, at);
            } else {
                // One after the other: registers do not suffice for two.
#pragma unroll
                for (u32 k = 0; k < 2; k++) {
                    const T* block = x + P::NEXT * k;
                    u8* out = codes + 8 * at[k];
                    // Zeros, without which registers do not suffice.
                    u32 code[8] = {};
                    if (bits[k] <= 32) integers(k).template round<false, WIDTH, false>(block, code, error);
                    else if (widths[k] == RAW) put_raw<WIDTH>(block, out, Team());
                    else error += integers(k).template encode<true, WIDTH>(block, bits[k], out, Team());
                    store_codes<true>(code, bits[k] <= 32 ? bits[k] : 0, out, team);
                }
            }
        }
        held.errors.add(error);
    }

    // Writes the codes of a tile that has been placed.
    __device__ void write(u32 turn) const
    {
        const Tile& tile = work(turn).tile;
        const Message& message = work(turn).item;
        const u32 units = held.measured[turn % 2].units;
        const u64 begin = held.begin, end = begin + units, front = HEADER + message.table;
        // A message that becomes too long will be sent as it is.
        const bool fits = front + 8 * end < message.room;
        if (threadIdx.x == 0 && tile.element + tile.rows * tile.cols == message.box.elements) {
            State& state = job.states[tile.item];
            state.units = end;
            state.raw = !fits;
        }
        if (fits) copy_units(held.memory[turn % 2], units, job.messages + message.place + front + 8 * begin);
    }

    __device__ void run() const
    {
        if (warp == 3) seek(0, job.queue.draw(lane)), find(0);
        // The compiler would do two at a time: twice the code, and no faster.
#pragma unroll 1
        for (u32 turn = 0;; turn++) {
            __syncthreads();
            const bool there = this->there(turn);
            if (there) bring(turn);
            else let_next_begin();
            if (turn > 0) encode(turn - 1);
            await_tile();
            if (turn > 0 && warp == 2) held.errors.keep(job.errors, work(turn - 1).tile);
            // The next tile's number is on its way while this one is measured.
            const u32 number = there && warp == 3 ? job.queue.draw(lane) : 0;
            if (there) measure(turn);
            if (there && warp == 3) seek(turn + 1, number);
            __syncthreads();
            if (there && warp == 0) publish(turn);
            if (turn > 0 && warp == 1) place(turn - 1);
            if (there && warp == 2) put_widths<WIDTH>(body(turn), work(turn).tile, held.measured[turn % 2]);
            if (there && warp == 3) find(turn + 1);
            __syncthreads();
            if (turn > 0) write(turn - 1);
            if (!there) break;
        }
    }
};

template <class T, u32 WIDTH>
__device__ void encode_tolerance(const Job<T>& job)
{
    __shared__ typename Tolerance<T, WIDTH>::Held held;
    Tolerance<T, WIDTH>(job, held).run();
}
