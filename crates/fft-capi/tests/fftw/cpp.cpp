// Complex transforms in two dimensions, of slabs with gaps between the ranks that have them;
// compared with FFTW.
#include <cmath>
#include <complex>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include <fftw3.h>
#include <thriffty.h>

using Complex = std::complex<double>;
using Plan = std::unique_ptr<thriffty_plan, decltype(&thriffty_plan_destroy)>;
using Options = std::unique_ptr<thriffty_options, decltype(&thriffty_options_destroy)>;

constexpr std::int64_t ROWS = 30, COLUMNS = 28;

void check(thriffty_status status) {
    if (status != THRIFFTY_STATUS_OK) throw std::runtime_error(thriffty_last_error());
}

/// A plan with as many slabs of rows as there are ranks for input, and as many slabs of columns for
/// output, except that rank 0 of several has no output.
Plan make_plan(int rank, int ranks) {
    const int first = ranks > 1 ? 1 : 0, among = ranks - first;
    const auto cut = [&](std::int64_t n, int of) { return of <= 0 ? 0 : n * of / among; };
    const thriffty_brick input{{ROWS * rank / ranks, 0, 0, 0}, {ROWS * (rank + 1) / ranks, COLUMNS, 0, 0}};
    const thriffty_brick output{{0, cut(COLUMNS, rank - first), 0, 0}, {ROWS, cut(COLUMNS, rank - first + 1), 0, 0}};
    const std::int64_t shape[] = {ROWS, COLUMNS};
    thriffty_options *made = nullptr;
    check(thriffty_options_create(&made));
    const Options options(made, thriffty_options_destroy);
    check(thriffty_options_set(options.get(), "forward_scale", "symmetric"));
    check(thriffty_options_set(options.get(), "inverse_scale", "symmetric"));
    thriffty_plan *plan = nullptr;
    check(thriffty_plan_create(&plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_C2C, 2, shape, &input, &output, options.get()));
    return Plan(plan, thriffty_plan_destroy);
}

Complex value(std::int64_t i, std::int64_t j) {
    return {std::sin(1.0 + double(i * j)), std::cos(0.5 * double(i)) - 0.1 * double(j % 3)};
}

/// FFTW's transform of the whole grid.
std::vector<Complex> expected() {
    std::vector<Complex> grid(ROWS * COLUMNS);
    const auto data = reinterpret_cast<fftw_complex *>(grid.data());
    const fftw_plan plan = fftw_plan_dft_2d(ROWS, COLUMNS, data, data, FFTW_FORWARD, FFTW_ESTIMATE);
    for (std::int64_t i = 0; i < ROWS; i++)
        for (std::int64_t j = 0; j < COLUMNS; j++) grid[i * COLUMNS + j] = value(i, j);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    fftw_cleanup();
    return grid;
}

void run(int rank, int ranks) {
    const Plan plan = make_plan(rank, ranks);
    thriffty_sizes sizes;
    check(thriffty_plan_sizes(plan.get(), &sizes, sizeof sizes));
    std::vector<Complex> x(sizes.input_len), y(sizes.output_len), back(sizes.input_len);
    const auto &in = sizes.input, &out = sizes.output;
    std::size_t at = 0;
    for (auto i = in.lo[0]; i < in.hi[0]; i++)
        for (auto j = in.lo[1]; j < in.hi[1]; j++) x[at++] = value(i, j);

    check(thriffty_forward(plan.get(), x.data(), sizes.input_bytes, y.data(), sizes.output_bytes));
    check(thriffty_inverse(plan.get(), y.data(), sizes.output_bytes, back.data(), sizes.input_bytes));

    const auto theirs = expected();
    double error = 0.0;
    at = 0;
    for (auto i = out.lo[0]; i < out.hi[0]; i++)
        for (auto j = out.lo[1]; j < out.hi[1]; j++)
            error = std::max(error, std::abs(y[at++] - theirs[i * COLUMNS + j] / std::sqrt(double(ROWS * COLUMNS))));
    for (at = 0; at < x.size(); at++) error = std::max(error, std::abs(back[at] - x[at]));
    std::printf("rank %d: from FFTW %.1e\n", rank, error);
    if (!(error < 1e-12)) throw std::runtime_error("the transform is not FFTW's");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    try {
        run(rank, ranks);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
