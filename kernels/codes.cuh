// 64 codes of a few bits each as bytes, and back, by a team of eight threads: thread `i` has codes 8i to 8i + 7.
//
// docs/wire.md, "Codes". CPU twin: crates/fft-core/src/codec/codes.rs. The bits of a code are cut into parts of 64, 32, 16,
// 8, 4, 2 and 1 bits. Of parts below 8 bits a byte has several, whose codes are as far apart as there are bytes, so
// that what `part` threads store is put together from all eight of a team.
#pragma once

#include "numbers.cuh"

// 16 bytes to or from a place that may be aligned to 8 bytes only.
__device__ inline void store_16(u8* to, uint4 bytes)
{
    if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
        *reinterpret_cast<uint4*>(to) = bytes;
    } else {
        reinterpret_cast<uint2*>(to)[0] = {bytes.x, bytes.y};
        reinterpret_cast<uint2*>(to)[1] = {bytes.z, bytes.w};
    }
}

__device__ inline uint4 load_16(const u8* from)
{
    if (reinterpret_cast<uintptr_t>(from) % 16 == 0) return *reinterpret_cast<const uint4*>(from);
    uint2 low = reinterpret_cast<const uint2*>(from)[0], high = reinterpret_cast<const uint2*>(from)[1];
    return {low.x, low.y, high.x, high.y};
}

__device__ inline u32 pair(u32 low, u32 high) { return __byte_perm(low, high, 0x5410); }

// Four bytes, of the lowest of each.
__device__ inline u32 quad(u32 a, u32 b, u32 c, u32 d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// `Code` is u32 where codes have up to 32 bits, and u64 above. Bits above the lowest `bits` may be anything.
template <class Code>
__device__ void store_codes(const Code (&code)[8], u32 bits, u8* block, Team team)
{
    u32 shift = 0;
    if (sizeof(Code) == 8 && bits & 64) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            u64 a = code[i], b = code[i + 1];
            store_16(block + 64 * team.lane + 8 * i, {u32(a), u32(a >> 32), u32(b), u32(b >> 32)});
        }
        return;
    }
    if (bits & 32) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4)
            store_16(block + 32 * team.lane + 4 * i,
                {u32(code[i]), u32(code[i + 1]), u32(code[i + 2]), u32(code[i + 3])});
        block += 256;
        shift = 32;
    }
    if (sizeof(Code) == 4 && bits == 32) return;
    u32 rest[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) rest[i] = u32(code[i] >> shift);
    if (bits & 16) {
        store_16(block + 16 * team.lane,
            {pair(rest[0], rest[1]), pair(rest[2], rest[3]), pair(rest[4], rest[5]), pair(rest[6], rest[7])});
        if ((bits & 15) == 0) return;
        block += 128;
#pragma unroll
        for (u32 i = 0; i < 8; i++) rest[i] >>= 16;
    }
    if (bits & 8) {
        uint2 bytes = {quad(rest[0], rest[1], rest[2], rest[3]), quad(rest[4], rest[5], rest[6], rest[7])};
        *reinterpret_cast<uint2*>(block + 8 * team.lane) = bytes;
        if ((bits & 7) == 0) return;
        block += 64;
#pragma unroll
        for (u32 i = 0; i < 8; i++) rest[i] >>= 8;
    }
    uint2 bytes = {quad(rest[0], rest[1], rest[2], rest[3]), quad(rest[4], rest[5], rest[6], rest[7])};
#pragma unroll
    for (u32 part = 4; part > 0; part /= 2) {
        if ((bits & part) == 0) continue;
        u32 mask = ((1u << part) - 1) * 0x01010101u, up = team.lane / part * part;
        uint2 mine = {(bytes.x & mask) << up, (bytes.y & mask) << up};
#pragma unroll
        for (u32 distance = part; distance < 8; distance *= 2) {
            mine.x |= team.across(mine.x, distance);
            mine.y |= team.across(mine.y, distance);
        }
        if (team.lane < part) *reinterpret_cast<uint2*>(block + 8 * team.lane) = mine;
        block += 8 * part;
        bytes.x >>= part;
        bytes.y >>= part;
    }
}

// The reverse.
template <class Code>
__device__ void load_codes(Code (&code)[8], u32 bits, const u8* block, Team team)
{
    u32 shift = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) code[i] = 0;
    if (sizeof(Code) == 8 && bits & 64) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            uint4 two = load_16(block + 64 * team.lane + 8 * i);
            code[i] = Code(u64(two.y) << 32 | two.x);
            code[i + 1] = Code(u64(two.w) << 32 | two.z);
        }
        return;
    }
    if (bits & 32) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4) {
            uint4 four = load_16(block + 32 * team.lane + 4 * i);
            code[i] = four.x, code[i + 1] = four.y, code[i + 2] = four.z, code[i + 3] = four.w;
        }
        block += 256;
        shift = 32;
    }
    if (sizeof(Code) == 4 && bits == 32) return;
    if (bits & 16) {
        uint4 eight = load_16(block + 16 * team.lane);
        u32 two[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (u32 i = 0; i < 8; i++) code[i] |= Code(two[i / 2] >> (16 * (i & 1)) & 0xFFFF) << shift;
        block += 128;
        shift += 16;
    }
    if (bits & 8) {
        uint2 eight = *reinterpret_cast<const uint2*>(block + 8 * team.lane);
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            code[i] |= Code((i < 4 ? eight.x : eight.y) >> (8 * (i & 3)) & 0xFF) << shift;
        block += 64;
        shift += 8;
    }
#pragma unroll
    for (u32 part = 4; part > 0; part /= 2) {
        if ((bits & part) == 0) continue;
        uint2 bytes = *reinterpret_cast<const uint2*>(block + 8 * (team.lane % part));
        u32 down = team.lane / part * part, mask = (1u << part) - 1;
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            code[i] |= Code((i < 4 ? bytes.x : bytes.y) >> (8 * (i & 3) + down) & mask) << shift;
        block += 8 * part;
        shift += part;
    }
}
