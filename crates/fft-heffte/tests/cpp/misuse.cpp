/* An error on one rank is an exception on all of them. */
#include "reference.h"

#include <algorithm>

using Fft = heffte::fft3d<heffte::backend::fftw>;
using Real = heffte::fft3d_r2c<heffte::backend::fftw>;

/** Whether this throws on every rank, with one text. */
static void refused(Report &report, std::string const &what, std::function<void()> const &action) {
    std::string text;
    try {
        action();
    } catch (std::exception const &error) {
        text = error.what();
    }
    char mine[512] = {}, first[512] = {};
    std::copy_n(text.begin(), std::min<size_t>(text.size(), 511), mine);
    std::copy_n(mine, 512, first);
    MPI_Bcast(first, 512, MPI_CHAR, 0, MPI_COMM_WORLD);
    report.expect(!text.empty(), what + " is not refused");
    report.expect(std::string(mine) == first, what + " has several texts: " + mine + " and " + first);
}

/** Whether boxes tile a grid, by counting the boxes of each point. */
static bool tiles(std::vector<Box> const &all, Box const &world) {
    bool once = true;
    for_each(Box({{-1, -1, -1}}, {{5, 5, 5}}), [&](Index at) {
        auto has = [&](Box const &box) {
            bool inside = true;
            for (int d = 0; d < 3; d++) inside = inside && box.low[d] <= at[d] && at[d] <= box.high[d];
            return inside;
        };
        once = once && std::count_if(all.begin(), all.end(), has) == (has(world) ? 1 : 0);
    });
    return once;
}

/** Boxes of random cuts, most of which no longer tile after a random change. */
static void tilings(Report &report) {
    unsigned state = 7;
    auto next = [&](int below) {
        state = state * 1664525u + 1013904223u;
        return static_cast<int>((state >> 16) % static_cast<unsigned>(below));
    };
    int complete = 0;
    for (int round = 0; round < 2000; round++) {
        Box const world({{0, 0, 0}}, {{next(5), next(5), next(5)}});
        std::vector<Box> all = heffte::split_world(world, {{1 + next(3), 1 + next(3), 1 + next(2)}});
        for (int change = next(3); change > 0; change--) {
            Box &box = all[static_cast<size_t>(next(static_cast<int>(all.size())))];
            Index low = box.low, high = box.high;
            (next(2) == 0 ? low : high)[static_cast<size_t>(next(3))] += next(3) - 1;
            box = Box(low, high);
        }
        bool const expected = tiles(all, world);
        complete += expected;
        report.expect(heffte::world_complete(all, world) == expected, "a tiling in round " + std::to_string(round));
    }
    report.expect(complete > 200 && complete < 1800, "tilings and others");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Report report;
    tilings(report);
    {
        int const ranks = heffte::mpi::comm_size(MPI_COMM_WORLD), rank = heffte::mpi::world_rank();
        size_t const me = static_cast<size_t>(rank);
        bool const odd = rank == ranks - 1;
        Index const size = {{8, 8, 8}}, halved = {{5, 8, 8}};
        Box const in = boxes(size, ranks, 0)[me], out = boxes(size, ranks, 2)[me], half = boxes(halved, ranks, 0)[me];
        auto changed = [&](Box box, int by) {
            std::array<int, 3> high = box.high;
            if (odd) high[2] += by;
            return Box(box.low, high, box.order);
        };
        auto ordered = [&](std::array<int, 3> order) { return odd ? Box(in.low, in.high, order) : in; };
        Box const nothing({{0, 0, 0}}, {{-1, -1, -1}});

        refused(report, "a gap of the input", [&] { Fft(in, changed(out, -1), MPI_COMM_WORLD); });
        refused(report, "a box beyond the grid", [&] { Fft(in, changed(out, 1), MPI_COMM_WORLD); });
        if (ranks > 1) refused(report, "equal boxes", [&] { Fft(Box({{0, 0, 0}}, {{7, 7, 7}}), out, MPI_COMM_WORLD); });
        refused(report, "a grid without points", [&] { Fft(nothing, nothing, MPI_COMM_WORLD); });
        refused(report, "no output", [&] { Fft(in, nothing, MPI_COMM_WORLD); });
        refused(report, "an order with one dimension twice", [&] { Fft(ordered({{0, 0, 1}}), out, MPI_COMM_WORLD); });
        refused(report, "an order with dimension 3", [&] { Fft(ordered({{0, 1, 3}}), out, MPI_COMM_WORLD); });
        refused(report, "a whole spectrum of real data", [&] { Real(in, out, 0, MPI_COMM_WORLD); });
        refused(report, "dimension 3 of real data", [&] { Real(in, half, 3, MPI_COMM_WORLD); });
        refused(report, "dimension -2 of one rank", [&] { Real(in, half, odd ? -2 : 0, MPI_COMM_WORLD); });
        refused(report, "no communicator", [&] { Fft(in, out, MPI_COMM_NULL); });

        Fft const fft(in, out, MPI_COMM_WORLD);
        Real const real(in, half, 0, MPI_COMM_WORLD);
        std::vector<std::complex<double>> data(static_cast<size_t>(in.count()), 1.0), found(static_cast<size_t>(out.count()));
        std::complex<double> *const none = nullptr;
        double *const no_reals = nullptr;
        std::vector<double> reals(data.size());
        refused(report, "no input", [&] { fft.forward(odd ? none : data.data(), found.data()); });
        refused(report, "no output", [&] { fft.forward(data.data(), odd ? none : found.data()); });
        refused(report, "no array in place", [&] { fft.forward(odd ? none : data.data(), odd ? none : data.data()); });
        refused(report, "no real input", [&] { fft.forward(odd ? no_reals : reals.data(), found.data()); });
        refused(report, "no real output", [&] { fft.backward(found.data(), odd ? no_reals : reals.data()); });
        refused(report, "a short vector", [&] {
            std::vector<std::complex<double>> const some(data.begin(), data.end() - (odd ? 1 : 0));
            fft.forward(some);
        });
        refused(report, "complex data of a real transform", [&] { real.forward(data.data(), found.data()); });
        refused(report, "a negative number of arrays", [&] { fft.forward(-1, data.data(), found.data()); });
        // The same transforms go on after errors.
        fft.forward(data.data(), found.data());
        fft.backward(found.data(), data.data(), heffte::scale::full);
        double off = 0.0;
        for (auto const &x : data) off = std::max(off, std::abs(x - 1.0));
        report.near(off, 1e-14, "a transform after errors");
    }
    int const status = report.finish("misuse");
    MPI_Finalize();
    return status;
}
