/* A transform of data on a GPU, on a stream of the program, compared with one on the host.
 *
 *     mpicc device.c -o device $(pkg-config --cflags --libs thriffty) -lm -ldl
 *     mpirun -n 4 ./device
 *
 * If you build a program with CUDA, use cudaMalloc and cudaStreamCreate. This one finds the driver
 * when it runs, so that it can be built anywhere. Without a driver it prints the reason and stops.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <thriffty.h>

enum { N0 = 48, N1 = 40, N2 = 36 };

static void check(thriffty_status status) {
    if (status != THRIFFTY_STATUS_OK) {
        fprintf(stderr, "thriffty: %s\n", thriffty_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The part of CUDA's driver that is used. */
typedef unsigned long long device_pointer;
static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGetCount)(int *);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuStreamCreate)(void **, unsigned);
    int (*cuStreamSynchronize)(void *);
    int (*cuStreamDestroy_v2)(void *);
    int (*cuMemAlloc_v2)(device_pointer *, size_t);
    int (*cuMemFree_v2)(device_pointer);
    int (*cuMemcpyHtoDAsync_v2)(device_pointer, const void *, size_t, void *);
    int (*cuMemcpyDtoHAsync_v2)(void *, device_pointer, size_t, void *);
} driver;

static int find_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name) (library && (*(void **)&driver.name = dlsym(library, #name)))
    return FIND(cuInit) && FIND(cuDeviceGetCount) && FIND(cuDevicePrimaryCtxRetain) && FIND(cuCtxSetCurrent) &&
           FIND(cuStreamCreate) && FIND(cuStreamSynchronize) && FIND(cuStreamDestroy_v2) && FIND(cuMemAlloc_v2) &&
           FIND(cuMemFree_v2) && FIND(cuMemcpyHtoDAsync_v2) && FIND(cuMemcpyDtoHAsync_v2);
}

static void cuda(int result) {
    if (result != 0) {
        fprintf(stderr, "CUDA says %d\n", result);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Bytes on the device; NULL for none, which a rank without points has. */
static void *array(size_t bytes) {
    device_pointer made = 0;
    if (bytes > 0) cuda(driver.cuMemAlloc_v2(&made, bytes));
    return (void *)(size_t)made;
}

static double largest(const double *a, const double *b, size_t n) {
    double mine = 0.0, of_all = 0.0;
    for (size_t i = 0; i < n; i++) mine = fmax(mine, fabs(a[i] - b[i]));
    MPI_Allreduce(&mine, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return of_all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, devices = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (find_driver() && driver.cuInit(0) == 0) driver.cuDeviceGetCount(&devices);

    const int64_t shape[] = {N0, N1, N2};
    thriffty_options *options;
    check(thriffty_options_create(&options));
    const int device = devices > 0 ? rank % devices : 0;
    char number[12];
    snprintf(number, sizeof number, "%d", device);
    check(thriffty_options_set(options, "device", number));
    void *stream = NULL;
    if (devices > 0) {
        void *context;
        cuda(driver.cuDevicePrimaryCtxRetain(&context, device));
        cuda(driver.cuCtxSetCurrent(context));
        cuda(driver.cuStreamCreate(&stream, 1)); /* one that waits for no other */
        check(thriffty_options_set_stream(options, stream));
    }
    thriffty_plan *there, *here;
    thriffty_status status =
        thriffty_plan_create(&there, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, shape, NULL, NULL, options);
    check(thriffty_options_destroy(options));
    if (status == THRIFFTY_STATUS_DEVICE) {
        if (rank == 0) printf("without a GPU: %s\n", thriffty_last_error());
        MPI_Finalize();
        return 0;
    }
    check(status);
    check(thriffty_plan_create(&here, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, 3, shape, NULL, NULL, NULL));
    thriffty_sizes sizes;
    check(thriffty_plan_sizes(there, &sizes, sizeof sizes));
    size_t in = sizes.input_bytes, out = sizes.output_bytes;

    double *x = malloc(in), *y = malloc(out), *back = malloc(in), *found = malloc(out);
    for (size_t i = 0; i < sizes.input_len; i++) x[i] = sin(0.7 * (double)i + rank) + 0.01 * (double)(i % 5);
    check(thriffty_forward(here, x, in, y, out));

    /* Everything is queued: the program waits once, for what it fetches. */
    void *x_there = array(in), *y_there = array(out);
    cuda(driver.cuMemcpyHtoDAsync_v2((size_t)x_there, x, in, stream));
    check(thriffty_forward(there, x_there, in, y_there, out));
    cuda(driver.cuMemcpyDtoHAsync_v2(found, (size_t)y_there, out, stream));
    check(thriffty_inverse(there, y_there, out, x_there, in));
    cuda(driver.cuMemcpyDtoHAsync_v2(back, (size_t)x_there, in, stream));
    cuda(driver.cuStreamSynchronize(stream));

    double away = largest(found, y, out / sizeof *y), lost = largest(back, x, in / sizeof *x);
    if (rank == 0) printf("on the device: from the host's plan %.1e; there and back %.1e\n", away, lost);
    if (!(away < 1e-9 && lost < 1e-12)) MPI_Abort(MPI_COMM_WORLD, 2);

    check(thriffty_plan_destroy(there));
    check(thriffty_plan_destroy(here));
    if (x_there) cuda(driver.cuMemFree_v2((size_t)x_there));
    if (y_there) cuda(driver.cuMemFree_v2((size_t)y_there));
    cuda(driver.cuStreamDestroy_v2(stream));
    free(x), free(y), free(back), free(found);
    MPI_Finalize();
    return 0;
}
