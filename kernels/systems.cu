// Tridiagonal systems of all modes, each by one thread.
//
// CPU twin: crates/fft-core/src/spectral/systems.rs, which says how elimination avoids
// cancellation. Between the sweeps along a system its thread keeps values and upper elements in a
// room of its own, in double precision. There the same row of neighbouring threads is contiguous.
// Bytes moved: a read and a write of the modes, and a write and a read of the room.
#include "box.cuh"

// Systems of `n` points each, of which `inner` lie side by side in memory. Their number is
// `outer` times `inner`.
struct Systems {
    u32 n, outer, inner;
    Divisor by_inner;
    // Whether nothing fixes the mean of a solution whose shift is 0.
    u32 singular;
    // Of each row the lower and the upper coefficient, and then excess and weight.
    const double2* rows;
    // Squares of wave vectors along the slower axes, and then along the faster ones.
    const double* squares;
    // For each thread `n` points, `n` upper elements and, of periodic systems, a column of `n`.
    double* room;
};
static_assert(sizeof(Systems) == 48, "the host has the same");

template <class T, u32 W>
struct __align__(W * sizeof(T)) Point {
    T part[W];
};

// Rows that are read before they are needed, because each waits for the one before it.
constexpr u32 AHEAD = 4;

template <class Row, class Load>
__device__ inline void read(Row (&rows)[AHEAD], u32 first, u32 end, Load load)
{
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++)
        if (first + i < end) rows[i] = load(first + i);
}

// Calls `work(j, load(j))` for all rows before `end`.
template <class Row, class Load, class Work>
__device__ inline void march(u32 end, Load load, Work work)
{
    Row rows[AHEAD], next[AHEAD];
    read(rows, 0, end, load);
    for (u32 first = 0; first < end; first += AHEAD) {
        read(next, first + AHEAD, end, load);
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++)
            if (first + i < end) work(first + i, rows[i]);
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) rows[i] = next[i];
    }
}

// One system: where it is in memory, and its thread's part of the room.
template <class T, u32 W>
struct System {
    using Value = Point<double, W>;
    struct Eliminated {
        Value value;
        double upper, column;
    };

    const double2* rows;
    u32 n, inner;
    double shift;
    bool singular;
    const Point<T, W>* src;
    Point<T, W>* dst;
    Value* values;
    double *uppers, *columns;
    u32 threads;

    __device__ System(const Systems& all, u32 number, double more, const Point<T, W>* from, Point<T, W>* to)
        : rows(all.rows), n(all.n), inner(all.inner), threads(gridDim.x * THREADS)
    {
        u32 outer = all.by_inner.of(number), thread = blockIdx.x * THREADS + threadIdx.x;
        u32 within = number - outer * inner;
        shift = all.squares[outer] + all.squares[all.outer + within] + more;
        singular = all.singular != 0 && shift == 0;
        u32 first = outer * n * inner + within;
        src = from + first;
        dst = to + first;
        u64 points = u64(n) * threads;
        values = reinterpret_cast<Value*>(all.room) + thread;
        uppers = all.room + W * points + thread;
        columns = all.room + (W + 1) * points + thread;
    }

    // The lower and the upper coefficient of a row; its excess and weight.
    __device__ double2 sides(u32 j) const { return __ldg(rows + 2 * j); }
    __device__ double2 excess_and_weight(u32 j) const { return __ldg(rows + 2 * j + 1); }

    __device__ Value get(u32 j) const
    {
        Point<T, W> point = src[j * inner];
        Value value;
#pragma unroll
        for (u32 part = 0; part < W; part++) value.part[part] = point.part[part];
        return value;
    }

    __device__ void set(u32 j, const Value& value)
    {
        Point<T, W> point;
#pragma unroll
        for (u32 part = 0; part < W; part++) point.part[part] = T(value.part[part]);
        dst[j * inner] = point;
    }

    // Minus the shift, plus the rows' differences. A row is written when the next ones have been
    // read, so that source and destination may be the same.
    __device__ void differentiate()
    {
        Value head = get(0), below = get(n - 1), here = head;
        auto row = [&](u32 j, const Value& above) {
            double2 by = sides(j);
            double own = excess_and_weight(j).x + shift;
            Value made;
#pragma unroll
            for (u32 part = 0; part < W; part++) {
                double x = here.part[part];
                made.part[part] = by.x * (below.part[part] - x) + by.y * (above.part[part] - x) - own * x;
            }
            set(j, made);
            below = here;
            here = above;
        };
        march<Value>(n - 1, [&](u32 j) { return get(j + 1); }, row);
        row(n - 1, head);
    }

    // The sum of a singular system's right-hand side by weights; otherwise 0.
    __device__ Value mean()
    {
        Value sum = {};
        if (singular)
            march<Value>(n, [&](u32 j) { return get(j); },
                         [&](u32 j, const Value& value) { add(sum, excess_and_weight(j).y, value); });
        return sum;
    }

    __device__ static void add(Value& sum, double by, const Value& value)
    {
#pragma unroll
        for (u32 part = 0; part < W; part++) sum.part[part] = fma(by, value.part[part], sum.part[part]);
    }

    // A row of the solution; that of a singular system has its mean in `sum` in the end.
    __device__ void solved(u32 j, const Value& value, Value& sum)
    {
        if (!singular) return set(j, value);
        values[j * u64(threads)] = value;
        add(sum, excess_and_weight(j).y, value);
    }

    template <bool PERIODIC>
    __device__ void solve()
    {
        // A periodic system's last point is a second right-hand side of the others.
        u32 end = PERIODIC ? n - 1 : n;
        Value mean_before = mean(), sum = {}, last = get(n - 1), x = {};
        double ratio = 0, q = 0;
        march<Value>(end, [&](u32 j) { return get(j); }, [&](u32 j, const Value& right) {
            double2 by = sides(j);
            double own = excess_and_weight(j).x, excess = own;
            if (j == 0) {
                if (PERIODIC) excess += by.x;
                by.x = 0;
            }
            if (j + 1 == end) {
                if (PERIODIC) excess += by.y;
                by.y = 0;
            }
            double f = fma(by.x, ratio, shift + excess), pivot = f + by.y;
            double inverse = pivot == 0 ? 0 : 1 / pivot;
            ratio = f * inverse;
#pragma unroll
            for (u32 part = 0; part < W; part++)
                x.part[part] = fma(by.x, x.part[part], right.part[part] - mean_before.part[part]) * inverse;
            values[j * u64(threads)] = x;
            uppers[j * u64(threads)] = by.y * inverse;
            if (PERIODIC) {
                q = fma(by.x, q, shift + own) * inverse;
                columns[j * u64(threads)] = q;
            }
        });
        Value below = x;
        double q_below = q;
        if (!PERIODIC) solved(end - 1, x, sum);
        auto eliminated = [&](u32 step) {
            u64 at = (end - 2 - step) * u64(threads);
            return Eliminated{values[at], uppers[at], PERIODIC ? columns[at] : 0};
        };
        march<Eliminated>(end - 1, eliminated, [&](u32 step, const Eliminated& row) {
            u32 j = end - 2 - step;
            Value next = row.value;
            add(next, row.upper, x);
            x = next;
            if (!PERIODIC) return solved(j, x, sum);
            q = fma(row.upper, q, row.column);
            values[j * u64(threads)] = x;
            columns[j * u64(threads)] = q;
        });
        if (PERIODIC) {
            double2 by = sides(n - 1);
            double pivot = shift + excess_and_weight(n - 1).x + by.x * q_below + by.y * q;
            double inverse = pivot == 0 ? 0 : 1 / pivot;
#pragma unroll
            for (u32 part = 0; part < W; part++) {
                double right = last.part[part] - mean_before.part[part];
                last.part[part] = (right + by.x * below.part[part] + by.y * x.part[part]) * inverse;
            }
            auto unfinished = [&](u32 j) {
                u64 at = j * u64(threads);
                return Eliminated{values[at], 0, columns[at]};
            };
            march<Eliminated>(end, unfinished, [&](u32 j, const Eliminated& row) {
                Value value = row.value;
                add(value, 1 - row.column, last);
                solved(j, value, sum);
            });
            solved(n - 1, last, sum);
        }
        if (singular)
            march<Value>(n, [&](u32 j) { return values[j * u64(threads)]; }, [&](u32 j, Value value) {
                add(value, -1, sum);
                set(j, value);
            });
    }
};

// A kernel with one thread for each system, and the least resident blocks of a multiprocessor: with
// more, registers would be spilled.
#define FOR_EACH_SYSTEM(BLOCKS, T, W, what, name)                                            \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                 \
        name(Systems all, double more, const Point<T, W>* src, Point<T, W>* dst)                  \
    {                                                                                             \
        u32 count = all.outer * all.inner, threads = gridDim.x * THREADS;                         \
        for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += threads)                 \
            System<T, W>(all, i, more, src, dst).what;                                            \
    }
#define SYSTEMS(name, T, W)                                                                       \
    FOR_EACH_SYSTEM(4, T, W, template solve<false>(), solve_##name)                               \
    FOR_EACH_SYSTEM(2, T, W, template solve<true>(), solve_periodic_##name)                       \
    FOR_EACH_SYSTEM(8, T, W, differentiate(), differences_##name)

SYSTEMS(f32x1, float, 1)
SYSTEMS(f32x2, float, 2)
SYSTEMS(f64x1, double, 1)
SYSTEMS(f64x2, double, 2)
