/* Counts calls of CUDA's driver. It is loaded under the driver's name and finds the real driver
 * after it. The test in this folder builds it; it is not part of the library.
 *
 * Programs look functions up by name and by cuGetProcAddress, as cuFFT does; each way has its own
 * wrappers. A wrapper passes on as many words as the longest call has, because all arguments are
 * numbers and pointers.
 *
 * Queued copies return at once only if host memory is pinned. Otherwise copies to the host end
 * before the call returns, and copies of more than 64 KiB from the host may wait for the stream.
 * They are counted as "pageable" as well.
 *
 * Calls of MPI's own libraries are not counted, except for "mpi".
 *
 * A thread may have one of its calls by name refused. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names by which programs link, and names that cuGetProcAddress accepts. */
#define CALLS(X)                                                                                                       \
    X(cuMemAlloc_v2, "cuMemAlloc")                                                                                     \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch")                                                                           \
    X(cuMemAllocAsync, "cuMemAllocAsync")                                                                              \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync")                                                              \
    X(cuMemAllocManaged, "cuMemAllocManaged")                                                                          \
    X(cuMemAllocHost_v2, "cuMemAllocHost")                                                                             \
    X(cuMemHostAlloc, "cuMemHostAlloc")                                                                                \
    X(cuMemHostRegister_v2, "cuMemHostRegister")                                                                       \
    X(cuMemCreate, "cuMemCreate")                                                                                      \
    X(cuMemFree_v2, "cuMemFree")                                                                                       \
    X(cuMemFreeAsync, "cuMemFreeAsync")                                                                                \
    X(cuMemFreeHost, "cuMemFreeHost")                                                                                  \
    X(cuMemHostUnregister, "cuMemHostUnregister")                                                                      \
    X(cuEventCreate, "cuEventCreate")                                                                                  \
    X(cuEventDestroy_v2, "cuEventDestroy")                                                                             \
    X(cuStreamCreate, "cuStreamCreate")                                                                                \
    X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority")                                                        \
    X(cuStreamDestroy_v2, "cuStreamDestroy")                                                                           \
    X(cuModuleLoad, "cuModuleLoad")                                                                                    \
    X(cuModuleLoadData, "cuModuleLoadData")                                                                            \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx")                                                                        \
    X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary")                                                                  \
    X(cuModuleUnload, "cuModuleUnload")                                                                                \
    X(cuLibraryLoadData, "cuLibraryLoadData")                                                                          \
    X(cuLibraryUnload, "cuLibraryUnload")                                                                              \
    X(cuCtxSynchronize, "cuCtxSynchronize")                                                                            \
    X(cuStreamSynchronize, "cuStreamSynchronize")                                                                      \
    X(cuEventSynchronize, "cuEventSynchronize")                                                                        \
    X(cuMemcpy, "cuMemcpy")                                                                                            \
    X(cuMemcpyHtoD_v2, "cuMemcpyHtoD")                                                                                 \
    X(cuMemcpyDtoH_v2, "cuMemcpyDtoH")                                                                                 \
    X(cuMemcpyDtoD_v2, "cuMemcpyDtoD")                                                                                 \
    X(cuMemcpyPeer, "cuMemcpyPeer")                                                                                    \
    X(cuMemcpy2D_v2, "cuMemcpy2D")                                                                                     \
    X(cuMemcpy3D_v2, "cuMemcpy3D")                                                                                     \
    X(cuMemsetD8_v2, "cuMemsetD8")                                                                                     \
    X(cuMemsetD32_v2, "cuMemsetD32")                                                                                   \
    X(cuLaunchKernel, "cuLaunchKernel")                                                                                \
    X(cuLaunchKernelEx, "cuLaunchKernelEx")                                                                            \
    X(cuMemcpyAsync, "cuMemcpyAsync")                                                                                  \
    X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync")                                                                       \
    X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync")                                                                       \
    X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync")                                                                       \
    X(cuMemsetD8Async, "cuMemsetD8Async")                                                                              \
    X(cuMemsetD32Async, "cuMemsetD32Async")                                                                            \
    X(cuEventRecord, "cuEventRecord")                                                                                  \
    X(cuStreamWaitEvent, "cuStreamWaitEvent")

typedef long word;
typedef word call(word, word, word, word, word, word, word, word, word, word, word, word);
#define WORDS word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l
#define THEM a, b, c, d, e, f, g, h, i, j, k, l

enum {
#define NUMBER(name, base) NUMBER_##name,
    CALLS(NUMBER) COUNT
};

static atomic_ulong counted[COUNT];
/* The real functions: by name, and as cuGetProcAddress found them last. */
static call *_Atomic named[COUNT], *_Atomic looked_up[COUNT];

/* Something of the real library. */
static void *real(const char *name) {
    static void *_Atomic library;
    if (!library) library = dlopen("libthriffty_real_driver.so", RTLD_NOW | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s is called, and the real driver does not have it\n", name);
        abort();
    }
    return found;
}

/* Calls by MPI's libraries: by the names of their files. */
static atomic_ulong by_mpi;

static int is_mpi(const void *caller) {
    Dl_info found;
    if (!dladdr(caller, &found) || !found.dli_fname) return 0;
    static const char *const names[] = {"/libmpi", "/libopen-", "/mca_", "/libmca_", "/libucs", "/libuct", "/libucp", "/libucm"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (strstr(found.dli_fname, names[n])) return 1;
    return 0;
}

/* Copies between a device and memory of the host that is not pinned, of those that wait. */
static atomic_ulong pageable;

static void look_at(int number, word to, word from, word bytes) {
    int out = number == NUMBER_cuMemcpyDtoHAsync_v2, come = number == NUMBER_cuMemcpyHtoDAsync_v2 && bytes > 1 << 16;
    if (!out && !come) return;
    typedef int attribute(void *, int, word);
    static attribute *_Atomic known;
    if (!known) known = (attribute *)real("cuPointerGetAttribute");
    unsigned kind = 0;
    int memory_type = 2;
    if (known(&kind, memory_type, out ? to : from) != 0) pageable++;
}

/* Counts a call by this caller, with these first words. */
static void count(int number, const void *caller, word a, word b, word c) {
    if (is_mpi(caller)) {
        by_mpi++;
        return;
    }
    counted[number]++;
    look_at(number, a, b, c);
}

/* The refused call by name of this thread: its function, how many are let through, and the code. */
static _Thread_local struct {
    int number;
    unsigned long after;
    int code;
} refused = {-1, 0, 0};

static int refuses(int number) {
    if (number != refused.number || refused.after-- > 0) return 0;
    refused.number = -1;
    return 1;
}

#define BY_NAME(name, base)                                                                                            \
    word name(WORDS);                                                                                                  \
    word name(WORDS) {                                                                                                 \
        count(NUMBER_##name, __builtin_return_address(0), a, b, c);                                                     \
        if (refuses(NUMBER_##name)) return refused.code;                                                               \
        if (!named[NUMBER_##name]) named[NUMBER_##name] = (call *)real(#name);                                         \
        return named[NUMBER_##name](THEM);                                                                             \
    }                                                                                                                  \
    static word looked_up_##name(WORDS) {                                                                              \
        count(NUMBER_##name, __builtin_return_address(0), a, b, c);                                                     \
        return looked_up[NUMBER_##name](THEM);                                                                         \
    }
CALLS(BY_NAME)

static const struct {
    const char *name, *base;
    call *wrapper;
} calls[] = {
#define ENTRY(name, base) {#name, base, looked_up_##name},
    CALLS(ENTRY)};

/* How often a function was called, by the name that programs link; or "pageable", or "mpi". */
unsigned long thriffty_driver_calls(const char *name);
unsigned long thriffty_driver_calls(const char *name) {
    if (strcmp(name, "pageable") == 0) return pageable;
    if (strcmp(name, "mpi") == 0) return by_mpi;
    for (int n = 0; n < COUNT; n++)
        if (strcmp(name, calls[n].name) == 0) return counted[n];
    fprintf(stderr, "%s is not counted\n", name);
    abort();
}

/* Refuses a call by name of this thread, or none for another name. Returns whether the previous
 * request was met. */
int thriffty_driver_refuse(const char *name, unsigned long after, int code);
int thriffty_driver_refuse(const char *name, unsigned long after, int code) {
    int done = refused.number < 0;
    refused.number = -1;
    for (int n = 0; n < COUNT; n++)
        if (strcmp(name, calls[n].name) == 0) refused.number = n;
    refused.after = after;
    refused.code = code;
    return done;
}

typedef int find(const char *, void **, int, unsigned long long, void *);
int cuGetProcAddress(const char *name, void **found, int version, unsigned long long flags, void *status);
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, void *status);

static int look_up(find *how, find *own, const char *name, void **found, int version, unsigned long long flags, void *status) {
    int result = how(name, found, version, flags, status);
    if (result != 0 || !found || !*found) return result;
    if (strcmp(name, "cuGetProcAddress") == 0) *found = (void *)own;
    for (int n = 0; n < COUNT; n++)
        if (strcmp(name, calls[n].base) == 0) {
            looked_up[n] = (call *)*found;
            *found = (void *)calls[n].wrapper;
        }
    return result;
}

int cuGetProcAddress(const char *name, void **found, int version, unsigned long long flags, void *status) {
    return look_up((find *)real("cuGetProcAddress"), cuGetProcAddress, name, found, version, flags, status);
}

int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, void *status) {
    return look_up((find *)real("cuGetProcAddress_v2"), cuGetProcAddress_v2, name, found, version, flags, status);
}
