/* Calls as programs that use heFFTe make them. */
#include "reference.h"

using heffte::scale;

/** A complex type of a program's own. */
template <typename T>
struct Pair {
    T re, im;
};

namespace heffte {
template <>
struct is_ccomplex<Pair<float>> : std::true_type {};
template <>
struct is_zcomplex<Pair<double>> : std::true_type {};
} // namespace heffte

static int ranks() { return heffte::mpi::comm_size(MPI_COMM_WORLD); }
static size_t me() { return static_cast<size_t>(heffte::mpi::world_rank()); }

/** As molecular dynamics programs do: options by name, a unique pointer, workspace, in place. */
static void particle_mesh(Report &report) {
    using backend = heffte::backend::fftw;
    Index const size = {{8, 9, 10}};
    Grid field = Grid::random(size, 1, false), spectrum = field.transformed(exponential);
    Box const in = boxes(size, ranks(), 1)[me()], out = boxes(size, ranks(), 0)[me()];
    heffte::plan_options options = heffte::default_options<backend>();
    options.algorithm = heffte::reshape_algorithm::p2p_plined;
    options.use_reorder = false;
    options.use_pencils = false;
    std::unique_ptr<heffte::fft3d<backend>> plan(new heffte::fft3d<backend>(
        heffte::box3d<>({in.low[0], in.low[1], in.low[2]}, {in.high[0], in.high[1], in.high[2]}),
        heffte::box3d<>({out.low[0], out.low[1], out.low[2]}, {out.high[0], out.high[1], out.high[2]}), MPI_COMM_WORLD,
        options));
    std::vector<std::complex<double>> work(plan->size_workspace());
    size_t const most = static_cast<size_t>(std::max(plan->size_inbox(), plan->size_outbox()));
    std::vector<double> data = std::vector<double>(2 * most + 2);
    auto const numbers = part<std::complex<double>>(field, in);
    auto *const array = reinterpret_cast<std::complex<double> *>(data.data());
    std::copy(numbers.begin(), numbers.end(), array);
    plan->forward(array, array, work.data());
    report.near(distance(array, spectrum, out, 1.0), 1e-11, "forward in place");
    plan->backward(array, array, work.data(), scale::full);
    report.near(distance(array, field, in, 1.0), 1e-11, "backward in place");
}

/** Some ranks in place, others not; arrays that overlap in part. */
static void aliasing(Report &report) {
    Index const size = {{6, 8, 10}};
    Grid field = Grid::random(size, 5, true), spectrum = field.transformed(exponential);
    Box const in = boxes(size, ranks(), 2)[me()];
    Index const short_size = {{6, 5, 10}};
    Box const half = boxes(short_size, ranks(), 0)[me()], out = boxes(size, ranks(), 0)[me()];
    heffte::fft3d_r2c<heffte::backend::stock> const r2c(in, half, 1, MPI_COMM_WORLD);
    heffte::fft3d<heffte::backend::stock> const c2c(in, out, MPI_COMM_WORLD);
    for (int way = 0; way < 4; way++) {
        std::vector<std::complex<double>> memory(2 * (in.count() + out.count()) + 8);
        auto *const reals = reinterpret_cast<double *>(memory.data());
        auto const numbers = part<double>(field, in);
        bool const same = way == 0 || (way == 1 && me() % 2 == 0);
        std::complex<double> *const output = memory.data() + (same ? 0 : way == 2 ? 1 : in.count() + 1);
        std::string const what = " of way " + std::to_string(way);
        std::copy(numbers.begin(), numbers.end(), reals);
        r2c.forward(reals, output);
        report.near(distance(output, spectrum, half, 1.0), 1e-11, "r2c forward" + what);
        r2c.backward(output, reals, scale::full);
        report.near(distance(reals, field, in, 1.0), 1e-11, "r2c backward" + what);
        c2c.forward(reals, output, scale::symmetric);
        report.near(distance(output, spectrum, out, 1.0 / std::sqrt(480.0)), 1e-11, "real c2c forward" + what);
        c2c.backward(output, reals, scale::symmetric);
        report.near(distance(reals, field, in, 1.0), 1e-11, "real c2c backward" + what);
    }
}

/** As grid libraries do: boxes of two and three dimensions from arrays, shared pointers. */
template <size_t D>
static void boxes_of_dimension(Report &report) {
    Index const size = {{12, 10, D == 3 ? 6 : 1}};
    Grid field = Grid::random(size, 7, false), spectrum = field.transformed(exponential);
    Box const box = boxes(size, ranks(), 1)[me()];
    std::array<int, D> low, high;
    for (size_t d = 0; d < D; d++) {
        low[d] = box.low[d];
        high[d] = box.empty() && d == 0 ? box.low[d] - 1 : box.high[d];
    }
    heffte::box3d<> const in(low, high), out(low, high);
    using Fft = heffte::fft3d<heffte::backend::mkl>;
    heffte::plan_options const options(true, heffte::reshape_algorithm::alltoallv, true);
    auto const fft = std::make_shared<Fft>(in, out, MPI_COMM_WORLD, options);
    report.expect(fft->size_inbox() == box.count() && fft->inbox() == in, "the boxes of a plan");
    std::vector<Pair<double>> data = part<Pair<double>>(field, box), work(fft->size_workspace() + 1);
    data.resize(data.size() + 1);
    fft->forward(data.data(), data.data(), work.data(), scale::none);
    report.near(distance(data.data(), spectrum, box, 1.0), 1e-11, "program's complex type");
    fft->backward(data.data(), data.data(), work.data(), scale::full);
    report.near(distance(data.data(), field, box, 1.0), 1e-11, "program's complex type back");
}

/** As simulation frameworks do: template-template arguments, 64-bit indices, batches. */
template <template <typename, typename> class Fft, typename Backend, typename T>
struct Framework {
    using Transform = Fft<Backend, long long>;
    template <typename U>
    using Buffer = typename Transform::template buffer_container<U>;

    template <typename... More>
    explicit Framework(Box const &in, Box const &out, More... more)
        : fft(std::make_shared<Transform>(wide(in), wide(out), more..., MPI_COMM_WORLD)) {}

    static heffte::box3d<long long> wide(Box const &box) {
        return heffte::box3d<long long>({{box.low[0], box.low[1], box.low[2]}}, {{box.high[0], box.high[1], box.high[2]}},
                                        box.order);
    }
    std::shared_ptr<Transform> fft;
};

static void frameworks(Report &report) {
    Index const size = {{6, 8, 7}}, halved = {{4, 8, 7}};
    Box const in = boxes(size, ranks(), 0)[me()], out = boxes(size, ranks(), 1)[me()];
    Box const half = boxes(halved, ranks(), 2)[me()];
    Framework<heffte::fft3d, heffte::backend::fftw, float> const complex(in, out);
    Framework<heffte::fft3d_r2c, heffte::backend::fftw, float> const real(in, half, 0);
    for (int batch : {1, 3, 2}) {
        decltype(complex)::Buffer<std::complex<float>> input, output(static_cast<size_t>(batch * out.count()) + 1);
        std::vector<Grid> fields, spectra;
        std::vector<float> reals, back(static_cast<size_t>(batch * in.count()) + 1);
        std::vector<std::complex<float>> halves(static_cast<size_t>(batch * half.count()) + 1);
        for (int array = 0; array < batch; array++) {
            fields.push_back(Grid::random(size, array, true));
            spectra.push_back(fields.back().transformed(exponential));
            auto const numbers = part<std::complex<float>>(fields.back(), in);
            auto const plain = part<float>(fields.back(), in);
            input.insert(input.end(), numbers.begin(), numbers.end());
            reals.insert(reals.end(), plain.begin(), plain.end());
        }
        complex.fft->forward(batch, input.data(), output.data(), scale::full);
        real.fft->forward(batch, reals.data(), halves.data());
        real.fft->backward(batch, halves.data(), back.data(), scale::full);
        for (int array = 0; array < batch; array++) {
            auto &spectrum = spectra[static_cast<size_t>(array)];
            std::string const what = std::to_string(array) + " of " + std::to_string(batch);
            report.near(distance(output.data() + array * out.count(), spectrum, out, 1.0 / 336), 1e-5, "array " + what);
            report.near(distance(halves.data() + array * half.count(), spectrum, half, 1.0), 1e-5, "real array " + what);
            report.near(distance(back.data() + array * in.count(), fields[static_cast<size_t>(array)], in, 1.0), 1e-5,
                        "array back " + what);
        }
    }
}

/** As lattice programs do: types by traits, orders, null streams, inputs that must be kept. */
static void lattice(Report &report) {
    using backend = heffte::backend::default_backend<heffte::tag::cpu>::type;
    using Fft = heffte::fft3d_r2c<backend>;
    using Output = heffte::fft_output<double>::type;
    Index const size = {{8, 6, 9}};
    std::array<int, 3> const order = {{2, 1, 0}};
    Box const world({{0, 0, 0}}, {{7, 5, 8}}, order);
    Box const spectrum_world = world.r2c(0);
    auto const grid = heffte::proc_setup_min_surface(world, ranks());
    Box const in = heffte::split_world(world, grid)[me()];
    Box const out = heffte::split_world(spectrum_world, {{1, 1, ranks()}})[me()];
    report.expect(spectrum_world.high[0] == 4 && in.order == order, "boxes keep their order");
    Fft::stream_type const stream = nullptr;
    Fft fft(stream, in, out, 0, MPI_COMM_WORLD, heffte::default_options<backend>());
    report.expect(fft.stream() == nullptr, "no stream on the CPU");
    Grid field = Grid::random(size, 11, true), spectrum = field.transformed(exponential);
    std::vector<double> const input = part<double>(field, in);
    Fft::output_buffer_container<double> const output = fft.forward(input, scale::none);
    static_assert(std::is_same<Output, std::complex<double>>::value, "spectra of double are complex");
    report.near(distance(output.data(), spectrum, out, 1.0), 1e-11, "vector forward");
    auto const kept = output;
    Fft::buffer_container<double> moved = fft.backward(output, scale::full);
    report.expect(kept == output, "the input is kept");
    Fft::buffer_container<double> const back(std::move(moved));
    report.near(distance(back.data(), field, in, 1.0), 1e-11, "vector backward");

    heffte::fft3d<backend> const full(heffte::split_world(world, grid)[me()], heffte::split_world(world, grid)[me()],
                                      MPI_COMM_WORLD);
    auto const whole = full.forward(input);
    report.near(distance(whole.data(), spectrum, in, 1.0), 1e-11, "real vector forward");
    std::vector<double> const real = full.backward_real(whole, scale::full);
    report.near(distance(real.data(), field, in, 1.0), 1e-11, "real vector backward");
}

/** As phase-field programs do: a transform moved into a constant member. */
class Stepper {
public:
    explicit Stepper(heffte::fft3d_r2c<heffte::backend::fftw> fft) : fft_(std::move(fft)) {}
    long long points() const { return fft_.inbox().count(); }
    heffte::fft3d_r2c<heffte::backend::fftw> const fft_;
};

static void moved(Report &report) {
    Index const size = {{5, 6, 7}}, halved = {{3, 6, 7}};
    Box const in = boxes(size, ranks(), 2)[me()], out = boxes(halved, ranks(), 1)[me()];
    Stepper const stepper(
        heffte::make_fft3d_r2c<heffte::backend::fftw>(in, out, 0, MPI_COMM_WORLD));
    report.expect(stepper.points() == in.count(), "a moved transform has its boxes");
    Grid field = Grid::random(size, 13, true), spectrum = field.transformed(exponential);
    std::vector<double> const input = part<double>(field, in);
    std::vector<std::complex<double>> output(static_cast<size_t>(out.count()) + 1);
    stepper.fft_.forward(input.data(), output.data());
    report.near(distance(output.data(), spectrum, out, 1.0), 1e-11, "a moved transform");
}

/** Plans for each call, on a communicator that comes and goes. */
static void passing(Report &report) {
    Index const size = {{8, 8, 8}};
    Grid field = Grid::random(size, 17, false), spectrum = field.transformed(exponential);
    Box const in = boxes(size, ranks(), 0)[me()], out = boxes(size, ranks(), 1)[me()];
    auto const input = part<std::complex<double>>(field, in);
    for (int round = 0; round < 6; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        std::unique_ptr<heffte::fft3d<heffte::backend::stock>> outlives;
        for (int call = 0; call < 6; call++) {
            // More different boxes than are kept.
            Box const other = boxes(size, ranks(), call % 3, {{call % 2, 1 - call % 2, 2}})[me()];
            outlives.reset(new heffte::fft3d<heffte::backend::stock>(in, call < 3 ? other : out, comm));
            std::vector<std::complex<double>> output(static_cast<size_t>(outlives->size_outbox()) + 1);
            outlives->forward(input.data(), output.data());
            report.near(distance(output.data(), spectrum, outlives->outbox(), 1.0), 1e-11, "a plan for one call");
        }
        MPI_Comm_free(&comm);
        std::vector<std::complex<double>> output(static_cast<size_t>(out.count()) + 1);
        outlives->forward(input.data(), output.data(), scale::full);
        report.near(distance(output.data(), spectrum, out, 1.0 / 512), 1e-11, "after its communicator");
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Report report;
    particle_mesh(report);
    aliasing(report);
    boxes_of_dimension<2>(report);
    boxes_of_dimension<3>(report);
    frameworks(report);
    lattice(report);
    moved(report);
    passing(report);
    int const status = report.finish("users");
    MPI_Finalize();
    return status;
}
