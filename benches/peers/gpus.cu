/* Times on several GPUs of one process: cuFFT's transforms, and what bounds any transform.
 *
 *   gpus WHAT GPUS N f32|f64 c2c|r2c
 *
 *   shuffled   N^3 points, forward, by cufftXt: its result is in shuffled order
 *   natural    the same, and the way back to natural order
 *   pass       each GPU reads and writes its part of the array once: of r2c half of it
 *   links      each GPU sends every other its share of its part, by copy engines
 *
 * Prints `ready`; for each line `go` the seconds of a run; ends at `quit` or the end of the input.
 *
 *   nvcc -O2 -arch=native gpus.cu -o gpus -lcufft
 */
#include <cuda_runtime.h>
#include <cufftXt.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define CHECK(call)                                                          \
    do {                                                                     \
        int code = (int)(call);                                              \
        if (code != 0) {                                                     \
            fprintf(stderr, "%s: %d (line %d)\n", #call, code, __LINE__);    \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static int gpus;
static size_t n, points, real_bytes;
static bool is_real;

static void synchronize()
{
    for (int i = 0; i < gpus; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaDeviceSynchronize());
    }
}

template <typename T> __global__ void fill(T *data, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        data[i] = (T)((i * 2654435761u % 1000) / 1000.0 - 0.5);
}

/* Numbers of ordinary size, for each run anew. */
static void fill_part(int gpu, void *data, size_t bytes)
{
    CHECK(cudaSetDevice(gpu));
    if (real_bytes == 8)
        fill<<<1024, 256>>>((double *)data, bytes / 8);
    else
        fill<<<1024, 256>>>((float *)data, bytes / 4);
    CHECK(cudaGetLastError());
}

static void *allocated(int gpu, size_t bytes)
{
    void *data;
    CHECK(cudaSetDevice(gpu));
    CHECK(cudaMalloc(&data, bytes));
    fill_part(gpu, data, bytes);
    return data;
}

static void serve(const std::function<void()> &prepare, const std::function<void()> &run)
{
    printf("ready\n");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin) && strncmp(line, "go", 2) == 0) {
        prepare();
        synchronize();
        auto start = std::chrono::steady_clock::now();
        run();
        synchronize();
        printf("%.9f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        fflush(stdout);
    }
}

static void transforms(bool natural)
{
    cufftHandle plan;
    cufftType complex_type = real_bytes == 8 ? CUFFT_Z2Z : CUFFT_C2C;
    cufftType real_type = real_bytes == 8 ? CUFFT_D2Z : CUFFT_R2C;
    std::vector<size_t> work(gpus);
    std::vector<int> all(gpus);
    for (int i = 0; i < gpus; i++) all[i] = i;
    CHECK(cufftCreate(&plan));
    if (gpus > 1) CHECK(cufftXtSetGPUs(plan, gpus, all.data()));
    CHECK(cufftMakePlan3d(plan, n, n, n, is_real ? real_type : complex_type, work.data()));
    if (gpus == 1) {
        size_t spectrum = 2 * (is_real ? n * n * (n / 2 + 1) : points);
        void *from = allocated(0, (is_real ? points : spectrum) * real_bytes);
        void *to = allocated(0, spectrum * real_bytes);
        serve([] {}, [&] { CHECK(cufftXtExec(plan, from, to, CUFFT_FORWARD)); });
        return;
    }
    cudaLibXtDesc *data, *ordered = NULL;
    CHECK(cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPLACE));
    if (natural) CHECK(cufftXtMalloc(plan, &ordered, CUFFT_XT_FORMAT_INPLACE));
    auto prepare = [&] {
        data->subFormat = CUFFT_XT_FORMAT_INPLACE;
        if (natural) ordered->subFormat = CUFFT_XT_FORMAT_INPLACE;
        for (int i = 0; i < gpus; i++) fill_part(data->descriptor->GPUs[i], data->descriptor->data[i], data->descriptor->size[i]);
    };
    serve(prepare, [&] {
        CHECK(cufftXtExecDescriptor(plan, data, data, CUFFT_FORWARD));
        if (natural) CHECK(cufftXtMemcpy(plan, ordered, data, CUFFT_COPY_DEVICE_TO_DEVICE));
    });
}

int main(int count, char **words)
{
    if (count != 6) {
        fprintf(stderr, "usage: gpus shuffled|natural|pass|links GPUS N f32|f64 c2c|r2c\n");
        return 2;
    }
    gpus = atoi(words[2]);
    n = strtoul(words[3], NULL, 10);
    points = n * n * n;
    real_bytes = strcmp(words[4], "f32") == 0 ? 4 : 8;
    is_real = strcmp(words[5], "r2c") == 0;
    for (int i = 0; i < gpus; i++)
        for (int j = 0; j < gpus; j++) {
            if (i == j) continue;
            CHECK(cudaSetDevice(i));
            CHECK(cudaDeviceEnablePeerAccess(j, 0));
        }
    bool is_pass = strcmp(words[1], "pass") == 0, is_links = strcmp(words[1], "links") == 0;
    if (!is_pass && !is_links) {
        transforms(strcmp(words[1], "natural") == 0);
        return 0;
    }
    size_t part = (is_real ? 1 : 2) * points * real_bytes / gpus, share = part / gpus;
    std::vector<char *> from(gpus), to(gpus);
    std::vector<cudaStream_t> streams(gpus);
    for (int i = 0; i < gpus; i++) {
        from[i] = (char *)allocated(i, part);
        to[i] = (char *)allocated(i, part);
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    }
    serve([] {}, [&] {
        for (int i = 0; i < gpus; i++) {
            CHECK(cudaSetDevice(i));
            if (is_pass) CHECK(cudaMemcpyAsync(to[i], from[i], part, cudaMemcpyDeviceToDevice, streams[i]));
            /* In rotation: each is written by one other at a time. */
            for (int s = 1; is_links && s < gpus; s++) {
                int j = (i + s) % gpus;
                CHECK(cudaMemcpyPeerAsync(to[j] + i * share, j, from[i] + j * share, i, share, streams[i]));
            }
        }
    });
    return 0;
}
