// Transforms of columns: complex numbers of arrays [outer][N][pitch], along the middle axis,
// `inner` of them side by side.
//
//   a block takes COLUMNS neighbouring columns; a thread is a lane of one of them
//   for each stage: read points, the first from the array, others from shared memory
//       multiply by roots of unity, transform RADIX points in registers
//       write them, the last to the array, others to shared memory
//
// Stockham's algorithm: a stage with radix R, behind stages whose radices have the product L, takes
// x[t + q N/R] to y[(t / L) L R + t % L + q L] for q < R. The roots are
// exp(-2 pi i q (t % L) / (L R)).
//
// The host compiles it for a length (abi/column_fft.rs). It defines Real, N, COLUMNS, LANES,
// RADICES, and Roots<R> for the radices that need them: cosines c(j) and sines s(j) of 2 pi j / R.

using u32 = unsigned;
using u64 = unsigned long long;

struct alignas(2 * sizeof(Real)) Complex {
    Real re, im;
};

#define INLINE __device__ __forceinline__

INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
INLINE Complex operator*(Real a, Complex b) { return {a * b.re, a * b.im}; }
INLINE Complex operator*(Complex a, Complex b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// z exp(-2 pi i j / R).
template <int R> INLINE Complex turned(Complex z, int j)
{
    constexpr Real HALF = 0.70710678118654752440; // its root
    if (j == 0) return z;
    if (4 * j == R) return {z.im, -z.re};
    if (2 * j == R) return {-z.re, -z.im};
    if (4 * j == 3 * R) return {-z.im, z.re};
    if (8 * j == R) return HALF * Complex{z.re + z.im, z.im - z.re};
    if (8 * j == 3 * R) return HALF * Complex{z.im - z.re, -z.re - z.im};
    return z * Complex{Roots<R>::c(j), -Roots<R>::s(j)};
}

// A factor of R: 4 where possible, otherwise the smallest. The host has the same.
constexpr __device__ int factor_of(int R)
{
    if (R % 4 == 0 && R > 4) return 4;
    for (int p = 2; p < R; p++)
        if (R % p == 0) return p;
    return R;
}

// The transform of R points in registers.
template <int R> struct Dft {
    static constexpr int A = factor_of(R), B = R / A;

    static INLINE void run(Complex (&v)[R])
    {
        if constexpr (R == 2) {
            Complex a = v[0];
            v[0] = a + v[1];
            v[1] = a - v[1];
        } else if constexpr (R == 4) {
            Complex a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
            v[0] = a + c;
            v[2] = a - c;
            v[1] = {b.re + d.im, b.im - d.re};
            v[3] = {b.re - d.im, b.im + d.re};
        } else if constexpr (B == 1) {
            prime(v);
        } else {
            composite(v);
        }
    }

    // Points k and R - k are taken together.
    static INLINE void prime(Complex (&v)[R])
    {
        Complex sum[R / 2 + 1], difference[R / 2 + 1], first = v[0];
#pragma unroll
        for (int k = 1; k <= R / 2; k++) {
            sum[k] = v[k] + v[R - k];
            difference[k] = v[k] - v[R - k];
            v[0] = v[0] + sum[k];
        }
#pragma unroll
        for (int j = 1; j <= R / 2; j++) {
            Complex even = first, odd = {0, 0};
#pragma unroll
            for (int k = 1; k <= R / 2; k++) {
                even = even + Roots<R>::c(j * k % R) * sum[k];
                odd = odd + Roots<R>::s(j * k % R) * difference[k];
            }
            v[j] = {even.re + odd.im, even.im - odd.re};
            v[R - j] = {even.re - odd.im, even.im + odd.re};
        }
    }

    // B transforms of A points, roots, and A transforms of B points.
    static INLINE void composite(Complex (&v)[R])
    {
        Complex u[B][A];
#pragma unroll
        for (int n = 0; n < B; n++) {
#pragma unroll
            for (int m = 0; m < A; m++) u[n][m] = v[B * m + n];
            Dft<A>::run(u[n]);
#pragma unroll
            for (int k = 0; k < A; k++) u[n][k] = turned<R>(u[n][k], n * k);
        }
#pragma unroll
        for (int k = 0; k < A; k++) {
            Complex w[B];
#pragma unroll
            for (int n = 0; n < B; n++) w[n] = u[n][k];
            Dft<B>::run(w);
#pragma unroll
            for (int n = 0; n < B; n++) v[k + A * n] = w[n];
        }
    }
};

// What a thread has in a stage: so many times R points.
template <int R> struct Held {
    static constexpr int ROUNDS = (N / R + LANES - 1) / LANES;
    Complex points[ROUNDS][R];

    // Calls `each` with a round and the number of its transform.
    template <class Each> static INLINE void rounds(u32 lane, Each each)
    {
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            u32 t = lane + round * LANES;
            if (ROUNDS * LANES == N / R || t < N / R) each(round, t);
        }
    }
};

// The stages from one on; `read` and `write` move a point of this thread's column.
template <int L, int R, int... REST> struct Stages {
    template <class Read, class Write>
    static INLINE void run(Complex* shared, const Complex* roots, u32 lane, u32 column, Read read, Write write)
    {
        Held<R> held;
        held.rounds(lane, [&](int round, u32 t) {
            auto& v = held.points[round];
#pragma unroll
            for (int q = 0; q < R; q++) v[q] = read(t + q * (N / R));
            if constexpr (L > 1) {
                u32 k = t % L;
#pragma unroll
                for (int q = 1; q < R; q++) v[q] = v[q] * roots[k * q * (N / (L * R))];
            }
            Dft<R>::run(v);
        });
        auto scatter = [&](auto write) {
            held.rounds(lane, [&](int round, u32 t) {
                u32 first = t / L * (L * R) + t % L;
#pragma unroll
                for (int q = 0; q < R; q++) write(first + q * L, held.points[round][q]);
            });
        };
        if constexpr (sizeof...(REST) == 0) {
            scatter(write);
        } else {
            // All have read what is there.
            if constexpr (L > 1) __syncthreads();
            scatter([&](u32 at, Complex z) { shared[at * COLUMNS + column] = z; });
            __syncthreads();
            auto next = [&](u32 at) { return shared[at * COLUMNS + column]; };
            Stages<L * R, REST...>::run(shared, roots, lane, column, next, write);
        }
    }
};

// The inverse exchanges real and imaginary parts before and after.
template <bool INVERSE> INLINE Complex swapped(Complex z)
{
    return INVERSE ? Complex{z.im, z.re} : z;
}

// `groups` blocks take the columns of an array. src and dst may be the same.
template <bool INVERSE>
__device__ void transform(const Complex* src, Complex* dst, const Complex* roots, u32 inner, u32 pitch, u32 groups,
                          Real factor)
{
    extern __shared__ __align__(16) char memory[];
    u32 column = threadIdx.x % COLUMNS, lane = threadIdx.x / COLUMNS;
    u32 x = blockIdx.x % groups * COLUMNS + column;
    u64 first = u64(blockIdx.x / groups) * N * pitch + x;
    bool is_there = x < inner;
    auto read = [&](u32 at) {
        return is_there ? swapped<INVERSE>(src[first + u64(at) * pitch]) : Complex{0, 0};
    };
    auto write = [&](u32 at, Complex z) {
        if (is_there) dst[first + u64(at) * pitch] = factor * swapped<INVERSE>(z);
    };
    Stages<1, RADICES>::run(reinterpret_cast<Complex*>(memory), roots, lane, column, read, write);
}

#define KERNEL extern "C" __global__ void __launch_bounds__(COLUMNS * LANES)

KERNEL forward(const Complex* src, Complex* dst, const Complex* roots, u32 inner, u32 pitch, u32 groups, Real factor)
{
    transform<false>(src, dst, roots, inner, pitch, groups, factor);
}

KERNEL inverse(const Complex* src, Complex* dst, const Complex* roots, u32 inner, u32 pitch, u32 groups, Real factor)
{
    transform<true>(src, dst, roots, inner, pitch, groups, factor);
}
