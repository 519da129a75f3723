/* A cosine transform in two dimensions by one process, without MPI: of a product of two cosines,
 * one number remains.
 *
 *     cc serial.c -o serial $(pkg-config --cflags --libs thriffty) -lm -UTHRIFFTY_WITH_MPI
 *
 * The last word is for a library that was installed with MPI, as cc does not find mpi.h.
 */
#include <math.h>
#include <stdio.h>

#include <thriffty.h>

enum { ROWS = 12, COLUMNS = 10, POINTS = ROWS * COLUMNS, A = 3, B = 4 };

int main(void) {
    const double pi = acos(-1.0);
    double x[POINTS], y[POINTS], back[POINTS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            x[i * COLUMNS + j] = cos(pi * A * (i + 0.5) / ROWS) * cos(pi * B * (j + 0.5) / COLUMNS);

    const int64_t shape[] = {ROWS, COLUMNS};
    thriffty_options *options = NULL;
    thriffty_plan *plan = NULL;
    thriffty_status status = thriffty_options_create(&options);
    if (!status) status = thriffty_options_set(options, "kinds", "dct2,dct2");
    if (!status) status = thriffty_plan_create_serial(&plan, THRIFFTY_TRANSFORM_R2R, 2, shape, options);
    if (!status) status = thriffty_forward(plan, x, sizeof x, y, sizeof y);
    if (!status) status = thriffty_inverse(plan, y, sizeof y, back, sizeof back);
    if (!status) status = thriffty_plan_destroy(plan);
    if (!status) status = thriffty_options_destroy(options);
    if (status) {
        fprintf(stderr, "thriffty: %s\n", thriffty_last_error());
        return 1;
    }

    double error = 0.0;
    for (int i = 0; i < POINTS; i++) {
        const double expected = i == A * COLUMNS + B ? POINTS : 0.0;
        error = fmax(error, fmax(fabs(y[i] - expected), fabs(back[i] - x[i])));
    }
    printf("error %.1e\n", error);
    return error < 1e-12 ? 0 : 1;
}
