/* Operators on spectra, with transposed output, against the derivatives of calculus; and what is
 * wrong on one rank. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <thriffty.h>

#include "check.h"

static const int64_t SHAPE[] = {8, 12, 10};
static const double PI = 3.14159265358979323846;

/* A vortex, component by component; its curl; and phi = sin x sin y sin z with its gradient. */
static double velocity(int a, const double x[3]) {
    if (a == 0) return sin(x[0]) * cos(x[1]) * cos(x[2]);
    return a == 1 ? -cos(x[0]) * sin(x[1]) * cos(x[2]) : 0;
}

static double vorticity(int a, const double x[3]) {
    if (a == 0) return -cos(x[0]) * sin(x[1]) * sin(x[2]);
    return a == 1 ? -sin(x[0]) * cos(x[1]) * sin(x[2]) : 2 * sin(x[0]) * sin(x[1]) * cos(x[2]);
}

static double potential(int a, const double x[3]) {
    (void)a;
    return sin(x[0]) * sin(x[1]) * sin(x[2]);
}

static double slope(int a, const double x[3]) {
    double product = 1;
    for (int b = 0; b < 3; b++) product *= a == b ? cos(x[b]) : sin(x[b]);
    return product;
}

typedef double function(int component, const double x[3]);

/* Fills an array with a function, or compares them. */
static void visit(const thriffty_brick *brick, int components, double *at, function *value, int compare) {
    double x[3];
    for (int a = 0; a < components; a++) {
        for (int64_t i = brick->lo[0]; i < brick->hi[0]; i++) {
            for (int64_t j = brick->lo[1]; j < brick->hi[1]; j++) {
                for (int64_t k = brick->lo[2]; k < brick->hi[2]; k++, at++) {
                    const int64_t index[] = {i, j, k};
                    for (int b = 0; b < 3; b++) x[b] = 2 * PI * (double)index[b] / (double)SHAPE[b];
                    if (compare) that(fabs(*at - value(a, x)) < 1e-13);
                    else *at = value(a, x);
                }
            }
        }
    }
}

/* Flow between walls on cells that grow: -phi'' = 1, by coefficients and by faces. */
static void walls(void) {
    const double faces[] = {0, 1, 3, 7, 8, 10}, lengths[] = {8, 12, 10};
    const double lower[] = {0, 1 / 1.5 / 2, 1 / 3.0 / 4, 1 / 2.5, 1 / 1.5 / 2};
    const double upper[] = {1 / 1.5, 1 / 3.0 / 2, 1 / 2.5 / 4, 1 / 1.5, 0};
    double diagonal[5];
    for (int j = 0; j < 5; j++) diagonal[j] = -(lower[j] + upper[j]);
    diagonal[0] -= 1 / 0.5;
    const int64_t shape[] = {8, 12, 5};
    thriffty_options *options = options_with("kinds", "periodic,neumann,tridiagonal");
    expect(thriffty_options_set(options, "transposed_output", "true"), OK);
    thriffty_plan *plan;
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, shape, NULL, NULL, options), OK);
    expect(thriffty_options_destroy(options), OK);
    thriffty_sizes sizes;
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    double *x = malloc(sizes.input_bytes + 8), *y = malloc(sizes.output_bytes + 8);
    for (int stretched = 0; stretched < 2; stretched++) {
        if (stretched) expect(thriffty_set_stretched(plan, "dirichlet-neumann", faces, 6), OK);
        else expect(thriffty_set_tridiagonal(plan, lower, diagonal, upper, 5), OK);
        for (size_t i = 0; i < sizes.input_len; i++) x[i] = 1;
        expect(thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes), OK);
        expect(thriffty_apply(plan, THRIFFTY_OPERATOR_POISSON, 0, lengths, y, sizes.output_bytes, y, sizes.output_bytes), OK);
        expect(thriffty_inverse(plan, y, sizes.output_bytes, x, sizes.input_bytes), OK);
        /* What flows through a face comes from the cells above it. */
        const double expected[] = {5, 5 + 1.5 * 9, 18.5 + 3 * 7, 39.5 + 2.5 * 3, 47 + 1.5 * 2};
        for (size_t i = 0; i < sizes.input_len; i++) {
            int64_t k = sizes.input.lo[2] + (int64_t)i % (sizes.input.hi[2] - sizes.input.lo[2]);
            that(fabs(x[i] - expected[k]) < 1e-12);
        }
    }
    expect(thriffty_set_tridiagonal(plan, lower, NULL, upper, 5), ARGUMENT);
    expect(thriffty_set_tridiagonal(plan, lower, diagonal, upper, 0), ARGUMENT);
    expect(thriffty_set_stretched(plan, NULL, faces, 6), ARGUMENT);
    expect(thriffty_set_stretched(plan, "tridiagonal", faces, 6), ARGUMENT);
    free(x);
    free(y);
    expect(thriffty_plan_destroy(plan), OK);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const double lengths[] = {2 * PI, 2 * PI, 2 * PI};

    thriffty_options *options = options_with("transposed_output", "true");
    thriffty_plan *scalar, *vector;
    expect(thriffty_plan_create(&scalar, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, options), OK);
    thriffty_sizes one, three;
    expect(thriffty_plan_sizes(scalar, &one, sizeof one), OK);
    const int64_t order[] = {one.output_order[0], one.output_order[1], one.output_order[2]};
    expect(thriffty_options_set(options, "transposed_output", "false"), OK);
    expect(thriffty_options_set(options, "batch", "3"), OK);
    expect(thriffty_options_set_integers(options, "output_order", 3, order), OK);
    expect(thriffty_plan_create(&vector, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, &one.input, &one.output,
                                options), OK);
    expect(thriffty_plan_sizes(vector, &three, sizeof three), OK);
    that(memcmp(one.output_order, three.output_order, sizeof one.output_order) == 0);
    that(three.input_order[0] == 0 && three.output_bytes == 3 * one.output_bytes);
    /* Both in one, though not both at once. */
    expect(thriffty_options_set(options, "transposed_output", "true"), OK);
    expect(thriffty_options_set(options, "output_order", "1,0,2"), OK);
    thriffty_plan *none;
    expect(thriffty_plan_create(&none, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, options), ARGUMENT);
    expect(thriffty_options_destroy(options), OK);

    double *x = malloc(three.input_bytes + 8), *y = malloc(three.output_bytes + 8), *z = malloc(three.output_bytes + 8);
    visit(&three.input, 3, x, velocity, 0);
    expect(thriffty_forward(vector, x, three.input_bytes, y, three.output_bytes), OK);
    expect(thriffty_apply(vector, THRIFFTY_OPERATOR_CURL, 0, lengths, y, three.output_bytes, z, three.output_bytes), OK);
    expect(thriffty_inverse(vector, z, three.output_bytes, x, three.input_bytes), OK);
    visit(&three.input, 3, x, vorticity, 1);
    /* In place: the curl of the velocity, whose projection is itself. */
    expect(thriffty_apply(vector, THRIFFTY_OPERATOR_PROJECT, 0, lengths, y, three.output_bytes, y, three.output_bytes), OK);
    expect(thriffty_inverse(vector, y, three.output_bytes, x, three.input_bytes), OK);
    visit(&three.input, 3, x, velocity, 1);

    visit(&one.input, 1, x, potential, 0);
    expect(thriffty_forward(scalar, x, one.input_bytes, y, one.output_bytes), OK);
    expect(thriffty_apply(scalar, THRIFFTY_OPERATOR_GRADIENT, 0, lengths, y, one.output_bytes, z, three.output_bytes), OK);
    expect(thriffty_inverse(vector, z, three.output_bytes, x, three.input_bytes), OK);
    visit(&three.input, 3, x, slope, 1);
    /* (1 - laplacian)(phi / 4) = phi. */
    expect(thriffty_apply(scalar, THRIFFTY_OPERATOR_HELMHOLTZ, 1, lengths, y, one.output_bytes, z, one.output_bytes), OK);
    for (size_t i = 0; i < one.output_bytes / 8; i++) that(fabs(4 * z[i] - y[i]) < 1e-12);

    /* A kernel of one point twice as high, at the origin. */
    memset(x, 0, one.input_bytes);
    if (one.input_len > 0 && one.input.lo[0] + one.input.lo[1] + one.input.lo[2] == 0) x[0] = 2;
    expect(thriffty_forward(scalar, x, one.input_bytes, z, one.output_bytes), OK);
    expect(thriffty_convolve(scalar, z, one.output_bytes, 0, y, one.output_bytes), OK);
    expect(thriffty_inverse(scalar, y, one.output_bytes, x, one.input_bytes), OK);
    for (size_t i = 0; i < one.input_len; i++) x[i] /= 2;
    visit(&one.input, 1, x, potential, 1);

    double k[16], odd[16];
    expect(thriffty_wavenumbers(scalar, 0, 2 * PI, k, odd, 16), OK);
    for (int64_t i = one.output.lo[0]; i < one.output.hi[0]; i++) {
        const double expected = i < 4 ? (double)i : (double)(i - 8);
        that(fabs(k[i - one.output.lo[0]] - expected) < 1e-14);
        that(fabs(odd[i - one.output.lo[0]] - (i == 4 ? 0 : expected)) < 1e-14);
    }
    expect(thriffty_wavenumbers(scalar, 3, 1, k, NULL, 16), ARGUMENT);
    that(thriffty_next_fast_len(97) == 100 && thriffty_next_fast_len(SIZE_MAX) == 0);

    /* A projection by differences of neighbours has no such divergence. */
    expect(thriffty_set_schemes(vector, "staggered2,staggered4,central2"), OK);
    expect(thriffty_set_schemes(scalar, "staggered2,staggered4,central2"), OK);
    visit(&three.input, 3, x, velocity, 0);
    for (size_t i = 0; i < three.input_len; i++) x[i] += (double)(i % 7);
    expect(thriffty_forward(vector, x, three.input_bytes, z, three.output_bytes), OK);
    expect(thriffty_apply(vector, THRIFFTY_OPERATOR_PROJECT, 0, lengths, z, three.output_bytes, z, three.output_bytes), OK);
    expect(thriffty_apply(vector, THRIFFTY_OPERATOR_DIVERGENCE, 0, lengths, z, three.output_bytes, z, one.output_bytes), ARGUMENT);
    if (ranks > 1) expect(thriffty_inverse(vector, z, three.output_bytes, x, three.input_bytes), ARGUMENT);
    double *divergence = malloc(one.output_bytes + 8);
    expect(thriffty_apply(vector, THRIFFTY_OPERATOR_DIVERGENCE, 0, lengths, z, three.output_bytes, divergence, one.output_bytes), OK);
    for (size_t i = 0; i < one.output_bytes / 8; i++) that(fabs(divergence[i]) < 1e-10);
    free(divergence);
    expect(thriffty_wavenumbers(scalar, 0, 2 * PI, k, odd, 16), OK);
    for (int64_t i = one.output.lo[0]; i < one.output.hi[0]; i++) {
        that(fabs(fabs(k[i - one.output.lo[0]]) - fabs(8 / PI * sin(PI * (double)i / 8))) < 1e-14);
    }
    expect(thriffty_set_schemes(scalar, "exact,exact"), ARGUMENT);
    expect(thriffty_set_schemes(scalar, "upwind"), ARGUMENT);
    expect(thriffty_set_schemes(scalar, NULL), OK);
    /* Without an axis for them, coefficients are refused, and operators stay as they were. */
    expect(thriffty_set_stretched(scalar, "neumann", (const double[]){0, 1, 3}, 3), ARGUMENT);
    expect(thriffty_apply(scalar, THRIFFTY_OPERATOR_LAPLACIAN, 0, lengths, y, one.output_bytes, z, one.output_bytes), OK);
    expect(thriffty_plan_destroy(scalar), OK);
    options = options_with("transposed_output", "true");
    expect(thriffty_plan_create(&scalar, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, options), OK);
    expect(thriffty_options_destroy(options), OK);
    walls();

    /* What fails here is an error of all in the next transform, if there are others, and then
     * everything works again. NAN is no parameter. */
    const int last = rank == ranks - 1;
    struct {
        int32_t operator;
        double parameter;
        const double *lengths;
        size_t bytes;
    } wrong[] = {
        {THRIFFTY_OPERATOR_DERIVATIVE, 3, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_DERIVATIVE, 0.5, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_DERIVATIVE, -1, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_DERIVATIVE, NAN, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_HELMHOLTZ, NAN, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_GAUSSIAN, NAN, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_GAUSSIAN, -1, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_CUTOFF, NAN, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_CUTOFF, -0.5, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_CUTOFF, INFINITY, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_LAPLACIAN, 0.5, lengths, one.output_bytes},
        {THRIFFTY_OPERATOR_LAPLACIAN, 0, NULL, one.output_bytes},
        {THRIFFTY_OPERATOR_LAPLACIAN, 0, lengths, one.output_bytes + 1},
        {42, 0, lengths, one.output_bytes},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (last) {
            expect(thriffty_apply(scalar, wrong[i].operator, wrong[i].parameter, wrong[i].lengths, y, wrong[i].bytes, y,
                                  wrong[i].bytes), ARGUMENT);
        }
        if (ranks > 1) {
            expect(thriffty_inverse(scalar, y, one.output_bytes, x, one.input_bytes), ARGUMENT);
            that(strstr(thriffty_last_error(), "rank") != NULL);
        }
        expect(thriffty_inverse(scalar, y, one.output_bytes, x, one.input_bytes), OK);
    }
    expect(thriffty_apply(scalar, THRIFFTY_OPERATOR_LAPLACIAN, NAN, lengths, y, one.output_bytes, y, one.output_bytes), OK);
    /* The kernel of a product is wrong. */
    if (last) expect(thriffty_convolve(scalar, z, 1, 0, y, one.output_bytes), ARGUMENT);
    if (ranks > 1) expect(thriffty_inverse(scalar, y, one.output_bytes, x, one.input_bytes), ARGUMENT);
    expect(thriffty_inverse(scalar, y, one.output_bytes, x, one.input_bytes), OK);
    free(x);
    free(y);
    free(z);
    expect(thriffty_plan_destroy(vector), OK);
    expect(thriffty_plan_destroy(scalar), OK);
    MPI_Finalize();
    return 0;
}
