/* Solves -laplace(phi) = rho on a periodic cube of 2 pi, by real transforms in place.
 *
 *     mpicc poisson.c -o poisson $(pkg-config --cflags --libs thriffty) -lm
 *     mpirun -n 4 ./poisson
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <thriffty.h>

enum { N = 32 };

static void check(thriffty_status status) {
    if (status != THRIFFTY_STATUS_OK) {
        fprintf(stderr, "thriffty: %s\n", thriffty_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static double wave(int64_t i) { return sin(2.0 * acos(-1.0) * (double)i / N); }

/* The frequency at this index. */
static double frequency(int64_t i) { return (double)(i <= N / 2 ? i : i - N); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int64_t shape[] = {N, N, N};
    thriffty_plan *plan;
    check(thriffty_plan_create(&plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, shape, NULL, NULL, NULL));
    thriffty_sizes sizes;
    check(thriffty_plan_sizes(plan, &sizes, sizeof sizes));
    thriffty_brick in = sizes.input, out = sizes.output;
    double *data = malloc(sizes.in_place_bytes), *at = data;

    for (int64_t i = in.lo[0]; i < in.hi[0]; i++)
        for (int64_t j = in.lo[1]; j < in.hi[1]; j++)
            for (int64_t k = in.lo[2]; k < in.hi[2]; k++) *at++ = 3.0 * wave(i) * wave(j) * wave(k);
    check(thriffty_forward_in_place(plan, data, sizes.in_place_bytes));
    at = data;
    for (int64_t i = out.lo[0]; i < out.hi[0]; i++)
        for (int64_t j = out.lo[1]; j < out.hi[1]; j++)
            for (int64_t k = out.lo[2]; k < out.hi[2]; k++, at += 2) {
                double a = frequency(i), b = frequency(j), c = frequency(k), k2 = a * a + b * b + c * c;
                at[0] = k2 > 0.0 ? at[0] / k2 : 0.0;
                at[1] = k2 > 0.0 ? at[1] / k2 : 0.0;
            }
    check(thriffty_inverse_in_place(plan, data, sizes.in_place_bytes));

    double error = 0.0;
    at = data;
    for (int64_t i = in.lo[0]; i < in.hi[0]; i++)
        for (int64_t j = in.lo[1]; j < in.hi[1]; j++)
            for (int64_t k = in.lo[2]; k < in.hi[2]; k++) error = fmax(error, fabs(*at++ - wave(i) * wave(j) * wave(k)));
    free(data);
    check(thriffty_plan_destroy(plan));
    printf("error %.1e\n", error);
    MPI_Finalize();
    return error < 1e-14 ? 0 : 1;
}
