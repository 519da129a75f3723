/* Vectors in and out, complex and real, symmetric scales. */
#include "heffte.h"

static double run(MPI_Comm comm) {
    int const rank = heffte::mpi::comm_rank(comm), ranks = heffte::mpi::comm_size(comm);
    heffte::box3d<> world({0, 0, 0}, {7, 9, 11});
    auto const parts = heffte::split_world(world, heffte::proc_setup_min_surface(world, ranks));
    heffte::box3d<> const mine = parts[static_cast<size_t>(rank)];
    heffte::plan_options options = heffte::default_options<heffte::backend::fftw>();
    options.use_pencils = false;
    heffte::fft3d<heffte::backend::fftw> fft(mine, mine, comm, options);

    std::vector<double> input(static_cast<size_t>(fft.size_inbox()));
    std::iota(input.begin(), input.end(), 0);
    auto const spectrum = fft.forward(input, heffte::scale::symmetric);
    auto const numbers = fft.backward(spectrum, heffte::scale::symmetric);
    auto const reals = fft.backward_real(spectrum, heffte::scale::symmetric);
    static_assert(std::is_same<decltype(numbers), std::vector<std::complex<double>> const>::value, "complex results");
    static_assert(std::is_same<decltype(reals), std::vector<double> const>::value, "real results");

    // Symmetric scales keep the sum of squares.
    double sums[2] = {0.0, 0.0}, all[2];
    for (double const number : input) sums[0] += number * number;
    for (auto const &number : spectrum) sums[1] += std::norm(number);
    MPI_Allreduce(sums, all, 2, heffte::mpi::type_from<double>(), MPI_SUM, comm);
    double error = std::abs(all[1] / all[0] - 1.0);
    for (size_t i = 0; i < input.size(); i++) {
        error += std::abs(numbers[i] - input[i]);
        error += std::abs(reals[i] - input[i]);
    }
    std::cout << std::scientific << "rank " << rank << ": " << error << std::endl;
    return error;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double const error = run(MPI_COMM_WORLD);
    MPI_Finalize();
    return error < 1e-9 ? 0 : 1;
}
