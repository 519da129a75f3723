/* Times transforms with heFFTe's interface. MIT OR Apache-2.0.
 *
 * One program with four names: speed3d_c2c, speed3d_r2c, speed3d_r2r and convolution.
 *
 *     mpirun -n 4 speed3d_c2c fftw double 128 128 128 -n10 -p2p -slabs
 *     mpirun -n 4 speed3d_r2r fftw-cos float 64 64 64
 *
 * Lines and options are the same as in heFFTe's benchmarks, for scripts. Precisions are float,
 * double and both with -long, for 64-bit indices.
 */
#include <heffte.h>

#include <cstdio>
#include <limits>
#include <string>

namespace {

/** The request of a call. */
struct Arguments {
    std::string program, backend, precision;
    std::array<long long, 3> size;
    int runs = 5, batch = 1, halved = 0;
    heffte::plan_options options{true, heffte::reshape_algorithm::alltoallv, true};
};

char const usage[] = "usage: %s BACKEND PRECISION N0 N1 N2 [OPTIONS]\n"
                     "  BACKEND    stock, fftw or mkl; of speed3d_r2r also with -cos, -sin, -cos1 or -sin1\n"
                     "  PRECISION  float, double, float-long or double-long\n"
                     "  -nRUNS     transforms in each direction: 5\n"
                     "  -batch N   arrays transformed at once: 1\n"
                     "  -r2c_dir D the dimension of half a spectrum, of speed3d_r2c: 0\n"
                     "  -reorder, -noreorder, -pencils, -slabs, -a2a, -a2av, -p2p, -p2p_pl\n";

/** A number from 1 to `most`, or 0. */
long long number(std::string const &word, long long most = std::numeric_limits<int>::max()) {
    bool const digits = !word.empty() && word.size() < 18 && word.find_first_not_of("0123456789") == std::string::npos;
    long long const found = digits ? std::stoll(word) : 0;
    return found <= most ? found : 0;
}

/** False for words that mean nothing. */
bool parse(std::vector<std::string> const &words, Arguments &found) {
    if (words.size() < 6) return false;
    size_t const slash = words[0].rfind('/');
    found.program = slash == std::string::npos ? words[0] : words[0].substr(slash + 1);
    found.backend = words[1];
    found.precision = words[2];
    bool const wide = found.precision.find("-long") != std::string::npos;
    for (size_t d = 0; d < 3; d++)
        if ((found.size[d] = wide ? number(words[3 + d], 1LL << 52) : number(words[3 + d])) == 0) return false;
    for (size_t at = 6; at < words.size(); at++) {
        std::string const &word = words[at];
        if (word == "-reorder" || word == "-noreorder" || word == "-no-reorder")
            found.options.use_reorder = word == "-reorder";
        else if (word == "-pencils" || word == "-slabs")
            found.options.use_pencils = word == "-pencils";
        else if (word == "-a2a")
            found.options.algorithm = heffte::reshape_algorithm::alltoall;
        else if (word == "-a2av")
            found.options.algorithm = heffte::reshape_algorithm::alltoallv;
        else if (word == "-p2p")
            found.options.algorithm = heffte::reshape_algorithm::p2p;
        else if (word == "-p2p_pl")
            found.options.algorithm = heffte::reshape_algorithm::p2p_plined;
        else if (word == "-batch" && found.program != "convolution" && at + 1 < words.size() && number(words[at + 1]) > 0)
            found.batch = static_cast<int>(number(words[++at]));
        else if (word == "-r2c_dir" && found.program == "speed3d_r2c" && at + 1 < words.size() && words[at + 1].size() == 1)
            found.halved = words[++at][0] - '0';
        else if (word.compare(0, 2, "-n") == 0 && number(word.substr(2)) > 0)
            found.runs = static_cast<int>(number(word.substr(2)));
        else
            return false;
    }
    return true;
}

/** A timed transform, and its results. */
struct Outcome {
    double seconds, error, megabytes;
};

/** Numbers between -0.5 and 0.5, other ones on each rank. */
template <typename T>
std::vector<T> random(size_t count) {
    std::vector<T> numbers(count);
    unsigned state = 2463534242u + 977u * static_cast<unsigned>(heffte::mpi::world_rank());
    using real = typename heffte::define_real_type<T>::type;
    real *const parts = reinterpret_cast<real *>(numbers.data());
    for (size_t i = 0; i < count * sizeof(T) / sizeof(real); i++) {
        state = state * 1664525u + 1013904223u;
        parts[i] = static_cast<real>((state >> 8) / 16777216.0 - 0.5);
    }
    return numbers;
}

/** The largest on any rank. */
double most(double mine) {
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

template <typename T>
double largest_difference(std::vector<T> const &a, std::vector<T> const &b) {
    double largest = 0.0;
    for (size_t i = 0; i < a.size(); i++) {
        double const off = static_cast<double>(std::abs(a[i] - b[i]));
        if (!(off <= largest)) largest = std::isnan(off) ? 1e300 : off;
    }
    return most(largest);
}

/** The time of `runs` calls, begun by all ranks together. */
template <typename Action>
double seconds(int runs, Action action) {
    MPI_Barrier(MPI_COMM_WORLD);
    double const start = MPI_Wtime();
    for (int run = 0; run < runs; run++) action();
    return most(MPI_Wtime() - start);
}

/** Forward and backward from T to S, in turns. */
template <typename T, typename S, typename Fft>
Outcome transforms(Fft const &fft, Arguments const &asked) {
    size_t const batch = static_cast<size_t>(asked.batch);
    std::vector<T> const input = random<T>(batch * static_cast<size_t>(fft.size_inbox()));
    std::vector<T> data = input;
    std::vector<S> spectrum(batch * static_cast<size_t>(fft.size_outbox()));
    auto both = [&] {
        fft.forward(asked.batch, data.data(), spectrum.data());
        fft.backward(asked.batch, spectrum.data(), data.data(), heffte::scale::full);
    };
    both();
    double const time = seconds(asked.runs, both) / (2.0 * asked.runs);
    double const bytes = static_cast<double>(input.size() * sizeof(T) + spectrum.size() * sizeof(S)) +
                         static_cast<double>(batch * fft.size_comm_buffers() * sizeof(S));
    return {time, largest_difference(input, data), most(bytes / 1048576.0)};
}

/** Convolution with a field that is 1 at the first point, which changes nothing. */
template <typename T, typename Fft>
Outcome convolutions(Fft const &fft, Arguments const &asked) {
    std::vector<T> const input = random<T>(static_cast<size_t>(fft.size_inbox()));
    std::vector<T> data = input, point(input.size());
    if (!point.empty() && fft.inbox().low[0] == 0 && fft.inbox().low[1] == 0 && fft.inbox().low[2] == 0) point[0] = 1.0;
    std::vector<T> first(static_cast<size_t>(fft.size_outbox())), second(first.size());
    auto once = [&] {
        fft.forward(data.data(), first.data());
        fft.forward(point.data(), second.data());
        for (size_t i = 0; i < first.size(); i++) first[i] *= second[i];
        fft.backward(first.data(), data.data(), heffte::scale::full);
    };
    once();
    double const time = seconds(asked.runs, once) / asked.runs;
    double const bytes = static_cast<double>((2 * input.size() + 2 * first.size()) * sizeof(T));
    return {time, largest_difference(input, data), most(bytes / 1048576.0)};
}

template <typename index>
std::vector<heffte::box3d<index>> boxes(std::array<long long, 3> size) {
    heffte::box3d<index> const world(
        {{0, 0, 0}}, {{static_cast<index>(size[0] - 1), static_cast<index>(size[1] - 1), static_cast<index>(size[2] - 1)}});
    return heffte::split_world(world, heffte::proc_setup_min_surface(world, heffte::mpi::comm_size(MPI_COMM_WORLD)));
}

template <typename T, typename index, typename Tag>
Outcome real_to_real(Arguments const &asked) {
    auto const all = boxes<index>(asked.size);
    heffte::box3d<index> const mine = all[static_cast<size_t>(heffte::mpi::world_rank())];
    return transforms<T, T>(heffte::rtransform<Tag, index>(mine, mine, MPI_COMM_WORLD, asked.options), asked);
}

template <typename T, typename index>
Outcome run(Arguments const &asked) {
    using Tag = heffte::backend::fftw;
    using Complex = std::complex<T>;
    size_t const me = static_cast<size_t>(heffte::mpi::world_rank());
    heffte::box3d<index> const mine = boxes<index>(asked.size)[me];
    if (asked.program == "speed3d_r2c") {
        std::array<long long, 3> half = asked.size;
        if (asked.halved >= 0 && asked.halved < 3) half[static_cast<size_t>(asked.halved)] = half[static_cast<size_t>(asked.halved)] / 2 + 1;
        heffte::fft3d_r2c<Tag, index> const fft(mine, boxes<index>(half)[me], asked.halved, MPI_COMM_WORLD, asked.options);
        return transforms<T, Complex>(fft, asked);
    }
    if (asked.program == "speed3d_r2r") {
        std::string const kind = asked.backend.substr(std::min(asked.backend.size(), asked.backend.find('-')));
        if (kind == "-cos") return real_to_real<T, index, heffte::backend::fftw_cos>(asked);
        if (kind == "-sin") return real_to_real<T, index, heffte::backend::fftw_sin>(asked);
        if (kind == "-cos1") return real_to_real<T, index, heffte::backend::fftw_cos1>(asked);
        if (kind == "-sin1") return real_to_real<T, index, heffte::backend::fftw_sin1>(asked);
        throw std::runtime_error("a backend of speed3d_r2r ends with -cos, -sin, -cos1 or -sin1");
    }
    heffte::fft3d<Tag, index> const fft(mine, mine, MPI_COMM_WORLD, asked.options);
    if (asked.program == "convolution") return convolutions<Complex>(fft, asked);
    if (asked.program == "speed3d_c2c") return transforms<Complex, Complex>(fft, asked);
    throw std::runtime_error("the program's name is none of speed3d_c2c, speed3d_r2c, speed3d_r2r and convolution");
}

Outcome run(Arguments const &asked) {
    std::string name = asked.backend;
    if (asked.program == "speed3d_r2r") name = name.substr(0, name.find('-'));
    if (name != "stock" && name != "fftw" && name != "mkl")
        throw std::runtime_error("this installation has the backends stock, fftw and mkl, not " + name);
    if (asked.precision == "float") return run<float, int>(asked);
    if (asked.precision == "double") return run<double, int>(asked);
    if (asked.precision == "float-long") return run<float, long long>(asked);
    if (asked.precision == "double-long") return run<double, long long>(asked);
    throw std::runtime_error("the precision is none of float, double, float-long and double-long: " + asked.precision);
}

/** What scripts look for. Times and rates have decimals, not exponents. */
bool report(Arguments const &asked, Outcome const &found) {
    double const points = static_cast<double>(asked.size[0]) * static_cast<double>(asked.size[1]) * static_cast<double>(asked.size[2]);
    double const tolerance = asked.precision.compare(0, 5, "float") == 0 ? 1e-4 : 1e-11;
    bool const good = found.error <= tolerance;
    if (heffte::mpi::world_rank(0)) {
        std::string const line(78, '-');
        std::printf("\n%s\n%s by thriffty %s\n%s\n", line.c_str(), asked.program.c_str(), thriffty_version(), line.c_str());
        std::printf("Backend:   %s\nSize:      %lldx%lldx%lld\nMPI ranks: %4d\n", asked.backend.c_str(), asked.size[0], asked.size[1],
                    asked.size[2], heffte::mpi::comm_size(MPI_COMM_WORLD));
        std::printf("Time per run: %.9f (s)\n", found.seconds);
        if (asked.program != "convolution") {
            double const flops = 5.0 * points * std::log2(points) * asked.batch;
            std::printf("Performance:  %.6f GFlops/s\n", flops / found.seconds * 1e-9);
            std::printf("Memory usage: %.0fMB/rank\n", std::ceil(found.megabytes));
        }
        std::printf("Tolerance:    %g\nMax error:    %g\n", tolerance, found.error);
        if (!good) std::printf("ERROR: observed error after heFFTe benchmark exceeds the tolerance\n");
    }
    return good;
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Arguments asked;
    int status = 1;
    if (!parse(std::vector<std::string>(argv, argv + argc), asked)) {
        if (heffte::mpi::world_rank(0)) std::fprintf(stderr, usage, argv[0]);
    } else {
        try {
            status = report(asked, run(asked)) ? 0 : 1;
        } catch (std::exception const &error) {
            if (heffte::mpi::world_rank(0)) std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        }
    }
    MPI_Finalize();
    return status;
}
