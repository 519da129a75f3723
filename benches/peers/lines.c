/* Nanoseconds per line of batches of one-dimensional transforms by FFTW's interface: FFTW, or MKL,
 * which has the interface too. Beside `cargo bench -p fft-lines`, which times ours and rustfft's.
 *
 *   lines LENGTH...
 *
 * A batch has 136 lines, out of place: contiguous ones (rows), lines side by side (columns), and
 * contiguous real ones. Plans are of FFTW_MEASURE; times are the least of 25 rounds.
 *
 *   cc -std=c11 -O2 lines.c -o lines -lfftw3 -lm
 *   cc -std=c11 -O2 lines.c -o lines -lmkl_rt
 *
 * In single precision: -DSINGLE, -lfftw3f.
 */
#define _POSIX_C_SOURCE 200809L
#include <fftw3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef SINGLE
#define FFTW(name) fftwf_##name
typedef float real;
#else
#define FFTW(name) fftw_##name
typedef double real;
#endif

enum { LINES = 136, ROUNDS = 25 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double per_line(FFTW(plan) plan) {
    double least = 1e300;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        FFTW(execute)(plan);
        double time = now() - start;
        least = time < least ? time : least;
    }
    FFTW(destroy_plan)(plan);
    return least / LINES;
}

int main(int argc, char **argv) {
    for (int arg = 1; arg < argc; arg++) {
        int n = atoi(argv[arg]);
        if (n < 1) {
            fprintf(stderr, "%s is no length\n", argv[arg]);
            return 1;
        }
        size_t numbers = (size_t)LINES * (size_t)(n + 2);
        FFTW(complex) *x = FFTW(malloc)(numbers * sizeof *x), *y = FFTW(malloc)(numbers * sizeof *y);
        if (x == NULL || y == NULL) return 1;
        FFTW(plan) rows = FFTW(plan_many_dft)(1, &n, LINES, x, NULL, 1, n, y, NULL, 1, n, FFTW_FORWARD, FFTW_MEASURE);
        FFTW(plan) columns = FFTW(plan_many_dft)(1, &n, LINES, x, NULL, LINES, 1, y, NULL, LINES, 1, FFTW_FORWARD, FFTW_MEASURE);
        FFTW(plan) real_rows = FFTW(plan_many_dft_r2c)(1, &n, LINES, (real *)x, NULL, 1, n, y, NULL, 1, n / 2 + 1, FFTW_MEASURE);
        for (size_t i = 0; i < 2 * numbers; i++) ((real *)x)[i] = (real)(i * 7919 % 1009) / 1009 - (real)0.5;
        printf("%5d  rows %6.0f", n, per_line(rows));
        printf("  columns %6.0f", per_line(columns));
        printf("  real rows %6.0f\n", per_line(real_rows));
        FFTW(free)(x);
        FFTW(free)(y);
    }
    return 0;
}
