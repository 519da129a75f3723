/* The Taylor-Green vortex over FFTW-MPI: the peer of examples/taylor_green.
 *
 *   mpirun -n P taylor_green_peer N STEPS DT
 *
 * It prints the energy after the steps, and the median of the seconds of a step on the slowest
 * rank. The method is that of the example: rotational form, products on the grid, modes from 2/3 of
 * the highest wavenumber on set to 0, classical Runge-Kutta steps, explicit viscosity for a
 * Reynolds number of 1600.
 *
 * FFTW has slabs, FFTW_MEASURE and FFTW_MPI_TRANSPOSED_OUT, so that a transform exchanges once.
 * What is done mode by mode goes over the data once for each stage.
 *
 *   mpicc -std=c11 -O3 -march=native -Wall -Wextra -Wpedantic benches/peers/taylor_green.c \
 *     -o target/taylor_green_peer -lfftw3_mpi -lfftw3 -lm
 *
 * taylor_green.sh times both programs by turns, and prints the ratios of their medians.
 */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double REYNOLDS = 1600;
/* The weight of a stage's rate in the step, and how far the next stage goes ahead with it. */
static const double STAGES[4][2] = {{1.0 / 6, 0.5}, {1.0 / 3, 0.5}, {1.0 / 3, 1}, {1.0 / 6, 0}};

/* Points along an axis; modes along z; this rank's part of x on the grid, and of y in spectra. */
static ptrdiff_t n, nz, planes, first_x, rows, first_y;
/* Modes of a component, in the order y, x, z. */
static ptrdiff_t modes;
/* Spectra are scaled: their squares sum to means over the box. */
static fftw_complex *velocity[3], *next[3], *stage[3], *rate[3], *scratch;
/* On the grid, in the order x, y, z, with rows padded to 2 nz numbers. */
static double *u[3], *omega[3];
static fftw_plan to_spectrum, to_grid;
static double *wave; /* wavenumbers along x and y */

static void die(const char *what) {
    fprintf(stderr, "taylor_green_peer: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void *checked(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

static void prepare(void) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const double pi = acos(-1);
    nz = n / 2 + 1;
    const ptrdiff_t room =
        fftw_mpi_local_size_3d_transposed(n, n, nz, comm, &planes, &first_x, &rows, &first_y);
    modes = rows * n * nz;
    scratch = checked(fftw_alloc_complex((size_t)room));
    for (int c = 0; c < 3; c++) {
        fftw_complex **spectra[] = {&velocity[c], &next[c], &stage[c], &rate[c]};
        for (int i = 0; i < 4; i++) *spectra[i] = checked(fftw_alloc_complex((size_t)room));
        u[c] = checked(fftw_alloc_real(2 * (size_t)room));
        omega[c] = checked(fftw_alloc_real(2 * (size_t)room));
    }
    const unsigned effort = FFTW_MEASURE | FFTW_DESTROY_INPUT;
    to_spectrum = fftw_mpi_plan_dft_r2c_3d(n, n, n, u[0], rate[0], comm, effort | FFTW_MPI_TRANSPOSED_OUT);
    to_grid = fftw_mpi_plan_dft_c2r_3d(n, n, n, scratch, u[0], comm, effort | FFTW_MPI_TRANSPOSED_IN);
    if (!to_spectrum || !to_grid) die("FFTW could not make a plan");

    wave = checked(malloc(sizeof(double) * (size_t)n));
    for (ptrdiff_t i = 0; i < n; i++) wave[i] = (double)(2 * i < n ? i : i - n);

    /* The vortex at the time 0. */
    for (ptrdiff_t i = 0; i < planes; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            for (ptrdiff_t k = 0; k < n; k++) {
                const double h = 2 * pi / (double)n;
                const double x = h * (double)(first_x + i), y = h * (double)j, z = h * (double)k;
                const ptrdiff_t at = (i * n + j) * 2 * nz + k;
                u[0][at] = sin(x) * cos(y) * cos(z);
                u[1][at] = -cos(x) * sin(y) * cos(z);
                u[2][at] = 0;
            }
    const double scale = pow((double)n, -3);
    for (int c = 0; c < 3; c++) {
        fftw_mpi_execute_dft_r2c(to_spectrum, u[c], velocity[c]);
        for (ptrdiff_t at = 0; at < modes; at++) velocity[c][at] *= scale;
    }
}

/* A component of the curl of a stage: i (k_b v_c - k_c v_b), with b and c the axes behind it. */
static void curl(int component) {
    const int b = (component + 1) % 3, c = (component + 2) % 3;
    for (ptrdiff_t j = 0; j < rows; j++)
        for (ptrdiff_t i = 0; i < n; i++) {
            const ptrdiff_t row = (j * n + i) * nz;
            double k[3] = {wave[i], wave[first_y + j], 0};
            for (ptrdiff_t z = 0; z < nz; z++) {
                k[2] = (double)z;
                const fftw_complex d = k[b] * stage[c][row + z] - k[c] * stage[b][row + z];
                scratch[row + z] = CMPLX(-cimag(d), creal(d));
            }
        }
}

/* u x omega in spectra, unscaled, of the velocity at a stage. */
static void products(void) {
    for (int c = 0; c < 3; c++) {
        for (ptrdiff_t at = 0; at < modes; at++) scratch[at] = stage[c][at];
        fftw_mpi_execute_dft_c2r(to_grid, scratch, u[c]);
        curl(c);
        fftw_mpi_execute_dft_c2r(to_grid, scratch, omega[c]);
    }
    for (ptrdiff_t at = 0; at < planes * n * 2 * nz; at++) {
        const double x = u[0][at], y = u[1][at], z = u[2][at];
        u[0][at] = y * omega[2][at] - z * omega[1][at];
        u[1][at] = z * omega[0][at] - x * omega[2][at];
        u[2][at] = x * omega[1][at] - y * omega[0][at];
    }
    for (int c = 0; c < 3; c++) fftw_mpi_execute_dft_r2c(to_spectrum, u[c], rate[c]);
}

/* Projects the rate, adds viscosity, and goes on to the next stage: all in one pass. */
static void advance(double weight, double ahead) {
    const double scale = pow((double)n, -3);
    for (ptrdiff_t j = 0; j < rows; j++)
        for (ptrdiff_t i = 0; i < n; i++) {
            const double kx = wave[i], ky = wave[first_y + j];
            const int kept = 3 * fabs(kx) < (double)n && 3 * fabs(ky) < (double)n;
            const ptrdiff_t row = (j * n + i) * nz, end = kept ? (n + 2) / 3 : 0;
            for (ptrdiff_t z = 0; z < end; z++) {
                const ptrdiff_t at = row + z;
                const double kz = (double)z, k2 = kx * kx + ky * ky + kz * kz;
                const double k[3] = {kx, ky, kz};
                fftw_complex along = kx * rate[0][at] + ky * rate[1][at] + kz * rate[2][at];
                along *= scale / (k2 > 0 ? k2 : 1);
                for (int c = 0; c < 3; c++) {
                    const fftw_complex f =
                        scale * rate[c][at] - k[c] * along - k2 / REYNOLDS * stage[c][at];
                    next[c][at] += weight * f;
                    stage[c][at] = velocity[c][at] + ahead * f;
                }
            }
            for (int c = 0; c < 3; c++)
                for (ptrdiff_t at = row + end; at < row + nz; at++) next[c][at] = stage[c][at] = 0;
        }
}

static void step(double dt) {
    for (int c = 0; c < 3; c++)
        for (ptrdiff_t at = 0; at < modes; at++) next[c][at] = stage[c][at] = velocity[c][at];
    for (int s = 0; s < 4; s++) {
        products();
        advance(STAGES[s][0] * dt, STAGES[s][1] * dt);
    }
    for (int c = 0; c < 3; c++) {
        fftw_complex *before = velocity[c];
        velocity[c] = next[c];
        next[c] = before;
    }
}

/* The mean of u.u/2. Modes between the first and the middle along z stand for two. */
static double energy(void) {
    double mine = 0, all = 0;
    for (int c = 0; c < 3; c++)
        for (ptrdiff_t at = 0; at < modes; at++) {
            const double re = creal(velocity[c][at]), im = cimag(velocity[c][at]);
            const ptrdiff_t z = at % nz;
            mine += (z == 0 || 2 * z == n ? 0.5 : 1.0) * (re * re + im * im);
        }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) die("usage: taylor_green_peer N STEPS DT");
    n = atol(argv[1]);
    const long steps = atol(argv[2]);
    const double dt = atof(argv[3]);
    if (n < 4 || steps < 1 || !(dt > 0)) die("N must be at least 4, STEPS at least 1, DT positive");

    prepare();
    double *seconds = checked(malloc(sizeof(double) * (size_t)steps));
    for (long i = 0; i < steps; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        step(dt);
        const double mine = MPI_Wtime() - start;
        MPI_Reduce(&mine, &seconds[i], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    const double found = energy();
    if (rank == 0) {
        qsort(seconds, (size_t)steps, sizeof *seconds, ascending);
        printf("time %.6g: energy %.15f\n", (double)steps * dt, found);
        printf("%td^3 on %d ranks, %ld steps: median %.4f s a step\n", n, ranks, steps, seconds[steps / 2]);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
