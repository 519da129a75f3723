/* A real 3-D transform of a wave, which has a single mode; then the same with fewer bytes on the
 * wire.
 *
 *     mpicc transform.c -o transform $(pkg-config --cflags --libs thriffty) -lm
 *     mpirun -n 4 ./transform
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <thriffty.h>

enum { N0 = 24, N1 = 20, N2 = 18, A = 3, B = 7, C = 5 };

static void check(thriffty_status status) {
    if (status != THRIFFTY_STATUS_OK) {
        fprintf(stderr, "thriffty: %s\n", thriffty_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static double wave(int64_t i, int64_t j, int64_t k) {
    const double turns = (double)(A * i) / N0 + (double)(B * j) / N1 + (double)(C * k) / N2;
    return cos(2.0 * acos(-1.0) * turns);
}

/* Half of the points is in the mode of the wave. The other half is in the mode of the opposite
 * wave, which half a spectrum leaves out. */
static double mode(int64_t a, int64_t b, int64_t c) {
    return a == A && b == B && c == C ? N0 * N1 * N2 / 2 : 0.0;
}

/* The largest error of this rank's part of the spectrum. */
static double difference(const double *y, thriffty_brick brick) {
    double largest = 0.0;
    for (int64_t a = brick.lo[0]; a < brick.hi[0]; a++)
        for (int64_t b = brick.lo[1]; b < brick.hi[1]; b++)
            for (int64_t c = brick.lo[2]; c < brick.hi[2]; c++, y += 2)
                largest = fmax(largest, hypot(y[0] - mode(a, b, c), y[1]));
    return largest;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    const int64_t shape[] = {N0, N1, N2};
    thriffty_options *options;
    check(thriffty_options_create(&options));
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            check(thriffty_options_set(options, "tolerance", "1e-6"));
            /* As if each rank were on a host of its own. */
            check(thriffty_options_set(options, "ignore_shared_memory", "true"));
            /* Messages in rounds, each in the memory of the one before. */
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
                for (int64_t k = sizes.input.lo[2]; k < sizes.input.hi[2]; k++) x[at++] = wave(i, j, k);
        check(thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes));
        double estimate, bound;
        check(thriffty_plan_wire_error(plan, &estimate, &bound));
        check(thriffty_inverse(plan, y, sizes.output_bytes, back, sizes.input_bytes));

        double error = difference(y, sizes.output), of_all;
        for (size_t p = 0; p < sizes.input_len; p++) error = fmax(error, fabs(back[p] - x[p]));
        MPI_Allreduce(&error, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) printf("error %.1e; lost on the wire %.1e, at most %.1e\n", of_all, estimate, bound);
        /* The mode of the wave is in the thousands. */
        if (!(of_all < (round == 1 ? 1e-2 : 1e-10))) MPI_Abort(MPI_COMM_WORLD, 2);
        free(x), free(y), free(back);
        check(thriffty_plan_destroy(plan));
    }
    check(thriffty_options_destroy(options));
    MPI_Finalize();
    return 0;
}
