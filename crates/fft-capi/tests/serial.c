/* Transforms of one process, without MPI: calls without a plan compared with plans, several threads
 * of the program at once, how many threads the library keeps, and forked processes. */
#define _DEFAULT_SOURCE
#include <complex.h>
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thriffty.h>

#define MOST 65536

static void expect_(int line, thriffty_status found, thriffty_status expected) {
    if (found != expected) {
        fprintf(stderr, "line %d: status %d, expected %d: %s\n", line, (int)found, (int)expected, thriffty_last_error());
        _exit(1);
    }
}
#define expect(found, expected) expect_(__LINE__, found, THRIFFTY_STATUS_##expected)

static void that_(int line, int holds) {
    if (!holds) {
        fprintf(stderr, "line %d: does not hold\n", line);
        _exit(1);
    }
}
#define that(holds) that_(__LINE__, holds)

/* Options with this number of threads; NULL is the default. */
static thriffty_options *options_with(const char *threads) {
    thriffty_options *options;
    expect(thriffty_options_create(&options), OK);
    expect(thriffty_options_set(options, "threads", threads ? threads : "default"), OK);
    return options;
}

static void fill(double *x, size_t numbers, unsigned seed) {
    for (size_t i = 0; i < numbers; i++) {
        seed = 1664525u * seed + 1013904223u;
        x[i] = seed / 4294967296.0 - 0.5;
    }
}

/* Both directions of one shape, without a plan and with one: the same bits. */
static void same_as_a_plan(int transform, int axes, const int64_t *shape, const char *threads, unsigned seed) {
    thriffty_options *options = options_with(threads);
    thriffty_sizes sizes;
    thriffty_plan *plan;
    expect(thriffty_plan_create_serial(&plan, transform, axes, shape, options), OK);
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    const size_t in = sizes.input_bytes, out = sizes.output_bytes, both = sizes.in_place_bytes;
    double *x = malloc(in), *expected = malloc(out), *found = malloc(out), *data = calloc(both, 1);
    fill(x, in / sizeof *x, seed);
    expect(thriffty_forward(plan, x, in, expected, out), OK);
    expect(thriffty_forward_serial(transform, axes, shape, options, x, in, found, out), OK);
    that(memcmp(expected, found, out) == 0);

    memcpy(data, x, in);
    expect(thriffty_forward_serial(transform, axes, shape, options, data, both, data, both), OK);
    that(memcmp(expected, data, out) == 0);
    expect(thriffty_inverse_serial(transform, axes, shape, options, expected, out, data, in), OK);
    for (size_t i = 0; i < in / sizeof *x; i++) that(fabs(data[i] - x[i]) < 1e-13);

    /* Other lengths, and arrays that overlap. */
    expect(thriffty_forward_serial(transform, axes, shape, options, x, in - 8, found, out), ARGUMENT);
    expect(thriffty_forward_serial(transform, axes, shape, options, x, in, found, out - 8), ARGUMENT);
    expect(thriffty_forward_serial(transform, axes, shape, options, data, in, data + 1, out), ARGUMENT);
    expect(thriffty_forward_serial(transform, axes, shape, options, data, both - 8, data, both), ARGUMENT);
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_options_destroy(options), OK);
    free(x), free(expected), free(found), free(data);
}

/* Many lengths in turn, each twice. */
static void *many_lengths(void *seed) {
    for (int again = 0; again < 2; again++)
        for (int64_t n = 2; n < 60; n++) {
            const int64_t square[] = {n, n};
            same_as_a_plan(THRIFFTY_TRANSFORM_C2C, 2, square, "1", (unsigned)n + *(unsigned *)seed);
            same_as_a_plan(THRIFFTY_TRANSFORM_R2C, 1, &n, NULL, (unsigned)n);
        }
    return NULL;
}

static int threads_of_process(void) {
    DIR *folder = opendir("/proc/self/task");
    int threads = 0;
    for (struct dirent *entry; (entry = readdir(folder));) threads += entry->d_name[0] != '.';
    closedir(folder);
    return threads;
}

/* Twenty shapes on more threads than there are cores: the plans share them. */
static void threads_are_shared(void) {
    thriffty_options *options = options_with("9");
    thriffty_plan *plans[20];
    static double complex x[MOST], y[MOST];
    for (int64_t i = 0; i < 20; i++) {
        const int64_t shape[] = {160 + i, 200};
        const size_t bytes = sizeof *x * (size_t)(shape[0] * shape[1]);
        expect(thriffty_plan_create_serial(&plans[i], THRIFFTY_TRANSFORM_C2C, 2, shape, options), OK);
        expect(thriffty_forward(plans[i], x, bytes, y, bytes), OK);
        expect(thriffty_inverse_serial(THRIFFTY_TRANSFORM_C2C, 2, shape, options, x, bytes, y, bytes), OK);
    }
    that(threads_of_process() == 9);
    for (int i = 0; i < 20; i++) expect(thriffty_plan_destroy(plans[i]), OK);
    expect(thriffty_options_destroy(options), OK);
    expect(thriffty_clear_plans(), OK);
    /* A thread takes a moment to end. */
    for (int wait = 0; threads_of_process() > 1 && wait < 10000; wait++) usleep(1000);
    that(threads_of_process() == 1);
}

/* In a forked process, plans of before are refused and new ones work. */
static void forked(void) {
    const int64_t shape[] = {160, 200}, small = 48;
    const size_t bytes = sizeof(double complex) * 160 * 200;
    thriffty_options *options = options_with("3");
    thriffty_plan *plan;
    static double complex x[MOST], y[MOST];
    expect(thriffty_plan_create_serial(&plan, THRIFFTY_TRANSFORM_C2C, 2, shape, options), OK);
    expect(thriffty_forward(plan, x, bytes, y, bytes), OK);
    expect(thriffty_forward_serial(THRIFFTY_TRANSFORM_C2C, 2, shape, options, x, bytes, y, bytes), OK);
    const pid_t child = fork();
    that(child >= 0);
    if (child == 0) {
        alarm(60); /* A child that hangs is ended. */
        thriffty_sizes sizes;
        expect(thriffty_forward(plan, x, bytes, y, bytes), PLAN);
        that(strstr(thriffty_last_error(), "forked") != NULL);
        expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), PLAN);
        expect(thriffty_plan_destroy(plan), PLAN);
        same_as_a_plan(THRIFFTY_TRANSFORM_C2C, 2, shape, "3", 5);
        same_as_a_plan(THRIFFTY_TRANSFORM_R2C, 1, &small, NULL, 6);
        that(threads_of_process() == 3);
        _exit(0);
    }
    int status = -1;
    that(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect(thriffty_inverse(plan, y, bytes, x, bytes), OK);
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_options_destroy(options), OK);
}

static size_t bytes_of_process(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    that(file && fscanf(file, "%zu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Where memory is limited, kept plans make room for a new one. */
static void kept_plans_make_room(void) {
    const pid_t child = fork();
    that(child >= 0);
    if (child == 0) {
        thriffty_plan *plan;
        thriffty_sizes sizes;
        const int64_t n = 1 << 20, more = 3 << 18;
        double complex *x = calloc((size_t)n, sizeof *x);
        const size_t bytes = sizeof *x * (size_t)n;
        expect(thriffty_forward_serial(THRIFFTY_TRANSFORM_C2C, 1, &n, NULL, x, bytes, x, bytes), OK);
        expect(thriffty_plan_create_serial(&plan, THRIFFTY_TRANSFORM_C2C, 1, &more, NULL), OK);
        expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
        expect(thriffty_plan_destroy(plan), OK);
        const size_t all = bytes_of_process() + sizes.workspace_bytes / 2;
        const struct rlimit limit = {all, all};
        that(setrlimit(RLIMIT_AS, &limit) == 0);
        expect(thriffty_plan_create_serial(&plan, THRIFFTY_TRANSFORM_C2C, 1, &more, NULL), OK);
        expect(thriffty_plan_destroy(plan), OK);
        _exit(0);
    }
    int status = -1;
    that(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    unsetenv("THRIFFTY_THREADS");
    setenv("OMP_NUM_THREADS", "5,2", 1);
    that(thriffty_default_threads() == 5);
    setenv("THRIFFTY_THREADS", "2", 1);
    that(thriffty_default_threads() == 2);

    const int64_t box[] = {30, 28, 50};
    same_as_a_plan(THRIFFTY_TRANSFORM_C2C, 3, box, "2", 1);
    same_as_a_plan(THRIFFTY_TRANSFORM_R2C, 3, box, NULL, 2);
    same_as_a_plan(THRIFFTY_TRANSFORM_R2R, 3, box, "1", 3);

    unsigned seeds[] = {1, 2};
    pthread_t other;
    that(pthread_create(&other, NULL, many_lengths, &seeds[1]) == 0);
    many_lengths(&seeds[0]);
    that(pthread_join(other, NULL) == 0);

    forked();
    expect(thriffty_clear_plans(), OK);
    kept_plans_make_room();
    threads_are_shared();
    puts("transforms without a plan are those of plans");
    return 0;
}
