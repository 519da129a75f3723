/* What programs rely on: offsets in structs, options by name, and the same status on every rank for
 * every mistake. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <thriffty.h>

#include "check.h"

_Static_assert(sizeof(thriffty_status) == 4, "status");
_Static_assert(sizeof(thriffty_brick) == 64 && offsetof(thriffty_brick, hi) == 32, "brick");
_Static_assert(offsetof(thriffty_sizes, input) == 8 && offsetof(thriffty_sizes, output) == 72, "bricks");
_Static_assert(offsetof(thriffty_sizes, input_len) == 136, "input_len");
_Static_assert(offsetof(thriffty_sizes, input_order) == 184, "input_order");
_Static_assert(offsetof(thriffty_sizes, input_strides) == 216 && sizeof(thriffty_sizes) == 280, "sizes");

static const int64_t SHAPE[] = {6, 5, 8};
enum { C2C = THRIFFTY_TRANSFORM_C2C, R2C = THRIFFTY_TRANSFORM_R2C, R2R = THRIFFTY_TRANSFORM_R2R };

static thriffty_status create_(thriffty_plan **plan, int transform, const char *const *settings) {
    thriffty_options *options = *settings == NULL ? NULL : options_with_(settings);
    thriffty_status status = thriffty_plan_create(plan, MPI_COMM_WORLD, transform, 3, SHAPE, NULL, NULL, options);
    expect(thriffty_options_destroy(options), OK);
    return status;
}
/* A plan with options of these names and values in turns, or NULL for none. */
#define create(plan, transform, ...) create_(plan, transform, (const char *const[]){__VA_ARGS__, NULL})

/* The options on their own: names, texts and numbers. */
static void settings(void) {
    thriffty_options *options;
    char text[200] = "", json[20000];
    const int64_t lengths[] = {12, 10, 16, 7, 7};
    expect(thriffty_options_create(NULL), ARGUMENT);
    expect(thriffty_options_destroy(NULL), OK);
    expect(thriffty_options_create(&options), OK);
    that(thriffty_options_get(options, "batch", text, sizeof text) == 1 && strcmp(text, "1") == 0);
    expect(thriffty_options_set(options, "batch", "3"), OK);
    expect(thriffty_options_set(options, "tolerance", "1e-6 strict"), OK);
    expect(thriffty_options_set(options, "device", "2"), OK);
    expect(thriffty_options_set_integers(options, "zero_padded", 3, lengths), OK);
    expect(thriffty_options_set_f(options, "kinds", "r2c,c2c,c2c"), OK);
    expect(thriffty_options_set_f(options, "input_order", "1,3,2"), OK);
    that(thriffty_options_get_f(options, "input_order", text, sizeof text) == 5 && strcmp(text, "1,3,2") == 0);
    expect(thriffty_options_set_stream(options, NULL), OK);
    const char *values[][2] = {{"batch", "3"}, {"tolerance", "1e-6 strict"}, {"device", "2"}, {"zero_padded", "12,10,16"},
                               {"kinds", "c2c,c2c,r2c"}, {"input_order", "1,0,2"}, {"output_order", "default"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        that(thriffty_options_get(options, values[i][0], text, sizeof text) == (int64_t)strlen(values[i][1]));
        that(strcmp(text, values[i][1]) == 0);
        expect(thriffty_options_set(options, values[i][0], "default"), OK);
    }
    that(thriffty_options_get(options, "tolerance", text, 4) == 7 && strcmp(text, "def") == 0);
    that(thriffty_options_get(options, "howmany", NULL, 0) == -THRIFFTY_STATUS_ARGUMENT);
    that(thriffty_options_get(options, NULL, text, sizeof text) == -THRIFFTY_STATUS_ARGUMENT);
    that(thriffty_options_get(NULL, "batch", text, sizeof text) == -THRIFFTY_STATUS_ARGUMENT);
    that(thriffty_options_describe(NULL, 0) < (int64_t)sizeof json);
    that(thriffty_options_describe(json, sizeof json) > 1000 && strstr(json, "\"name\":\"transposed_output\"") != NULL);

    /* Those that say how a transform is done are read from the environment. */
    setenv("THRIFFTY_WIRE", "f32", 1), setenv("THRIFFTY_BATCH", "7", 1), setenv("THRIFFTY_EXCHANGE", "", 1);
    expect(thriffty_options_read_environment(options), OK);
    that(thriffty_options_get(options, "wire", text, sizeof text) == 3 && strcmp(text, "f32") == 0);
    that(thriffty_options_get(options, "batch", text, sizeof text) == 1 && strcmp(text, "1") == 0);
    /* That was all well: a plan can be made. */
    thriffty_plan *plan;
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, SHAPE, NULL, NULL, options), OK);
    expect(thriffty_plan_destroy(plan), OK);
    setenv("THRIFFTY_WIRE", "pigeons", 1);
    expect(thriffty_options_read_environment(options), ARGUMENT);
    that(strstr(thriffty_last_error(), "THRIFFTY_WIRE: found pigeons") != NULL);
    unsetenv("THRIFFTY_WIRE"), unsetenv("THRIFFTY_BATCH"), unsetenv("THRIFFTY_EXCHANGE");

    expect(thriffty_options_set(options, "howmany", "3"), ARGUMENT);
    that(strstr(thriffty_last_error(), "howmany") != NULL && strstr(thriffty_last_error(), "batch") != NULL);
    expect(thriffty_options_set(options, "memory", "horse"), ARGUMENT);
    that(strstr(thriffty_last_error(), "ample") != NULL && strstr(thriffty_last_error(), "least") != NULL);
    expect(thriffty_options_set(options, NULL, "3"), ARGUMENT);
    expect(thriffty_options_set(options, "batch", NULL), ARGUMENT);
    expect(thriffty_options_set(options, "batch", "\xff"), ARGUMENT);
    expect(thriffty_options_set_f(options, "input_order", "0,1,2"), ARGUMENT);
    expect(thriffty_options_set_integers(options, "zero_padded", 3, NULL), ARGUMENT);
    expect(thriffty_options_set_integers(options, "zero_padded", 5, lengths), ARGUMENT);
    expect(thriffty_options_set_integers(options, "zero_padded", 0, lengths), ARGUMENT);
    expect(thriffty_options_set_integers(options, NULL, 3, lengths), ARGUMENT);
    expect(thriffty_options_set(NULL, "batch", "3"), ARGUMENT);
    expect(thriffty_options_set_stream(NULL, NULL), ARGUMENT);
    expect(thriffty_options_read_environment(NULL), ARGUMENT);
    /* The first failure is the plan's, whatever was set later. */
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, SHAPE, NULL, NULL, options), ARGUMENT);
    that(plan == NULL && strstr(thriffty_last_error(), "THRIFFTY_WIRE: found pigeons") != NULL);
    expect(thriffty_options_destroy(options), OK);
}

/* An error in one rank's arguments is an error on all. */
static void creation(void) {
    thriffty_plan *plan = (thriffty_plan *)&rank;
    expect(create(&plan, 77, NULL), ARGUMENT);
    that(plan == NULL);
    expect(create(NULL, R2C, NULL), ARGUMENT);
    expect(create(rank == ranks - 1 ? NULL : &plan, R2C, NULL), ARGUMENT);
    expect(create(&plan, rank == ranks - 1 ? -1 : R2C, NULL), ARGUMENT);
    that(ranks == 1 || strstr(thriffty_last_error(), "transform") != NULL);
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 5, SHAPE, NULL, NULL, NULL), ARGUMENT);
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, NULL, NULL, NULL, NULL), ARGUMENT);
    int64_t nothing[] = {0, 0, 0}, empty[] = {6, 0, 8}, negative[] = {6, -5, 8}, vast[] = {INT64_MAX, INT64_MAX, 8}, long_[] = {1, 1, 1LL << 57};
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, nothing, NULL, NULL, NULL), GEOMETRY);
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, empty, NULL, NULL, NULL), GEOMETRY);
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, negative, NULL, NULL, NULL), ARGUMENT);
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, vast, NULL, NULL, NULL), ARGUMENT);
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, long_, NULL, NULL, NULL), MEMORY);
    if (ranks > 1) {
        int axes = rank == 0 ? 2 : 3;
        expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, axes, SHAPE, NULL, NULL, NULL), ARGUMENT);
        expect(create(&plan, rank == 0 ? C2C : R2R, NULL), ARGUMENT);
    }
    thriffty_brick all = {{0, 0, 0, 0}, {6, 5, 8, 0}}, outside = {{0, 0, 0, 0}, {6, 5, 9, 0}}, none = {{0}, {0}};
    thriffty_brick gap = {{0, 0, 0, 0}, {6, 5, 7, 0}}, below = {{-1, 0, 0, 0}, {6, 5, 8, 0}};
    const thriffty_brick *one[] = {&outside, &gap, &below};
    for (int which = 0; which < 3; which++) {
        const thriffty_brick *mine = rank == 0 ? one[which] : &none;
        thriffty_status status = thriffty_plan_create(&plan, MPI_COMM_WORLD, C2C, 3, SHAPE, mine, NULL, NULL);
        expect_(__LINE__, status, which == 2 ? THRIFFTY_STATUS_ARGUMENT : THRIFFTY_STATUS_GEOMETRY);
    }
    if (ranks > 1) expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, C2C, 3, SHAPE, &all, NULL, NULL), GEOMETRY);

    const char *wrong[][2] = {{"precision", "f16"}, {"kinds", "c2c,zebra,r2c"}, {"kinds", "r2c,c2c,r2c"}, {"kinds", "c2c"},
                              {"input_order", "1,1,2"}, {"output_order", "0,1,-1"}, {"forward_scale", "half"},
                              {"batch", "0"}, {"batch", "-1"}, {"exchange", "pigeons"}, {"wire", "bits:77"},
                              {"tolerance", "2"}, {"tuning", "best"}, {"tuning", "recipe:"}, {"tuning", "recipe:(fft z)"},
                              {"threads", "0"}, {"howmany", "3"}, {"", ""}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect(create(&plan, R2C, wrong[i][0], wrong[i][1]), ARGUMENT);
        /* What one rank cannot set, all hear of. */
        expect(create(&plan, R2C, rank == ranks - 1 ? wrong[i][0] : "batch", rank == ranks - 1 ? wrong[i][1] : "1"), ARGUMENT);
    }
}

/* Devices that do not exist, and arrays that are not on one. */
static void devices(void) {
    thriffty_plan *plan;
    expect(create(&plan, R2C, "device", "-2"), ARGUMENT);
    expect(create(&plan, R2C, "device", "4096"), DEVICE);
    that(plan == NULL && strstr(thriffty_last_error(), "CUDA") != NULL);
    /* What one rank lacks, all hear of. */
    expect(create(&plan, R2C, "device", rank == ranks - 1 ? "4096" : "host"), DEVICE);
    thriffty_status status = create(&plan, R2C, "device", "cuda");
    if (status != THRIFFTY_STATUS_OK) {
        expect_(__LINE__, status, THRIFFTY_STATUS_DEVICE);
        if (rank == 0) printf("not run: plans on a device (%s)\n", thriffty_last_error());
        return;
    }
    thriffty_sizes sizes;
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    char *here = malloc(sizes.input_bytes + 16), *there = malloc(sizes.output_bytes + 16);
    expect(thriffty_forward(plan, here, sizes.input_bytes, there, sizes.output_bytes), ARGUMENT);
    that(strstr(thriffty_last_error(), "host") != NULL);
    expect(thriffty_inverse_in_place(plan, NULL, sizes.in_place_bytes), ARGUMENT);
    free(here), free(there);
    expect(thriffty_plan_save_wisdom(plan, "/nowhere/wisdom.toml"), ARGUMENT);
    expect(thriffty_plan_destroy(plan), OK);
    expect(create(&plan, R2C, "device", "0", "transport", "host_staged"), OK);
    expect(thriffty_plan_destroy(plan), OK);
    expect(create(&plan, R2C, "device", "0", "transport", "horse"), ARGUMENT);
    if (ranks > 1) expect(create(&plan, R2C, "device", rank == ranks - 1 ? "host" : "0"), ARGUMENT);
}

static void communicators(void) {
    thriffty_plan *plan;
    const MPI_Fint unknown = 12345;
    expect(thriffty_plan_create(&plan, MPI_COMM_NULL, R2C, 3, SHAPE, NULL, NULL, NULL), TRANSPORT);
    char own[32];
    snprintf(own, sizeof own, "on rank %d:", rank);
    that(strstr(thriffty_last_error(), "MPI_COMM_NULL") != NULL && strstr(thriffty_last_error(), own) != NULL);
    expect(thriffty_plan_create_f(&plan, unknown, R2C, 3, SHAPE, NULL, NULL, NULL), TRANSPORT);
    expect(thriffty_plan_create_f(&plan, MPI_Comm_c2f(MPI_COMM_NULL), R2C, 3, SHAPE, NULL, NULL, NULL), TRANSPORT);
    if (ranks > 1) {
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
        expect(thriffty_plan_create(&plan, inter, R2C, 3, SHAPE, NULL, NULL, NULL), TRANSPORT);
        /* A plan outlives the communicator that it was made with. */
        expect(thriffty_plan_create(&plan, half, R2C, 3, SHAPE, NULL, NULL, NULL), OK);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
        double x[240], y[2 * 150];
        memset(x, 0, sizeof x);
        expect(thriffty_forward(plan, x, sizeof x, y, sizeof y), OK);
        expect(thriffty_plan_destroy(plan), OK);
    }
}

/* An error in one rank's arrays is an error on all, and the plan still works. */
static void execution(void) {
    thriffty_plan *plan;
    expect(create(&plan, R2C, NULL), OK);
    thriffty_sizes sizes;
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    that(sizes.struct_size == sizeof sizes && sizes.input_bytes == 8 * sizes.input_len);
    that(sizes.output_bytes == 16 * sizes.output_len && sizes.in_place_bytes >= sizes.input_bytes);
    expect(thriffty_plan_sizes(plan, &sizes, 3), ARGUMENT);
    expect(thriffty_plan_sizes(plan, NULL, sizeof sizes), ARGUMENT);
    char *memory = malloc(4 * sizes.in_place_bytes + 64);
    memset(memory, 0, 4 * sizes.in_place_bytes + 64);
    double *x = (double *)memory, *y = (double *)(memory + 2 * sizes.in_place_bytes);
    size_t in = sizes.input_bytes, out = sizes.output_bytes;
    int last = rank == ranks - 1;
    expect(thriffty_forward(plan, last ? NULL : x, in, y, out), ARGUMENT);
    expect(thriffty_forward(plan, x, in, last ? NULL : y, out), ARGUMENT);
    expect(thriffty_forward(plan, x, last ? in - 1 : in, y, out), ARGUMENT);
    expect(thriffty_forward(plan, x, last ? in / 2 : in, y, out / 2), ARGUMENT); /* of single precision, say */
    expect(thriffty_forward(plan, x, last ? SIZE_MAX : in, y, out), ARGUMENT);
    expect(thriffty_forward(plan, last ? (double *)(memory + 4) : x, in, y, out), ARGUMENT);
    expect(thriffty_forward(plan, x, in, last ? x : y, out), ARGUMENT);
    expect(thriffty_inverse(plan, y, out, x, last ? 0 : in), ARGUMENT);
    expect(thriffty_forward_in_place(plan, x, last ? 0 : sizes.in_place_bytes), ARGUMENT);
    expect(thriffty_inverse_in_place(plan, last ? NULL : x, sizes.in_place_bytes), ARGUMENT);
    x[0] = 1.0;
    expect(thriffty_forward(plan, x, in + 1, y, out + 64), OK);
    that(rank > 0 || y[0] == ranks);
    expect(thriffty_inverse(plan, y, out, x, in), OK);
    that(x[0] > 1.0 - 1e-14 && x[0] < 1.0 + 1e-14);
    double estimate = 1.0, bound = 1.0;
    expect(thriffty_plan_wire_error(plan, &estimate, &bound), OK);
    that(estimate == 0.0 && bound == 0.0);
    expect(thriffty_plan_wire_error(plan, NULL, NULL), OK);
    thriffty_timings timings;
    expect(thriffty_plan_timings(plan, &timings, sizeof timings), OK);
    that(timings.struct_size == sizeof timings && timings.fft > 0.0 && timings.unpack >= 0.0);
    expect(thriffty_plan_timings(plan, &timings, 8), ARGUMENT);
    expect(thriffty_plan_clear_timings(plan), OK);
    expect(thriffty_plan_timings(plan, &timings, sizeof timings), OK);
    that(timings.fft == 0.0 && timings.sent == 0);

    char recipe[1000], start[8];
    int64_t length = thriffty_plan_recipe(plan, NULL, 0);
    that(length > 20 && length < 1000);
    that(thriffty_plan_recipe(plan, recipe, sizeof recipe) == length && strlen(recipe) == (size_t)length);
    that(thriffty_plan_recipe(plan, start, sizeof start) == length && strncmp(recipe, start, 7) == 0 && start[7] == 0);

    /* The recipe by its name is the same plan; wisdom is of measured plans alone. */
    thriffty_plan *again;
    char other[1000], tuning[1100];
    snprintf(tuning, sizeof tuning, "recipe:%s", recipe);
    expect(create(&again, R2C, "tuning", tuning), OK);
    that(thriffty_plan_recipe(again, other, sizeof other) == length && strcmp(recipe, other) == 0);
    expect(thriffty_plan_save_wisdom(again, "/nowhere/wisdom.toml"), ARGUMENT);
    expect(thriffty_plan_save_wisdom(again, last ? NULL : "/nowhere/wisdom.toml"), ARGUMENT);
    expect(thriffty_plan_destroy(again), OK);
    free(memory);

    expect(thriffty_plan_destroy(NULL), OK);
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_plan_destroy(plan), PLAN);
    expect(thriffty_forward(plan, NULL, 0, NULL, 0), PLAN);
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), PLAN);
    expect(thriffty_plan_destroy((thriffty_plan *)&rank), PLAN);
    that(thriffty_plan_recipe(plan, NULL, 0) == -(int64_t)THRIFFTY_STATUS_PLAN);
}

/* Single precision, two transforms at once, another order of axes, in place both ways. */
static void options_work(void) {
    thriffty_plan *plan;
    expect(create(&plan, C2C, "precision", "f32", "batch", "2", "input_order", "2,0,1", "forward_scale", "symmetric",
                  "inverse_scale", "symmetric", "kinds", "c2c,none,c2c", "exchange", "p2p", "wire", "f32"), OK);
    thriffty_sizes sizes;
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    that(sizes.input_bytes == 8 * sizes.input_len && sizes.in_place_bytes >= sizes.output_bytes);
    float *data = malloc(sizes.in_place_bytes);
    for (size_t i = 0; i < 2 * sizes.input_len; i++) data[i] = (float)((7 * i + 3 * (size_t)rank) % 11);
    expect(thriffty_forward_in_place(plan, data, sizes.in_place_bytes), OK);
    expect(thriffty_inverse_in_place(plan, data, sizes.in_place_bytes), OK);
    for (size_t i = 0; i < 2 * sizes.input_len; i++) {
        float expected = (float)((7 * i + 3 * (size_t)rank) % 11);
        that(data[i] > expected - 1e-4f && data[i] < expected + 1e-4f);
    }
    free(data);
    expect(thriffty_plan_destroy(plan), OK);

    /* What was measured is found again. */
    char path[64];
    int process = (int)getpid();
    MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/thriffty-wisdom-%d.toml", P_tmpdir, process);
    expect(create(&plan, R2C, "tuning", "measure:100ms"), OK);
    expect(thriffty_plan_save_wisdom(plan, path), OK);
    char measured[1000], remembered[1000];
    that(thriffty_plan_recipe(plan, measured, sizeof measured) < 1000);
    expect(thriffty_plan_destroy(plan), OK);
    char tuning[80];
    snprintf(tuning, sizeof tuning, "wisdom:%s", path);
    expect(create(&plan, R2C, "tuning", tuning), OK);
    that(thriffty_plan_recipe(plan, remembered, sizeof remembered) < 1000 && strcmp(measured, remembered) == 0);
    expect(thriffty_plan_destroy(plan), OK);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) remove(path);
}

/* Arrays that processes share: of this plan, zeros, and no others are taken. */
static void shared(void) {
    thriffty_plan *plan, *other;
    expect(create(&plan, C2C, "exchange", "shared", "shared_arrays", "true"), OK);
    expect(create(&other, C2C, "exchange", "shared", "shared_arrays", "true"), OK);
    thriffty_sizes sizes;
    expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
    int last = rank == ranks - 1;
    void *x = &rank, *y, *theirs;
    expect(thriffty_allocate(plan, last ? NULL : &x), ARGUMENT);
    that(last || x == NULL);
    expect(thriffty_allocate((thriffty_plan *)&rank, &x), PLAN);
    that(x == NULL);
    expect(thriffty_allocate(plan, &x), OK);
    expect(thriffty_allocate(plan, &y), OK);
    expect(thriffty_allocate(other, &theirs), OK);
    for (size_t i = 0; i < sizes.in_place_bytes; i++) that(((char *)x)[i] == 0);
    double *in = x, *out = y, own[2 * 240];
    memset(own, 0, sizeof own);
    in[0] = 1.0;
    expect(thriffty_forward(plan, in, sizes.input_bytes, out, sizes.output_bytes), OK);
    that(rank > 0 || out[0] == ranks);
    thriffty_status found = ranks > 1 ? THRIFFTY_STATUS_ARGUMENT : THRIFFTY_STATUS_OK;
    expect_(__LINE__, thriffty_forward(plan, last ? own : in, sizes.input_bytes, out, sizes.output_bytes), found);
    expect_(__LINE__, thriffty_inverse(plan, out, sizes.output_bytes, last ? theirs : in, sizes.input_bytes), found);
    expect(thriffty_forward_in_place(plan, in, sizes.in_place_bytes), OK);
    expect(thriffty_inverse_in_place(plan, in, sizes.in_place_bytes), OK);
    expect(thriffty_plan_destroy(other), OK);
    expect(thriffty_plan_destroy(plan), OK);
}

/* Messages in rounds take less. */
static void memory(void) {
    thriffty_plan *plan;
    const int64_t shape[] = {48, 40, 36};
    const char *names[] = {"ample", "least"};
    size_t held[2];
    for (int which = 0; which < 2; which++) {
        thriffty_options *options = options_with("exchange", "p2p", "memory", names[which]);
        expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, C2C, 3, shape, NULL, NULL, options), OK);
        expect(thriffty_options_destroy(options), OK);
        thriffty_sizes sizes;
        expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
        held[which] = sizes.workspace_bytes;
        double *data = calloc(1, sizes.in_place_bytes);
        data[0] = 1.0;
        expect(thriffty_forward_in_place(plan, data, sizes.in_place_bytes), OK);
        that(rank > 0 || data[0] == ranks);
        free(data);
        expect(thriffty_plan_destroy(plan), OK);
    }
    /* All messages at once are most of the data, and more. */
    that(ranks == 1 || held[1] + (size_t)(48 * 40 * 36 * 8 / ranks) < held[0]);
    expect(create(&plan, C2C, "memory", rank == ranks - 1 ? "horse" : "ample"), ARGUMENT);
    that(strstr(thriffty_last_error(), "memory") != NULL);
}

/* Recipes have the requested layouts. */
static void layouts(void) {
    const char *names[] = {"any", "slabs", "pencils"};
    char recipes[3][512];
    for (int which = 0; which < 3; which++) {
        thriffty_plan *plan;
        expect(create(&plan, C2C, "layouts", names[which]), OK);
        that(thriffty_plan_recipe(plan, recipes[which], sizeof recipes[which]) < (int64_t)sizeof recipes[which]);
        expect(thriffty_plan_destroy(plan), OK);
    }
    that(ranks < 4 || strcmp(recipes[1], recipes[2]) != 0);
    thriffty_plan *plan;
    expect(create(&plan, C2C, "layouts", rank == ranks - 1 ? "zebras" : "any"), ARGUMENT);
    that(strstr(thriffty_last_error(), "layouts") != NULL);
}

/* The machine of the model, by name or from a file, on rank 0 and on the others. */
static void machines(void) {
    const char *none = "no-such-machine.toml";
    const char *all[][2] = {{"summit", "summit"}, {none, none}, {"default", none}, {"summit", none}, {"frontier", "summit"}};
    for (int which = 0; which < 5; which++) {
        thriffty_plan *plan;
        int good = which == 0 || (ranks == 1 && which != 1);
        thriffty_status status = create(&plan, C2C, "machine", all[which][rank > 0]);
        expect_(__LINE__, status, good ? THRIFFTY_STATUS_OK : THRIFFTY_STATUS_ARGUMENT);
        that(good || strstr(thriffty_last_error(), "machine") != NULL);
        if (good) expect(thriffty_plan_destroy(plan), OK);
    }
}

/* A number for each global index, so that a misplaced point shows. */
static double value(int64_t i, int64_t j, int64_t k) {
    return (double)((31 * i + 17 * j + 7 * k + 3 * i * j * k) % 23) - 11.0;
}

/* One number of the spectrum, by the definition. */
static void defined(const int64_t at[3], double sum[2]) {
    sum[0] = sum[1] = 0.0;
    for (int64_t i = 0; i < SHAPE[0]; i++) {
        for (int64_t j = 0; j < SHAPE[1]; j++) {
            for (int64_t k = 0; k < SHAPE[2]; k++) {
                double turns = (double)(i * at[0]) / (double)SHAPE[0] + (double)(j * at[1]) / (double)SHAPE[1]
                               + (double)(k * at[2]) / (double)SHAPE[2];
                double angle = -2.0 * acos(-1.0) * (turns - floor(turns));
                sum[0] += value(i, j, k) * cos(angle);
                sum[1] += value(i, j, k) * sin(angle);
            }
        }
    }
}

/* By every exchange, named as in the options, in much and little memory, with several threads. */
static void exchanges(void) {
    const char *names[] = {"shared", "p2p", "pipelined", "alltoallv", "kway2", "kway3", "kway4", "kway255", "ring", "ring-flush", "hosts"};
    for (int which = 0; which < 22; which++) {
        thriffty_plan *plan;
        const char *threads[] = {"2", "3"};
        expect(create(&plan, R2C, "exchange", names[which / 2], "memory", which % 2 ? "least" : "ample", "threads",
                      which % 2 ? "1" : threads[rank % 2]), OK);
        thriffty_sizes sizes;
        expect(thriffty_plan_sizes(plan, &sizes, sizeof sizes), OK);
        double *x = malloc(sizes.input_bytes + 8), *y = malloc(sizes.output_bytes + 8), *point = x;
        const int64_t *lo = sizes.input.lo, *hi = sizes.input.hi;
        for (int64_t i = lo[0]; i < hi[0]; i++) {
            for (int64_t j = lo[1]; j < hi[1]; j++) {
                for (int64_t k = lo[2]; k < hi[2]; k++) *point++ = value(i, j, k);
            }
        }
        expect(thriffty_forward(plan, x, sizes.input_bytes, y, sizes.output_bytes), OK);
        memset(x, 0, sizes.input_bytes);
        const double *mode = y;
        const int64_t *from = sizes.output.lo, *to = sizes.output.hi;
        int64_t at[3];
        for (at[0] = from[0]; at[0] < to[0]; at[0]++) {
            for (at[1] = from[1]; at[1] < to[1]; at[1]++) {
                for (at[2] = from[2]; at[2] < to[2]; at[2]++, mode += 2) {
                    double sum[2];
                    defined(at, sum);
                    that(fabs(mode[0] - sum[0]) < 1e-11 && fabs(mode[1] - sum[1]) < 1e-11);
                }
            }
        }
        expect(thriffty_inverse(plan, y, sizes.output_bytes, x, sizes.input_bytes), OK);
        point = x;
        for (int64_t i = lo[0]; i < hi[0]; i++) {
            for (int64_t j = lo[1]; j < hi[1]; j++) {
                for (int64_t k = lo[2]; k < hi[2]; k++) that(fabs(*point++ - value(i, j, k)) < 1e-13);
            }
        }
        free(x);
        free(y);
        expect(thriffty_plan_destroy(plan), OK);
    }
}

int main(int argc, char **argv) {
    thriffty_plan *plan;
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, SHAPE, NULL, NULL, NULL), TRANSPORT);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    settings();
    creation();
    devices();
    communicators();
    execution();
    options_work();
    memory();
    layouts();
    machines();
    shared();
    exchanges();
    expect(create(&plan, C2C, NULL), OK);
    thriffty_plan *alone;
    expect(thriffty_plan_create_serial(&alone, R2R, 3, SHAPE, NULL), OK);
    MPI_Finalize();
    /* Calls after MPI_Finalize return an error; plans of one process go on. */
    double x[480], y[480];
    memset(x, 0, sizeof x);
    expect(thriffty_forward(plan, x, sizeof x, y, sizeof y), TRANSPORT);
    expect(thriffty_plan_destroy(plan), OK);
    expect(thriffty_plan_create(&plan, MPI_COMM_WORLD, R2C, 3, SHAPE, NULL, NULL, NULL), TRANSPORT);
    expect(thriffty_forward(alone, x, 240 * sizeof *x, y, 240 * sizeof *y), OK);
    expect(thriffty_plan_destroy(alone), OK);
    return 0;
}
