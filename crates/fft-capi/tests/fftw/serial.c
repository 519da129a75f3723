/* A cosine transform in two dimensions by one process, without MPI, compared with FFTW. */
#include <math.h>
#include <stdio.h>

#include <fftw3.h>
#include <thriffty.h>

enum { ROWS = 12, COLUMNS = 10, POINTS = ROWS * COLUMNS };

int main(void) {
    double x[POINTS], y[POINTS], back[POINTS], theirs[POINTS];
    for (int i = 0; i < POINTS; i++) x[i] = sin(1.0 + i) / (1.0 + i % 7);
    fftw_plan whole = fftw_plan_r2r_2d(ROWS, COLUMNS, x, theirs, FFTW_REDFT10, FFTW_REDFT00, FFTW_ESTIMATE);
    fftw_execute(whole);
    fftw_destroy_plan(whole);

    const int64_t shape[] = {ROWS, COLUMNS};
    thriffty_options options;
    thriffty_plan *plan = NULL;
    thriffty_status status = thriffty_options_init(&options, sizeof options);
    options.kinds[0] = THRIFFTY_KIND_DCT2;
    options.kinds[1] = THRIFFTY_KIND_DCT1;
    if (!status) status = thriffty_plan_create_serial(&plan, THRIFFTY_TRANSFORM_R2R, 2, shape, &options);
    if (!status) status = thriffty_forward(plan, x, sizeof x, y, sizeof y);
    if (!status) status = thriffty_inverse(plan, y, sizeof y, back, sizeof back);
    if (!status) status = thriffty_plan_destroy(plan);
    if (status) {
        fprintf(stderr, "thriffty: %s\n", thriffty_last_error());
        return 1;
    }
    double error = 0.0;
    for (int i = 0; i < POINTS; i++) error = fmax(error, fmax(fabs(y[i] - theirs[i]), fabs(back[i] - x[i])));
    printf("from FFTW %.1e\n", error);
    return error < 1e-13 ? 0 : 1;
}
