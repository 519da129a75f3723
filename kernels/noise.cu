// Pseudo-random numbers by the index of a point in the grid, and the distance from them: the data
// of benchmarks is made and checked where it is.
//
// CPU twin: `Field::Noise` and `Field::Uniform` of crates/fft-cli/src/data/fields, bit by bit.
// Bytes moved: each number written, or read.
#include "part.cuh"

// 64 bits for each key: the finaliser of SplitMix64.
__device__ inline u64 scramble(u64 key)
{
    key = (key + 1) * 0x9e3779b97f4a7c15;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
    key = (key ^ key >> 27) * 0x94d049bb133111eb;
    return key ^ key >> 31;
}

// The number at a place of an array that is a box of the grid, in order: uniform from -scale/2 to
// scale/2.
template <class T>
__device__ T noise(const Part& grid, double scale, u64 i)
{
    u64 element = grid.width == 2 ? i >> 1 : i;
    u64 key = place_of(grid, element) * grid.width + (i - element * grid.width);
    return T(scale * (double(scramble(key) >> 11) * 0x1p-53 - 0.5));
}

template <class T>
__device__ void fill(Part grid, double scale, T* dst)
{
    u64 numbers = grid.elements * grid.width;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < numbers; i += u64(gridDim.x) * THREADS)
        dst[i] = noise<T>(grid, scale, i);
}

// The larger of two, or NaN if one is.
__device__ inline double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

__device__ inline double largest_of_block(double x, double* held)
{
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2)
        x = larger(x, __shfl_xor_sync(0xFFFFFFFF, x, distance));
    if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = x;
    __syncthreads();
    for (u32 warp = 0; warp < THREADS / 32; warp++) x = larger(x, held[warp]);
    __syncthreads();
    return x;
}

// For each block the sums of (x - y)² and y², and the largest |x - y| and |y|: y is the noise.
template <class T>
__device__ void distance(Part grid, double scale, const T* src, double* found)
{
    __shared__ double memory[THREADS / 32];
    double sums[2] = {}, largest[2] = {};
    u64 numbers = grid.elements * grid.width;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < numbers; i += u64(gridDim.x) * THREADS) {
        double y = noise<T>(grid, scale, i);
        double both[2] = {src[i] - y, y};
#pragma unroll
        for (u32 n = 0; n < 2; n++) {
            sums[n] += both[n] * both[n];
            largest[n] = larger(largest[n], fabs(both[n]));
        }
    }
    for (u32 n = 0; n < 2; n++) {
        double sum = sum_of_block(sums[n], memory), most = largest_of_block(largest[n], memory);
        if (threadIdx.x == 0) {
            found[4 * blockIdx.x + n] = sum;
            found[4 * blockIdx.x + 2 + n] = most;
        }
    }
}

#define NOISE(real, T)                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                         \
        noise_##real(Part grid, double scale, T* dst)                                             \
    {                                                                                             \
        fill(grid, scale, dst);                                                                   \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS)                                         \
        distance_##real(Part grid, double scale, const T* src, double* found)                     \
    {                                                                                             \
        distance(grid, scale, src, found);                                                        \
    }

NOISE(f32, float)
NOISE(f64, double)
