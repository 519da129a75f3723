// The sum of the squares of the numbers of a box, which neither overflows nor vanishes: of small,
// ordinary and large numbers, each with its own unit (Blue, ACM TOMS 4, 15-23, 1978). A sum for
// each block of threads; the host adds these up.
//
// CPU twin: `Energy::add` of crates/fft-core/src/base/tolerance.rs, in another order. Bytes moved:
// each number read.
#include "part.cuh"

constexpr double LARGE = 1e140;
constexpr double UNIT = 0x1p600;

template <class T>
__device__ void energy(Part part, const T* src, double* sums)
{
    __shared__ double memory[THREADS / 32];
    double mine[3] = {};
    u64 numbers = part.elements * part.width;
#pragma unroll 4
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < numbers; i += u64(gridDim.x) * THREADS) {
        u64 element = part.width == 2 ? i >> 1 : i;
        double x = src[place_of(part, element) * part.width + (i - element * part.width)];
        double size = fabs(x);
        if (size < 1 / LARGE) mine[0] += (x * UNIT) * (x * UNIT);
        else if (size <= LARGE) mine[1] += x * x;
        else mine[2] += (x / UNIT) * (x / UNIT);
    }
    for (u32 kind = 0; kind < 3; kind++) {
        double sum = sum_of_block(mine[kind], memory);
        if (threadIdx.x == 0) sums[3 * blockIdx.x + kind] = sum;
    }
}

#define ENERGY(real, T)                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        energy_##real(Part part, const T* src, double* sums)                                         \
    {                                                                                                \
        energy(part, src, sums);                                                                     \
    }

ENERGY(f32, float)
ENERGY(f64, double)
