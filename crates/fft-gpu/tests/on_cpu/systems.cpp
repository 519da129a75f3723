// Tridiagonal systems, by the kernels of systems.cu.
#include "pipe.hpp"

#include "../../kernels/src/systems.cu"

enum : u64 { SOLVE, SOLVE_PERIODIC, DIFFERENCES };

// `room` is the numbers that a thread needs, `in_place` whether the source is the destination.
struct Asked {
    u64 real, width, task, in_place, blocks, seed, room;
    double more;
    Systems systems;
};

template <class T, u32 W>
static void serve(const Asked& asked, void (*const (&kernels)[3])(Systems, double, const Point<T, W>*, Point<T, W>*))
{
    Systems all = asked.systems;
    const auto rows = take<double2>(2 * all.n);
    const auto squares = take<double>(all.outer + all.inner);
    const u64 bytes = u64(all.outer) * all.inner * all.n * sizeof(Point<T, W>);
    Room source(bytes), made(bytes), values(asked.blocks * THREADS * asked.room * sizeof(double));
    if (fread(source.begin(), 1, bytes, stdin) != bytes) fail("the input ends too early");
    Room& dst = asked.in_place ? source : made;
    all.rows = rows.data();
    all.squares = squares.data();
    all.room = reinterpret_cast<double*>(values.begin());
    const auto from = reinterpret_cast<const Point<T, W>*>(source.begin());
    const auto to = reinterpret_cast<Point<T, W>*>(dst.begin());
    launch_all([&] { kernels[asked.task](all, asked.more, from, to); }, u32(asked.blocks), u32(asked.seed));
    values.check();
    dst.send();
}

#define SERVE(name, T, W) \
    serve<T, W>(asked, {solve_##name, solve_periodic_##name, differences_##name})

int main()
{
    for (Asked asked; begin(asked); end()) {
        if (asked.real == 4 && asked.width == 1) SERVE(f32x1, float, 1);
        if (asked.real == 4 && asked.width == 2) SERVE(f32x2, float, 2);
        if (asked.real == 8 && asked.width == 1) SERVE(f64x1, double, 1);
        if (asked.real == 8 && asked.width == 2) SERVE(f64x2, double, 2);
    }
}
