/* Cosine transforms between pencils along two dimensions. */
#include "heffte.h"

#ifdef Heffte_ENABLE_FFTW
using backend = heffte::backend::fftw_cos;
#else
using backend = heffte::backend::stock_cos;
#endif

static double run(MPI_Comm comm) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    std::array<int, 2> const grid = heffte::make_procgrid(ranks);
    heffte::box3d<> const world = {{0, 0, 0}, {15, 11, 9}};
    heffte::box3d<> const in = heffte::split_world(world, {{1, grid[0], grid[1]}})[static_cast<size_t>(rank)];
    heffte::box3d<> const out = heffte::split_world(world, {{grid[0], grid[1], 1}})[static_cast<size_t>(rank)];
    heffte::rtransform<backend> transform(in, out, comm);

    std::vector<double> input(static_cast<size_t>(transform.size_inbox()), 1.0), inverse(input.size());
    std::vector<double> output(static_cast<size_t>(transform.size_outbox())), work(transform.size_workspace());
    transform.forward(input.data(), output.data());
    // A constant is its first mode: twice the number of points, in each dimension.
    double error = 0.0;
    for (size_t i = 0; i < output.size(); i++) {
        bool const first = i == 0 && out.low[0] == 0 && out.low[1] == 0;
        error += std::abs(output[i] - (first ? 8.0 * 16 * 12 * 10 : 0.0));
    }
    transform.backward(output.data(), inverse.data(), work.data(), heffte::scale::full);
    for (size_t i = 0; i < input.size(); i++) error += std::abs(inverse[i] - input[i]);
    for (int turn = 0; turn < ranks; turn++) {
        if (turn == rank) std::cout << std::scientific << "rank " << rank << ": " << error << std::endl;
        MPI_Barrier(comm);
    }
    return error;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double const error = run(MPI_COMM_WORLD);
    MPI_Finalize();
    return error < 1e-9 ? 0 : 1;
}
