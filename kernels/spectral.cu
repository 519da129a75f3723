// What is done to fields between transforms: scaling, operators, and products of spectra.
#include "box.cuh"

// The modes of a brick, row-major along its axes in memory. Axes that there are not have length 1.
struct Modes {
    u32 shape[4];
    Divisor by[4];
    // Where each axis begins in the tables: wavenumbers, then those for derivatives of odd order,
    // then their sizes relative to the highest of the axis.
    u32 first[4];
    // The component of a vector along each axis; 4 for none.
    u32 component[4];
    const double* tables;
    u32 elements;
    u32 dimensions;
};
static_assert(sizeof(Modes) == 96, "the host has the same");

// The numbers of operators are those of the host.
enum Scalar : u32 { LAPLACIAN, POISSON, HELMHOLTZ, GAUSSIAN, CUTOFF };
enum Vector : u32 { DERIVATIVE, GRADIENT, DIVERGENCE, CURL, PROJECT };

__device__ inline void indices(const Modes& modes, u32 element, u32 (&index)[4])
{
#pragma unroll
    for (int axis = 3; axis > 0; axis--) {
        u32 above = modes.by[axis].of(element);
        index[axis] = element - above * modes.shape[axis];
        element = above;
    }
    index[0] = element;
}

// Table `which` of an axis: 0 for wavenumbers, 1 for derivatives, 2 for relative sizes.
__device__ inline double entry(const Modes& modes, u32 axis, u32 which, u32 index)
{
    return modes.tables[modes.first[axis] + which * modes.shape[axis] + index];
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

__device__ inline double reciprocal(double x) { return x == 0 ? 0 : 1 / x; }

// The factor of a mode.
__device__ inline double factor_of(const Modes& modes, u32 what, double parameter, u32 element)
{
    u32 index[4];
    indices(modes, element, index);
    double square = 0, level = 0;
#pragma unroll
    for (u32 axis = 0; axis < 4; axis++) {
        double k = entry(modes, axis, 0, index[axis]);
        square = fma(k, k, square);
        level = fmax(level, entry(modes, axis, 2, index[axis]));
    }
    switch (what) {
    case LAPLACIAN: return -square;
    case POISSON: return reciprocal(square);
    case HELMHOLTZ: return reciprocal(parameter + square);
    case GAUSSIAN: return exp(-0.5 * parameter * parameter * square);
    default: return level < parameter ? 1 : 0;
    }
}

// Multiplies modes of `width` numbers by a function of their wavenumbers.
template <class T>
__device__ void by_wavenumbers(const Modes& modes, u32 what, double parameter, u32 width, const T* src, T* dst)
{
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < modes.elements; i += gridDim.x * THREADS) {
        T by = T(factor_of(modes, what, parameter, i));
        // What is cut may be infinite, so that it is not multiplied.
        bool cut = what == CUTOFF && by == 0;
        u64 at = u64(i) * width;
        dst[at] = cut ? T(0) : src[at] * by;
        if (width == 2) dst[at + 1] = cut ? T(0) : src[at + 1] * by;
    }
}

// The number times i and a real factor.
template <class T, class Complex>
__device__ inline Complex turned(Complex z, T by)
{
    return {-z.y * by, z.x * by};
}

template <class Complex>
__device__ inline Complex difference(Complex a, Complex b)
{
    return {a.x - b.x, a.y - b.y};
}

// Derivatives of first order. Components follow each other in memory; all of a mode are read before
// one is written, so that source and destination may be the same.
template <class T, class Complex>
__device__ void derivatives(const Modes& modes, u32 what, u32 component, const Complex* src, Complex* dst)
{
    u64 points = modes.elements;
    u32 dimensions = modes.dimensions;
    bool vector = what == DIVERGENCE || what == CURL || what == PROJECT;
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < modes.elements; i += gridDim.x * THREADS) {
        u32 index[4];
        indices(modes, i, index);
        T k[4] = {};
#pragma unroll
        for (u32 axis = 0; axis < 4; axis++) {
            T odd = T(entry(modes, axis, 1, index[axis]));
#pragma unroll
            for (u32 c = 0; c < 4; c++)
                if (modes.component[axis] == c) k[c] = odd;
        }
        Complex u[4] = {};
        Complex along = {0, 0};
        double square = 0;
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            if (c < (vector ? dimensions : 1)) u[c] = src[c * points + i];
            along = {along.x + u[c].x * k[c], along.y + u[c].y * k[c]};
            square += double(k[c]) * double(k[c]);
        }
        switch (what) {
        case DERIVATIVE: {
            T by = component == 0 ? k[0] : component == 1 ? k[1] : component == 2 ? k[2] : k[3];
            dst[i] = turned(u[0], by);
            break;
        }
        case GRADIENT:
#pragma unroll
            for (u32 c = 0; c < 4; c++)
                if (c < dimensions) dst[c * points + i] = turned(u[0], k[c]);
            break;
        case DIVERGENCE:
            dst[i] = turned(along, T(1));
            break;
        case CURL:
            if (dimensions == 3) {
                dst[i] = difference(turned(u[2], k[1]), turned(u[1], k[2]));
                dst[points + i] = difference(turned(u[0], k[2]), turned(u[2], k[0]));
            }
            dst[(dimensions == 3 ? 2 * points : 0) + i] = difference(turned(u[1], k[0]), turned(u[0], k[1]));
            break;
        default: {
            T by = T(reciprocal(square));
#pragma unroll
            for (u32 c = 0; c < 4; c++) {
                T part = k[c] * by;
                if (c < dimensions) dst[c * points + i] = difference(u[c], Complex{along.x * part, along.y * part});
            }
        }
        }
    }
}

// Products with the numbers of another spectrum, or with their conjugates, of `batches` arrays.
template <class T, class Complex>
__device__ void products(u64 elements, u64 batches, T sign, const Complex* by, Complex* x)
{
    u64 threads = u64(gridDim.x) * THREADS;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < elements; i += threads) {
        Complex b = {by[i].x, by[i].y * sign};
        for (u64 batch = 0; batch < batches; batch++) {
            Complex z = x[batch * elements + i];
            x[batch * elements + i] = {z.x * b.x - z.y * b.y, z.x * b.y + z.y * b.x};
        }
    }
}

// The same of real numbers.
template <class T>
__device__ void real_products(u64 elements, u64 batches, const T* by, T* x)
{
    u64 threads = u64(gridDim.x) * THREADS;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < elements; i += threads)
        for (u64 batch = 0; batch < batches; batch++) x[batch * elements + i] *= by[i];
}

#define SPECTRAL(real, T, Complex)                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS) scale_##real(T* x, u64 n, T factor)        \
    {                                                                                                \
        scale(x, n, factor);                                                                         \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        by_wavenumbers_##real(Modes modes, u32 what, double parameter, u32 width, const T* src, T* dst) \
    {                                                                                                \
        by_wavenumbers(modes, what, parameter, width, src, dst);                                     \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        derivatives_##real(Modes modes, u32 what, u32 component, const Complex* src, Complex* dst)   \
    {                                                                                                \
        derivatives<T>(modes, what, component, src, dst);                                            \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        products_##real(u64 elements, u64 batches, T sign, const Complex* by, Complex* x)            \
    {                                                                                                \
        products(elements, batches, sign, by, x);                                                    \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        real_products_##real(u64 elements, u64 batches, const T* by, T* x)                           \
    {                                                                                                \
        real_products(elements, batches, by, x);                                                     \
    }

SPECTRAL(f32, float, float2)
SPECTRAL(f64, double, double2)
