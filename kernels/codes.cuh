// 64 codes of a few bits each as bytes, and back, by a team of eight threads: thread `i` has codes 4i to 4i + 3 and 32 + 4i to
// 32 + 4i + 3, which is how the bytes of any number of bits are written by neighbours.
//
// docs/wire.md, "Codes". CPU twin: crates/fft-core/src/codec/codes.rs. The bits of a code are cut into parts of 64, 32, 16,
// 8, 4, 2 and 1 bits. Of parts below 8 bits a byte has several, whose codes are as far apart as there are bytes.
#pragma once

#include "numbers.cuh"

// 16 bytes to or from a place that may be aligned to 8 bytes only.
__device__ inline void store_16(u8* to, uint4 bytes)
{
    // As assembly, since the compiler would make four stores of it.
    if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bytes.x), "r"(bytes.y), "r"(bytes.z), "r"(bytes.w)
                     : "memory");
    } else {
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(bytes.x), "r"(bytes.y) : "memory");
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to + 8), "r"(bytes.z), "r"(bytes.w) : "memory");
    }
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

// `Code` is u32 where codes have up to 32 bits, and u64 above. Bits above the lowest `bits` may be anything. Where the whole warp comes
// by, a team that has nothing to store has codes of no bits.
template <class Code, class Team>
__device__ void store_codes(const Code (&code)[8], u32 bits, u8* block, Team team)
{
    const bool writes = team.writes();
    const u32 lane = team.lane, all = team.all(bits);
    u32 shift = 0;
    if (sizeof(Code) == 8 && bits & 64) {
        if (!writes) return;
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            u64 a = code[i], b = code[i + 1];
            store_16(block + 256 * (i / 4) + 32 * lane + 8 * (i % 4), {u32(a), u32(a >> 32), u32(b), u32(b >> 32)});
        }
        return;
    }
    if (bits & 32) {
#pragma unroll
        for (u32 i = 0; i < 8 && writes; i += 4)
            store_16(block + 32 * i + 16 * lane, {u32(code[i]), u32(code[i + 1]), u32(code[i + 2]), u32(code[i + 3])});
        block += 256;
        shift = 32;
    }
    if ((all & 31) == 0) return;
    u32 rest[8], byte = 0;
#pragma unroll
    for (u32 i = 0; i < 8; i++) rest[i] = sizeof(Code) == 8 ? u32(code[i] >> shift) : u32(code[i]);
    if (bits & 16) {
#pragma unroll
        for (u32 i = 0; i < 8 && writes; i += 4)
            *reinterpret_cast<uint2*>(block + 16 * i + 8 * lane) =
                {pair(rest[i], rest[i + 1]), pair(rest[i + 2], rest[i + 3])};
        block += 128;
        byte = 2;
    }
    if ((all & 15) == 0) return;
    u8* mine = block + 4 * lane;
    if (bits & 8) {
        if (writes) *reinterpret_cast<u32*>(mine) = quad(rest, byte);
        if (writes) *reinterpret_cast<u32*>(mine + 32) = quad(rest + 4, byte);
        mine += 64;
        byte++;
    }
    if ((all & 7) == 0) return;
    u32 low = quad(rest, byte), high = quad(rest + 4, byte);
    // Of parts below 8 bits, `2 * part` threads have the first codes of 4 bytes, and the others what goes above them.
#pragma unroll
    for (u32 part = 4; part > 0; part /= 2) {
        if ((all & part) == 0) continue;
        u32 mask = ((1u << part) - 1) * 0x01010101u, up = lane / (2 * part) * part;
        u32 codes = (low & mask) << up | (high & mask) << (up + 4);
#pragma unroll
        for (u32 distance = 2 * part; distance < 8; distance *= 2) codes |= team.across(codes, distance);
        if ((bits & part) == 0) continue;
        if (lane < 2 * part && writes) *reinterpret_cast<u32*>(mine) = codes;
        mine += 8 * part;
        low >>= part;
        high >>= part;
    }
}

// The reverse.
template <class Code>
__device__ void load_codes(Code (&code)[8], u32 bits, const u8* block, Team team)
{
    // Parts are brought to their places by products, which are done elsewhere than what takes bytes apart.
    Code place = 1;
    const u32 lane = team.lane;
#pragma unroll
    for (u32 i = 0; i < 8; i++) code[i] = 0;
    if (sizeof(Code) == 8 && bits & 64) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            uint4 two = load_16(block + 256 * (i / 4) + 32 * lane + 8 * (i % 4));
            code[i] = Code(u64(two.y) << 32 | two.x);
            code[i + 1] = Code(u64(two.w) << 32 | two.z);
        }
        return;
    }
    if (bits & 32) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4) {
            uint4 four = load_16(block + 32 * i + 16 * lane);
            code[i] = four.x, code[i + 1] = four.y, code[i + 2] = four.z, code[i + 3] = four.w;
        }
        block += 256;
        place = sizeof(Code) == 8 ? Code(1ull << 32) : 0;
    }
    if (sizeof(Code) == 4 && bits == 32) return;
    if (bits & 16) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4) {
            uint2 four = *reinterpret_cast<const uint2*>(block + 16 * i + 8 * lane);
            code[i] += (four.x & 0xFFFF) * place;
            code[i + 1] += (four.x >> 16) * place;
            code[i + 2] += (four.y & 0xFFFF) * place;
            code[i + 3] += (four.y >> 16) * place;
        }
        block += 128;
        place <<= 16;
    }
    if (bits & 8) {
#pragma unroll
        for (u32 i = 0; i < 8; i += 4) {
            u32 four = *reinterpret_cast<const u32*>(block + 8 * i + 4 * lane);
#pragma unroll
            for (u32 j = 0; j < 4; j++) code[i + j] += (four >> (8 * j) & 0xFF) * place;
        }
        block += 64;
        place <<= 8;
    }
#pragma unroll
    for (u32 part = 4; part > 0; part /= 2) {
        if ((bits & part) == 0) continue;
        u32 down = lane / (2 * part) * part, mask = (1u << part) - 1;
        u32 bytes = *reinterpret_cast<const u32*>(block + 4 * (lane % (2 * part))) >> down;
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            code[i] += (bytes >> (8 * (i & 3) + (i < 4 ? 0 : 4)) & mask) * place;
        block += 8 * part;
        place <<= part;
    }
}
