/* A Poisson solver between walls on a stretched grid over FFTW-MPI: the peer of
 * `fft-cli bench poisson`.
 *
 *   mpirun -n P walls_peer NXxNYxNZ REPS
 *
 * x and y are periodic, and z is between walls without a slope. It prints the median and the least
 * of the seconds of a solve, on the slowest rank, and the relative residual of the discrete
 * equation in the l2 norm.
 *
 * A solve is a real transform along x and y, with FFTW_MEASURE and FFTW_MPI_TRANSPOSED_OUT so that
 * it exchanges once, Thomas's algorithm along z for each mode, and the inverse transform. Points
 * along z are adjacent in memory. The algorithm divides once for each point, and the factor of the
 * inverse belongs to its first sweep.
 *
 *   mpicc -std=c11 -O3 -march=native -Wall -Wextra -Wpedantic benches/peers/walls.c \
 *     -o target/walls_peer -lfftw3_mpi -lfftw3 -lm
 *
 * walls.sh times both programs by turns.
 */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Points; modes along y; this rank's part of x on the grid, and of y in the spectrum. */
static ptrdiff_t nx, ny, nz, half, planes, first_x, rows, first_y;
/* On the grid, in the order x, y, z, with 2 half rows of z for each x. */
static double *field, *rho;
/* Modes in the order y, x, z. */
static fftw_complex *modes;
static fftw_plan forward, backward;
/* The rows of the second derivative along z, and squares of symbols along x and y. */
static double *lower, *diagonal, *upper, *square_x, *square_y;
/* Of a system: its upper elements after elimination. */
static double *factor;

static void die(const char *what) {
    fprintf(stderr, "walls_peer: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void *checked(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

static double *numbers(ptrdiff_t count) { return checked(fftw_alloc_real((size_t)count)); }

/* Squares of the symbols of (f[i+1] - f[i])/h with h = 1, of n modes. */
static double *squares(ptrdiff_t count, ptrdiff_t n) {
    double *found = numbers(count);
    for (ptrdiff_t i = 0; i < count; i++) found[i] = pow(2 * sin(acos(-1) * (double)i / (double)n), 2);
    return found;
}

/* Cells that are finer at both walls, with points in their middle. */
static double face(ptrdiff_t j) { return 0.5 * (double)nz * tanh(3.0 * (double)j / (double)nz - 1.5); }
static double middle(ptrdiff_t j) { return 0.5 * (face(j) + face(j + 1)); }

static void prepare(void) {
    const MPI_Comm comm = MPI_COMM_WORLD;
    half = ny / 2 + 1;
    const ptrdiff_t grid[2] = {nx, ny}, spectrum[2] = {nx, half};
    const ptrdiff_t any = FFTW_MPI_DEFAULT_BLOCK;
    const ptrdiff_t room = fftw_mpi_local_size_many_transposed(
        2, spectrum, nz, any, any, comm, &planes, &first_x, &rows, &first_y);
    field = numbers(2 * room);
    rho = numbers(2 * room);
    modes = checked(fftw_alloc_complex((size_t)room));
    const unsigned effort = FFTW_MEASURE | FFTW_DESTROY_INPUT;
    forward = fftw_mpi_plan_many_dft_r2c(2, grid, nz, any, any, field, modes, comm, effort | FFTW_MPI_TRANSPOSED_OUT);
    backward = fftw_mpi_plan_many_dft_c2r(2, grid, nz, any, any, modes, field, comm, effort | FFTW_MPI_TRANSPOSED_IN);
    if (!forward || !backward) die("FFTW could not make a plan");

    square_x = squares(nx, nx);
    square_y = squares(half, ny);
    lower = numbers(nz);
    diagonal = numbers(nz);
    upper = numbers(nz);
    factor = numbers(nz);
    for (ptrdiff_t j = 0; j < nz; j++) {
        const double width = face(j + 1) - face(j);
        lower[j] = j > 0 ? 1 / (width * (middle(j) - middle(j - 1))) : 0;
        upper[j] = j + 1 < nz ? 1 / (width * (middle(j + 1) - middle(j))) : 0;
        diagonal[j] = -(lower[j] + upper[j]);
    }
}

/* Solves (square - second derivative) x = right for a mode; `right` becomes `x`, times a scale. */
static void solve_mode(double square, fftw_complex *right, double scale) {
    fftw_complex before = 0;
    double above = 0;
    for (ptrdiff_t j = 0; j < nz; j++) {
        /* Of the mode that is known up to a constant, the first point is held. */
        const double own = square - diagonal[j] * (j == 0 && square == 0 ? 2 : 1);
        const double inverse = 1 / (own - lower[j] * above);
        before = (scale * right[j] + lower[j] * before) * inverse;
        above = factor[j] = upper[j] * inverse;
        right[j] = before;
    }
    for (ptrdiff_t j = nz - 2; j >= 0; j--) right[j] = before = right[j] + factor[j] * before;
}

/* Multiplies one mode by minus its equation's matrix, times a scale. */
static void multiply_mode(double square, fftw_complex *x, double scale) {
    fftw_complex below = 0;
    for (ptrdiff_t j = 0; j < nz; j++) {
        const fftw_complex here = x[j], above = j + 1 < nz ? x[j + 1] : 0;
        x[j] = scale * (lower[j] * below + (diagonal[j] - square) * here + upper[j] * above);
        below = here;
    }
}

/* A transform of the field, something for each mode, and the inverse transform. */
static void between_transforms(void (*work)(double, fftw_complex *, double)) {
    const double scale = 1 / ((double)nx * (double)ny);
    fftw_execute(forward);
    for (ptrdiff_t row = 0; row < rows; row++)
        for (ptrdiff_t i = 0; i < nx; i++)
            work(square_y[first_y + row] + square_x[i], modes + (row * nx + i) * nz, scale);
    fftw_execute(backward);
}

/* Noise without a mean along z, so that the equation has a solution. */
static void fill(void) {
    unsigned long long state = 1 + (unsigned long long)first_x;
    for (ptrdiff_t row = 0; row < planes * 2 * half; row++) {
        double *line = rho + row * nz, mean = 0;
        for (ptrdiff_t j = 0; j < nz; j++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            line[j] = (double)(state >> 40) / (1 << 23) - 1;
            mean += line[j] * (face(j + 1) - face(j)) / (face(nz) - face(0));
        }
        for (ptrdiff_t j = 0; j < nz; j++) line[j] -= mean;
    }
}

static double largest(double mine) {
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static double solve(void) {
    for (ptrdiff_t at = 0; at < planes * 2 * half * nz; at++) field[at] = rho[at];
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    between_transforms(solve_mode);
    return largest(MPI_Wtime() - start);
}

static double residual(void) {
    double sums[2] = {0, 0}, all[2];
    between_transforms(multiply_mode);
    for (ptrdiff_t x = 0; x < planes; x++)
        for (ptrdiff_t at = x * 2 * half * nz; at < (x * 2 * half + ny) * nz; at++) {
            sums[0] += pow(rho[at] + field[at], 2);
            sums[1] += pow(rho[at], 2);
        }
    MPI_Allreduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(all[0] / all[1]);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3 || sscanf(argv[1], "%tdx%tdx%td", &nx, &ny, &nz) != 3) die("usage: walls_peer NXxNYxNZ REPS");
    const long reps = atol(argv[2]);
    if (nx < 2 || ny < 2 || nz < 2 || reps < 1) die("two points or more along each axis, one repetition or more");

    prepare();
    fill();
    double *seconds = numbers(reps);
    solve();
    for (long i = 0; i < reps; i++) seconds[i] = solve();
    const double found = residual();
    if (rank == 0) {
        qsort(seconds, (size_t)reps, sizeof *seconds, ascending);
        printf("median %.4f s, least %.4f s, residual %.1e\n", seconds[reps / 2], seconds[0], found);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
