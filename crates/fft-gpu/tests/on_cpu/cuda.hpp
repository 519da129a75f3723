// What kernels/*.cu have of CUDA, for a C++ compiler: enough to run codecs and copies of boxes on a
// CPU. Threads of a block come by one at a time, and change where they meet (threads.hpp), so that
// what they leave to chance comes out in one way or another.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __device__
#define __global__
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Each block is a thread of the operating system.
#define __shared__ static thread_local

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct Index { unsigned x; };
inline thread_local Index threadIdx, blockIdx;
inline Index gridDim;

// Lets other threads go on.
void yield();
// Waits for all threads of a warp that a mask has, and returns what each has brought.
const uint64_t* meet(unsigned mask, uint64_t brought);
// The same without anything to bring: what they touched comes before what they will touch.
void sync(unsigned mask);
// Ends the program.
void fail(const char* why);
// Lets other blocks go on.
void yield_to_blocks();
// Waits for all threads of the block, and returns how many have brought true.
unsigned meet_block(bool brought = false);
// Copies that a thread has begun: what they bring is there when it is waited for, and before that
// memory is what it should not be.
void begin_copy(void* to, const void* from, unsigned bytes, bool there);
void end_copies();
// Ends the program unless an access is aligned, and to the memory of messages.
void check_store(const void* to, unsigned bytes);

template <class To, class From> To bits_as(From from)
{
    To to{};
    memcpy(&to, &from, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
    return to;
}

inline void __syncthreads() { meet_block(); }
inline int __syncthreads_or(bool x) { return meet_block(x) > 0; }
inline int __syncthreads_and(bool x) { return meet_block(!x) == 0; }
inline void __syncwarp(unsigned mask = ~0u) { sync(mask); }
inline void __nanosleep(unsigned) { yield_to_blocks(); }

// What the thread at this place of the warp has, or this one if there is none.
template <class N> N from_lane(unsigned mask, N x, unsigned lane)
{
    const uint64_t* all = meet(mask, bits_as<uint64_t>(x));
    if (lane >= 32) return x;
    if ((mask >> lane & 1) == 0) fail("a thread asks one that is not there");
    return bits_as<N>(all[lane]);
}
template <class N> N __shfl_xor_sync(unsigned mask, N x, unsigned distance, unsigned = 32)
{
    return from_lane(mask, x, threadIdx.x % 32 ^ distance);
}
template <class N> N __shfl_up_sync(unsigned mask, N x, unsigned distance) { return from_lane(mask, x, threadIdx.x % 32 - distance); }
template <class N> N __shfl_down_sync(unsigned mask, N x, unsigned distance) { return from_lane(mask, x, threadIdx.x % 32 + distance); }
template <class N> N __shfl_sync(unsigned mask, N x, unsigned from, unsigned width = 32)
{
    return from_lane(mask, x, threadIdx.x % 32 / width * width + from % width);
}
// Of all threads of a warp, put together by a function.
template <class N, class Both> N of_warp(unsigned mask, N x, Both both)
{
    const uint64_t* all = meet(mask, bits_as<uint64_t>(x));
    N sum = x;
    for (unsigned lane = 0; lane < 32; lane++)
        if (mask >> lane & 1) sum = both(sum, bits_as<N>(all[lane]));
    return sum;
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned x) { return of_warp(mask, x, [](unsigned a, unsigned b) { return a | b; }); }
template <class N> N __reduce_max_sync(unsigned mask, N x) { return of_warp(mask, x, [](N a, N b) { return a > b ? a : b; }); }
inline unsigned __ballot_sync(unsigned mask, bool x) { return __reduce_or_sync(mask, unsigned(x) << threadIdx.x % 32); }
inline bool __any_sync(unsigned mask, bool x) { return __ballot_sync(mask, x) != 0; }
inline bool __all_sync(unsigned mask, bool x) { return __ballot_sync(mask, x) == mask; }

template <class N> N __ldg(const N* at) { return *at; }

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which)
{
    const uint64_t both = uint64_t(high) << 32 | low;
    unsigned bytes = 0;
    for (unsigned i = 0; i < 4; i++) bytes |= unsigned(both >> 8 * (which >> 4 * i & 7) & 0xFF) << 8 * i;
    return bytes;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return unsigned((uint64_t(high) << 32 | low) >> shift % 32);
}
inline int __clzll(unsigned long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }
inline int __double2hiint(double x) { return int(bits_as<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return int(bits_as<uint64_t>(x)); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline unsigned long long __double2ull_rn(double x) { return (unsigned long long)nearbyint(x); }
inline unsigned atomicOr(unsigned* at, unsigned x) { return __atomic_fetch_or(at, x, __ATOMIC_RELAXED); }
template <class A, class B> std::common_type_t<A, B> max(A a, B b)
{
    using N = std::common_type_t<A, B>;
    return N(a) > N(b) ? N(a) : N(b);
}
template <class A, class B> std::common_type_t<A, B> min(A a, B b)
{
    using N = std::common_type_t<A, B>;
    return N(a) < N(b) ? N(a) : N(b);
}
using std::isfinite, std::isinf, std::isnan;

// Those of kernels/ptx.cuh, and what box.cuh calls of CUDA's own.
inline void __pipeline_memcpy_async(void* to, const void* from, unsigned bytes) { begin_copy(to, from, bytes, true); }
template <unsigned BYTES, bool = false> void fetch(uint8_t* to, const void* from, bool there) { begin_copy(to, from, BYTES, there); }
using Nearby = uint8_t*;
inline Nearby nearby(const void* at) { return static_cast<uint8_t*>(const_cast<void*>(at)); }
inline unsigned long long read_nearby(Nearby at) { return *reinterpret_cast<const unsigned long long*>(at); }
template <unsigned BYTES> void fetch_if(bool wanted, Nearby to, unsigned long long from, bool there)
{
    if (wanted) begin_copy(to, reinterpret_cast<const void*>(from), BYTES, there);
}
inline void await_fetched() { end_copies(); }
inline void let_next_begin() {}
inline void await_last() {}
inline unsigned count_on(unsigned long long* counter)
{
    yield();
    return unsigned(__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED));
}
inline void count_in(unsigned long long* word, unsigned long long more)
{
    yield();
    __atomic_fetch_add(word, more, __ATOMIC_RELAXED);
}
inline unsigned long long published(const unsigned long long* word)
{
    yield();
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}
inline void publish(unsigned long long* word, unsigned long long value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }
template <class N> void store_element(N* at, N x)
{
    check_store(at, sizeof(N));
    memcpy(at, &x, sizeof(N));
}
template <bool ONCE = false> void store_unit(unsigned long long address, uint4 unit)
{
    store_element(reinterpret_cast<uint4*>(address), unit);
}
inline void store_16_global(uint8_t* to, uint4 bytes)
{
    check_store(to, 8);
    memcpy(to, &bytes, sizeof(bytes));
}
inline double one_over(double x) { return 1 / x; }
inline float larger_or_nan(float x, float y) { return isnan(x) || isnan(y) ? bits_as<float>(0x7FFFFFFF) : x > y ? x : y; }
inline void change(float&) {}
inline void change(unsigned&) {}
