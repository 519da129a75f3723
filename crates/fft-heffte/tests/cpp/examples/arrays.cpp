/* Pointers: a grid over two ranks, compared with the same on one. */
#include "heffte.h"

static double run(MPI_Comm comm) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (ranks != 2) throw std::runtime_error("two ranks share the grid");
    heffte::box3d<> const front = {{0, 0, 0}, {4, 3, 1}}, back = {{0, 0, 2}, {4, 3, 5}}, all = {{0, 0, 0}, {4, 3, 5}};
    heffte::box3d<> const mine = rank == 0 ? front : back;
    heffte::fft3d<heffte::backend::fftw> fft(mine, mine, comm);

    std::vector<std::complex<double>> numbers(5 * 4 * 6), spectrum(numbers.size());
    std::iota(numbers.begin(), numbers.end(), 1);
    MPI_Comm alone;
    MPI_Comm_split(comm, rank, 0, &alone);
    heffte::fft3d<heffte::backend::fftw>(all, all, alone).forward(numbers.data(), spectrum.data());
    MPI_Comm_free(&alone);

    size_t const first = static_cast<size_t>(mine.low[0] + mine.size[0] * (mine.low[1] + 4 * mine.low[2]));
    std::vector<std::complex<double>> input(static_cast<size_t>(fft.size_inbox()));
    std::vector<std::complex<double>> output(static_cast<size_t>(fft.size_outbox()));
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(first), input.size(), input.begin());
    fft.forward(input.data(), output.data());
    // The sum of 1 to 120.
    double error = rank == 0 ? std::abs(output[0] - 7260.0) : 0.0;
    for (size_t i = 0; i < output.size(); i++) error += std::abs(output[i] - spectrum[first + i]);
    std::fill(input.begin(), input.end(), std::complex<double>(0.0, 0.0));
    fft.backward(output.data(), input.data());
    for (auto &number : input) number /= 120.0;
    for (size_t i = 0; i < input.size(); i++) error += std::abs(input[i] - numbers[first + i]);
    std::cout << std::scientific << "rank " << rank << ": " << error << std::endl;
    return error;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double const error = run(MPI_COMM_WORLD);
    MPI_Finalize();
    return error < 1e-9 ? 0 : 1;
}
