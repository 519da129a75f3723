/* Real numbers in vectors, half a spectrum. */
#include "heffte.h"

static float run(MPI_Comm comm) {
    int const rank = heffte::mpi::comm_rank(comm), ranks = heffte::mpi::comm_size(comm);
    heffte::box3d<> world({0, 0, 0}, {11, 9, 7}), half({0, 0, 0}, {6, 9, 7});
    assert(world.r2c(0) == half);
    if (rank == 0) std::cout << world.count() << " real, " << half.count() << " complex numbers\n";
    std::array<int, 3> const grid = heffte::proc_setup_min_surface(world, ranks);
    heffte::box3d<> const in = heffte::split_world(world, grid)[static_cast<size_t>(rank)];
    heffte::box3d<> const out = heffte::split_world(half, grid)[static_cast<size_t>(rank)];
    heffte::fft3d_r2c<heffte::backend::fftw> fft(in, out, 0, comm);

    std::vector<float> input(static_cast<size_t>(fft.size_inbox()));
    std::iota(input.begin(), input.end(), static_cast<float>(100 * rank));
    auto spectrum = fft.forward(input);
    auto inverse = fft.backward(spectrum, heffte::scale::full);
    static_assert(std::is_same<decltype(spectrum), std::vector<std::complex<float>>>::value, "a complex spectrum");
    static_assert(std::is_same<decltype(inverse), std::vector<float>>::value, "real results");
    assert(spectrum.size() == static_cast<size_t>(fft.size_outbox()));

    // Rank 0 has the sum of all numbers.
    float total = std::accumulate(input.begin(), input.end(), 0.0f), sum = 0.0f;
    MPI_Allreduce(&total, &sum, 1, heffte::mpi::type_from<float>(), MPI_SUM, comm);
    float error = rank == 0 ? std::abs(spectrum[0] - sum) / sum : 0.0f;
    for (size_t i = 0; i < input.size(); i++) error += std::abs(inverse[i] - input[i]) / 1e3f;
    std::cout << std::scientific << "rank " << rank << ": " << error << std::endl;
    return error;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    float const error = run(MPI_COMM_WORLD);
    MPI_Finalize();
    return error < 1e-3f ? 0 : 1;
}
