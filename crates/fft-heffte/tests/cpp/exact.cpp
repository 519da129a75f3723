/* Every backend, precision, scale, order and halved dimension against the definition. */
#include "reference.h"

using heffte::scale;

static scale const scales[] = {scale::none, scale::full, scale::symmetric};
static std::array<int, 3> const orders[] = {{{0, 1, 2}}, {{0, 2, 1}}, {{1, 0, 2}}, {{1, 2, 0}}, {{2, 0, 1}}, {{2, 1, 0}}};

static double factor(scale scaling, double points) {
    return scaling == scale::none ? 1.0 : scaling == scale::full ? 1.0 / points : 1.0 / std::sqrt(points);
}

template <typename T>
double bound() {
    return std::is_same<T, float>::value ? 1e-4 : 1e-11;
}

/** Forward and backward between boxes of all ranks, by every scale. `points` is N. */
template <typename T, typename S, typename Fft>
void check(Report &report, Fft const &fft, Grid &field, Grid &spectrum, double points, std::string const &what) {
    using real = typename heffte::define_real_type<T>::type;
    auto const input = part<T>(field, fft.inbox());
    auto const frequencies = part<S>(spectrum, fft.outbox());
    std::vector<S> output(input.size() + frequencies.size() + 1);
    std::vector<T> back(input.size() + 1);
    std::vector<S> work(fft.size_workspace() + 1);
    for (scale scaling : scales) {
        double const f = factor(scaling, points);
        report.near(std::abs(fft.get_scale_factor(scaling) - f), 1e-15 * f, what + " factor");
        fft.forward(input.data(), output.data(), scaling);
        report.near(distance(output.data(), spectrum, fft.outbox(), f), bound<real>(), what + " forward");
        fft.backward(frequencies.data(), back.data(), scaling);
        report.near(distance(back.data(), field, fft.inbox(), f * points), bound<real>(), what + " backward");
        fft.forward(input.data(), output.data(), work.data(), scaling);
        report.near(distance(output.data(), spectrum, fft.outbox(), f), bound<real>(), what + " with workspace");
    }
}

template <typename Tag, typename T>
void complex_cases(Report &report, Index size, int ranks, int rank) {
    double const points = static_cast<double>(size[0]) * size[1] * size[2];
    Grid field = Grid::random(size, 1, false), real_field = Grid::random(size, 2, true);
    Grid spectrum = field.transformed(exponential), real_spectrum = real_field.transformed(exponential);
    for (auto const &from : orders)
        for (auto const &to : orders) {
            // Plans over several ranks take longer: one output order for each input order.
            if (ranks > 1 && !(to[0] == from[1] && to[1] == from[2])) continue;
            auto const in = boxes(size, ranks, 1, from), out = boxes(size, ranks, 2, to);
            size_t const me = static_cast<size_t>(rank);
            heffte::fft3d<Tag> const fft(in[me], out[me], MPI_COMM_WORLD);
            std::string const what = heffte::backend::name<Tag>() + " " + std::to_string(sizeof(T));
            check<std::complex<T>, std::complex<T>>(report, fft, field, spectrum, points, what + " c2c");
            check<T, std::complex<T>>(report, fft, real_field, real_spectrum, points, what + " real c2c");
            for (int halved = 0; halved < 3; halved++) {
                Index short_size = size;
                short_size[halved] = size[halved] / 2 + 1;
                auto const half = boxes(short_size, ranks, 0, to);
                heffte::fft3d_r2c<Tag> const r2c(in[me], half[me], halved, MPI_COMM_WORLD);
                check<T, std::complex<T>>(report, r2c, real_field, real_spectrum, points, what + " r2c");
            }
        }
}

template <typename Tag, typename T>
void real_cases(Report &report, Index size, int ranks, int rank, Weight const &weight, double points, int dimensions = 3) {
    Grid field = Grid::random(size, 3, true);
    Grid spectrum = field.transformed(weight, dimensions);
    for (auto const &order : orders) {
        auto const in = boxes(size, ranks, 2, order), out = boxes(size, ranks, 1);
        size_t const me = static_cast<size_t>(rank);
        heffte::rtransform<Tag> const fft(in[me], out[me], MPI_COMM_WORLD);
        check<T, T>(report, fft, field, spectrum, points, heffte::backend::name<Tag>() + " " + std::to_string(sizeof(T)));
    }
}

template <typename Tag, typename Cos, typename Sin, typename Cos1, typename Sin1, typename T>
void all_cases(Report &report, int ranks, int rank) {
    Index const size = {{6, 7, 8}};
    complex_cases<Tag, T>(report, size, ranks, rank);
    real_cases<Cos, T>(report, size, ranks, rank, cosine2, 8.0 * 6 * 7 * 8);
    real_cases<Sin, T>(report, size, ranks, rank, sine2, 8.0 * 6 * 7 * 8);
    real_cases<Cos1, T>(report, size, ranks, rank, cosine1, 8.0 * 5 * 6 * 7);
    real_cases<Sin1, T>(report, size, ranks, rank, sine1, 8.0 * 7 * 8 * 9);
    real_cases<Cos, T>(report, {{6, 7, 1}}, ranks, rank, cosine2, 4.0 * 6 * 7, 2);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Report report;
    {
        using namespace heffte::backend;
        int const ranks = heffte::mpi::comm_size(MPI_COMM_WORLD), rank = heffte::mpi::world_rank();
        all_cases<fftw, fftw_cos, fftw_sin, fftw_cos1, fftw_sin1, double>(report, ranks, rank);
        all_cases<fftw, fftw_cos, fftw_sin, fftw_cos1, fftw_sin1, float>(report, ranks, rank);
        if (ranks == 1) {
            all_cases<stock, stock_cos, stock_sin, stock_cos1, stock_sin1, double>(report, ranks, rank);
            all_cases<stock, stock_cos, stock_sin, stock_cos1, stock_sin1, float>(report, ranks, rank);
            all_cases<mkl, mkl_cos, mkl_sin, mkl_cos1, mkl_sin1, double>(report, ranks, rank);
            all_cases<mkl, mkl_cos, mkl_sin, mkl_cos1, mkl_sin1, float>(report, ranks, rank);
        }
    }
    int const status = report.finish("exact");
    MPI_Finalize();
    return status;
}
