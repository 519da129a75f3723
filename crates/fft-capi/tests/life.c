/* Plans before MPI begins, on several threads in turn, and after MPI has ended. With an argument
 * MPI has MPI_THREAD_FUNNELED, otherwise MPI_THREAD_SERIALIZED. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include <thriffty.h>

#include "check.h"

static const int64_t SHAPE[] = {8, 6, 4};
static const int64_t AROUND[] = {1, 0, 1};
static const int32_t PERIODIC[] = {1, 1, 1};

/* What the threads work on. */
struct work {
    thriffty_options *options;
    thriffty_sizes sizes;
    thriffty_plan *plan;
    thriffty_copy *halo;
    double *x, *y;
};

/* The same call on any thread; each thread has its own errors. */
struct step {
    thriffty_status (*call)(struct work *);
    struct work *work;
    thriffty_status status;
    char why[400];
};

static void *thread(void *argument) {
    struct step *step = argument;
    step->status = step->call(step->work);
    snprintf(step->why, sizeof step->why, "%s", thriffty_last_error());
    return NULL;
}

static struct step elsewhere(thriffty_status (*call)(struct work *), struct work *work) {
    struct step step = {call, work, THRIFFTY_STATUS_OK, ""};
    pthread_t other;
    that(pthread_create(&other, NULL, thread, &step) == 0 && pthread_join(other, NULL) == 0);
    return step;
}

static thriffty_status make(struct work *w) {
    const thriffty_status status =
        thriffty_plan_create(&w->plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_C2C, 3, SHAPE, NULL, NULL, w->options);
    return status ? status : thriffty_plan_sizes(w->plan, &w->sizes, sizeof w->sizes);
}

static thriffty_status plan_halo(struct work *w) {
    struct thriffty_subarray part;
    expect(thriffty_subarray_init(&part, 3, &w->sizes.input, AROUND, AROUND, NULL, 1), OK);
    return thriffty_halo_create(&w->halo, w->plan, THRIFFTY_SIDE_INPUT, AROUND, AROUND, PERIODIC, 1, &part);
}

static thriffty_status forward(struct work *w) {
    return thriffty_forward(w->plan, w->x, w->sizes.input_bytes, w->y, w->sizes.output_bytes);
}

static thriffty_status in_place(struct work *w) { return thriffty_inverse_in_place(w->plan, w->y, w->sizes.in_place_bytes); }

static thriffty_status allocate(struct work *w) {
    void *array;
    return thriffty_allocate(w->plan, &array);
}

static thriffty_status fill_ghosts(struct work *w) {
    void *arrays[] = {w->x};
    return thriffty_copy_run(w->halo, NULL, arrays);
}

static thriffty_status refuse(struct work *w) { return thriffty_plan_refuse(w->plan, "data", "none", "some"); }

static thriffty_status end(struct work *w) {
    const thriffty_status status = thriffty_copy_destroy(w->halo);
    return status ? status : thriffty_plan_destroy(w->plan);
}

static int is_ended(void) { return strstr(thriffty_last_error(), "MPI has been finalised") != NULL; }

int main(int argc, char **argv) {
    const int serial = argc == 1;
    int level;
    struct work w = {0};
    w.x = calloc(1, 1 << 16);
    w.y = calloc(1, 1 << 16);
    that(w.x && w.y && thriffty_options_create(&w.options) == THRIFFTY_STATUS_OK);
    /* `expect` would call MPI. */
    if (make(&w) != THRIFFTY_STATUS_TRANSPORT || !strstr(thriffty_last_error(), "MPI has not been initialised")) return 1;

    MPI_Init_thread(&argc, &argv, serial ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    that(level == (serial ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED));
    const char *exchanges[] = {"default", "p2p", "alltoallv", "shared", "hosts", "ring", "ring-flush"};
    for (int i = 0; i < 14; i++) {
        expect(thriffty_options_set(w.options, "exchange", exchanges[i / 2]), OK);
        expect(thriffty_options_set(w.options, "threads", i % 2 ? "2" : "1"), OK);
        if (serial) {
            that(elsewhere(make, &w).status == THRIFFTY_STATUS_OK);
            that(elsewhere(plan_halo, &w).status == THRIFFTY_STATUS_OK);
            for (size_t at = 0; at < w.sizes.input_len; at++) w.x[2 * at] = 1, w.x[2 * at + 1] = 0;
            const struct step done = elsewhere(forward, &w);
            if (done.status) fprintf(stderr, "%s\n", done.why);
            that(done.status == THRIFFTY_STATUS_OK);
            if (rank == 0) that(fabs(w.y[0] - 192) < 1e-12);
            expect(in_place(&w), OK);
            for (size_t at = 0; at < w.sizes.input_len; at++) that(fabs(w.y[2 * at] - 1) < 1e-14);
            that(elsewhere(fill_ghosts, &w).status == THRIFFTY_STATUS_OK);
            that(elsewhere(end, &w).status == THRIFFTY_STATUS_OK);
            continue;
        }
        expect(make(&w), OK);
        expect(plan_halo(&w), OK);
        /* The process itself transforms if it is alone and has several threads. */
        if (ranks > 1 || i % 2 == 0) {
            thriffty_status (*calls[])(struct work *) = {forward, in_place, allocate, fill_ghosts, refuse, plan_halo, make};
            for (size_t at = 0; at < sizeof calls / sizeof *calls; at++) {
                const struct step refused = elsewhere(calls[at], &w);
                that(refused.status == THRIFFTY_STATUS_TRANSPORT);
                that(strstr(refused.why, "MPI_THREAD_SERIALIZED") != NULL);
            }
        }
        expect(make(&w), OK);
        expect(plan_halo(&w), OK);
        expect(forward(&w), OK);
        expect(end(&w), OK);
    }
    struct work kept[4];
    for (int i = 0; i < 4; i++) {
        kept[i] = w;
        kept[i].options = options_with("exchange", i == 3 ? "ring" : "default", "shared_arrays", i == 1 ? "true" : "false",
                                       "threads", i == 2 ? "2" : "1");
        expect(make(&kept[i]), OK);
        expect(thriffty_options_destroy(kept[i].options), OK);
        if (i == 1) expect(allocate(&kept[i]), OK);
        expect(plan_halo(&kept[i]), OK);
    }
    MPI_Finalize();

    int failed = 0;
    for (int i = 0; i < 4; i++) {
        struct work *old = &kept[i];
        const double lengths[] = {1, 1, 1};
        thriffty_status (*calls[])(struct work *) = {forward, in_place, allocate, fill_ghosts, refuse, plan_halo};
        /* A process alone with several threads needs no MPI. */
        for (size_t at = 0; at < sizeof calls / sizeof *calls && (ranks > 1 || i != 2); at++) {
            if (i == 1 && calls[at] == fill_ghosts) continue;
            failed += calls[at](old) != THRIFFTY_STATUS_TRANSPORT || !is_ended();
        }
        failed += thriffty_plan_sizes(old->plan, &old->sizes, sizeof old->sizes) != THRIFFTY_STATUS_OK;
        failed += thriffty_plan_recipe(old->plan, NULL, 0) < 10;
        const size_t bytes = old->sizes.output_bytes;
        failed += thriffty_apply(old->plan, THRIFFTY_OPERATOR_LAPLACIAN, 0, lengths, old->y, bytes, old->y, bytes);
        failed += end(old) != THRIFFTY_STATUS_OK;
    }
    failed += make(&w) != THRIFFTY_STATUS_TRANSPORT || !is_ended();
    failed += thriffty_plan_create_f(&w.plan, 0, THRIFFTY_TRANSFORM_C2C, 3, SHAPE, NULL, NULL, NULL) !=
        THRIFFTY_STATUS_TRANSPORT || !is_ended();
    failed += thriffty_plan_create_serial(&w.plan, THRIFFTY_TRANSFORM_C2C, 3, SHAPE, NULL) != THRIFFTY_STATUS_OK;
    failed += thriffty_plan_destroy(w.plan) != THRIFFTY_STATUS_OK;
    failed += thriffty_options_destroy(w.options) != THRIFFTY_STATUS_OK;
    free(w.x);
    free(w.y);
    if (failed) fprintf(stderr, "rank %d: %d calls are not as expected after MPI_Finalize\n", rank, failed);
    return failed > 0;
}
