/* Transforms by their definition, of a whole grid on every rank, and boxes to test with. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <heffte.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

using Number = std::complex<double>;
using Box = heffte::box3d<>;
using Index = std::array<int, 3>;

/** What stands for a number of a type of another precision or width. */
template <typename T>
T as(Number x, typename std::enable_if<std::is_floating_point<T>::value>::type * = nullptr) {
    return static_cast<T>(x.real());
}
template <typename T>
T as(Number x, typename std::enable_if<!std::is_floating_point<T>::value>::type * = nullptr) {
    using real = typename heffte::define_real_type<T>::type;
    real const parts[2] = {static_cast<real>(x.real()), static_cast<real>(x.imag())};
    return reinterpret_cast<T const &>(parts);
}
template <typename T>
Number of(T x, typename std::enable_if<std::is_floating_point<T>::value>::type * = nullptr) {
    return Number(static_cast<double>(x), 0.0);
}
template <typename T>
Number of(T const &x, typename std::enable_if<!std::is_floating_point<T>::value>::type * = nullptr) {
    using real = typename heffte::define_real_type<T>::type;
    real const *parts = reinterpret_cast<real const *>(&x);
    return Number(static_cast<double>(parts[0]), static_cast<double>(parts[1]));
}

/** A weight of `exp`, `cos` or `sin`: number j of n to frequency k. */
using Weight = std::function<Number(int n, int j, int k)>;

static double const pi = std::acos(-1.0);
inline Number exponential(int n, int j, int k) {
    double const angle = -2.0 * pi * (static_cast<long long>(j) * k % n) / n;
    return Number(std::cos(angle), std::sin(angle));
}
inline Number cosine2(int n, int j, int k) { return 2.0 * std::cos(pi * (j + 0.5) * k / n); }
inline Number sine2(int n, int j, int k) { return 2.0 * std::sin(pi * (j + 0.5) * (k + 1) / n); }
inline Number cosine1(int n, int j, int k) {
    return (j == 0 || j == n - 1 ? 1.0 : 2.0) * std::cos(pi * j * k / (n - 1));
}
inline Number sine1(int n, int j, int k) { return 2.0 * std::sin(pi * (j + 1.0) * (k + 1) / (n + 1)); }

/** A grid in natural order, dimension 0 contiguous. */
struct Grid {
    explicit Grid(Index shape) : size(shape), numbers(static_cast<size_t>(shape[0] * shape[1] * shape[2])) {}

    Number &at(int i, int j, int k) { return numbers[static_cast<size_t>((k * size[1] + j) * size[0] + i)]; }

    /** Numbers without structure; another seed, other numbers. */
    static Grid random(Index shape, int seed, bool real) {
        Grid grid(shape);
        unsigned state = 12345u + 7919u * static_cast<unsigned>(seed);
        auto next = [&]() {
            state = state * 1664525u + 1013904223u;
            return (state >> 8) / 16777216.0 - 0.5;
        };
        for (Number &x : grid.numbers) {
            double const re = next(), im = next();
            x = Number(re, real ? 0.0 : im);
        }
        return grid;
    }

    /** Sums along the first dimensions, by the definition. */
    Grid transformed(Weight const &weight, int dimensions = 3) const {
        Grid from = *this;
        for (int d = 0; d < dimensions; d++) {
            Grid to(size);
            Index at;
            for (at[2] = 0; at[2] < size[2]; at[2]++)
                for (at[1] = 0; at[1] < size[1]; at[1]++)
                    for (at[0] = 0; at[0] < size[0]; at[0]++) {
                        Number sum = 0.0;
                        Index other = at;
                        for (int j = 0; j < size[d]; j++) {
                            other[d] = j;
                            sum += weight(size[d], j, at[d]) * from.at(other[0], other[1], other[2]);
                        }
                        to.at(at[0], at[1], at[2]) = sum;
                    }
            from = to;
        }
        return from;
    }

    Index size;
    std::vector<Number> numbers;
};

/** Calls with the indices of each point of a box, in the order of memory. */
template <typename index>
void for_each(heffte::box3d<index> const &box, std::function<void(Index)> const &action) {
    if (box.empty()) return;
    Index at;
    auto const &order = box.order;
    auto low = [&](int place) { return static_cast<int>(box.low[order[place]]); };
    auto high = [&](int place) { return static_cast<int>(box.high[order[place]]); };
    for (at[order[2]] = low(2); at[order[2]] <= high(2); at[order[2]]++)
        for (at[order[1]] = low(1); at[order[1]] <= high(1); at[order[1]]++)
            for (at[order[0]] = low(0); at[order[0]] <= high(0); at[order[0]]++) action(at);
}

/** A box of a grid as an array of its own. */
template <typename T, typename index>
std::vector<T> part(Grid &grid, heffte::box3d<index> const &box) {
    std::vector<T> numbers;
    for_each(box, [&](Index at) { numbers.push_back(as<T>(grid.at(at[0], at[1], at[2]))); });
    return numbers;
}

/**
 * The largest difference from `factor` times the grid, on all ranks, relative to the largest
 * number.
 */
template <typename T, typename index>
double distance(T const *numbers, Grid &grid, heffte::box3d<index> const &box, double factor) {
    double most[2] = {0.0, 1e-300}, all[2];
    for_each(box, [&](Index at) {
        Number const expected = factor * grid.at(at[0], at[1], at[2]);
        double const off = std::abs(of(*numbers++) - expected);
        if (!(off <= most[0])) most[0] = std::isnan(off) ? 1e300 : off;
        most[1] = std::max(most[1], std::abs(expected));
    });
    MPI_Allreduce(most, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all[0] / all[1];
}

/** Boxes of all ranks of some grid. */
inline std::vector<Box> boxes(Index size, int ranks, int way, std::array<int, 3> order = {{0, 1, 2}}) {
    Box const world({{0, 0, 0}}, {{size[0] - 1, size[1] - 1, size[2] - 1}}, order);
    // The last rank has nothing where three or more are cut along one dimension.
    bool const idle = way == 1 && ranks > 2;
    int const users = idle ? ranks - 1 : ranks;
    std::array<int, 3> grid = heffte::proc_setup_min_surface(world, users);
    if (way == 1) grid = {{1, users, 1}};
    if (way == 2) grid = {{1, 1, users}};
    std::vector<Box> all = heffte::split_world(world, grid);
    if (idle) all.push_back(Box({{0, 0, 0}}, {{-1, -1, -1}}, order));
    return all;
}

/** Counts and says what went wrong, on rank 0. */
struct Report {
    int failures = 0, checks = 0;
    void expect(bool good, std::string const &what) {
        checks++;
        if (good) return;
        failures++;
        if (heffte::mpi::world_rank(0)) std::printf("FAILED: %s\n", what.c_str());
    }
    void near(double found, double bound, std::string const &what) {
        char text[64];
        std::snprintf(text, sizeof text, ": %.3g, at most %.3g", found, bound);
        expect(found <= bound, what + text);
    }
    int finish(char const *name) {
        int all = 0;
        MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (heffte::mpi::world_rank(0))
            std::printf("%s: %d checks on %d ranks, %d failed\n", name, checks, heffte::mpi::comm_size(MPI_COMM_WORLD), all);
        return all == 0 ? 0 : 1;
    }
};

#endif
