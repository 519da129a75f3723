/* Options, another box and order for the output, a workspace, and real input. */
#include "heffte.h"

static float run(MPI_Comm comm) {
    int const rank = heffte::mpi::comm_rank(comm), ranks = heffte::mpi::comm_size(comm);
    heffte::box3d<> world({0, 0, 0}, {11, 7, 9});
    std::array<int, 3> grid = heffte::proc_setup_min_surface(world, ranks);
    std::vector<heffte::box3d<>> parts = heffte::split_world(world, grid);
    size_t const mine = static_cast<size_t>(rank), next = static_cast<size_t>((rank + 1) % ranks);
    heffte::box3d<> const in = parts[mine];
    heffte::box3d<> const out(parts[next].low, parts[next].high, {2, 0, 1});

    heffte::plan_options options = heffte::default_options<heffte::backend::fftw>();
    options.use_reorder = false;
    options.use_pencils = true;
    options.algorithm = heffte::reshape_algorithm::p2p_plined;
    heffte::fft3d<heffte::backend::fftw> fft(in, out, comm, options);

    // One mode along dimension 1, twice in the spectrum.
    std::vector<float> input;
    float const turn = 2 * std::acos(-1.0f);
    for (int k = in.low[2]; k <= in.high[2]; k++)
        for (int j = in.low[1]; j <= in.high[1]; j++)
            for (int i = in.low[0]; i <= in.high[0]; i++) input.push_back(std::cos(turn * static_cast<float>(3 * j) / 8));
    std::vector<std::complex<float>> output(static_cast<size_t>(fft.size_outbox())), work(fft.size_workspace());
    fft.forward(input.data(), output.data(), work.data(), heffte::scale::full);
    float error = 0.0f;
    size_t at = 0;
    for (int j = out.low[1]; j <= out.high[1]; j++)
        for (int i = out.low[0]; i <= out.high[0]; i++)
            for (int k = out.low[2]; k <= out.high[2]; k++) {
                bool const peak = i == 0 && k == 0 && (j == 3 || j == 5);
                error += std::abs(output[at++] - (peak ? 0.5f : 0.0f));
            }
    std::vector<float> inverse(input.size());
    fft.backward(output.data(), inverse.data(), work.data());
    for (size_t i = 0; i < input.size(); i++) error += std::abs(inverse[i] - input[i]);
    std::cout << std::scientific << std::setprecision(2) << "rank " << rank << " of " << ranks << ": " << error << "\n";
    return error;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    float const error = run(MPI_COMM_WORLD);
    MPI_Finalize();
    return error < 1e-3f ? 0 : 1;
}
