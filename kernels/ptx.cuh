// Instructions that CUDA C++ does not offer, or compiles to something slower. The test on a CPU has
// functions of its own instead.
#pragma once

#include "divisor.cuh"

#ifdef __CUDACC__
#include <cuda_pipeline.h>

// Where something is in shared memory, as a number that the compiler takes as it is: of a pointer
// it would work out anew, for each copy, where all shared memory begins.
using Nearby = u32;
__device__ inline Nearby nearby(const void* at)
{
    u32 place = u32(__cvta_generic_to_shared(at));
    asm volatile("" : "+r"(place));
    return place;
}
__device__ inline u64 read_nearby(Nearby at)
{
    u64 value;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(value) : "r"(at) : "memory");
    return value;
}

// Begins to bring so many bytes into shared memory, or as many zeros. One instruction, of which
// `__pipeline_memcpy_async` makes two. 16 bytes go past the first cache; those that lie apart from
// what else is brought make the second one ask for their line, of which others are wanted soon.
template <u32 BYTES, bool APART = false> __device__ void fetch(u8* to, const void* from, bool there)
{
    const u32 place = __cvta_generic_to_shared(to);
#define FETCH(how)                                                                                       \
    asm volatile("{.reg .pred none; setp.eq.u32 none, %2, 0; cp.async." how " [%0], [%1], %3, none;}" :: \
                 "r"(place), "l"(from), "r"(u32(there)), "n"(BYTES)                                      \
                 : "memory")
    if constexpr (BYTES == 16 && APART) FETCH("cg.shared.global.L2::128B");
    else if constexpr (BYTES == 16) FETCH("cg.shared.global");
    else FETCH("ca.shared.global");
#undef FETCH
}

// The same if it is wanted at all, of what is near others that go elsewhere: past the first cache
// each would be fetched as a sector for itself.
template <u32 BYTES> __device__ void fetch_if(bool wanted, Nearby to, u64 from, bool there)
{
    asm volatile("{.reg .pred none, wanted; setp.eq.u32 none, %2, 0; setp.ne.u32 wanted, %4, 0;"
                 "@wanted cp.async.ca.shared.global [%0], [%1], %3, none;}" ::"r"(to),
                 "l"(from), "r"(u32(there)), "n"(BYTES), "r"(u32(wanted))
                 : "memory");
}

// Waits for all that the thread has begun to bring.
__device__ inline void await_fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// A launch may begin as soon as all blocks of the previous one have allowed it or ended, if it
// waits itself until their writes are visible. Devices before Hopper have neither instruction, and
// there it begins when all have ended.
__device__ inline void let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ inline void await_last()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Increments a counter and returns its value before. The compiler combines `atomicAdd` over a warp,
// which then waits for the value to be distributed.
__device__ inline u32 count_on(u64* counter)
{
    u32 number;
    asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(number) : "l"(counter));
    return number;
}

// Adds to a word that other blocks add to, for them. Nobody waits for it.
__device__ inline void count_in(u64* word, u64 more)
{
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(word), "l"(more) : "memory");
}

// What other blocks write, and for them.
__device__ inline u64 published(const u64* word)
{
    u64 value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
__device__ inline void publish(u64* word, u64 value)
{
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Stores a unit at an address in the memory of the device. Of a pointer made of a number the
// compiler does not know what memory it is in, and would read nothing of shared memory before each
// store is done. `ONCE` says that the cache need not keep it: nobody reads it soon, or writes
// beside it in the same sector.
template <bool ONCE = false> __device__ void store_unit(u64 address, uint4 unit)
{
    if (ONCE)
        asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(unit.x), "r"(unit.y), "r"(unit.z),
                     "r"(unit.w));
    else
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(unit.x), "r"(unit.y), "r"(unit.z),
                     "r"(unit.w));
}

// Stores an element in the same way, of 16, 8 or 4 bytes.
__device__ inline void store_element(uint4* at, uint4 x) { store_unit(reinterpret_cast<u64>(at), x); }
__device__ inline void store_element(uint2* at, uint2 x)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(x.x), "r"(x.y));
}
__device__ inline void store_element(u32* at, u32 x) { asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(x)); }

// Stores 16 bytes in order with others, at a place that may be aligned to 8 bytes only. The
// compiler would make four stores of it.
__device__ inline void store_16_global(u8* to, uint4 bytes)
{
    if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bytes.x), "r"(bytes.y), "r"(bytes.z), "r"(bytes.w)
                     : "memory");
    } else {
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(bytes.x), "r"(bytes.y) : "memory");
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to + 8), "r"(bytes.z), "r"(bytes.w) : "memory");
    }
}

// The larger of two numbers, or a NaN if one of them is: of all bits but the sign.
__device__ inline float larger_or_nan(float x, float y)
{
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
    return larger;
}

// One over a number of 6 digits, if both are normal: as `__drcp_rn`, without asking whether they
// are. What comes before the last instruction is wrong by some 2^-53, and what that rounds by
// 2^-105. So it rounds right: one over a number of 6 digits is a number itself, or a 126th of a
// last digit or more from the middle of two.
__device__ inline double one_over(double x)
{
    double near;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(near) : "d"(x));
    double wrong = __fma_rn(-x, near, 1.0);
    near = __fma_rn(near, __fma_rn(wrong, wrong, wrong), near);
    return __fma_rn(near, __fma_rn(-x, near, 1.0), near);
}

// For the compiler another number.
__device__ inline void change(float& x) { asm volatile("" : "+f"(x)); }
__device__ inline void change(u32& x) { asm volatile("" : "+r"(x)); }
#endif
