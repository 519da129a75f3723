/* Transforms in two dimensions by one process, without MPI, on 1, 2 and 3 threads, compared with
 * FFTW: cosines, and a batch of real arrays out of place and in place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <fftw3.h>
#include <thriffty.h>

enum { ROWS = 12, COLUMNS = 10, POINTS = ROWS * COLUMNS, ARRAYS = 3, HALF = ROWS * (COLUMNS / 2 + 1) };

static const int64_t shape[] = {ROWS, COLUMNS};

static int failed(thriffty_status status) {
    if (status) fprintf(stderr, "thriffty: %s\n", thriffty_last_error());
    return status != THRIFFTY_STATUS_OK;
}

/* A plan of one process with an option of this name, and this number of threads, or 0. */
static thriffty_status create(thriffty_plan **plan, int transform, const char *name, const char *value, int threads) {
    char number[12] = "default";
    if (threads != 0) snprintf(number, sizeof number, "%d", threads);
    thriffty_options *options;
    thriffty_status status = thriffty_options_create(&options);
    thriffty_options_set(options, name, value);
    thriffty_options_set(options, "threads", number);
    if (!status) status = thriffty_plan_create_serial(plan, transform, 2, shape, options);
    thriffty_options_destroy(options);
    return status;
}

static double largest(const double *a, const double *b, int count) {
    double error = 0.0;
    for (int i = 0; i < count; i++) error = fmax(error, fabs(a[i] - b[i]));
    return error;
}

static double cosines(int threads) {
    double x[POINTS], y[POINTS], back[POINTS], theirs[POINTS];
    for (int i = 0; i < POINTS; i++) x[i] = sin(1.0 + i) / (1.0 + i % 7);
    fftw_plan whole = fftw_plan_r2r_2d(ROWS, COLUMNS, x, theirs, FFTW_REDFT10, FFTW_REDFT00, FFTW_ESTIMATE);
    fftw_execute(whole);
    fftw_destroy_plan(whole);

    thriffty_plan *plan = NULL;
    thriffty_status status = create(&plan, THRIFFTY_TRANSFORM_R2R, "kinds", "dct2,dct1", threads);
    if (!status) status = thriffty_forward(plan, x, sizeof x, y, sizeof y);
    if (!status) status = thriffty_inverse(plan, y, sizeof y, back, sizeof back);
    if (!status) status = thriffty_plan_destroy(plan);
    return failed(status) ? HUGE_VAL : fmax(largest(y, theirs, POINTS), largest(back, x, POINTS));
}

static double batches(int threads) {
    static double x[ARRAYS * POINTS], y[2 * ARRAYS * HALF], theirs[2 * ARRAYS * HALF], back[ARRAYS * POINTS];
    for (int i = 0; i < ARRAYS * POINTS; i++) x[i] = cos(1.0 + i) / (1.0 + i % 5);
    const int lens[] = {ROWS, COLUMNS};
    fftw_plan whole = fftw_plan_many_dft_r2c(2, lens, ARRAYS, x, NULL, 1, POINTS, (fftw_complex *)theirs, NULL, 1, HALF,
                                             FFTW_ESTIMATE | FFTW_PRESERVE_INPUT);
    fftw_execute(whole);
    fftw_destroy_plan(whole);

    thriffty_plan *plan = NULL;
    thriffty_sizes sizes;
    void *array = NULL;
    thriffty_status status = create(&plan, THRIFFTY_TRANSFORM_R2C, "batch", "3", threads);
    if (!status) status = thriffty_plan_sizes(plan, &sizes, sizeof sizes);
    if (!status) status = thriffty_forward(plan, x, sizeof x, y, sizeof y);
    if (!status) status = thriffty_inverse(plan, y, sizeof y, back, sizeof back);
    if (!status) status = thriffty_allocate(plan, &array);
    if (failed(status) || sizes.input_bytes != sizeof x || sizes.output_bytes != sizeof y ||
        sizes.output.hi[1] != COLUMNS / 2 + 1 || sizes.input_len != ARRAYS * POINTS)
        return HUGE_VAL;
    double error = fmax(largest(y, theirs, 2 * ARRAYS * HALF), largest(back, x, ARRAYS * POINTS));
    memcpy(array, x, sizeof x);
    status = thriffty_forward_in_place(plan, array, sizes.in_place_bytes);
    if (!status) error = fmax(error, largest(array, theirs, 2 * ARRAYS * HALF));
    if (!status) status = thriffty_inverse_in_place(plan, array, sizes.in_place_bytes);
    if (!status) error = fmax(error, largest(array, x, ARRAYS * POINTS));
    /* One number too few. */
    if (!status && thriffty_forward(plan, x, sizeof x - 8, y, sizeof y) != THRIFFTY_STATUS_ARGUMENT) error = HUGE_VAL;
    if (!status) status = thriffty_plan_destroy(plan);
    return failed(status) ? HUGE_VAL : error;
}

int main(void) {
    double error = 0.0;
    for (int threads = 0; threads <= 3; threads++) error = fmax(error, fmax(cosines(threads), batches(threads)));
    thriffty_plan *plan = NULL;
    if (create(&plan, THRIFFTY_TRANSFORM_C2C, "batch", "1", -1) != THRIFFTY_STATUS_ARGUMENT) return 1;
    printf("from FFTW %.1e\n", error);
    return error < 1e-13 ? 0 : 1;
}
