/* Arrays with ghost points, two bricks on a rank, and errors on one rank. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <thriffty.h>

#include "check.h"

static const int64_t SHAPE[] = {12, 6, 8}, ONE[] = {1, 1, 1};

/* The value of a point, which may be beyond the grid. */
static double value(int64_t i, int64_t j, int64_t k) {
    return (double)((((i + 12) % 12) * 6 + (j + 6) % 6) * 8 + (k + 8) % 8);
}

/* Fills a brick and this number of points around it, or compares them. */
static void visit(const thriffty_subarray *here, double *array, int64_t around, int compare) {
    const thriffty_brick *b = &here->brick;
    for (int64_t i = b->lo[0] - around; i < b->hi[0] + around; i++) {
        for (int64_t j = b->lo[1] - around; j < b->hi[1] + around; j++) {
            for (int64_t k = b->lo[2] - around; k < b->hi[2] + around; k++) {
                double *at = array + here->offset + (i - b->lo[0]) * here->strides[0] + (j - b->lo[1]) * here->strides[1] +
                             (k - b->lo[2]) * here->strides[2];
                if (compare) that(fabs(*at - value(i, j, k)) < 1e-11);
                else *at = value(i, j, k);
            }
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    /* The plan takes data where its first transform is cheapest. */
    thriffty_options *options = options_with("transposed_input", "true");
    thriffty_plan *plan;
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, options), OK);
    expect(thriffty_options_destroy(options), OK);
    thriffty_sizes sizes;
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    thriffty_subarray own;
    expect(thriffty_subarray_init(&own, 3, &sizes.input, NULL, NULL, sizes.input_order, 1), OK);

    /* Two bricks on each rank: planes from both ends of the grid, with ghost points around them. */
    thriffty_subarray here[2];
    double *arrays[2];
    size_t bytes = 0;
    for (int half = 0; half < 2; half++) {
        const int64_t at = half == 0 ? rank : ranks - 1 - rank;
        const thriffty_brick brick = {{half * 6 + at * 6 / ranks, 0, 0}, {half * 6 + (at + 1) * 6 / ranks, 6, 8}};
        expect(thriffty_subarray_init(&here[half], 3, &brick, ONE, ONE, NULL, 1), OK);
        here[half].array = half;
        that(here[half].strides[0] == 80 && here[half].strides[1] == 10 && here[half].offset == 91);
        bytes = (size_t)(brick.hi[0] - brick.lo[0] + 2) * 80 * sizeof(double);
        arrays[half] = malloc(bytes);
        memset(arrays[half], 0, bytes);
        visit(&here[half], arrays[half], 0, 0);
    }
    thriffty_copy *load, *store, *halo;
    expect(thriffty_copy_create(&load, plan, THRIFFTY_SIDE_INPUT, 2, here, 1, &own), OK);
    expect(thriffty_copy_create(&store, plan, THRIFFTY_SIDE_INPUT, 1, &own, 2, here), OK);
    const int32_t periodic[] = {1, 1, 1};
    expect(thriffty_halo_create(&halo, plan, THRIFFTY_SIDE_INPUT, ONE, ONE, periodic, 2, here), OK);

    double *x = malloc(sizes.input_bytes + 8), *y = malloc(sizes.output_bytes + 8);
    const void *const from[] = {arrays[0], arrays[1]}, *const brick[] = {x};
    void *const to[] = {arrays[0], arrays[1]}, *const into[] = {x};
    expect(thriffty_copy_run(load, from, into), OK);
    visit(&own, x, 0, 1);
    expect(thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes), OK);
    if (sizes.output_len > 0 && sizes.output.lo[0] + sizes.output.lo[1] + sizes.output.lo[2] == 0) {
        that(fabs(y[0] - 576.0 * 575.0 / 2) < 1e-8);
    }
    expect(thriffty_inverse(plan, y, sizes.output_bytes, x, sizes.input_bytes), OK);
    expect(thriffty_copy_run(store, brick, to), OK);
    expect(thriffty_copy_run(halo, NULL, to), OK);
    for (int half = 0; half < 2; half++) visit(&here[half], arrays[half], 1, 1);

    /* An error on one rank is an error on all, and then everything works again. */
    const int last = rank == ranks - 1;
    void *const same[] = {arrays[0], last ? arrays[0] : arrays[1]}, *const none[] = {arrays[0], last ? NULL : arrays[1]};
    expect(thriffty_copy_run(halo, NULL, same), ARGUMENT);
    that(strstr(thriffty_last_error(), "some that overlap") != NULL);
    expect(thriffty_copy_run(halo, NULL, none), ARGUMENT);
    expect(thriffty_copy_run(load, last ? (const void *const *)to : from, last ? to : into), ARGUMENT);
    expect(thriffty_copy_run(halo, NULL, to), OK);
    thriffty_copy *bad;
    thriffty_subarray twice[] = {here[0], here[0]};
    expect(thriffty_copy_create(&bad, plan, last ? 7 : THRIFFTY_SIDE_INPUT, 2, here, 1, &own), ARGUMENT);
    that(bad == NULL && strstr(thriffty_last_error(), "side: found 7") != NULL);
    expect(thriffty_copy_create(&bad, plan, THRIFFTY_SIDE_INPUT, 2, last ? twice : here, 1, &own), ARGUMENT);
    that(strstr(thriffty_last_error(), "sources of a copy") != NULL);
    expect(thriffty_copy_create(&bad, plan, THRIFFTY_SIDE_INPUT, 2, last ? NULL : here, 1, &own), ARGUMENT);
    expect(thriffty_halo_create(&bad, plan, THRIFFTY_SIDE_INPUT, last ? NULL : ONE, ONE, periodic, 2, here), ARGUMENT);
    twice[0].strides[2] = -1;
    expect(thriffty_copy_create(&bad, plan, THRIFFTY_SIDE_INPUT, 2, last ? twice : here, 1, &own), ARGUMENT);
    that(strstr(thriffty_last_error(), "stride of a subarray: found -1") != NULL);

    /* Ranks without sources, or without targets, may have no list of them. */
    const thriffty_brick all = {{0, 0, 0}, {12, 6, 8}};
    thriffty_subarray whole;
    expect(thriffty_subarray_init(&whole, 3, &all, NULL, NULL, NULL, 1), OK);
    thriffty_copy *one_way;
    double *given = calloc(576, sizeof(double)), *taken = calloc(576, sizeof(double));
    visit(&whole, given, 0, 0);
    expect(thriffty_copy_create(&one_way, plan, THRIFFTY_SIDE_INPUT, rank == 0, &whole, last, &whole), OK);
    const void *const gives[] = {given};
    void *const takes[] = {taken};
    expect(thriffty_copy_run(one_way, rank == 0 ? gives : NULL, last ? takes : NULL), OK);
    if (last) visit(&whole, taken, 0, 1);
    expect(thriffty_copy_destroy(one_way), OK);
    free(given);
    free(taken);

    const int32_t order[] = {0, 0, 1};
    expect(thriffty_subarray_init(&own, 3, &here[0].brick, NULL, NULL, order, 1), ARGUMENT);
    expect(thriffty_subarray_init(&own, 5, &here[0].brick, NULL, NULL, NULL, 1), ARGUMENT);
    expect(thriffty_subarray_init(&own, 3, NULL, NULL, NULL, NULL, 1), ARGUMENT);
    expect(thriffty_subarray_init(&own, 3, &here[0].brick, NULL, NULL, NULL, 3), OK);
    that(own.distance == 1 && own.strides[2] == 3);

    /* A copy outlives its plan. */
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_copy_run(halo, NULL, to), OK);
    expect(thriffty_copy_destroy(load), OK);
    expect(thriffty_copy_destroy(load), PLAN);
    that(strstr(thriffty_last_error(), "is not a copy") != NULL);
    expect(thriffty_copy_destroy(store), OK);
    expect(thriffty_copy_destroy(halo), OK);
    expect(thriffty_copy_destroy(NULL), OK);
    free(x);
    free(y);
    free(arrays[0]);
    free(arrays[1]);
    MPI_Finalize();
    return 0;
}
