// Cosine and sine transforms: what is done before and after a Fourier transform to make one of
// them.
//
// CPU twins: the kinds of `crates/fft-core/src/kind.rs`. II and III are a real transform of n
// points (Makhoul, IEEE Transactions on Acoustics, Speech, and Signal Processing 28, 27-34, 1980),
// I one of the even or odd continuation, IV a complex one of n/2 points, or, of an odd n, of 2n. A
// sine transform is the cosine transform of numbers with other signs, in the other order. Bytes
// moved: `before` reads each number once or twice and writes what is transformed, `after` the
// reverse.
#include "box.cuh"

// Types; whatever is above `III` is IV.
constexpr u32 I = 1, II = 2, III = 3;

// Arrays of `inner` lines side by side, of which each has `n` real numbers outside, and inside
// `length` numbers, real or complex. From a number of a line to the next there are `pitch` numbers
// outside and `along` inside, and from a line to the next one outside and `across` inside. An array
// takes `step` numbers inside.
struct Lines {
    u64 step, pitch;
    u32 along, across;
    u32 n, inner, length, elements;
    Divisor by_n, by_inner, by_length;
    u32 type, sine;
};
static_assert(sizeof(Lines) == 72, "the host has the same");

template <class T> struct ComplexOf;
template <> struct ComplexOf<float> { using Type = float2; };
template <> struct ComplexOf<double> { using Type = double2; };
template <class T> using Complex = typename ComplexOf<T>::Type;

// exp(iπ a/b)
struct Turn {
    double cosine, sine;
    __device__ Turn(double a, double b) { sincospi(a / b, &sine, &cosine); }
};

// Where a thread is: in which array, at which number of a line, in which line.
struct Where {
    u32 array, at, line;
    __device__ Where(const Lines& lines, u32 element, u32 length, const Divisor& by_length)
    {
        u32 rest = lines.by_inner.of(element);
        line = element - rest * lines.inner;
        array = by_length.of(rest);
        at = rest - array * length;
    }
};

// The first number of its line inside.
__device__ inline u64 first_inside(const Lines& lines, const Where& where)
{
    return where.array * lines.step + u64(where.line) * lines.across;
}

// The numbers of a line outside, as a cosine transform takes them and gives them.
template <class T>
struct Line {
    const T* numbers;
    u64 pitch;
    u32 n, sine;

    __device__ Line(const Lines& lines, const Where& where, const T* x)
        : numbers(x + u64(where.array) * lines.n * lines.pitch + where.line), pitch(lines.pitch), n(lines.n), sine(lines.sine)
    {
    }
    __device__ T at(u32 i) const { return numbers[i * pitch]; }
    // Signs that alternate, or the other order.
    __device__ double alternating(u32 i) const { return sine && i % 2 == 1 ? -double(at(i)) : double(at(i)); }
    __device__ double turned(u32 i) const { return at(sine ? n - 1 - i : i); }
};

// What a real transform is made of: I and II.
template <class T>
__device__ T continued(const Lines& lines, const Line<T>& line, u32 j)
{
    u32 n = lines.n;
    if (lines.type == II) return T(line.alternating(2 * j < n ? 2 * j : 2 * (n - 1 - j) + 1));
    if (!lines.sine) return line.at(j < n ? j : 2 * (n - 1) - j);
    if (j == 0 || j == n + 1) return 0;
    return j <= n ? line.at(j - 1) : -line.at(2 * n + 1 - j);
}

// What a complex transform is made of, or a real one as the inverse: III and IV.
template <class T>
__device__ Complex<T> prepared(const Lines& lines, const Line<T>& line, u32 k)
{
    u32 n = lines.n;
    double a = 0, b = 0;
    if (lines.type == III) {
        Turn turn(k, 2.0 * n);
        a = line.turned(k), b = k == 0 ? 0 : -line.turned(n - k);
        double real = a * turn.cosine - b * turn.sine, imaginary = a * turn.sine + b * turn.cosine;
        // The first, and the middle one, are real.
        return {T(real), T(k == 0 || 2 * k == n ? 0 : imaginary)};
    }
    if (n % 2 == 1) {
        if (k >= n) return {0, 0};
        Turn turn(-double(k), 2.0 * n);
        a = line.turned(k);
        return {T(a * turn.cosine), T(a * turn.sine)};
    }
    Turn turn(-(4.0 * k + 1), 4.0 * n);
    a = line.turned(2 * k), b = line.turned(n - 1 - 2 * k);
    return {T(a * turn.cosine - b * turn.sine), T(a * turn.sine + b * turn.cosine)};
}

// The number `k` of a cosine transform, out of what is inside a line.
template <class T>
__device__ double finished(const Lines& lines, const void* inside, u64 first, u32 k)
{
    u32 n = lines.n;
    if (lines.type == III) {
        const T* real = static_cast<const T*>(inside) + first;
        return real[u64(k % 2 == 0 ? k / 2 : n - 1 - k / 2) * lines.along];
    }
    const Complex<T>* complex = static_cast<const Complex<T>*>(inside) + first;
    auto at = [&](u32 i) { return complex[u64(i) * lines.along]; };
    if (lines.type == I) return lines.sine ? -double(at(k + 1).y) : double(at(k).x);
    if (lines.type == II) {
        // Of the upper half, what is conjugate in the lower.
        Turn turn(-double(k), 2.0 * n);
        bool upper = 2 * k > n;
        Complex<T> z = at(upper ? n - k : k);
        return 2 * (z.x * turn.cosine - (upper ? -z.y : z.y) * turn.sine);
    }
    if (n % 2 == 1) {
        Turn turn(-(2.0 * k + 1), 4.0 * n);
        Complex<T> z = at(k);
        return 2 * (z.x * turn.cosine - z.y * turn.sine);
    }
    u32 half = k % 2 == 0 ? k / 2 : (n - 1 - k) / 2;
    Turn turn(-double(half), double(n));
    Complex<T> z = at(half);
    return k % 2 == 0 ? 2 * (z.x * turn.cosine - z.y * turn.sine) : -2 * (z.x * turn.sine + z.y * turn.cosine);
}

template <class T>
__device__ void before(const Lines& lines, const T* x, void* inside)
{
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < lines.elements; i += gridDim.x * THREADS) {
        Where where(lines, i, lines.length, lines.by_length);
        Line<T> line(lines, where, x);
        u64 to = first_inside(lines, where) + u64(where.at) * lines.along;
        if (lines.type <= II) static_cast<T*>(inside)[to] = continued<T>(lines, line, where.at);
        else static_cast<Complex<T>*>(inside)[to] = prepared<T>(lines, line, where.at);
    }
}

template <class T>
__device__ void after(const Lines& lines, const void* inside, T* x, double factor)
{
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < lines.elements; i += gridDim.x * THREADS) {
        Where where(lines, i, lines.n, lines.by_n);
        u32 k = where.at, n = lines.n, from = lines.sine && lines.type == II ? n - 1 - k : k;
        double y = finished<T>(lines, inside, first_inside(lines, where), from);
        bool minus = lines.sine && lines.type >= III && k % 2 == 1;
        x[(u64(where.array) * n + k) * lines.pitch + where.line] = T((minus ? -y : y) * factor);
    }
}

#define TRIG(real, T)                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        before_##real(Lines lines, const T* x, void* inside)                                         \
    {                                                                                                \
        before(lines, x, inside);                                                                    \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS)                                            \
        after_##real(Lines lines, const void* inside, T* x, double factor)                           \
    {                                                                                                \
        after(lines, inside, x, factor);                                                             \
    }

TRIG(f32, float)
TRIG(f64, double)
