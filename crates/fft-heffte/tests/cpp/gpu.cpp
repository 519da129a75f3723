/* Transforms of data on GPUs against the definition; ranks have the GPUs of their host in turn.
 *
 *     mpicxx -std=c++11 -DTHRIFFTY_HEFFTE_CUDA gpu.cpp -o gpu -I PREFIX/include/thriffty/heffte \
 *         -I CUDA/include -L PREFIX/lib -lthriffty -L CUDA/lib64 -lcudart
 */
#include "reference.h"

using heffte::scale;
namespace gpu = heffte::gpu;

template <typename T, typename S, typename Fft>
static void check(Report &report, Fft const &fft, Grid &field, Grid &spectrum, std::string const &what) {
    using real = typename heffte::define_real_type<T>::type;
    double const bound = std::is_same<real, float>::value ? 1e-4 : 1e-11;
    double const points = 1.0 / fft.get_scale_factor(scale::full);
    Box const in = fft.inbox(), out = fft.outbox();
    auto const input = gpu::transfer::load(part<T>(field, in));
    size_t const results = static_cast<size_t>(fft.size_outbox());
    gpu::vector<S> output(results), work(fft.size_workspace());
    fft.forward(input.data(), output.data());
    report.near(distance(gpu::transfer::unload(output).data(), spectrum, out, 1.0), bound, what + " forward");
    fft.forward(input.data(), output.data(), work.data(), scale::full);
    report.near(distance(gpu::transfer::unload(output).data(), spectrum, out, 1.0 / points), bound, what + " workspace");
    gpu::vector<T> back(input.size());
    fft.backward(output.data(), back.data());
    report.near(distance(gpu::transfer::unload(back).data(), field, in, 1.0), bound, what + " backward");

    // In place, at the beginning of an array with room for both.
    gpu::vector<S> both(std::max(input.size(), results));
    T *const start = reinterpret_cast<T *>(both.data());
    gpu::check(cudaMemcpy(start, input.data(), input.size() * sizeof(T), cudaMemcpyDeviceToDevice));
    fft.forward(start, both.data(), scale::symmetric);
    auto const found = gpu::transfer::unload(both.data(), results);
    report.near(distance(found.data(), spectrum, out, 1.0 / std::sqrt(points)), bound, what + " in place");
    fft.backward(both.data(), start, scale::symmetric);
    auto const again = gpu::transfer::unload(start, input.size());
    report.near(distance(again.data(), field, in, 1.0), bound, what + " back in place");
}

template <typename T>
static void cases(Report &report, int ranks, size_t me) {
    using backend = heffte::backend::default_backend<heffte::tag::gpu>::type;
    Index const size = {{12, 10, 9}}, halved = {{12, 6, 9}};
    Grid field = Grid::random(size, 1, false), real_field = Grid::random(size, 2, true);
    Grid spectrum = field.transformed(exponential), real_spectrum = real_field.transformed(exponential);
    Box const in = boxes(size, ranks, 1, {{1, 2, 0}})[me], out = boxes(size, ranks, 2, {{2, 0, 1}})[me];
    Box const half = boxes(halved, ranks, 0)[me];
    heffte::fft3d<backend> const fft(in, out, MPI_COMM_WORLD);
    cudaStream_t stream = nullptr;
    gpu::check(cudaStreamCreate(&stream));
    {
        heffte::fft3d_r2c<backend> const r2c(stream, in, half, 1, MPI_COMM_WORLD);
        std::string const bytes = std::to_string(sizeof(T));
        check<std::complex<T>, std::complex<T>>(report, fft, field, spectrum, "complex " + bytes);
        check<T, std::complex<T>>(report, fft, real_field, real_spectrum, "real to complex " + bytes);
        report.expect(r2c.stream() == stream, "the stream of a transform");
        auto const input = gpu::transfer::load(part<T>(real_field, in));
        gpu::vector<std::complex<T>> const found = r2c.forward(input, scale::none);
        gpu::vector<T> const back = r2c.backward(found, scale::full);
        r2c.synchronize_device();
        double const bound = sizeof(T) == 4 ? 1e-4 : 1e-11;
        report.near(distance(gpu::transfer::unload(found).data(), real_spectrum, half, 1.0), bound, "vectors r2c " + bytes);
        report.near(distance(gpu::transfer::unload(back).data(), real_field, in, 1.0), bound, "vectors c2r " + bytes);
    }
    gpu::check(cudaStreamDestroy(stream));
}

using Gpu = heffte::fft3d<heffte::backend::cufft>;
static_assert(std::is_move_constructible<Gpu>::value && std::is_move_assignable<Gpu>::value, "movable");
static_assert(!std::is_copy_constructible<Gpu>::value && !std::is_copy_assignable<Gpu>::value, "not copyable");

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Report report;
    {
        int const ranks = heffte::mpi::comm_size(MPI_COMM_WORLD), rank = heffte::mpi::world_rank();
        gpu::device_set(rank % gpu::device_count());
        cases<double>(report, ranks, static_cast<size_t>(rank));
        cases<float>(report, ranks, static_cast<size_t>(rank));
    }
    int const status = report.finish("gpu");
    MPI_Finalize();
    return status;
}
