// 64 codes of a few bits each to bytes and back, by a team of eight threads. Thread `i` has codes
// 4i to 4i + 3 and 32 + 4i to 32 + 4i + 3. Adjacent threads write the bytes of any number of bits.
//
// docs/wire.md, "Codes". CPU twin: crates/fft-core/src/codec/codes.rs. The bits of a code are cut
// into parts of 64, 32, 16, 8, 4, 2 and 1 bits. Of parts below 8 bits a byte has several, whose
// codes are as far apart as there are bytes.
#pragma once

#include "numbers.cuh"

// 16 bytes to or from a place that may be aligned to 8 bytes only. `SHARED` says that it is in
// shared memory.
template <bool SHARED> __device__ inline void store_16(u8* to, uint4 bytes)
{
    if (SHARED) {
        reinterpret_cast<uint2*>(to)[0] = {bytes.x, bytes.y};
        reinterpret_cast<uint2*>(to)[1] = {bytes.z, bytes.w};
        return;
    }
    store_16_global(to, bytes);
}

__device__ inline uint4 load_16(const u8* from)
{
    if (reinterpret_cast<uintptr_t>(from) % 16 == 0) return *reinterpret_cast<const uint4*>(from);
    uint2 low = reinterpret_cast<const uint2*>(from)[0], high = reinterpret_cast<const uint2*>(from)[1];
    return {low.x, low.y, high.x, high.y};
}

// The lower halves of two numbers, side by side.
__device__ inline u32 pair(u32 low, u32 high) { return __byte_perm(low, high, 0x5410); }

// Of four numbers the byte of this place, side by side.
__device__ inline u32 quad(const u32* x, u32 byte)
{
    const u32 two = byte | (byte + 4) << 4;
    return __byte_perm(__byte_perm(x[0], x[1], two), __byte_perm(x[2], x[3], two), 0x5410);
}

// `Code` is u32 where codes have up to 32 bits, and u64 above. Bits above the lowest `bits` may be
// anything. Where the whole warp comes by, a team that has nothing to store has codes of no bits.
// `SHARED` as above.
template <bool SHARED, class Code, class Team>
__device__ void store_codes(const Code (&code)[8], u32 bits, u8* block, Team team)
{
    const u32 lane = team.lane, all = team.all(bits);
    u32 shift = 0;
    if (sizeof(Code) == 8 && bits & 64) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            u64 a = code[i], b = code[i + 1];
            store_16<SHARED>(block + 256 * (i / 4) + 32 * lane + 8 * (i % 4), {u32(a), u32(a >> 32), u32(b), u32(b >> 32)});
        }
        return;
    }
    if (bits & 32) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4)
            store_16<SHARED>(block + 32 * i + 16 * lane, {u32(code[i]), u32(code[i + 1]), u32(code[i + 2]), u32(code[i + 3])});
        block += 256;
        shift = 32;
    }
    if ((all & 31) == 0) return;
    u32 rest[8], byte = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) rest[i] = sizeof(Code) == 8 ? u32(code[i] >> shift) : u32(code[i]);
    if (bits & 16) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4)
            *reinterpret_cast<uint2*>(block + 16 * i + 8 * lane) =
                {pair(rest[i], rest[i + 1]), pair(rest[i + 2], rest[i + 3])};
        block += 128;
        byte = 2;
    }
    if ((all & 15) == 0) return;
    u8* mine = block + 4 * lane;
    if (bits & 8) {
        *reinterpret_cast<u32*>(mine) = quad(rest, byte);
        *reinterpret_cast<u32*>(mine + 32) = quad(rest + 4, byte);
        mine += 64;
        byte++;
    }
    if ((all & 7) == 0) return;
    u32 low = quad(rest, byte), high = quad(rest + 4, byte);
    // Of parts below 8 bits, `2 * part` threads have the first codes of 4 bytes, and the others
    // what goes above them.
#pragma unroll
    for (u32 part = 4; part > 0; part /= 2) {
        if ((all & part) == 0) continue;
        u32 mask = ((1u << part) - 1) * 0x01010101u, up = lane / (2 * part) * part;
        u32 codes = (low & mask) << up | (high & mask) << (up + 4);
#pragma unroll
        for (u32 distance = 2 * part; distance < 8; distance *= 2) codes |= team.across(codes, distance);
        if ((bits & part) == 0) continue;
        if (lane < 2 * part) *reinterpret_cast<u32*>(mine) = codes;
        mine += 8 * part;
        low >>= part;
        high >>= part;
    }
}

// Of two words the bits of the first that a mask has, and those of the second that it has not.
__device__ inline u32 choose(u32 mask, u32 first, u32 second) { return (first & mask) | (second & ~mask); }

// The same of two blocks at once, by a whole warp: places of parts are worked out one by one, none
// waits for another, and threads of the lower and the upper half of a team give each other what
// they have of one block and of the other, all bits below four in one word. Blocks begin at so many
// units of 8 bytes behind `codes`, in shared memory or not; one of no bits is not stored. `all` has
// the bits that any of the warp has.
template <bool SHARED, class Code>
__device__ void store_two(const Code (&code)[2][8], const u32 (&bits)[2], u32 all, u8* codes, const u32 (&at)[2])
{
    const u32 lane = threadIdx.x & 7;
    u8* const mine = codes + 4 * lane;
#pragma unroll
    for (u32 k = 0; sizeof(Code) == 8 && k < 2 && all & 64; k++) {
        if ((bits[k] & 64) == 0) continue;
        u8* to = mine + 8 * u64(at[k]) + 28 * lane;
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            u64 a = code[k][i], b = code[k][i + 1];
            store_16<SHARED>(to + 256 * (i / 4) + 8 * (i % 4), {u32(a), u32(a >> 32), u32(b), u32(b >> 32)});
        }
    }
#pragma unroll
    for (u32 k = 0; k < 2 && all & 32; k++) {
        if ((bits[k] & 32) == 0) continue;
        u8* to = mine + 8 * u64(at[k]) + 12 * lane;
#pragma unroll
        for (u32 i = 0; i < 8; i += 4)
            store_16<SHARED>(to + 32 * i, {u32(code[k][i]), u32(code[k][i + 1]), u32(code[k][i + 2]), u32(code[k][i + 3])});
    }
    if ((all & 31) == 0) return;
    // Of each code the half that has the next bits.
    u32 half[2][4];
#pragma unroll
    for (u32 k = 0; k < 2; k++) {
        u32 rest[8];
#pragma unroll
        for (u32 i = 0; i < 8; i++) rest[i] = sizeof(Code) == 8 && bits[k] & 32 ? u32(u64(code[k][i]) >> 32) : u32(code[k][i]);
        if (bits[k] & 16) {
            u8* to = mine + 8 * u64(at[k] + (bits[k] & 32)) + 4 * lane;
#pragma unroll
            for (u32 i = 0; i < 8; i += 4)
                *reinterpret_cast<uint2*>(to + 16 * i) = {
                    pair(rest[i], rest[i + 1]), pair(rest[i + 2], rest[i + 3])};
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) half[k][i] = __byte_perm(rest[2 * i], rest[2 * i + 1], bits[k] & 16 ? 0x7632 : 0x5410);
    }
    if ((all & 15) == 0) return;
    // Of each code two bits, and one above them, in half a byte.
    u32 last[2];
#pragma unroll
    for (u32 k = 0; k < 2; k++) {
        const u32 (&h)[4] = half[k];
        if (bits[k] & 8) {
            u8* to = mine + 8 * u64(at[k] + (bits[k] & 48));
            *reinterpret_cast<u32*>(to) = __byte_perm(h[0], h[1], 0x6420);
            *reinterpret_cast<u32*>(to + 32) = __byte_perm(h[2], h[3], 0x6420);
        }
        const u32 byte = bits[k] & 8 ? 0x7531 : 0x6420, low = __byte_perm(h[0], h[1], byte), high = __byte_perm(h[2], h[3], byte);
        const u32 four = choose(0x0F0F0F0F, low, high << 4);
        if (bits[k] & 4) *reinterpret_cast<u32*>(mine + 8 * u64(at[k] + (bits[k] & 56))) = four;
        const u32 rest = bits[k] & 4 ? choose(0x0F0F0F0F, low >> 4, high) : four;
        last[k] = choose(0x33333333, rest, rest << (2 - (bits[k] & 2)));
    }
    if ((all & 3) == 0) return;
    const bool upper = lane & 4;
    const u32 kept = upper ? last[1] : last[0], given = __shfl_xor_sync(0xFFFFFFFF, upper ? last[0] : last[1], 4, 8);
    const u32 first = upper ? given : kept, second = upper ? kept : given;
    const u32 own = upper ? bits[1] : bits[0], place = upper ? at[1] : at[0];
    if (own & 2) *reinterpret_cast<u32*>(codes + 8 * u64(place + (own & 60)) + 4 * (lane & 3)) = choose(0x33333333, first, second << 2);
    if ((all & 1) == 0) return;
    const u32 ones = choose(0x33333333, first >> 2, second), other = __shfl_xor_sync(0xFFFFFFFF, ones, 2, 8);
    if (own & 1 && (lane & 2) == 0)
        *reinterpret_cast<u32*>(codes + 8 * u64(place + (own & 62)) + 4 * (lane & 1)) =
            choose(0x55555555, ones, other << 1);
}

// Writes so many units of 8 bytes that are side by side in shared memory to a multiple of 8 bytes:
// by twos, where these are aligned, from a line of memory on, so that all a warp writes at once is
// whole sectors but for the first and the last. For all threads.
__device__ inline void copy_units(const u8* from, u32 units, u8* to)
{
    const uint2* read = reinterpret_cast<const uint2*>(from);
    uint2* write = reinterpret_cast<uint2*>(to);
    const int skew = reinterpret_cast<uintptr_t>(to) / 8 % 16, end = int(units);
#pragma unroll 2
    for (int unit = 2 * int(threadIdx.x) - skew; unit < end; unit += 2 * THREADS) {
        const bool first = unit >= 0, second = unit >= -1 && unit + 1 < end;
        uint2 x[2];
        if (first) x[0] = read[unit];
        if (second) x[1] = read[unit + 1];
        if (first && second) store_unit(reinterpret_cast<u64>(write + unit), {x[0].x, x[0].y, x[1].x, x[1].y});
        else if (first) store_element(write + unit, x[0]);
        else if (second) store_element(write + unit + 1, x[1]);
    }
}

// The reverse, of codes of up to 31 bits: four in a word while they have eight bits, then two.
// `TOP` is what the upper halves have besides.
template <u32 TOP = 0>
__device__ void load_few(u32 (&code)[8], u32 bits, const u8* block, u32 lane)
{
    // What codes 0 to 3 have below eight bits, and 4 to 7.
    u32 low[2] = {0, 0}, high[2] = {0, 0}, shift = 0;
    const u8* at = block + 8 * (bits & 24);
#pragma unroll
    for (u32 part = 4; part > 0; part /= 2) {
        if ((bits & part) == 0) continue;
        const u32 mask = ((1u << part) - 1) * 0x01010101u, down = lane / (2 * part) * part;
        const u32 word = *reinterpret_cast<const u32*>(at + 4 * (lane % (2 * part))) >> down;
        low[0] |= (word & mask) << shift;
        low[1] |= (word >> 4 & mask) << shift;
        at += 8 * part;
        shift += part;
    }
    if (bits & 8) {
        const u8* from = block + 8 * (bits & 16) + 4 * lane;
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            high[half] = low[half];
            low[half] = *reinterpret_cast<const u32*>(from + 32 * half);
        }
    }
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 two[2] = {__byte_perm(low[half], high[half], 0x5140), __byte_perm(low[half], high[half], 0x7362)}, above[2] = {TOP, TOP};
        if (bits & 16) {
            const uint2 four = *reinterpret_cast<const uint2*>(block + 64 * half + 8 * lane);
            above[0] |= two[0], above[1] |= two[1];
            two[0] = four.x, two[1] = four.y;
        }
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            code[4 * half + 2 * i] = __byte_perm(two[i], above[i], 0x5410);
            code[4 * half + 2 * i + 1] = __byte_perm(two[i], above[i], 0x7632);
        }
    }
}

// The same of any number of bits.
template <class Code>
__device__ void load_codes(Code (&code)[8], u32 bits, const u8* block, Team team)
{
    const u32 lane = team.lane;
    if (sizeof(Code) == 8 && bits & 64) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            uint4 two = load_16(block + 256 * (i / 4) + 32 * lane + 8 * (i % 4));
            code[i] = Code(u64(two.y) << 32 | two.x);
            code[i + 1] = Code(u64(two.w) << 32 | two.z);
        }
        return;
    }
    u32 rest[8];
    if (bits & 32) {
        if (sizeof(Code) == 8) load_few(rest, bits & 31, block + 256, lane);
#pragma unroll
        for (u32 i = 0; i < 8; i += 4) {
            const uint4 four = load_16(block + 32 * i + 16 * lane);
            const u32 first[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (u32 j = 0; j < 4; j++) code[i + j] = sizeof(Code) == 8 ? Code(u64(rest[i + j]) << 32 | first[j]) : Code(first[j]);
        }
        return;
    }
    load_few(rest, bits, block, lane);
#pragma unroll
    for (u32 i = 0; i < 8; i++) code[i] = rest[i];
}
