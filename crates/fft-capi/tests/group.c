/* Process groups without MPI: this program forks, and its processes are connected by sockets. Plans
 * compared with those of one process, groups that pretend to have several hosts, with messages and
 * without, errors on one rank, and the end of a process. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thriffty.h>

#include "sockets.h"

static int rank, ranks;

static void expect_(int line, thriffty_status found, thriffty_status expected) {
    if (found != expected || (found != THRIFFTY_STATUS_OK && strlen(thriffty_last_error()) < 5)) {
        fprintf(stderr, "line %d: rank %d of %d has status %d, expected %d: %s\n", line, rank, ranks, (int)found,
                (int)expected, thriffty_last_error());
        _exit(1);
    }
}
#define expect(found, expected) expect_(__LINE__, found, THRIFFTY_STATUS_##expected)

static void that_(int line, int holds) {
    if (!holds) {
        fprintf(stderr, "line %d: does not hold on rank %d of %d: %s\n", line, rank, ranks, thriffty_last_error());
        _exit(1);
    }
}
#define that(holds) that_(__LINE__, holds)

/* Every rank has this text. */
static void everywhere_(int line, struct group *group, const char *text) {
    char mine[200] = "", all[MOST][200];
    snprintf(mine, sizeof mine, "%s", thriffty_last_error());
    that_(line, group_allgather(group, mine, all, sizeof mine) == 0);
    for (int other = 0; other < group->size; other++) that_(line, strcmp(mine, all[other]) == 0);
    that_(line, strstr(mine, text) != NULL);
}
#define everywhere(group, text) everywhere_(__LINE__, group, text)

static const int64_t SHAPE[] = {12, 10, 8};
#define POINTS (12 * 10 * 8)
#define MODES (12 * 10 * 5)

static double number(int64_t at) { return sin(0.37 * (double)(at * at % 1009)); }

static thriffty_options *options_with(const char *name, const char *value) {
    thriffty_options *options;
    expect(thriffty_options_create(&options), OK);
    thriffty_options_set(options, name, value);
    return options;
}

/* The numbers of a brick, of a whole array with this row length and number of values per point. */
static size_t of_brick(const thriffty_brick *brick, const double *whole, int64_t row, int64_t values, double *part) {
    size_t count = 0;
    for (int64_t i = brick->lo[0]; i < brick->hi[0]; i++)
        for (int64_t j = brick->lo[1]; j < brick->hi[1]; j++)
            for (int64_t k = brick->lo[2] * values; k < brick->hi[2] * values; k++)
                part[count++] = whole[(i * SHAPE[1] + j) * row * values + k];
    return count;
}

static void same(const double *found, const double *expected, size_t count, double bound) {
    for (size_t at = 0; at < count; at++) that(fabs(found[at] - expected[at]) <= bound);
}

/* There and back, compared with a plan of one process. */
static void transforms(thriffty_plan *plan) {
    static double whole[POINTS], spectrum[2 * MODES], x[POINTS], y[2 * MODES], expected[2 * MODES], back[POINTS];
    thriffty_plan *alone;
    thriffty_sizes sizes;
    thriffty_options *one_thread = options_with("threads", "1");
    for (int64_t at = 0; at < POINTS; at++) whole[at] = number(at);
    expect(thriffty_plan_create_serial(&alone, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, one_thread), OK);
    expect(thriffty_forward(alone, whole, sizeof whole, spectrum, sizeof spectrum), OK);
    expect(thriffty_plan_destroy(alone), OK);
    expect(thriffty_options_destroy(one_thread), OK);

    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    that(of_brick(&sizes.input, whole, SHAPE[2], 1, x) == sizes.input_len);
    that(of_brick(&sizes.output, spectrum, SHAPE[2] / 2 + 1, 2, expected) == 2 * sizes.output_len);
    expect(thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes), OK);
    same(y, expected, 2 * sizes.output_len, 1e-12);
    expect(thriffty_inverse(plan, y, sizes.output_bytes, back, sizes.input_bytes), OK);
    same(back, x, sizes.input_len, 1e-14);
}

static thriffty_comm *made(struct group *group) {
    const thriffty_group_callbacks callbacks = callbacks_of(group);
    thriffty_comm *comm;
    expect(thriffty_comm_create(&comm, group->rank, group->size, &callbacks, group), OK);
    return comm;
}

static thriffty_plan *planned(thriffty_comm *comm, const char *name, const char *value) {
    thriffty_options *options = options_with(name, value);
    thriffty_plan *plan;
    expect(thriffty_plan_create_group(&plan, comm, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, options), OK);
    expect(thriffty_options_destroy(options), OK);
    return plan;
}

/* The communicator ends before a plan, and plans in an order that differs between ranks. */
static void lives(struct group *group) {
    thriffty_comm *comm = made(group);
    thriffty_plan *plans[] = {planned(comm, "exchange", "default"), planned(comm, "shared_arrays", "true")};
    void *shared;
    thriffty_sizes sizes;
    transforms(plans[0]);
    expect(thriffty_plan_sizes(plans[1], &sizes, sizeof sizes), OK);
    expect(thriffty_allocate(plans[1], &shared), OK);
    that(shared != NULL);
    memset(shared, 0, sizes.in_place_bytes);
    expect(thriffty_forward_in_place(plans[1], shared, sizes.in_place_bytes), OK);
    thriffty_comm *other = made(group);
    expect(thriffty_comm_destroy(comm), OK);
    expect(thriffty_comm_destroy(comm), PLAN);
    transforms(plans[0]);
    expect(thriffty_plan_destroy(plans[rank % 2]), OK);
    expect(thriffty_plan_destroy(plans[1 - rank % 2]), OK);
    plans[0] = planned(other, "exchange", "default");
    transforms(plans[0]);
    expect(thriffty_plan_destroy(plans[0]), OK);
    expect(thriffty_comm_destroy(other), OK);
}

/* The index of the point at a position of this rank. */
static int64_t index_at(const thriffty_brick *brick, int64_t n, int64_t stride, size_t at) {
    const int64_t position = brick->lo[0] + (int64_t)at, each = n / stride;
    return position / each + stride * (position % each);
}

/* A line that ranks share: a wave in blocks, transposed and cyclic. */
static void lines(struct group *group) {
    enum { N = 144, WAVE = 29 };
    static const char *const NAMES[] = {"batch", "transposed_output", "output_cyclic"};
    static double x[2 * N], y[2 * N];
    const int64_t n[] = {N};
    const double turn = 2 * 3.14159265358979323846 / N;
    thriffty_comm *comm = made(group);
    for (size_t layout = 0; layout < 3; layout++) {
        const char count[] = {(char)('0' + ranks), '\0'}, *const values[] = {"1", "true", count};
        thriffty_options *options = options_with(NAMES[layout], values[layout]);
        thriffty_plan *plan;
        thriffty_sizes sizes;
        if (layout == 2) expect(thriffty_options_set(options, "input_cyclic", count), OK);
        expect(thriffty_plan_create_group(&plan, comm, THRIFFTY_TRANSFORM_C2C, 1, n, NULL, NULL, options), OK);
        expect(thriffty_options_destroy(options), OK);
        expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
        that(layout < 2 || (sizes.input_strides[0] == ranks && sizes.output_strides[0] == ranks));
        for (size_t at = 0; at < sizes.input_len; at++) {
            const double phase = turn * (double)(WAVE * index_at(&sizes.input, N, sizes.input_strides[0], at) % N);
            x[2 * at] = cos(phase), x[2 * at + 1] = sin(phase);
        }
        expect(thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes), OK);
        for (size_t at = 0; at < sizes.output_len; at++) {
            const int64_t k = index_at(&sizes.output, N, sizes.output_strides[0], at);
            that(fabs(y[2 * at] - (k == WAVE ? N : 0)) < 1e-12 * N && fabs(y[2 * at + 1]) < 1e-12 * N);
        }
        expect(thriffty_plan_destroy(plan), OK);
    }
    expect(thriffty_comm_destroy(comm), OK);
}

static void errors_on_one_rank(struct group *group) {
    const int last = ranks - 1, mine = rank == last;
    thriffty_comm *comm = made(group);
    thriffty_options *options = options_with(mine ? "exchange" : "batch", mine ? "pigeons" : "default");
    thriffty_plan *plan = (thriffty_plan *)&plan;
    expect(thriffty_plan_create_group(&plan, comm, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, options), ARGUMENT);
    that(plan == NULL);
    everywhere(group, "exchange: found pigeons");
    expect(thriffty_options_destroy(options), OK);
    expect(thriffty_comm_agree(comm, NULL), OK);
    expect(thriffty_comm_agree(comm, mine ? "no such field" : NULL), ARGUMENT);
    everywhere(group, "no such field");
    expect(thriffty_comm_agree(comm, mine ? "\xff" : NULL), ARGUMENT);

    static double data[2 * MODES];
    plan = planned(comm, "memory", "least");
    thriffty_sizes sizes;
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    expect(thriffty_forward_in_place(plan, mine ? NULL : data, sizes.in_place_bytes), ARGUMENT);
    everywhere(group, "array: found NULL");
    transforms(plan);
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_comm_destroy(comm), OK);

    /* Like a program whose header has only the two collectives. */
    thriffty_group_callbacks two = callbacks_of(group);
    two.struct_size = offsetof(thriffty_group_callbacks, isend);
    expect(thriffty_comm_create(&comm, rank, ranks, &two, group), OK);
    expect(thriffty_comm_destroy(comm), OK);
    comm = NULL;

    /* What this rank alone can refuse. */
    const thriffty_group_callbacks good = callbacks_of(group);
    thriffty_group_callbacks bad = good;
    bad.struct_size = 3;
    expect(thriffty_comm_create(&comm, rank, ranks, &bad, group), ARGUMENT);
    bad.struct_size = sizeof bad + sizeof(void *);
    expect(thriffty_comm_create(&comm, rank, ranks, &bad, group), ARGUMENT);
    bad = good, bad.alltoallv = NULL;
    expect(thriffty_comm_create(&comm, rank, ranks, &bad, group), ARGUMENT);
    bad = callbacks_of(group), bad.isend = NULL, bad.test = group_test;
    expect(thriffty_comm_create(&comm, rank, ranks, &bad, group), ARGUMENT);
    expect(thriffty_comm_create(&comm, rank, 0, &good, group), ARGUMENT);
    expect(thriffty_comm_create(&comm, ranks, ranks, &good, group), ARGUMENT);
    that(comm == NULL && strstr(thriffty_last_error(), "rank: found") != NULL);
    expect(thriffty_comm_create(&comm, rank, ranks, NULL, group), ARGUMENT);
    expect(thriffty_plan_create_group(&plan, NULL, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, NULL), PLAN);
    expect(thriffty_comm_agree(NULL, NULL), PLAN);
    expect(thriffty_comm_destroy(NULL), OK);

    /* And what all ranks see. */
    if (ranks > 1) {
        expect(thriffty_comm_create(&comm, (rank + 1) % ranks, ranks, &good, group), ARGUMENT);
        everywhere(group, "in its place");
    }
    expect(thriffty_comm_create(mine ? NULL : &comm, rank, ranks, &good, group), ARGUMENT);
    everywhere(group, "comm: found NULL");
}

/* A forked process is no rank of its parent's group. */
static void forked(struct group *group) {
    thriffty_comm *comm = made(group);
    thriffty_plan *plan = planned(comm, "batch", "1"), *none;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        expect(thriffty_plan_create_group(&none, comm, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, NULL), PLAN);
        expect(thriffty_forward_in_place(plan, NULL, 0), PLAN);
        expect(thriffty_comm_agree(comm, NULL), PLAN);
        _exit(0);
    }
    int status;
    that(waitpid(child, &status, 0) == child && status == 0);
    transforms(plan);
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_comm_destroy(comm), OK);
}

/* Ranks that say to be on several hosts exchange through the group. */
static void on_hosts(struct group *group) {
    static const char *const HOSTS[] = {"one", "two", "two"};
    static const char *const EXCHANGES[] = {"p2p", "pipelined", "hosts", "kway2", "alltoallv"};
    group->host = HOSTS[rank % 3];
    thriffty_comm *comm = made(group);
    thriffty_plan *plan = planned(comm, "exchange", "default");
    transforms(plan);
    expect(thriffty_plan_destroy(plan), OK);
    if (ranks > 1) {
        thriffty_options *options = options_with("exchange", "p2p");
        expect(thriffty_plan_create_group(&plan, comm, THRIFFTY_TRANSFORM_R2C, 3, SHAPE, NULL, NULL, options), ARGUMENT);
        everywhere(group, "found p2p, expected alltoallv");
        expect(thriffty_options_destroy(options), OK);
    }
    expect(thriffty_comm_destroy(comm), OK);

    group->has_messages = 1;
    comm = made(group);
    for (size_t at = 0; at < sizeof EXCHANGES / sizeof *EXCHANGES; at++) {
        plan = planned(comm, "exchange", EXCHANGES[at]);
        transforms(plan);
        expect(thriffty_plan_destroy(plan), OK);
    }
    expect(thriffty_comm_destroy(comm), OK);
    group->has_messages = 0;

    /* A callback that fails on one rank: others hear of it, as that rank abandons the group. */
    comm = made(group);
    plan = planned(comm, "exchange", "default");
    group->fails = rank == ranks - 1;
    if (ranks > 1) {
        expect(thriffty_comm_agree(comm, NULL), TRANSPORT);
        that(rank < ranks - 1 || strstr(thriffty_last_error(), "the cable is broken") != NULL);
        expect(thriffty_forward_in_place(plan, NULL, 0), TRANSPORT);
    }
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_comm_destroy(comm), OK);
}

/* The last but one rank is killed in the midst of transforms. The others go on without it. */
static void a_death(struct group *group) {
    const int victim = ranks - 2;
    char text[40], first[200];
    thriffty_comm *comm = made(group);
    thriffty_plan *plan = planned(comm, "exchange", "default");
    thriffty_sizes sizes;
    static double x[POINTS], y[2 * MODES];
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    thriffty_status status = THRIFFTY_STATUS_OK;
    for (int number = 0; status == THRIFFTY_STATUS_OK; number++) {
        if (rank == victim && number == 20) kill(getpid(), SIGKILL);
        status = thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes);
    }
    expect(status, TRANSPORT);
    snprintf(text, sizeof text, "rank %d left", victim);
    snprintf(first, sizeof first, "%s", thriffty_last_error());
    that(strstr(first, text) != NULL);
    expect(thriffty_inverse(plan, y, sizes.output_bytes, x, sizes.input_bytes), TRANSPORT);
    that(strcmp(first, thriffty_last_error()) == 0);
    expect(thriffty_comm_agree(comm, NULL), TRANSPORT);
    expect(thriffty_comm_destroy(comm), OK);
    expect(thriffty_plan_destroy(plan), OK);

    struct group smaller = without(group, victim);
    comm = made(&smaller);
    plan = planned(comm, "exchange", "default");
    for (int number = 0; number < 20; number++) transforms(plan);
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_comm_destroy(comm), OK);
}

/* Forks, and runs a body on every rank; whether those succeed that should. */
static int run(void (*body)(struct group *), int size, int dies) {
    int all[MOST][MOST][2];
    pid_t children[MOST];
    int well = 1;
    ranks = size;
    connect_all(all, size);
    fflush(NULL);
    for (rank = 0; rank < size; rank++) {
        children[rank] = fork();
        if (children[rank] == 0) {
            struct group group = group_of(all, rank, size);
            body(&group);
            _exit(0);
        }
    }
    close_all(all, size);
    for (int other = 0; other < size; other++) {
        int status = 0;
        waitpid(children[other], &status, 0);
        well &= other == dies ? WIFSIGNALED(status) : status == 0;
    }
    return well;
}

int main(void) {
    static void (*const BODIES[])(struct group *) = {lives, lines, errors_on_one_rank, forked, on_hosts};
    for (int size = 1; size <= 4; size++)
        for (size_t at = 0; at < sizeof BODIES / sizeof *BODIES; at++)
            if (!run(BODIES[at], size, -1)) return 1;
    for (int size = 2; size <= 4; size++)
        if (!run(a_death, size, size - 2)) return 1;
    printf("groups of 1 to 4 processes without MPI\n");
    return 0;
}
