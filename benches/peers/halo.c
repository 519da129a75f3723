/* Ghost points of a field, and a field loaded from an array with ghost points: thriffty beside
 * MPI's own subarray types, by turns in one run.
 *
 *   mpirun -n P halo_peer N GHOSTS ROUNDS
 *
 * The grid has N points along each axis, doubles, periodic. MPI sends faces of subarray types to
 * the two neighbours along one axis after the other, which brings edges and corners as well; its
 * requests are made once. It prints medians of the slowest rank, and ratios: below 1 thriffty is
 * faster. Both arrays must agree.
 *
 *   mpicc -std=c11 -O3 -DTHRIFFTY_WITH_MPI -Iinclude benches/peers/halo.c -o target/halo_peer \
 *     -Ltarget/release -lfft_capi -lm
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <thriffty.h>

enum { AXES = 3, MOST = 1000 };

static int rank, ranks, ghosts;
static int64_t n;
static MPI_Comm grid;
static MPI_Request faces[AXES][4];

static void die(const char *what) {
    fprintf(stderr, "halo_peer: %s: %s\n", what, thriffty_last_error());
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void good(thriffty_status status, const char *what) {
    if (status != THRIFFTY_STATUS_OK) die(what);
}

/* Persistent requests for the faces along each axis, in an array with ghost points. */
static void make_faces(double *array, const int lens[AXES]) {
    int sizes[AXES];
    for (int axis = 0; axis < AXES; axis++) sizes[axis] = lens[axis] + 2 * ghosts;
    for (int axis = 0; axis < AXES; axis++) {
        int below, above, extents[AXES], starts[4][AXES];
        MPI_Cart_shift(grid, axis, 1, &below, &above);
        for (int a = 0; a < AXES; a++) {
            /* Axes that are done are sent with their ghost points. */
            extents[a] = a == axis ? ghosts : a < axis ? sizes[a] : lens[a];
            for (int part = 0; part < 4; part++) starts[part][a] = a < axis ? 0 : ghosts;
        }
        starts[1][axis] = lens[axis];
        starts[2][axis] = 0;
        starts[3][axis] = lens[axis] + ghosts;
        MPI_Datatype types[4];
        for (int part = 0; part < 4; part++) {
            MPI_Type_create_subarray(AXES, sizes, extents, starts[part], MPI_ORDER_C, MPI_DOUBLE, &types[part]);
            MPI_Type_commit(&types[part]);
        }
        MPI_Send_init(array, 1, types[0], below, axis, grid, &faces[axis][0]);
        MPI_Send_init(array, 1, types[1], above, AXES + axis, grid, &faces[axis][1]);
        MPI_Recv_init(array, 1, types[2], below, AXES + axis, grid, &faces[axis][2]);
        MPI_Recv_init(array, 1, types[3], above, axis, grid, &faces[axis][3]);
    }
}

static void theirs(void) {
    for (int axis = 0; axis < AXES; axis++) {
        MPI_Startall(4, faces[axis]);
        MPI_Waitall(4, faces[axis], MPI_STATUSES_IGNORE);
    }
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over rounds of the seconds of the slowest rank. */
static double median(double *seconds, int rounds) {
    MPI_Allreduce(MPI_IN_PLACE, seconds, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
    return seconds[rounds / 2];
}

/* Packs the inner points by MPI, the usual way to hand them to a library. */
static void pack(const double *array, MPI_Datatype inner, double *dense, int bytes) {
    int at = 0;
    MPI_Pack(array, 1, inner, dense, bytes, &at, MPI_COMM_SELF);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) die("expected N GHOSTS ROUNDS");
    n = atol(argv[1]);
    ghosts = atoi(argv[2]);
    const int rounds = atoi(argv[3]);
    if (rounds < 1 || rounds > MOST) die("ROUNDS is 1 to 1000");
    int cuts[AXES] = {0}, place[AXES], lens[AXES];
    const int periods[AXES] = {1, 1, 1};
    MPI_Dims_create(ranks, AXES, cuts);
    MPI_Cart_create(MPI_COMM_WORLD, AXES, cuts, periods, 0, &grid);
    MPI_Cart_coords(grid, rank, AXES, place);
    thriffty_brick brick = {{0}, {0}};
    size_t points = 1, inner_points = 1;
    for (int axis = 0; axis < AXES; axis++) {
        brick.lo[axis] = n * place[axis] / cuts[axis];
        brick.hi[axis] = n * (place[axis] + 1) / cuts[axis];
        lens[axis] = (int)(brick.hi[axis] - brick.lo[axis]);
        if (lens[axis] < ghosts) die("a brick is thinner than its ghost points");
        points *= (size_t)(lens[axis] + 2 * ghosts);
        inner_points *= (size_t)lens[axis];
    }
    double *ours_at = calloc(points, sizeof(double)), *theirs_at = calloc(points, sizeof(double));
    double *dense = malloc(inner_points * sizeof(double));
    if (!ours_at || !theirs_at || !dense) die("no memory");

    const int64_t shape[] = {n, n, n}, around[] = {ghosts, ghosts, ghosts};
    const int32_t periodic[] = {1, 1, 1};
    thriffty_plan *plan;
    thriffty_copy *halo, *load;
    thriffty_subarray here, own;
    good(thriffty_plan_create(&plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, shape, &brick, NULL, NULL), "plan");
    good(thriffty_subarray_init(&here, 3, &brick, around, around, NULL, 1), "subarray");
    good(thriffty_subarray_init(&own, 3, &brick, NULL, NULL, NULL, 1), "subarray");
    good(thriffty_halo_create(&halo, plan, THRIFFTY_SIDE_INPUT, around, around, periodic, 1, &here), "halo");
    good(thriffty_copy_create(&load, plan, THRIFFTY_SIDE_INPUT, 1, &here, 1, &own), "copy");
    make_faces(theirs_at, lens);
    int sizes[AXES], starts[AXES] = {ghosts, ghosts, ghosts};
    for (int axis = 0; axis < AXES; axis++) sizes[axis] = lens[axis] + 2 * ghosts;
    MPI_Datatype inner;
    MPI_Type_create_subarray(AXES, sizes, lens, starts, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);

    for (int i = 0; i < lens[0]; i++) {
        for (int j = 0; j < lens[1]; j++) {
            for (int k = 0; k < lens[2]; k++) {
                const size_t at = ((size_t)(i + ghosts) * (size_t)sizes[1] + (size_t)(j + ghosts)) * (size_t)sizes[2] +
                                  (size_t)(k + ghosts);
                ours_at[at] = theirs_at[at] = (double)(((brick.lo[0] + i) * n + brick.lo[1] + j) * n + brick.lo[2] + k);
            }
        }
    }
    void *const arrays[] = {ours_at}, *const targets[] = {dense};
    const void *const sources[] = {ours_at};
    static double seconds[4][MOST];
    for (int round = -3; round < rounds; round++) {
        double at[5];
        for (int way = 0; way < 4; way++) {
            MPI_Barrier(MPI_COMM_WORLD);
            at[way] = MPI_Wtime();
            if (way == 0) good(thriffty_copy_run(halo, NULL, arrays), "halo");
            if (way == 1) theirs();
            if (way == 2) good(thriffty_copy_run(load, sources, targets), "load");
            if (way == 3) pack(theirs_at, inner, dense, (int)(inner_points * sizeof(double)));
            if (round >= 0) seconds[way][round] = MPI_Wtime() - at[way];
        }
    }
    if (memcmp(ours_at, theirs_at, points * sizeof(double)) != 0) die("both ways differ");
    double medians[4];
    for (int way = 0; way < 4; way++) medians[way] = median(seconds[way], rounds);
    if (rank == 0) {
        printf("%d ranks, %lld^3, %d ghost points: halo %.1f us, MPI %.1f us, ratio %.2f; load %.1f us, MPI_Pack %.1f us, ratio %.2f\n",
               ranks, (long long)n, ghosts, 1e6 * medians[0], 1e6 * medians[1], medians[0] / medians[1],
               1e6 * medians[2], 1e6 * medians[3], medians[2] / medians[3]);
    }
    good(thriffty_copy_destroy(halo), "destroy");
    good(thriffty_copy_destroy(load), "destroy");
    good(thriffty_plan_destroy(plan), "destroy");
    MPI_Finalize();
    return 0;
}
