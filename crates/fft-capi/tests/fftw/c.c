/* A real 3-D transform, compared with FFTW; then the same with fewer bytes on the wire. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <fftw3.h>
#include <thriffty.h>

enum { N0 = 24, N1 = 20, N2 = 18, HALF = N2 / 2 + 1 };

static void check(thriffty_status status) {
    if (status != THRIFFTY_STATUS_OK) {
        fprintf(stderr, "thriffty: %s\n", thriffty_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Any function will do, as long as all ranks can compute it. */
static double value(int64_t i, int64_t j, int64_t k) {
    return sin(1.0 + 0.7 * (double)i) * cos(0.3 * (double)(j * k)) + 0.01 * (double)(k % 5);
}

/* The largest difference over all ranks from FFTW's transform of the whole grid. */
static double difference(const double *ours, thriffty_brick brick, fftw_complex *whole) {
    double largest = 0.0, of_all = 0.0;
    for (int64_t i = brick.lo[0]; i < brick.hi[0]; i++)
        for (int64_t j = brick.lo[1]; j < brick.hi[1]; j++)
            for (int64_t k = brick.lo[2]; k < brick.hi[2]; k++, ours += 2) {
                const double *theirs = whole[(i * N1 + j) * HALF + k];
                largest = fmax(largest, hypot(ours[0] - theirs[0], ours[1] - theirs[1]));
            }
    MPI_Allreduce(&largest, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return of_all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    double *field = fftw_alloc_real(N0 * N1 * N2);
    fftw_complex *spectrum = fftw_alloc_complex(N0 * N1 * HALF);
    fftw_plan whole = fftw_plan_dft_r2c_3d(N0, N1, N2, field, spectrum, FFTW_ESTIMATE);
    for (int64_t i = 0, at = 0; i < N0; i++)
        for (int64_t j = 0; j < N1; j++)
            for (int64_t k = 0; k < N2; k++) field[at++] = value(i, j, k);
    fftw_execute(whole);

    const int64_t shape[] = {N0, N1, N2};
    thriffty_options *options;
    check(thriffty_options_create(&options));
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            check(thriffty_options_set(options, "tolerance", "1e-6"));
            check(thriffty_options_set(options, "ignore_shared_memory", "true"));
            check(thriffty_options_set(options, "memory", "least"));
        }
        thriffty_plan *plan;
        check(thriffty_plan_create(&plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, shape, NULL, NULL, options));
        thriffty_sizes sizes;
        check(thriffty_plan_sizes(plan, &sizes, sizeof sizes));
        double *x = malloc(sizes.input_bytes), *y = malloc(sizes.output_bytes), *back = malloc(sizes.input_bytes);

        size_t at = 0;
        for (int64_t i = sizes.input.lo[0]; i < sizes.input.hi[0]; i++)
            for (int64_t j = sizes.input.lo[1]; j < sizes.input.hi[1]; j++)
                for (int64_t k = sizes.input.lo[2]; k < sizes.input.hi[2]; k++) x[at++] = value(i, j, k);
        check(thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes));
        double estimate, bound;
        check(thriffty_plan_wire_error(plan, &estimate, &bound));
        double away = difference(y, sizes.output, spectrum);
        check(thriffty_inverse(plan, y, sizes.output_bytes, back, sizes.input_bytes));
        double lost = 0.0;
        for (size_t p = 0; p < sizes.input_len; p++) lost = fmax(lost, fabs(back[p] - x[p]));

        if (rank == 0) printf("from FFTW %.1e; lost on the wire %.1e, at most %.1e\n", away, estimate, bound);
        /* The largest mode is in the thousands. */
        double allowed = round == 1 ? 1e-2 : 1e-10, tolerance = round == 1 ? 1e-6 : 0.0;
        if (!(away < allowed && lost < allowed && estimate <= tolerance)) MPI_Abort(MPI_COMM_WORLD, 2);
        free(x), free(y), free(back);
        check(thriffty_plan_destroy(plan));
    }

    check(thriffty_options_destroy(options));
    fftw_destroy_plan(whole);
    fftw_free(field), fftw_free(spectrum);
    fftw_cleanup();
    MPI_Finalize();
    return 0;
}
