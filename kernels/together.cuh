// Blocks of `bits` whose codes are gathered in shared memory before they are written: those of a
// warp, which follow each other in the message, or those of a group of 64 elements, where rows of
// the tile are apart in the message.
#pragma once

#include "edge.cuh"
#include "pairs.cuh"

// Codes have 6 to 18 bits: nothing is clipped, and single precision has what they stand for.
constexpr u32 FEWEST_TOGETHER = 6, MOST_TOGETHER = 18;

// Codes of 16 bits, by twos.
__device__ inline void store_16_bits(const u32 (&codes)[4], u8* block)
{
    uint2* const to = reinterpret_cast<uint2*>(block + 8 * (threadIdx.x & 7));
    to[0] = {codes[0], codes[1]};
    to[8] = {codes[2], codes[3]};
}

// Copies units of 16 bytes, by a warp. Two are read before one is written: more would want
// registers.
__device__ inline void copy_by_warp(u8* to, const u8* from, u32 units)
{
    constexpr u32 NEXT = 32 * 16;
    u32 unit = threadIdx.x % 32;
#pragma unroll 1
    for (; unit + 32 < units; unit += 64) {
        const uint4 one = *reinterpret_cast<const uint4*>(from + 16 * unit);
        const uint4 two = *reinterpret_cast<const uint4*>(from + 16 * unit + NEXT);
        *reinterpret_cast<uint4*>(to + 16 * unit) = one;
        *reinterpret_cast<uint4*>(to + 16 * unit + NEXT) = two;
    }
    if (unit < units) *reinterpret_cast<uint4*>(to + 16 * unit) = *reinterpret_cast<const uint4*>(from + 16 * unit);
}

// Where the codes go of the blocks that a warp has.
template <class P>
struct Destination {
    static constexpr u32 WIDTH = P::PLANES;
    // Where the message's codes begin, or those of a tile that is a run of the message.
    u8* const codes;
    const u32 bits;
    // In a tile with rows that are somewhere else each, the number of the block of which the thread
    // brings the scale, or `NONE` if the message does not have it; of a run, `RUN`.
    const u32 block;
    static constexpr u32 NONE = ~0u, RUN = ~1u;

    // Whether codes begin at multiples of 16 bytes wherever a block does.
    __device__ static bool fits(u32 bits) { return WIDTH == 2 || bits % 2 == 0; }
    // The number of a team's block of a pair, counted from there, or `NONE`. For whole warps.
    __device__ u32 own(u32 pair, u32 k) const
    {
        if (block == RUN) return P::group(pair, k) * WIDTH + k % WIDTH;
        return __shfl_sync(0xFFFFFFFF, block, kept_in<P::BLOCKS>(2 * pair + k), 8);
    }
    // Writes those of 16 bits, which are whole sectors, of a block. Shared memory is left alone.
    __device__ void write_16(u32 pair, u32 k, const u32 (&code)[8]) const
    {
        const u32 own = this->own(pair, k);
        if (own == NONE) return;
        const u32 pairs[4] = {::pair(code[0], code[1]), ::pair(code[2], code[3]), ::pair(code[4], code[5]), ::pair(code[6], code[7])};
        store_16_bits(pairs, codes + u64(own) * (16 * BLOCK / 8));
    }
    // Writes others, when they are put together: all of the warp where groups of a team are side by
    // side.
    __device__ void write(const u8* read) const
    {
        static_assert(P::SIDE_BY_SIDE, "one run");
        const u32 units = P::BLOCKS * 2 * bits;
        copy_by_warp(codes + u64(threadIdx.x / 32) * (16 * units), read, units);
    }
    // The same of a pair otherwise; if its blocks are of two runs, those of the second are so many
    // bytes further.
    __device__ void write(u32 pair, const u8* read, u32 further) const
    {
        constexpr u32 RUNS = 2 / WIDTH;
        if (block == RUN) {
            u8* const out = codes + u64((threadIdx.x / 32 * 4 + pair * RUNS * TEAMS) * WIDTH) * (8 * bits);
#pragma unroll
            for (u32 k = 0; k < RUNS; k++) copy_by_warp(out + 8 * TEAMS * bits * k, read + further * k, 2 * WIDTH * bits);
            return;
        }
        read += threadIdx.x % 32 / 8 * (8 * WIDTH * bits);
#pragma unroll
        for (u32 k = 0; k < 2; k += WIDTH) {
            const u32 own = this->own(pair, k);
            const uint4* const from = reinterpret_cast<const uint4*>(read + k * further);
            uint4* const to = reinterpret_cast<uint4*>(codes + 8 * u64(own * bits));
            const u32 end = own == NONE ? 0 : WIDTH * bits / 2;
#pragma unroll 1
            for (u32 unit = threadIdx.x & 7; unit < end; unit += 8) to[unit] = from[unit];
        }
    }
};

// Makes the codes of the blocks that a team has of a tile, where all steps have few digits or are
// 0, and all numbers are far from the end of the range. Each thread brings the scale of one of the
// blocks, and one over its step. Parts of codes are no whole sectors of memory, which are 32 bytes,
// but the codes of a warp in a run are, and with rows nearly all of them: they are put together in
// the shared memory from which all `numbers` that are there have been read, and then written. Those
// of 16 bits need not be.
template <class P, class T>
__device__ void encode_together(Shared shared, const T (&numbers)[2][16], u32 scale, double inverse, u32 bits, Destination<P> to, double& error)
{
    constexpr u32 WIDTH = P::PLANES;
    // Bytes of a group of elements, and from a team's group to its next one where these are apart.
    constexpr u32 BYTES = BLOCK * sizeof(T) * WIDTH, APART = TEAMS * BYTES;
    static_assert(sizeof(T) == 4 && MOST_TOGETHER * 8 <= BLOCK * sizeof(T), "codes fit into what was read");
    const u32 lane = threadIdx.x & 7, team = threadIdx.x % 32 / 8;
    // Where the warp's codes begin, and its own; and from a pair's first block to the other, and
    // from a pair to the next.
    u8* const all = shared.memory + threadIdx.x / 32 * (P::SIDE_BY_SIDE ? 4 * P::GROUPS * BYTES : 4 * BYTES);
    u8* const begin = all + team * (P::SIDE_BY_SIDE ? P::BLOCKS : WIDTH) * (8 * bits);
    const u32 next = P::SIDE_BY_SIDE || WIDTH == 2 ? 8 * bits : APART, further = P::SIDE_BY_SIDE ? 16 * bits : APART * 2 / WIDTH;
    const bool upper = lane & 4;
    // Then those of its parts of 8, 4, 2 bits and one.
    u8* mine = begin + 4 * lane;
    u8* halved = begin + (upper ? next : 0);
#pragma unroll
    for (u32 pair = 0; pair < P::PAIRS; pair++) {
        const T (&x)[16] = numbers[pair];
        u32 code[2][8];
#pragma unroll
        for (u32 k = 0; k < 2; k++) {
            const u32 keeper = kept_in<P::BLOCKS>(2 * pair + k);
            const double step = step_of(__shfl_sync(0xFFFFFFFF, scale, keeper, 8));
            const Integers integers{step, __shfl_sync(0xFFFFFFFF, inverse, keeper, 8), bits, true};
            integers.template round<false, WIDTH, true>(x + P::NEXT * k, code[k], error);
        }
        if (bits == 16) {
#pragma unroll
            for (u32 k = 0; k < 2; k++) to.write_16(pair, k, code[k]);
            continue;
        }
        auto put = [&](u8* at, u32 word) { *reinterpret_cast<u32*>(at) = word; };
        // The numbers of the other pair are in registers, too.
        if (pair == 0) __syncwarp();
        u32 half[2][4];
#pragma unroll
        for (u32 k = 0; k < 2; k++) {
            if (bits & 16) {
                uint2* const to = reinterpret_cast<uint2*>(mine + 4 * lane + next * k);
                to[0] = {::pair(code[k][0], code[k][1]), ::pair(code[k][2], code[k][3])};
                to[8] = {::pair(code[k][4], code[k][5]), ::pair(code[k][6], code[k][7])};
            }
#pragma unroll
            for (u32 i = 0; i < 4; i++) half[k][i] = __byte_perm(code[k][2 * i], code[k][2 * i + 1], bits & 16 ? 0x7632 : 0x5410);
        }
        if (bits & 15) {
            // As in `store_two`.
            u32 last[2];
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                const u32 (&h)[4] = half[k];
                if (bits & 8) {
                    put(mine + 8 * (bits & 16) + next * k, __byte_perm(h[0], h[1], 0x6420));
                    put(mine + 8 * (bits & 16) + next * k + 32, __byte_perm(h[2], h[3], 0x6420));
                }
                const u32 byte = bits & 8 ? 0x7531 : 0x6420, low = __byte_perm(h[0], h[1], byte), high = __byte_perm(h[2], h[3], byte);
                const u32 four = choose(0x0F0F0F0F, low, high << 4);
                if (bits & 4) put(mine + 8 * (bits & 24) + next * k, four);
                const u32 rest = bits & 4 ? choose(0x0F0F0F0F, low >> 4, high) : four;
                last[k] = choose(0x33333333, rest, rest << (2 - (bits & 2)));
            }
            if (bits & 3) {
                const u32 kept = upper ? last[1] : last[0], given = __shfl_xor_sync(0xFFFFFFFF, upper ? last[0] : last[1], 4, 8);
                const u32 low = upper ? given : kept, high = upper ? kept : given;
                if (bits & 2) put(halved + 8 * (bits & 28) + 4 * (lane & 3), choose(0x33333333, low, high << 2));
                if (bits & 1) {
                    const u32 one = choose(0x33333333, low >> 2, high), other = __shfl_xor_sync(0xFFFFFFFF, one, 2, 8);
                    if ((lane & 2) == 0) put(halved + 8 * (bits & 30) + 4 * (lane & 1), choose(0x55555555, one, other << 1));
                }
            }
        }
        mine += further;
        halved += further;
    }
    if (bits == 16) return;
    __syncwarp();
    if constexpr (P::SIDE_BY_SIDE) {
        to.write(all);
    } else {
#pragma unroll
        for (u32 pair = 0; pair < P::PAIRS; pair++) to.write(pair, all + pair * further, next);
    }
}
