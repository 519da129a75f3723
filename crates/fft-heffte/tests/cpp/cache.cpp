/* Which plans are made, shared and destroyed; destructors wait for nobody. */
#include "heffte_config.h"

static int made = 0, destroyed = 0;

static thriffty_status counted_create(thriffty_plan **plan, MPI_Comm comm, int32_t transform, int32_t axes, int64_t const *shape,
                                      thriffty_brick const *input, thriffty_brick const *output,
                                      thriffty_options const *options) {
    made++;
    return thriffty_plan_create(plan, comm, transform, axes, shape, input, output, options);
}
static thriffty_status counted_destroy(thriffty_plan *plan) {
    destroyed++;
    return thriffty_plan_destroy(plan);
}
#define thriffty_plan_create counted_create
#define thriffty_plan_destroy counted_destroy

#include "reference.h"

using heffte::scale;
using Fft = heffte::fft3d<heffte::backend::stock>;
using Complex = std::complex<double>;

static int ranks() { return heffte::mpi::comm_size(MPI_COMM_WORLD); }
static int rank() { return heffte::mpi::world_rank(); }

/** A transform of a cube, of another size for each number. */
static Fft cube(int n, MPI_Comm comm) {
    auto const all = boxes({{n, n, n}}, heffte::mpi::comm_size(comm), 0);
    Box const box = all[static_cast<size_t>(heffte::mpi::comm_rank(comm))];
    return Fft(box, box, comm);
}

static std::vector<Complex> numbers(Fft const &fft, int count = 1) {
    return std::vector<Complex>(static_cast<size_t>(fft.size_inbox() * count) + 1, Complex(1.0, 0.0));
}

/** Plans made since the last call. */
static int plans() {
    int const since = made;
    made = 0;
    return since;
}

static void sharing(Report &report, MPI_Comm comm) {
    Fft const fft = cube(8, comm);
    auto data = numbers(fft, 20);
    plans();
    fft.forward(data.data(), data.data());
    fft.backward(data.data(), data.data(), scale::full);
    report.expect(plans() == 1, "one plan for both directions");
    cube(8, comm).forward(data.data(), data.data());
    report.expect(plans() == 0, "no plan for the same boxes");
    fft.backward(data.data(), data.data());
    report.expect(plans() == 1, "a plan for another scale");
    fft.forward(data.data(), data.data(), scale::symmetric);
    fft.backward(data.data(), data.data(), scale::symmetric);
    // The one before was only run backward: it is made anew.
    report.expect(plans() == 2, "plans of the symmetric scale");
    for (scale one : {scale::none, scale::symmetric}) {
        fft.forward(data.data(), data.data(), one);
        fft.backward(data.data(), data.data(), one);
    }
    fft.backward(data.data(), data.data(), scale::full);
    report.expect(plans() == 0, "plans of all scales are kept");
    destroyed = 0;
    for (int count = 2; count <= 20; count++) fft.forward(count, data.data(), data.data());
    report.expect(plans() == 19, "a plan for each number of arrays");
    report.expect(destroyed == 14, "eight plans are kept of a transform");
}

/** Ranks drop transforms in orders of their own. */
static void dropping(Report &report, MPI_Comm comm) {
    std::vector<std::unique_ptr<Fft>> all;
    for (int n = 4; n < 16; n++) {
        all.emplace_back(new Fft(cube(n, comm)));
        auto data = numbers(*all.back());
        all.back()->forward(data.data(), data.data());
    }
    destroyed = 0;
    if (rank() % 2 == 1) std::reverse(all.begin(), all.end());
    // The last rank keeps one for good.
    if (rank() == ranks() - 1) all[3].release();
    try {
        std::vector<std::unique_ptr<Fft>> const mine = std::move(all);
        if (rank() == 0) throw std::runtime_error("one rank's own");
    } catch (std::runtime_error const &) {
    }
    report.expect(destroyed == 0, "destructors destroy no plan");
    Fft const next = cube(20, comm);
    auto data = numbers(next);
    next.forward(data.data(), data.data());
    int most = 0, least = 0;
    MPI_Allreduce(&destroyed, &most, 1, MPI_INT, MPI_MAX, comm);
    MPI_Allreduce(&destroyed, &least, 1, MPI_INT, MPI_MIN, comm);
    report.expect(most == least && (least == 7 || least == 8), "all ranks destroy the same plans");
}

/** Communicators of parts, freed while transforms live on. */
static void parts(Report &report) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, 0, &half);
    for (int round = 0; round < 3; round++) {
        Fft const fft = cube(8 + rank() % 2 + round, half);
        auto data = numbers(fft);
        for (int call = 0; call <= rank() % 2; call++) fft.forward(data.data(), data.data());
        double sum = 0.0;
        for (size_t i = 0; i + 1 < data.size(); i++) sum += std::abs(data[i]);
        report.expect(sum >= 0.0, "a transform of a half");
    }
    std::unique_ptr<Fft> last(new Fft(cube(6, half)));
    auto data = numbers(*last);
    last->forward(data.data(), data.data());
    MPI_Comm_free(&half);
    last->backward(data.data(), data.data(), scale::full);
    report.near(std::abs(data[0] - 1.0), 1e-14, "a transform outlives its communicator");
    if (rank() % 2 == 0) last.reset();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Report report;
    for (int round = 0; round < 2; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        sharing(report, comm);
        dropping(report, comm);
        MPI_Comm_free(&comm);
    }
    parts(report);
    // Destroyed when MPI has ended.
    static std::unique_ptr<Fft> late;
    late.reset(new Fft(cube(5, MPI_COMM_WORLD)));
    auto data = numbers(*late);
    late->forward(data.data(), data.data());
    int const status = report.finish("cache");
    MPI_Finalize();
    return status;
}
