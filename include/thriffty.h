/* thriffty: distributed Fourier transforms. MIT OR Apache-2.0.
 *
 * Made by `cargo xtask header` from crates/fft-capi; do not edit.
 *
 * Forward is exp(-2 pi i jk/n), unscaled; inverse divides by the number of points. The last axis is contiguous. Frequencies
 * are in natural order: 0, 1, ..., -2, -1. Complex numbers are pairs, as in C99, C++ and Fortran. Every call that is collective
 * returns the same status on every rank; what a call on one rank alone cannot tell the others is said where it matters.
 *
 * Plans over MPI are declared where THRIFFTY_WITH_MPI is defined, as pkg-config and CMake do for a library that has them;
 * <mpi.h> is included then.
 */


#ifndef THRIFFTY_H
#define THRIFFTY_H

#include <stddef.h>
#include <stdint.h>
#ifdef THRIFFTY_WITH_MPI
#include <mpi.h>
#endif

/**
 * What a call came to, by who is to blame. `thriffty_last_error` has it in words.
 */
enum thriffty_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    THRIFFTY_STATUS_OK = 0,
    /**
     * Bricks that do not tile the grid: they overlap, leave a gap, or are not inside.
     */
    THRIFFTY_STATUS_GEOMETRY = 1,
    /**
     * Any other argument, or ranks that were given different ones.
     */
    THRIFFTY_STATUS_ARGUMENT = 2,
    /**
     * No memory.
     */
    THRIFFTY_STATUS_MEMORY = 3,
    /**
     * A damaged or unexpected message.
     */
    THRIFFTY_STATUS_MESSAGE = 4,
    /**
     * The communication library, a communicator that is none, or a rank that went away.
     */
    THRIFFTY_STATUS_TRANSPORT = 5,
    /**
     * Too little memory that the ranks of a host can share: enlarge it, or choose an exchange other than shared.
     */
    THRIFFTY_STATUS_SHARED_MEMORY = 6,
    /**
     * The plan was destroyed before, or never was one.
     */
    THRIFFTY_STATUS_PLAN = 7,
    /**
     * A bug of the library. The plan in which it showed cannot be used again: on this rank alone, so that others may wait.
     */
    THRIFFTY_STATUS_INTERNAL = 8,
    /**
     * No such CUDA device, none that can be used, or a library that was built without CUDA.
     */
    THRIFFTY_STATUS_DEVICE = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum thriffty_status thriffty_status;
#else
typedef int32_t thriffty_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The family of a transform: what physical and spectral data consist of.
 */
enum thriffty_transform
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Complex data, complex spectrum.
     */
    THRIFFTY_TRANSFORM_C2C = 0,
    /**
     * Real data, complex spectrum: one axis, the last unless `kinds` says otherwise, keeps its n/2 + 1 non-negative
     * frequencies.
     */
    THRIFFTY_TRANSFORM_R2C = 1,
    /**
     * Real data, real spectrum: a cosine or sine transform, or nothing, along each axis; DCT-II unless told otherwise.
     */
    THRIFFTY_TRANSFORM_R2R = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum thriffty_transform thriffty_transform;
#else
typedef int32_t thriffty_transform;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What is done along one axis.
 */
enum thriffty_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * What the transform does unless told otherwise.
     */
    THRIFFTY_KIND_DEFAULT = 0,
    /**
     * Nothing: the axis only carries data along.
     */
    THRIFFTY_KIND_NONE = 1,
    /**
     * Complex to complex.
     */
    THRIFFTY_KIND_C2C = 2,
    /**
     * Real to complex.
     */
    THRIFFTY_KIND_R2C = 3,
    /**
     * Cosine transform I; its own inverse. FFTW's REDFT00.
     */
    THRIFFTY_KIND_DCT1 = 4,
    /**
     * Cosine transform II; its inverse is III. FFTW's REDFT10.
     */
    THRIFFTY_KIND_DCT2 = 5,
    /**
     * Cosine transform III; its inverse is II. FFTW's REDFT01.
     */
    THRIFFTY_KIND_DCT3 = 6,
    /**
     * Cosine transform IV; its own inverse. FFTW's REDFT11.
     */
    THRIFFTY_KIND_DCT4 = 7,
    /**
     * Sine transform I; its own inverse. FFTW's RODFT00.
     */
    THRIFFTY_KIND_DST1 = 8,
    /**
     * Sine transform II; its inverse is III. FFTW's RODFT10.
     */
    THRIFFTY_KIND_DST2 = 9,
    /**
     * Sine transform III; its inverse is II. FFTW's RODFT01.
     */
    THRIFFTY_KIND_DST3 = 10,
    /**
     * Sine transform IV; its own inverse. FFTW's RODFT11.
     */
    THRIFFTY_KIND_DST4 = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum thriffty_kind thriffty_kind;
#else
typedef int32_t thriffty_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The format of all numbers, by its bits.
 */
enum thriffty_precision
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * `float`.
     */
    THRIFFTY_PRECISION_F32 = 32,
    /**
     * `double`.
     */
    THRIFFTY_PRECISION_F64 = 64,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum thriffty_precision thriffty_precision;
#else
typedef int32_t thriffty_precision;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What results are multiplied by; N is the number of points (of cosine and sine transforms, the product of FFTW's logical
 * lengths).
 */
enum thriffty_scale
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * 1.
     */
    THRIFFTY_SCALE_NONE = 0,
    /**
     * 1/N.
     */
    THRIFFTY_SCALE_FULL = 1,
    /**
     * 1/sqrt(N).
     */
    THRIFFTY_SCALE_SYMMETRIC = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum thriffty_scale thriffty_scale;
#else
typedef int32_t thriffty_scale;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How the recipe of a plan is chosen.
 */
enum thriffty_tune
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * By a model of the machine. Nothing is run.
     */
    THRIFFTY_TUNE_MODEL = 0,
    /**
     * By the clock, within `tune_seconds`.
     */
    THRIFFTY_TUNE_MEASURE = 1,
    /**
     * By what the clock said earlier, in the file `tune_text` that `thriffty_plan_save_wisdom` wrote; by the model where it
     * says nothing of this transform on this machine.
     */
    THRIFFTY_TUNE_WISDOM = 2,
    /**
     * By name: the recipe that prints as `tune_text`.
     */
    THRIFFTY_TUNE_EXACT = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum thriffty_tune thriffty_tune;
#else
typedef int32_t thriffty_tune;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A distributed transform, ready to run any number of times in both directions.
 *
 * A plan may be used on any thread, by one at a time; with MPI, on those that may call MPI. One that was destroyed, or never
 * was a plan, is refused with `THRIFFTY_STATUS_PLAN`, by every call and on this rank alone: ranks that were given a plan
 * meanwhile wait for this one.
 */
typedef struct thriffty_plan thriffty_plan;

/**
 * Options of a plan, equal on all ranks. Always begin with `thriffty_options_init`; later versions have more fields at the
 * end, and take those of earlier ones by their size.
 */
typedef struct thriffty_options {
    /**
     * Bytes of this struct as the program knows it.
     */
    size_t struct_size;
    /**
     * `THRIFFTY_PRECISION_F64` (default) or `THRIFFTY_PRECISION_F32`.
     */
    int32_t precision;
    /**
     * What is done along each axis: `THRIFFTY_KIND_DEFAULT` or another kind.
     */
    int32_t kinds[4];
    /**
     * The order of axes in memory of physical data, slowest first: 0, 1, 2, 3 by default, as in C.
     */
    int32_t input_order[4];
    /**
     * The same of spectral data.
     */
    int32_t output_order[4];
    /**
     * What results of the forward transform are multiplied by: `THRIFFTY_SCALE_NONE` by default.
     */
    int32_t forward_scale;
    /**
     * What results of the inverse transform are multiplied by: `THRIFFTY_SCALE_FULL` by default.
     */
    int32_t inverse_scale;
    /**
     * Equal transforms at once, their arrays one after the other in memory: 1 by default.
     */
    int64_t howmany;
    /**
     * How data travels: "shared", "p2p", "pipelined", "alltoallv", "kway4", "ring", "ring-flush". NULL (default) to have it
     * chosen.
     */
    const char *exchange;
    /**
     * How messages to other hosts are represented: "raw", "f32", "f16", "bf16", "mantissa:40", "bits:16", "lossless",
     * "tolerance". NULL (default): as they are in memory or, where there is a tolerance, "tolerance".
     */
    const char *wire;
    /**
     * The relative error that the whole transform may make on the wire, in the l2 norm. 0 (default): none.
     */
    double tolerance;
    /**
     * Not 0: the tolerance is kept whatever the data, for one or two bits more per number.
     */
    int32_t strict;
    /**
     * Not 0: ranks of one host send messages, too, as if each had a host of its own.
     */
    int32_t wire_everywhere;
    /**
     * How the recipe is chosen: `THRIFFTY_TUNE_MODEL` by default.
     */
    int32_t tune;
    /**
     * Not 0: all data is in arrays that `thriffty_allocate` made, of this plan. Processes of one host then read and write them where
     * they are; for complex data on the host the plan needs hardly any memory of its own.
     */
    int32_t shared_arrays;
    /**
     * What `THRIFFTY_TUNE_MEASURE` may take, in seconds: 10 by default.
     */
    double tune_seconds;
    /**
     * The file of `THRIFFTY_TUNE_WISDOM`, the recipe of `THRIFFTY_TUNE_EXACT`; otherwise NULL (default).
     */
    const char *tune_text;
    /**
     * Where the data is: -1 (default) on the host; otherwise on the CUDA device of this number, which the ranks may each have
     * another of, or share. See `thriffty_forward`.
     */
    int32_t device;
    /**
     * Of a plan on a device: the `CUstream` or `cudaStream_t` that everything is queued on, of the device's primary context,
     * which lives as long as the plan. NULL (default): CUDA's default stream.
     */
    void *stream;
    /**
     * Of a plan on a device: how data gets to other ranks. "reached", as NULL (default): taken from memory that is reached, else in
     * messages, sent from the device where the MPI is CUDA-aware. "device", "host": all in messages, sent from there.
     */
    const char *passage;
    /**
     * What the plan may take beside input and output, where the data is on the host: "ample", as NULL (default), as much as
     * makes it fast. "least": messages go in rounds, which takes once the data and a little, at times twice.
     * `workspace_bytes` of `thriffty_plan_sizes` tells.
     */
    const char *memory;
} thriffty_options;

/**
 * A half-open box of the grid. Of a grid with fewer axes than 4 the rest is ignored, or 0. It holds nothing where
 * `hi[axis] <= lo[axis]` along any axis; say so with all zeros.
 */
typedef struct thriffty_brick {
    /**
     * First index along each axis, from 0.
     */
    int64_t lo[4];
    /**
     * One past the last index along each axis.
     */
    int64_t hi[4];
} thriffty_brick;

/**
 * What a plan needs of this rank, all arrays of a batch together. Later versions have more fields at the end.
 */
typedef struct thriffty_sizes {
    /**
     * Bytes of this struct as the program knows it.
     */
    size_t struct_size;
    /**
     * This rank's part of physical data.
     */
    struct thriffty_brick input;
    /**
     * This rank's part of spectral data.
     */
    struct thriffty_brick output;
    /**
     * Numbers of physical data, complex ones counting once.
     */
    size_t input_points;
    /**
     * Numbers of spectral data, complex ones counting once.
     */
    size_t output_points;
    /**
     * Bytes of physical data.
     */
    size_t input_bytes;
    /**
     * Bytes of spectral data.
     */
    size_t output_bytes;
    /**
     * Bytes of an array that is transformed in place.
     */
    size_t in_place_bytes;
    /**
     * Bytes that the plan itself holds beside input and output.
     */
    size_t workspace_bytes;
} thriffty_sizes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, "0.1.0".
 */
const char *thriffty_version(void);

/**
 * Why the last call of this thread that failed did so, in a sentence; "" when none has. Valid until the next call of this
 * thread that fails.
 */
const char *thriffty_last_error(void);

/**
 * Sets all options to what they are by default. `struct_size` is `sizeof(thriffty_options)`.
 *
 * What the caller promises:
 * `options` is NULL or has room for so many bytes.
 */
thriffty_status thriffty_options_init(struct thriffty_options *options, size_t struct_size);

/**
 * Makes a plan of one process, which communicates with nobody. See `thriffty_plan_create`; the only brick is the whole grid.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say.
 */
thriffty_status thriffty_plan_create_serial(struct thriffty_plan **plan,
                                            int32_t transform,
                                            int32_t axes,
                                            const int64_t *shape,
                                            const struct thriffty_options *options);

#if defined(THRIFFTY_WITH_MPI)
/**
 * Makes a plan. Collective over `comm`, which is duplicated; the same status on every rank.
 *
 * `transform` is `THRIFFTY_TRANSFORM_C2C` or another; `axes`, 1 to 4, says how many entries of all arrays count; `shape` has
 * the points along each axis, the last of which is contiguous. `input` and `output` are this rank's part of physical and of
 * spectral data, or NULL for an even cut into bricks (`thriffty_plan_sizes` tells which). Those of all ranks tile the grid;
 * the grid of spectral data has n/2 + 1 points along an axis of kind R2C. `options` may be NULL.
 *
 * MPI must be initialised. MPI_COMM_NULL and inter-communicators are refused with `THRIFFTY_STATUS_TRANSPORT`, on this rank
 * alone, as is a thread that may not call MPI; a copy of a handle that was freed cannot be told from a good one, and MPI may end the process for it. On failure
 * `*plan` is NULL.
 *
 * With `device` of the options the data is on CUDA devices, for all ranks or for none; where there is no such device, or the
 * library was built without CUDA, the status is `THRIFFTY_STATUS_DEVICE`.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say; the communicator has not been freed, and a stream is one.
 */
thriffty_status thriffty_plan_create(struct thriffty_plan **plan,
                                     MPI_Comm comm,
                                     int32_t transform,
                                     int32_t axes,
                                     const int64_t *shape,
                                     const struct thriffty_brick *input,
                                     const struct thriffty_brick *output,
                                     const struct thriffty_options *options);
#endif

#if defined(THRIFFTY_WITH_MPI)
/**
 * As `thriffty_plan_create`, with a communicator of Fortran: an integer.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say; the communicator has not been freed.
 */
thriffty_status thriffty_plan_create_f(struct thriffty_plan **plan,
                                       MPI_Fint comm,
                                       int32_t transform,
                                       int32_t axes,
                                       const int64_t *shape,
                                       const struct thriffty_brick *input,
                                       const struct thriffty_brick *output,
                                       const struct thriffty_options *options);
#endif

/**
 * Destroys a plan. Collective over its ranks, as communicators are freed. NULL is no plan, and nothing is done. After
 * MPI_Finalize what belongs to MPI is left to it.
 */
thriffty_status thriffty_plan_destroy(struct thriffty_plan *plan);

/**
 * Transforms physical to spectral data. Collective; the same status on every rank.
 *
 * The arrays are this rank's bricks, and do not overlap; `input_bytes` and `output_bytes` say how much room there is, which
 * must be at least what `thriffty_plan_sizes` tells: numbers of a shorter precision than the plan's are found out by that,
 * longer ones are not. `input` is not written to.
 *
 * Of a plan on a device (`device` of the options) the arrays are there, and begin at multiples of 16 bytes; NULL, memory of the
 * host or of another device, and more bytes than were allocated are refused. What the plan's stream was given before comes
 * before. The call returns when its work is queued; where something may be lost on the wire, or messages go through the host,
 * when it is done.
 *
 * What the caller promises:
 * `input` has `input_bytes` bytes, which nobody writes to meanwhile, and `output` `output_bytes`, which nobody else touches. On a
 * device that is until what is queued is done.
 */
thriffty_status thriffty_forward(struct thriffty_plan *plan,
                                 const void *input,
                                 size_t input_bytes,
                                 void *output,
                                 size_t output_bytes);

/**
 * Transforms spectral to physical data. Collective. As `thriffty_forward`, with spectral data as input.
 *
 * What the caller promises:
 * As of `thriffty_forward`.
 */
thriffty_status thriffty_inverse(struct thriffty_plan *plan,
                                 const void *input,
                                 size_t input_bytes,
                                 void *output,
                                 size_t output_bytes);

/**
 * Transforms physical to spectral data in one array of `in_place_bytes` bytes (see `thriffty_plan_sizes`) or more: input and
 * output both begin at its start, without padding. Collective.
 *
 * What the caller promises:
 * `data` has `bytes` bytes, which nobody else touches meanwhile.
 */
thriffty_status thriffty_forward_in_place(struct thriffty_plan *plan,
                                          void *data,
                                          size_t bytes);

/**
 * Transforms spectral to physical data in one array, as `thriffty_forward_in_place`. Collective.
 *
 * What the caller promises:
 * As of `thriffty_forward_in_place`.
 */
thriffty_status thriffty_inverse_in_place(struct thriffty_plan *plan, void *data, size_t bytes);

/**
 * Makes an array of `in_place_bytes` bytes (see `thriffty_plan_sizes`), all 0, for this plan: long enough for its input and for
 * its output, where processes of one host can see it (`shared_arrays` of the options), in memory of the plan's device if it has one. It lives as
 * long as the plan, and MPI. Collective; `*array` is NULL where it fails.
 *
 * What the caller promises:
 * `array` is NULL or has room for a pointer.
 */
thriffty_status thriffty_allocate(struct thriffty_plan *plan,
                                  void **array);

/**
 * Tells this rank's bricks and what memory the plan needs. `struct_size` is `sizeof(thriffty_sizes)`.
 *
 * What the caller promises:
 * `sizes` is NULL or has room for so many bytes.
 */
thriffty_status thriffty_plan_sizes(const struct thriffty_plan *plan, struct thriffty_sizes *sizes, size_t struct_size);

/**
 * Tells what the last transform lost on the wire, as a share of the l2 norm of its result: an estimate, and what it cannot
 * exceed. Both are 0 when no message can lose anything, or none has run. The same on all ranks.
 *
 * What the caller promises:
 * Each pointer is NULL, where the number is not wanted, or has room for one.
 */
thriffty_status thriffty_plan_error(const struct thriffty_plan *plan,
                                    double *estimate,
                                    double *bound);

/**
 * Writes how the transform is done, in one line, as snprintf does: at most `room` bytes with a zero at the end. Returns the
 * bytes of the whole text without the zero, or, where it fails, a status times -1.
 *
 * What the caller promises:
 * `recipe` is NULL or has room for `room` bytes.
 */
int64_t thriffty_plan_recipe(const struct thriffty_plan *plan,
                             char *recipe,
                             size_t room);

/**
 * Remembers what was measured (`THRIFFTY_TUNE_MEASURE`) for `THRIFFTY_TUNE_WISDOM`: adds it to this file, or replaces what
 * the file has of the same transform on the same machine. Collective.
 *
 * What the caller promises:
 * `path` is NULL or a text that ends with a zero.
 */
thriffty_status thriffty_plan_save_wisdom(const struct thriffty_plan *plan,
                                          const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* THRIFFTY_H */
