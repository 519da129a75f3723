// Finds where the codes of `tolerance` begin, before they are decoded: a launch of its own, which
// reads the tables of widths alone.
#pragma once

#include "integers.cuh"
#include "places.cuh"

// Of `tolerance`, how many units of 8 bytes the codes of a block take that says to have so many
// bits; none if it cannot have.
template <class T> __device__ u32 units_of(u32 bits)
{
    if (bits == RAW) return u32(RAW_BYTES<T>) / 8;
    return bits == 1 || bits > WIDEST<T> ? 0 : bits;
}

// The widths of a tile in the table of its message.
template <class E, u32 WIDTH>
struct Widths {
    static constexpr u32 BLOCKS = TILE<E> / BLOCK * WIDTH, BYTES = BLOCKS * WIDTH_BITS / 8;
    u64 at;
    u32 bytes;

    __device__ Widths(const Message& message, u32 element)
        : at(STEP_BYTES + u64(element / BLOCK) * WIDTH * WIDTH_BITS / 8), bytes(u32(min(u64(BYTES), message.table - at)))
    {
    }
};

// What is told of 64 elements where tiles are not runs of a message: units of codes before them, in
// the 16 KiB of numbers that have them, and the width of their block, or of both planes'.
struct Group {
    static_assert(TILE_BYTES / 8 < 1 << 12, "units of 8 bytes are counted in 12 bits");
    u32 word;

    __device__ static Group of(u32 before, const u32 (&widths)[2]) { return {before | widths[0] << 12 | widths[1] << 18}; }
    __device__ u32 before() const { return word & 0xFFF; }
    __device__ u32 width(u32 plane) const { return word >> (12 + 6 * plane) & RAW; }

    // Codes are fetched from a multiple of 16 bytes on: whether they begin 8 bytes behind one, as
    // those do that begin at this unit of 8 bytes of memory; and how many bytes that is.
    __device__ void skip(u64 unit) { word |= u32(unit % 2) << 24; }
    __device__ u32 skipped() const { return word >> 24 << 3; }
};

// The item of which a tile is: the last whose first tile is not behind it.
template <class Item> __device__ u32 item_of(const Batch<Item>& batch, u32 number)
{
    u32 item = 0;
    for (u32 above = batch.count; above - item > 1;) {
        const u32 middle = (item + above) / 2;
        (batch.firsts[middle] <= number ? item : above) = middle;
    }
    return item;
}

// Finds where the codes of each tile of `tolerance` begin, which depends on all widths before. Each
// thread sums those of a tile. While decoding, tiles would have to wait for each other.
template <class T, u32 WIDTH, class Job>
__device__ void measure(const Job& job)
{
    using E = Element<T, WIDTH>;
    __shared__ u32 drawn;
    __shared__ u64 sums[THREADS / 32], begin;
    for (;;) {
        __syncthreads();
        u32 ticket = job.queue.draw(threadIdx.x);
        if (threadIdx.x == 0) drawn = ticket;
        __syncthreads();
        const u32 group = drawn, number = group * THREADS + threadIdx.x;
        if (group * THREADS >= job.batch.tiles) return;
        u64 units = 0;
        if (number < job.batch.tiles) {
            // Tiles of rows may be more than such runs of the message as are measured.
            const u32 item = item_of(job.batch, number), run = number - job.batch.firsts[item];
            const Message& message = job.batch.items[item];
            const bool measured = run < (message.box.elements + TILE<E> - 1) / TILE<E>;
            const u32 element = measured ? run * TILE<E> : 0, left = measured ? message.box.elements - element : 0;
            const Widths<E, WIDTH> widths(message, element);
            const u32 blocks = (min(TILE<E>, left) + BLOCK - 1) / BLOCK * WIDTH;
            const u32* words = reinterpret_cast<const u32*>(job.messages + message.place + HEADER + widths.at);
            bool wrong = false;
            // Of a raw message these would be numbers. Sixteen widths are three words.
            if (measured && job.lengths[item] != message.room) {
#pragma unroll
                for (u32 first = 0; first < widths.BLOCKS; first += 16) {
                    u32 word[3];
#pragma unroll
                    for (u32 i = 0; i < 3; i++) {
                        u32 at = first / 16 * 3 + i;
                        word[i] = 4 * at < widths.bytes ? words[at] : 0;
                    }
#pragma unroll
                    for (u32 i = 0; i < 16; i += WIDTH) {
                        const u32 before = u32(units);
                        u32 bits[2] = {};
#pragma unroll
                        for (u32 plane = 0; plane < WIDTH; plane++) {
                            const u32 bit = WIDTH_BITS * (i + plane), high = bit / 32 == 2 ? 0 : word[bit / 32 + 1];
                            bits[plane] = first + i < blocks ? __funnelshift_r(word[bit / 32], high, bit % 32) & RAW : 0;
                            const u32 found = units_of<T>(bits[plane]);
                            wrong |= found == 0 && bits[plane] != 0;
                            units += found;
                        }
                        if (job.groups != nullptr && first + i < blocks)
                            job.groups[(u64(number) * widths.BLOCKS + first + i) / WIDTH] = Group::of(before, bits);
                    }
                }
            }
            if (wrong) refuse(job.states[item]);
        }
        u64 end = running_sum(units);
        if (threadIdx.x % 32 == 31) sums[threadIdx.x / 32] = end;
        __syncthreads();
        u64 all = 0;
        for (u32 warp = 0; warp < THREADS / 32; warp++) {
            if (warp < threadIdx.x / 32) end += sums[warp];
            all += sums[warp];
        }
        // By the second warp, since the first draws.
        if (threadIdx.x / 32 == 1) {
            const InLine line(job.queue, group, 0, 0);
            if (threadIdx.x == 32) line.say(all);
            const u64 before = line.begin(all);
            if (threadIdx.x == 32) begin = before;
        }
        __syncthreads();
        end += begin;
        if (number < job.batch.tiles) job.begins[number + 1] = end;
    }
}
