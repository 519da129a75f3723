// Words, and division by what the host knows.
#pragma once

#include <cstdint>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = unsigned long long;

// Division by a number that the host knows, of numbers below 2^31.
struct Divisor {
    u32 multiplier, shift;
    __device__ u32 of(u32 n) const { return u32(u64(n) * multiplier >> shift); }
};
