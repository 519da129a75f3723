/* A program for heFFTe: every function against FFTW, on any number of ranks, and sizes of types. */
#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fftw3.h>

#include "heffte.h"

_Static_assert(sizeof(heffte_plan_options) == 16 && offsetof(heffte_plan_options, use_gpu_aware) == 12, "options");
_Static_assert(offsetof(heffte_fft_plan, using_r2c) == 4 && offsetof(heffte_fft_plan, fft) == 8, "plan");

enum { N0 = 6, N1 = 5, N2 = 9, POINTS = N0 * N1 * N2 };
static const int N[3] = {N0, N1, N2};
static int rank, ranks;

static void that_(int line, int holds) {
    if (!holds) {
        fprintf(stderr, "line %d: does not hold on rank %d\n", line, rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
#define that(holds) that_(__LINE__, holds)

typedef struct {
    int low[3], high[3], order[3];
} box;

/* This rank's part when the grid is cut along one dimension, which may leave ranks with nothing. */
static box cut(const int n[3], int along, const int order[3]) {
    box own = {{0, 0, 0}, {n[0] - 1, n[1] - 1, n[2] - 1}, {order[0], order[1], order[2]}};
    own.low[along] = n[along] * rank / ranks;
    own.high[along] = n[along] * (rank + 1) / ranks - 1;
    return own;
}

static int count(const box *b) {
    int points = 1;
    for (int d = 0; d < 3; d++) points *= b->high[d] - b->low[d] + 1;
    return points > 0 ? points : 0;
}

/* Copies a box out of a grid of n points in the usual order. */
static void take(const box *b, const int n[3], const double complex *grid, double complex *own) {
    int at[3];
    for (at[2] = b->low[b->order[2]]; at[2] <= b->high[b->order[2]]; at[2]++)
        for (at[1] = b->low[b->order[1]]; at[1] <= b->high[b->order[1]]; at[1]++)
            for (at[0] = b->low[b->order[0]]; at[0] <= b->high[b->order[0]]; at[0]++) {
                int index[3];
                for (int place = 0; place < 3; place++) index[b->order[place]] = at[place];
                *own++ = grid[(index[2] * n[1] + index[1]) * n[0] + index[0]];
            }
}

/* Whether numbers are equal, except for rounding of the precision they went through. */
static int close_to(const double complex *a, const double complex *b, int n, double within) {
    for (int i = 0; i < n; i++)
        if (!(cabs(a[i] - b[i]) <= within)) return 0;
    return 1;
}

static void to_floats(const double complex *from, float complex *to, int n) {
    for (int i = 0; i < n; i++) to[i] = (float complex)from[i];
}

static void from_floats(const float complex *from, double complex *to, int n) {
    for (int i = 0; i < n; i++) to[i] = from[i];
}

/* The grid that is transformed, and what FFTW makes of it and of its real part. */
static double complex *grid, *spectrum, *real_spectrum;

static void prepare(void) {
    grid = fftw_malloc(POINTS * sizeof *grid);
    spectrum = fftw_malloc(POINTS * sizeof *grid);
    real_spectrum = fftw_malloc(POINTS * sizeof *grid);
    fftw_plan plan = fftw_plan_dft_3d(N2, N1, N0, grid, spectrum, FFTW_FORWARD, FFTW_ESTIMATE);
    for (int i = 0; i < POINTS; i++) grid[i] = sin(1.0 + 0.7 * i) + I * cos(0.1 * i * i);
    fftw_execute(plan);
    for (int i = 0; i < POINTS; i++) real_spectrum[i] = creal(grid[i]);
    fftw_execute_dft(plan, real_spectrum, real_spectrum);
    fftw_destroy_plan(plan);
}

/* All that a plan of complex data does, both precisions by turns. */
static void complex_plan(int backend, const box *in, const box *out, double exact) {
    heffte_plan plan;
    heffte_plan_options options;
    that(heffte_set_default_options(backend, &options) == Heffte_SUCCESS && options.use_pencils == 1);
    that(options.use_reorder == (backend != Heffte_BACKEND_MKL) && options.algorithm == 0 && options.use_gpu_aware == 1);
    that(heffte_plan_create(backend, in->low, in->high, in->order, out->low, out->high, out->order, MPI_COMM_WORLD,
                            &options, &plan) == Heffte_SUCCESS);
    that(plan->backend_type == backend && plan->using_r2c == 0 && heffte_get_backend(plan) == backend);
    that(heffte_size_inbox(plan) == count(in) && heffte_size_outbox(plan) == count(out) && !heffte_is_r2c(plan));

    double complex x[POINTS], kept[POINTS], y[POINTS], expected[POINTS], real_expected[POINTS], back[POINTS];
    float complex xs[POINTS], ys[POINTS], backs[POINTS];
    double reals[POINTS];
    float floats[POINTS];
    int n = count(in), m = count(out);
    double scaled = 1.0 / POINTS, symmetric = sqrt(scaled);
    take(in, N, grid, x);
    take(in, N, grid, kept);
    take(out, N, spectrum, expected);
    take(out, N, real_spectrum, real_expected);
    to_floats(x, xs, n);
    for (int i = 0; i < n; i++) floats[i] = (float)(reals[i] = creal(x[i]));
    void *workspace = malloc((size_t)heffte_size_workspace(plan) * sizeof(double complex));

    heffte_forward_z2z(plan, x, y, Heffte_SCALE_NONE);
    that(close_to(y, expected, m, exact) && memcmp(x, kept, (size_t)n * sizeof *x) == 0);
    heffte_backward_z2z_buffered(plan, y, back, workspace, Heffte_SCALE_FULL);
    that(close_to(back, x, n, exact));
    heffte_forward_c2c_buffered(plan, xs, ys, workspace, Heffte_SCALE_NONE);
    from_floats(ys, y, m);
    that(close_to(y, expected, m, 2e-3));
    heffte_backward_c2c(plan, ys, backs, Heffte_SCALE_FULL);
    from_floats(backs, back, n);
    that(close_to(back, x, n, 1e-5));

    heffte_forward_d2z_buffered(plan, reals, y, workspace, Heffte_SCALE_SYMMETRIC);
    for (int i = 0; i < m; i++) y[i] /= symmetric;
    that(close_to(y, real_expected, m, exact));
    for (int i = 0; i < m; i++) y[i] *= symmetric;
    heffte_backward_z2d(plan, y, reals, Heffte_SCALE_SYMMETRIC);
    for (int i = 0; i < n; i++) that(fabs(reals[i] - creal(x[i])) < exact);
    heffte_forward_s2c(plan, floats, ys, Heffte_SCALE_FULL);
    from_floats(ys, y, m);
    for (int i = 0; i < m; i++) y[i] /= scaled;
    that(close_to(y, real_expected, m, 2e-3));
    heffte_backward_c2s_buffered(plan, ys, floats, workspace, Heffte_SCALE_NONE);
    for (int i = 0; i < n; i++) that(fabs(floats[i] - creal(x[i])) < 1e-5);

    /* In place: the array has room for both. */
    take(in, N, grid, back);
    heffte_forward_z2z(plan, back, back, Heffte_SCALE_NONE);
    that(close_to(back, expected, m, exact));
    heffte_backward_z2z(plan, back, back, Heffte_SCALE_FULL);
    that(close_to(back, x, n, exact));
    heffte_forward_s2c_buffered(plan, floats, ys, workspace, Heffte_SCALE_NONE);
    heffte_forward_c2c(plan, xs, ys, Heffte_SCALE_NONE);
    heffte_backward_c2s(plan, ys, floats, Heffte_SCALE_FULL);
    for (int i = 0; i < n; i++) that(fabs(floats[i] - creal(x[i])) < 1e-5);
    heffte_backward_c2c_buffered(plan, ys, backs, workspace, Heffte_SCALE_FULL);
    heffte_forward_d2z(plan, reals, y, Heffte_SCALE_NONE);
    heffte_backward_z2d_buffered(plan, y, reals, workspace, Heffte_SCALE_FULL);
    heffte_forward_z2z_buffered(plan, x, y, workspace, Heffte_SCALE_NONE);
    that(close_to(y, expected, m, exact));
    free(workspace);
    that(heffte_plan_destroy(plan) == Heffte_SUCCESS);
}

/* All that a plan of real data does, with half a spectrum along a dimension. */
static void real_plan(int direction, const box *in, int along, const int order[3], double exact) {
    int half[3] = {N0, N1, N2};
    half[direction] = N[direction] / 2 + 1;
    box out = cut(half, along, order);
    heffte_plan plan;
    that(heffte_plan_create_r2c(Heffte_BACKEND_FFTW, in->low, in->high, in->order, out.low, out.high, out.order, direction,
                                MPI_COMM_WORLD, NULL, &plan) == Heffte_SUCCESS);
    that(heffte_size_inbox(plan) == count(in) && heffte_size_outbox(plan) == count(&out) && heffte_is_r2c(plan) == 1);
    double complex x[POINTS], y[POINTS], expected[POINTS];
    float complex ys[POINTS];
    double reals[POINTS], back[POINTS];
    float floats[POINTS], backs[POINTS];
    int n = count(in), m = count(&out);
    take(in, N, grid, x);
    for (int i = 0; i < n; i++) floats[i] = (float)(reals[i] = creal(x[i]));
    take(&out, N, real_spectrum, expected);
    heffte_forward_d2z(plan, reals, y, Heffte_SCALE_NONE);
    that(close_to(y, expected, m, exact));
    heffte_backward_z2d(plan, y, back, Heffte_SCALE_FULL);
    for (int i = 0; i < n; i++) that(fabs(back[i] - reals[i]) < exact);
    heffte_forward_s2c(plan, floats, ys, Heffte_SCALE_FULL);
    heffte_backward_c2s(plan, ys, backs, Heffte_SCALE_NONE);
    for (int i = 0; i < n; i++) that(fabs(backs[i] - reals[i]) < 1e-5);
    that(heffte_plan_destroy(plan) == Heffte_SUCCESS);
}

/* The sizes that heFFTe's own programs get on a grid of 4x4x4 over two ranks. */
static void sizes(void) {
    int low[3] = {0, 0, 2 * rank}, high[3] = {3, 3, 2 * rank + 1}, half[3] = {3, 3, rank == 0 ? 1 : 2};
    heffte_plan plan;
    that(heffte_plan_create(0, low, high, NULL, low, high, NULL, MPI_COMM_WORLD, NULL, &plan) == Heffte_SUCCESS);
    that(heffte_size_inbox(plan) == 32 && heffte_size_outbox(plan) == 32 && heffte_size_workspace(plan) == 96);
    that(heffte_plan_destroy(plan) == Heffte_SUCCESS);
    that(heffte_plan_create_r2c(1, low, high, NULL, low, half, NULL, 2, MPI_COMM_WORLD, NULL, &plan) == Heffte_SUCCESS);
    that(heffte_size_inbox(plan) == 32 && heffte_size_outbox(plan) == (rank == 0 ? 32 : 16));
    that(heffte_size_workspace(plan) == (rank == 0 ? 96 : 88));
    that(heffte_plan_destroy(plan) == Heffte_SUCCESS);
}

/* Calls that are refused. The lines that say why are expected. */
static void refusals(void) {
    const int usual[3] = {0, 1, 2}, none[3] = {0, 1, 1};
    box own = cut(N, 2, usual), odd = own;
    heffte_plan plan;
    heffte_plan_options options;
    for (int backend = -1; backend < 12; backend += backend == -1 ? 4 : 1) {
        that(heffte_set_default_options(backend, &options) == 1);
        that(heffte_plan_create(backend, own.low, own.high, NULL, own.low, own.high, NULL, MPI_COMM_WORLD, NULL, &plan) == 1);
    }
#define refused(in, out, order, direction)                                                                            \
    that((direction < 0 ? heffte_plan_create(0, (in).low, (in).high, order, (out).low, (out).high, NULL, MPI_COMM_WORLD, \
                                             NULL, &plan)                                                              \
                        : heffte_plan_create_r2c(0, (in).low, (in).high, order, (out).low, (out).high, NULL, direction, \
                                                 MPI_COMM_WORLD, NULL, &plan)) == 2 &&                                 \
         plan == NULL)
    odd.high[2] += rank == 0; /* an overlap, or beyond the grid of the other side */
    refused(own, odd, NULL, -1);
    if (ranks > 1) refused(odd, own, NULL, -1);
    odd = own;
    odd.low[1] += rank == ranks - 1; /* a gap */
    refused(own, odd, NULL, -1);
    if (ranks > 1) refused(odd, own, NULL, -1);
    refused(own, own, rank == 0 ? none : usual, -1);
    refused(own, own, NULL, 1);
    refused(own, own, NULL, 3);
    that(heffte_plan_create(0, own.low, NULL, NULL, own.low, own.high, NULL, MPI_COMM_WORLD, NULL, &plan) == 2);
    that(heffte_plan_create(0, own.low, own.high, NULL, own.low, own.high, NULL, MPI_COMM_NULL, NULL, &plan) == 2);
    heffte_fft_plan foreign = {7, 0, NULL};
    that(heffte_plan_destroy(&foreign) == 3 && heffte_plan_destroy(NULL) == 3);

    that(heffte_plan_create(0, own.low, own.high, NULL, own.low, own.high, NULL, MPI_COMM_WORLD, NULL, &plan) == 0);
    double complex x[POINTS] = {1.0}, y[POINTS] = {0.0};
    heffte_forward_z2z(plan, rank == 0 ? NULL : x, y, 0);
    for (int i = 0; i < count(&own); i++) that(isnan(creal(y[i])));
    heffte_forward_z2z(plan, x, y, 0);
    for (int i = 0; i < count(&own); i++) that(!isnan(creal(y[i])));
    heffte_forward_z2z(NULL, x, y, 0);
    that(heffte_plan_destroy(plan) == 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    prepare();
    /* With a tolerance, which takes effect if there are messages. */
    const char *tolerance = getenv("THRIFFTY_TOLERANCE");
    int lossy = tolerance != NULL && *tolerance != 0 && ranks > 1;
    double exact = lossy ? 100.0 * atof(tolerance) : 1e-11;
    const int usual[3] = {0, 1, 2}, turned[3] = {2, 0, 1}, swapped[3] = {1, 0, 2};
    box slabs = cut(N, 2, usual), other = cut(N, 0, turned), rows = cut(N, 1, swapped);
    for (int backend = 0; backend < 3; backend++) complex_plan(backend, &slabs, &slabs, exact);
    complex_plan(0, &slabs, &other, exact);
    complex_plan(1, &other, &rows, exact);
    for (int direction = 0; direction < 3; direction++) {
        real_plan(direction, &slabs, 1, usual, exact);
        real_plan(direction, &rows, 0, turned, exact);
        real_plan(direction, &other, 2, swapped, exact);
    }
    if (lossy) {
        /* The tolerance is made use of: the result is not FFTW's to the last digits. */
        heffte_plan plan;
        double complex x[POINTS], y[POINTS], expected[POINTS];
        take(&slabs, N, grid, x);
        take(&slabs, N, spectrum, expected);
        that(heffte_plan_create(0, slabs.low, slabs.high, NULL, slabs.low, slabs.high, NULL, MPI_COMM_WORLD, NULL, &plan) == 0);
        heffte_forward_z2z(plan, x, y, 0);
        that(!close_to(y, expected, count(&slabs), 1e-11));
        that(heffte_plan_destroy(plan) == 0);
    }
    if (ranks == 2) sizes();
    refusals();
    fftw_free(grid), fftw_free(spectrum), fftw_free(real_spectrum);
    fftw_cleanup();
    MPI_Finalize();
    return 0;
}
