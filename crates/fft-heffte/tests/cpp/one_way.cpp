/* As LAMMPS: backward transforms go from input boxes to output boxes. */
#define FFT_HEFFTE
#include "reference.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Report report;
    {
        int const ranks = heffte::mpi::comm_size(MPI_COMM_WORLD);
        size_t const me = static_cast<size_t>(heffte::mpi::world_rank());
        Index const size = {{8, 9, 10}};
        Grid field = Grid::random(size, 1, false), spectrum = field.transformed(exponential);
        Box const in = boxes(size, ranks, 1)[me], out = boxes(size, ranks, 2, {{1, 0, 2}})[me];
        heffte::fft3d<heffte::backend::fftw> const fft(in, out, MPI_COMM_WORLD);
        auto const frequencies = part<std::complex<double>>(spectrum, in);
        std::vector<std::complex<double>> data(fft.size_workspace() + 1);
        std::copy(frequencies.begin(), frequencies.end(), data.begin());
        fft.backward(data.data(), data.data());
        report.near(distance(data.data(), field, out, 720.0), 1e-11, "backward in place");
        auto const found = fft.backward(frequencies, heffte::scale::full);
        report.near(distance(found.data(), field, out, 1.0), 1e-11, "backward of vectors");
        auto const points = part<std::complex<double>>(field, in);
        fft.forward(points.data(), data.data());
        report.near(distance(data.data(), spectrum, out, 1.0), 1e-11, "forward");
    }
    int const status = report.finish("one way");
    MPI_Finalize();
    return status;
}
