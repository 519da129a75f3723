/* FFTW, the competitor in our benchmarks: FFTW-MPI on slabs, or FFTW's threads in one process.
 *
 * Grids have three axes, or one: N, for c2c. FFTW's transposed order of one axis is scrambled.
 *
 *   mpirun -n P fftw_peer mpi c2c|r2c N0xN1xN2 REPS [--destroy-input]
 *   mpirun -n P fftw_peer mpi c2c|r2c N0xN1xN2 --serve [--transposed] [--destroy-input]
 *   fftw_peer threads c2c|r2c N0xN1xN2 REPS NTHREADS [--destroy-input]
 *   fftw_peer threads c2c|r2c N0xN1xN2 --serve NTHREADS [--destroy-input]
 *
 * With REPS it prints one JSON object: times, and the error of a round trip.
 *
 * FFTW has its usual good settings: FFTW_MEASURE, out of place, in double precision unless compiled
 * with -DSINGLE. FFTW-MPI is
 * timed in natural order (slabs of axis 0 in and out, two exchanges) and with
 * FFTW_MPI_TRANSPOSED_OUT (slabs of axis 1 out, one exchange). With --destroy-input FFTW may use
 * the input as scratch. A time is the maximum over the ranks of one forward transform after a
 * barrier.
 *
 * With --serve the program plans, prints "ready", and answers each line "go" with the seconds of
 * one forward transform, until "quit" or the end of the input. So a driver times two programs by
 * turns. The program sleeps while it waits, so that the other one has the cores.
 *
 *   mpicc -std=c11 -O2 -Wall -Wextra -Wpedantic fftw.c -o fftw_peer \
 *     -lfftw3_mpi -lfftw3_threads -lfftw3 -lpthread -lm
 *
 * In single precision: -DSINGLE, -lfftw3f_mpi and so on.
 */
#define _POSIX_C_SOURCE 200809L
#include <fftw3-mpi.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* FFTW has a library for each precision, with names of its own. */
#ifdef SINGLE
#define FFTW(name) fftwf_##name
typedef float real;
#else
#define FFTW(name) fftw_##name
typedef double real;
#endif

/* ---- What to run, from the command line ---- */

typedef struct {
    bool mpi;        /* FFTW-MPI; otherwise threads */
    bool r2c;
    bool line;       /* one axis: n[1] and n[2] are 1 */
    ptrdiff_t n[3];
    bool serve;
    int reps;        /* unless serving */
    bool transposed; /* serve the transposed transform */
    bool destroy;    /* the input may be overwritten */
    int threads;     /* without MPI */
} job;

static bool parse_count(const char *text, char end, long max, long *value, const char **rest) {
    char *stop;
    if (*text < '0' || *text > '9') return false;
    *value = strtol(text, &stop, 10);
    if (rest) *rest = stop + 1;
    return *stop == end && *value >= 1 && *value <= max;
}

/* NULL, or what is wrong with the arguments. */
static const char *parse(int argc, char **argv, job *j) {
    if (argc < 2) return "no mode: give mpi or threads";
    j->mpi = strcmp(argv[1], "mpi") == 0;
    if (!j->mpi && strcmp(argv[1], "threads") != 0) return "the mode must be mpi or threads";
    if (argc < 5) return "too few arguments";
    j->r2c = strcmp(argv[2], "r2c") == 0;
    if (!j->r2c && strcmp(argv[2], "c2c") != 0) return "the kind must be c2c or r2c";

    const char *text = argv[3];
    long length;
    j->n[1] = j->n[2] = 1;
    j->line = parse_count(text, '\0', LONG_MAX - 1, &length, NULL);
    if (j->line) {
        if (j->r2c) return "one axis must be of kind c2c";
        if (!j->mpi && length > INT_MAX) return "threads transform at most 2147483647 points";
        j->n[0] = length;
    }
    for (int axis = 0; axis < 3 && !j->line; axis++) {
        if (!parse_count(text, axis < 2 ? 'x' : '\0', INT_MAX, &length, &text))
            return "the size must be three positive lengths, like 256x256x256, or one";
        j->n[axis] = length;
    }

    long count = 1;
    j->serve = strcmp(argv[4], "--serve") == 0;
    if (!j->serve && !parse_count(argv[4], '\0', 1000000, &count, NULL))
        return "give a number of repetitions from 1 to 1000000, or --serve";
    j->reps = (int)count;

    int next = 5;
    if (!j->mpi) {
        if (argc < 6 || !parse_count(argv[next++], '\0', 4096, &count, NULL))
            return "give a number of threads from 1 to 4096";
        j->threads = (int)count;
    }
    for (; next < argc; next++) {
        if (strcmp(argv[next], "--destroy-input") == 0) j->destroy = true;
        else if (strcmp(argv[next], "--transposed") == 0 && j->mpi && j->serve) j->transposed = true;
        else return "unknown option, or one that this mode does not have";
    }
    return NULL;
}

/* Planning with FFTW_MEASURE takes long: only what a job will use is planned. */
static bool wants_forward(const job *j) { return !j->serve || !j->transposed; }
static bool wants_transposed(const job *j) { return j->mpi && (!j->serve || j->transposed); }
static bool wants_backward(const job *j) { return !j->serve; }
static unsigned effort(const job *j) { return FFTW_MEASURE | (j->destroy ? FFTW_DESTROY_INPUT : 0); }

/* ---- The ranks: of MPI, or the one process that has threads ---- */

typedef struct {
    bool mpi;
    int rank, size;
} world;

static void check(int code, const char *what) {
    if (code == MPI_SUCCESS) return;
    fprintf(stderr, "fftw_peer: %s failed with MPI error %d\n", what, code);
    exit(EXIT_FAILURE);
}

/* One rank's failure ends the others too: none may be left waiting for it. */
static void die(const world *w, const char *what) {
    fprintf(stderr, "fftw_peer: rank %d: %s\n", w->rank, what);
    if (w->mpi) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    exit(EXIT_FAILURE);
}

static void barrier(const world *w) {
    if (w->mpi) check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

/* The sum or the maximum over the ranks, on rank 0. */
static double reduce(const world *w, double mine, MPI_Op op) {
    double all = mine;
    if (w->mpi) check(MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, op, 0, MPI_COMM_WORLD), "MPI_Reduce");
    return all;
}

/* Rank 0's value on every rank. MPI_Bcast would spin and take a core from the timed program. Waking
 * late costs nothing: the time is taken after a barrier. */
static int broadcast_asleep(const world *w, int value) {
    if (!w->mpi) return value;
    MPI_Request request;
    int done = 0;
    check(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast");
    for (;;) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done) return value;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- The transform: plans, and this rank's slab ---- */

typedef struct {
    ptrdiff_t first, planes; /* this rank's part of axis 0 */
    ptrdiff_t row, stride;   /* reals in a row, and from one row to the next (padded by FFTW-MPI) */
    real *in;
    FFTW(complex) *out;
    FFTW(plan) forward, backward, transposed; /* NULL where this job has no use for it */
    int executed;
} transform;

static void allocate(const world *w, transform *t, ptrdiff_t in_reals, ptrdiff_t out_complexes) {
    t->in = FFTW(alloc_real)((size_t)(in_reals > 0 ? in_reals : 1));
    t->out = FFTW(alloc_complex)((size_t)(out_complexes > 0 ? out_complexes : 1));
    if (!t->in || !t->out) die(w, "out of memory");
}

/* One axis: blocks of natural order, whose first and last are in planes of one point. */
static void plan_line_mpi(const world *w, const job *j, transform *t) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const unsigned order = effort(j), scrambled = effort(j) | FFTW_MPI_SCRAMBLED_OUT;
    /* Each plan may need room and blocks of its own. */
    const unsigned flags[] = {order, scrambled, order};
    const int signs[] = {FFTW_FORWARD, FFTW_FORWARD, FFTW_BACKWARD};
    ptrdiff_t room = 0, before[3], first[3], after[3], first_after[3];
    for (int p = 0; p < 3; p++) {
        const ptrdiff_t of_plan = FFTW(mpi_local_size_1d)(
            j->n[0], comm, signs[p], flags[p], &before[p], &first[p], &after[p], &first_after[p]);
        if (of_plan > room) room = of_plan;
    }
    if (before[0] != before[1] || first[0] != first[1] || after[0] != before[2] || before[0] != after[2])
        die(w, "FFTW's plans of this length have different blocks");
    t->planes = before[0];
    t->first = first[0];
    allocate(w, t, 2 * room, room);
    t->stride = 2;
    FFTW(complex) *in = (FFTW(complex) *)t->in, *out = t->out;
    if (wants_forward(j)) t->forward = FFTW(mpi_plan_dft_1d)(j->n[0], in, out, comm, FFTW_FORWARD, order);
    if (wants_transposed(j))
        t->transposed = FFTW(mpi_plan_dft_1d)(j->n[0], in, out, comm, FFTW_FORWARD, scrambled);
    if (wants_backward(j))
        t->backward = FFTW(mpi_plan_dft_1d)(j->n[0], out, in, comm, FFTW_BACKWARD, order);
}

static void plan_mpi(const world *w, const job *j, transform *t) {
    const ptrdiff_t n0 = j->n[0], n1 = j->n[1], n2 = j->n[2], last = j->r2c ? n2 / 2 + 1 : n2;
    const unsigned order = effort(j), swapped = effort(j) | FFTW_MPI_TRANSPOSED_OUT;
    const MPI_Comm comm = MPI_COMM_WORLD;

    /* The slabs of axis 0 are those of natural order, and the room is enough for both. */
    ptrdiff_t planes1, first1;
    const ptrdiff_t room =
        FFTW(mpi_local_size_3d_transposed)(n0, n1, last, comm, &t->planes, &t->first, &planes1, &first1);
    allocate(w, t, 2 * room, room);
    t->stride = 2 * last;

    real *in = t->in;
    FFTW(complex) *cin = (FFTW(complex) *)t->in, *out = t->out;
    if (wants_forward(j))
        t->forward = j->r2c ? FFTW(mpi_plan_dft_r2c_3d)(n0, n1, n2, in, out, comm, order)
                            : FFTW(mpi_plan_dft_3d)(n0, n1, n2, cin, out, comm, FFTW_FORWARD, order);
    if (wants_transposed(j))
        t->transposed = j->r2c ? FFTW(mpi_plan_dft_r2c_3d)(n0, n1, n2, in, out, comm, swapped)
                               : FFTW(mpi_plan_dft_3d)(n0, n1, n2, cin, out, comm, FFTW_FORWARD, swapped);
    if (wants_backward(j))
        t->backward = j->r2c ? FFTW(mpi_plan_dft_c2r_3d)(n0, n1, n2, out, in, comm, order)
                             : FFTW(mpi_plan_dft_3d)(n0, n1, n2, out, cin, comm, FFTW_BACKWARD, order);
}

static void plan_threads(const world *w, const job *j, transform *t) {
    const int n0 = (int)j->n[0], n1 = (int)j->n[1], n2 = (int)j->n[2], last = j->r2c ? n2 / 2 + 1 : n2;
    const unsigned flags = effort(j);
    t->planes = n0;
    t->stride = t->row;
    allocate(w, t, j->n[0] * n1 * t->row, j->n[0] * n1 * last);

    real *in = t->in;
    FFTW(complex) *cin = (FFTW(complex) *)t->in, *out = t->out;
    if (wants_forward(j))
        t->forward = j->r2c ? FFTW(plan_dft_r2c_3d)(n0, n1, n2, in, out, flags)
                            : FFTW(plan_dft_3d)(n0, n1, n2, cin, out, FFTW_FORWARD, flags);
    if (wants_backward(j))
        t->backward = j->r2c ? FFTW(plan_dft_c2r_3d)(n0, n1, n2, out, in, flags)
                             : FFTW(plan_dft_3d)(n0, n1, n2, out, cin, FFTW_BACKWARD, flags);
}

static transform plan(const world *w, const job *j) {
    transform t = {.row = j->r2c ? j->n[2] : 2 * j->n[2]};
    if (j->mpi && j->line) plan_line_mpi(w, j, &t);
    else if (j->mpi) plan_mpi(w, j, &t);
    else plan_threads(w, j, &t);
    if ((wants_forward(j) && !t.forward) || (wants_transposed(j) && !t.transposed) ||
        (wants_backward(j) && !t.backward))
        die(w, "FFTW could not make a plan");
    return t;
}

/* ---- The data: noise of the global index, which need not be kept for comparison ---- */

/* Uniform in [-1, 1): the mixer of splitmix64 applied to a counter. */
static double noise(uint64_t index) {
    uint64_t z = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0;
}

static void fill(const job *j, const transform *t) {
    for (ptrdiff_t row = 0; row < t->planes * j->n[1]; row++)
        for (ptrdiff_t k = 0; k < t->row; k++)
            t->in[row * t->stride + k] = (real)noise((uint64_t)((t->first * j->n[1] + row) * t->row + k));
}

/* The relative l2 difference between backward(forward(x))/N and x, on rank 0. */
static double round_trip_error(const world *w, const job *j, const transform *t) {
    const double scale = 1.0 / ((double)j->n[0] * (double)j->n[1] * (double)j->n[2]);
    double wrong = 0.0, all = 0.0;
    fill(j, t);
    FFTW(execute)(t->forward);
    FFTW(execute)(t->backward);
    for (ptrdiff_t row = 0; row < t->planes * j->n[1]; row++)
        for (ptrdiff_t k = 0; k < t->row; k++) {
            const double x = noise((uint64_t)((t->first * j->n[1] + row) * t->row + k));
            const double d = t->in[row * t->stride + k] * scale - x;
            wrong += d * d;
            all += x * x;
        }
    wrong = reduce(w, wrong, MPI_SUM);
    all = reduce(w, all, MPI_SUM);
    return w->rank == 0 ? sqrt(wrong / all) : 0.0;
}

/* ---- Timing ---- */

/* Seconds of one forward transform on the slowest rank; known on rank 0.
 *
 * The input is written after planning and then every 32 transforms: a transform that destroys its
 * input multiplies it by up to the root of the grid's points. Writing it every time would leave it
 * in the caches, which the other programs do not have. */
static double time_one(const world *w, const job *j, transform *t, FFTW(plan) p) {
    if (t->executed++ % 32 == 0) fill(j, t);
    barrier(w);
    const double start = now();
    FFTW(execute)(p);
    return reduce(w, now() - start, MPI_MAX);
}

enum command { QUIT, GO, UNKNOWN };

static enum command read_command(void) {
    char line[64];
    if (!fgets(line, sizeof line, stdin)) return QUIT;
    line[strcspn(line, "\r\n")] = '\0';
    if (strcmp(line, "go") == 0) return GO;
    if (strcmp(line, "quit") == 0) return QUIT;
    fprintf(stderr, "fftw_peer: expected go or quit, got \"%s\"\n", line);
    return UNKNOWN;
}

static int serve(const world *w, const job *j, transform *t) {
    const FFTW(plan) served = j->transposed ? t->transposed : t->forward;
    if (w->rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    for (;;) {
        const int command = broadcast_asleep(w, w->rank == 0 ? (int)read_command() : QUIT);
        if (command != GO) return command == QUIT ? EXIT_SUCCESS : EXIT_FAILURE;
        const double seconds = time_one(w, j, t, served);
        if (w->rank == 0) {
            printf("%.9f\n", seconds);
            fflush(stdout);
        }
    }
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_series(const char *name, double *seconds, int reps) {
    qsort(seconds, (size_t)reps, sizeof *seconds, ascending);
    const double median = 0.5 * (seconds[(reps - 1) / 2] + seconds[reps / 2]);
    printf("\"%s\":{\"median\":%.9f,\"min\":%.9f,\"max\":%.9f},", name, median, seconds[0], seconds[reps - 1]);
}

static int report(const world *w, const job *j, transform *t) {
    double *natural = malloc(sizeof(double) * (size_t)j->reps);
    double *transposed = malloc(sizeof(double) * (size_t)j->reps);
    if (!natural || !transposed) die(w, "out of memory");

    for (int i = -1; i < j->reps; i++) { /* repetition -1 warms up */
        const double a = time_one(w, j, t, t->forward);
        const double b = j->mpi ? time_one(w, j, t, t->transposed) : 0.0;
        if (i >= 0) natural[i] = a, transposed[i] = b;
    }
    const double error = round_trip_error(w, j, t);

    if (w->rank == 0) {
        printf("{\"library\":\"%s\",\"version\":\"%s\",", j->mpi ? "fftw-mpi" : "fftw-threads", FFTW(version));
        printf("\"problem\":\"%s %tdx%tdx%td\",", j->r2c ? "r2c" : "c2c", j->n[0], j->n[1], j->n[2]);
        printf("\"ranks\":%d,", j->mpi ? w->size : j->threads);
        print_series("seconds", natural, j->reps);
        if (j->mpi) print_series("transposed", transposed, j->reps);
        printf("\"error\":{\"roundtrip\":%.3e}}\n", error);
    }
    free(natural);
    free(transposed);
    return EXIT_SUCCESS;
}

static int run(const world *w, const job *j) {
    if (j->mpi) FFTW(mpi_init)();
    else if (!FFTW(init_threads)()) die(w, "FFTW could not start its threads");
    else FFTW(plan_with_nthreads)(j->threads);

    transform t = plan(w, j);
    const int status = j->serve ? serve(w, j, &t) : report(w, j, &t);

    if (t.forward) FFTW(destroy_plan)(t.forward);
    if (t.backward) FFTW(destroy_plan)(t.backward);
    if (t.transposed) FFTW(destroy_plan)(t.transposed);
    FFTW(free)(t.in);
    FFTW(free)(t.out);
    return status;
}

int main(int argc, char **argv) {
    job j = {0};
    const char *problem = parse(argc, argv, &j);
    world w = {.mpi = j.mpi, .rank = 0, .size = 1};
    if (w.mpi) { /* before the complaint, so that one rank makes it and not all */
        check(MPI_Init(&argc, &argv), "MPI_Init");
        check(MPI_Comm_rank(MPI_COMM_WORLD, &w.rank), "MPI_Comm_rank");
        check(MPI_Comm_size(MPI_COMM_WORLD, &w.size), "MPI_Comm_size");
    }
    int status = 2;
    if (!problem) status = run(&w, &j);
    else if (w.rank == 0)
        fprintf(stderr,
                "fftw_peer: %s\n"
                "usage, for N0xN1xN2 or N:\n"
                "       fftw_peer mpi     c2c|r2c N0xN1xN2 REPS [--destroy-input]\n"
                "       fftw_peer mpi     c2c|r2c N0xN1xN2 --serve [--transposed] [--destroy-input]\n"
                "       fftw_peer threads c2c|r2c N0xN1xN2 REPS NTHREADS [--destroy-input]\n"
                "       fftw_peer threads c2c|r2c N0xN1xN2 --serve NTHREADS [--destroy-input]\n",
                problem);
    if (w.mpi) check(MPI_Finalize(), "MPI_Finalize");
    return status;
}
