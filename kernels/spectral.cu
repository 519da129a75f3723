// What is done to fields between transforms: scaling, and multiplication by functions of the
// wavenumber.
#include "box.cuh"

// A box of a spectrum, row-major along its axes in memory. Axes there are none of have length 1.
struct Modes {
    u32 shape[4];
    Divisor by[4];
    // The first index along each axis, and the points of the physical grid.
    u32 first[4], grid[4];
    // 2π over the length of the domain.
    double unit[4];
    u32 elements;
    // The axis of a gradient.
    u32 axis;
};
static_assert(sizeof(Modes) == 120, "the host has the same");

// The wavenumber of an index, the upper half of a whole axis being negative, and whether it is the
// one in the middle that is both.
__device__ inline double wavenumber(const Modes& modes, u32 axis, u32 index, bool& middle)
{
    u32 n = modes.grid[axis];
    middle = 2 * index == n;
    int k = 2 * index <= n ? int(index) : int(index) - int(n);
    return k * modes.unit[axis];
}

__device__ inline void indices(const Modes& modes, u32 element, u32 (&index)[4])
{
#pragma unroll
    for (int axis = 3; axis > 0; axis--) {
        u32 above = modes.by[axis].of(element);
        index[axis] = modes.first[axis] + element - above * modes.shape[axis];
        element = above;
    }
    index[0] = modes.first[0] + element;
}

template <class T>
__device__ void scale(T* x, u64 n, T factor)
{
    constexpr u64 WIDE = 16 / sizeof(T);
    u64 thread = u64(blockIdx.x) * THREADS + threadIdx.x, threads = u64(gridDim.x) * THREADS;
    u64 whole = reinterpret_cast<uintptr_t>(x) % 16 == 0 ? n / WIDE : 0;
    for (u64 i = thread; i < whole; i += threads) {
        uint4 unit = reinterpret_cast<const uint4*>(x)[i];
        T* held = reinterpret_cast<T*>(&unit);
#pragma unroll
        for (u64 j = 0; j < WIDE; j++) held[j] *= factor;
        reinterpret_cast<uint4*>(x)[i] = unit;
    }
    for (u64 i = whole * WIDE + thread; i < n; i += threads) x[i] *= factor;
}

// Solves -∇²φ = ρ: divides by the square of the wavenumber, and makes the mean 0.
template <class T, class Complex>
__device__ void poisson(const Modes& modes, Complex* x, T factor)
{
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < modes.elements; i += gridDim.x * THREADS) {
        u32 index[4];
        indices(modes, i, index);
        double square = 0;
        bool middle;
#pragma unroll
        for (u32 axis = 0; axis < 4; axis++) {
            double k = wavenumber(modes, axis, index[axis], middle);
            square = fma(k, k, square);
        }
        T by = square == 0 ? T(0) : T(factor / square);
        x[i] = {x[i].x * by, x[i].y * by};
    }
}

// The derivative along an axis: multiplies by i times the wavenumber, which is 0 for the one in the
// middle, as it stands for both signs.
template <class T, class Complex>
__device__ void gradient(const Modes& modes, const Complex* src, Complex* dst, T factor)
{
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < modes.elements; i += gridDim.x * THREADS) {
        u32 index[4];
        indices(modes, i, index);
        T by = 0;
        bool middle;
#pragma unroll
        for (u32 axis = 0; axis < 4; axis++) {
            double k = wavenumber(modes, axis, index[axis], middle);
            if (axis == modes.axis && !middle) by = T(k * factor);
        }
        Complex z = src[i];
        dst[i] = {-z.y * by, z.x * by};
    }
}

#define SPECTRAL(real, T, Complex)                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) scale_##real(T* x, u64 n, T factor)        \
    {                                                                                                \
        scale(x, n, factor);                                                                         \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        poisson_##real(Modes modes, Complex* x, T factor)                                            \
    {                                                                                                \
        poisson(modes, x, factor);                                                                   \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        gradient_##real(Modes modes, const Complex* src, Complex* dst, T factor)                     \
    {                                                                                                \
        gradient(modes, src, dst, factor);                                                           \
    }

SPECTRAL(f32, float, float2)
SPECTRAL(f64, double, double2)
