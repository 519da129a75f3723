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

/* Enumerations have 32 bits. Where the language cannot say so, their type is int32_t. */
#if (defined(__cplusplus) && __cplusplus >= 201103L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define THRIFFTY_SIZED_ENUMS
#endif

/**
 * The outcome of a call. `thriffty_last_error` has the reason in words.
 */
enum thriffty_status
#ifdef THRIFFTY_SIZED_ENUMS
  : int32_t
#endif
 {
    /**
     * Success.
     */
    THRIFFTY_STATUS_OK = 0,
    /**
     * Bricks that do not tile the grid: they overlap, leave a gap, or are not inside.
     */
    THRIFFTY_STATUS_GEOMETRY = 1,
    /**
     * Any other argument, or different ones on different ranks.
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
     * A failure of MPI or of a process group, an invalid communicator, or a rank that left.
     */
    THRIFFTY_STATUS_TRANSPORT = 5,
    /**
     * Too little memory that the ranks of a host can share: enlarge it, or choose another exchange
     * than "shared".
     */
    THRIFFTY_STATUS_SHARED_MEMORY = 6,
    /**
     * No plan, copy or communicator, a destroyed one, or one that was made before this process was
     * forked.
     */
    THRIFFTY_STATUS_PLAN = 7,
    /**
     * A bug of the library, on this rank only, so others may wait. The plan or copy cannot be used
     * again.
     */
    THRIFFTY_STATUS_INTERNAL = 8,
    /**
     * No such CUDA device, an unusable one, or a library that was built without CUDA.
     */
    THRIFFTY_STATUS_DEVICE = 9,
    /**
     * The system did not start enough threads.
     */
    THRIFFTY_STATUS_THREADS = 10
};
#ifndef __cplusplus
#ifdef THRIFFTY_SIZED_ENUMS
typedef enum thriffty_status thriffty_status;
#else
typedef int32_t thriffty_status;
#endif
#endif

/**
 * The family of a transform: the types of physical and of spectral data.
 */
enum thriffty_transform
#ifdef THRIFFTY_SIZED_ENUMS
  : int32_t
#endif
 {
    /**
     * Complex data, complex spectrum.
     */
    THRIFFTY_TRANSFORM_C2C = 0,
    /**
     * Real data, complex spectrum: one axis, by default the last, has n/2 + 1 frequencies.
     */
    THRIFFTY_TRANSFORM_R2C = 1,
    /**
     * Real data, real spectrum: a cosine or sine transform, or none, along each axis; by default
     * DCT-II.
     */
    THRIFFTY_TRANSFORM_R2R = 2
};
#ifndef __cplusplus
#ifdef THRIFFTY_SIZED_ENUMS
typedef enum thriffty_transform thriffty_transform;
#else
typedef int32_t thriffty_transform;
#endif
#endif

/**
 * One of the two sides of a transform.
 */
enum thriffty_side
#ifdef THRIFFTY_SIZED_ENUMS
  : int32_t
#endif
 {
    /**
     * Physical data.
     */
    THRIFFTY_SIDE_INPUT = 0,
    /**
     * Spectral data.
     */
    THRIFFTY_SIDE_OUTPUT = 1
};
#ifndef __cplusplus
#ifdef THRIFFTY_SIZED_ENUMS
typedef enum thriffty_side thriffty_side;
#else
typedef int32_t thriffty_side;
#endif
#endif

/**
 * What `thriffty_apply` does to each mode of a spectrum, with the wavenumbers k of the axes that
 * are transformed. Derivatives of first order need axes of kind c2c and r2c; they are 0 for the
 * middle mode of an even number of points.
 */
enum thriffty_operator
#ifdef THRIFFTY_SIZED_ENUMS
  : int32_t
#endif
 {
    /**
     * The derivative along the axis that the parameter names.
     */
    THRIFFTY_OPERATOR_DERIVATIVE = 0,
    /**
     * The derivatives of one field along all axes.
     */
    THRIFFTY_OPERATOR_GRADIENT = 1,
    /**
     * The divergence of a vector, one field.
     */
    THRIFFTY_OPERATOR_DIVERGENCE = 2,
    /**
     * In three dimensions; in two, of a vector the one component d0 u1 - d1 u0.
     */
    THRIFFTY_OPERATOR_CURL = 3,
    /**
     * -k^2.
     */
    THRIFFTY_OPERATOR_LAPLACIAN = 4,
    /**
     * Solves -laplacian(phi) = rho. The mean of phi is 0, and the mean of rho is ignored.
     */
    THRIFFTY_OPERATOR_POISSON = 5,
    /**
     * Solves (s - laplacian) phi = rho; the parameter is s. Modes with s + k^2 = 0 become 0.
     */
    THRIFFTY_OPERATOR_HELMHOLTZ = 6,
    /**
     * Subtracts the gradient part of a vector.
     */
    THRIFFTY_OPERATOR_PROJECT = 7,
    /**
     * Convolves with a normalised Gaussian; the parameter is its standard deviation, 0 or more.
     */
    THRIFFTY_OPERATOR_GAUSSIAN = 8,
    /**
     * Keeps modes below a fraction of the highest wavenumber of each axis, and sets others to 0;
     * the parameter is the fraction, 0 or more.
     */
    THRIFFTY_OPERATOR_CUTOFF = 9
};
#ifndef __cplusplus
#ifdef THRIFFTY_SIZED_ENUMS
typedef enum thriffty_operator thriffty_operator;
#else
typedef int32_t thriffty_operator;
#endif
#endif

/**
 * The ranks of a process group, without MPI.
 *
 * It may be used on any thread, by one at a time. A handle that is not a communicator, was
 * destroyed, or belongs to the parent of a forked process is refused with `THRIFFTY_STATUS_PLAN`,
 * on this rank only.
 */
typedef struct thriffty_comm thriffty_comm;

/**
 * A copy between local arrays of all ranks, ready to run any number of times.
 *
 * It may be used on any thread, by one at a time. A handle that is not a copy, or was destroyed,
 * is refused with `THRIFFTY_STATUS_PLAN` on this rank only, and other ranks wait for it.
 */
typedef struct thriffty_copy thriffty_copy;

/**
 * The options of plans, by name. Nobody else uses them during a call. A plan that was made with
 * them does not need them.
 *
 * docs/options.md lists their names and meanings, which `thriffty_options_describe` writes as
 * JSON. Options are equal on all ranks.
 */
typedef struct thriffty_options thriffty_options;

/**
 * A distributed transform, ready to run any number of times in both directions.
 *
 * A plan may be used on any thread, by one at a time; with MPI, on threads that may call MPI: with
 * `MPI_THREAD_SERIALIZED` on any, if no two calls of the process overlap, and with less on the one
 * that initialised MPI. A handle that is not a plan, or was destroyed, is refused with
 * `THRIFFTY_STATUS_PLAN` on this rank only, and other ranks wait for it.
 */
typedef struct thriffty_plan thriffty_plan;

/**
 * A half-open box of the grid. Entries beyond the axes of the grid are ignored. It is empty if
 * `hi[axis] <= lo[axis]` for any axis, for example if all entries are 0.
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
 * Sizes of a plan on this rank, all arrays of a batch together. Later versions have more fields at
 * the end.
 */
typedef struct thriffty_sizes {
    /**
     * Bytes of this struct in the program's header.
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
     * Points of physical data.
     */
    size_t input_len;
    /**
     * Points of spectral data.
     */
    size_t output_len;
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
     * Bytes that the plan holds besides input and output, with its share of tables that plans of
     * this process have in common. Several threads or a batch with half a spectrum also copy the
     * input of a transform in place while it runs.
     */
    size_t workspace_bytes;
    /**
     * The order of axes in memory of physical data, slowest first.
     */
    int32_t input_order[4];
    /**
     * The same of spectral data.
     */
    int32_t output_order[4];
    /**
     * The strides between adjacent points of physical data along each axis, where bricks count
     * positions: of n points, position p has the index p / (n/s) + s (p mod n/s). All are 1,
     * unless data of a single axis is cyclic or transposed.
     */
    int64_t input_strides[4];
    /**
     * The same of spectral data.
     */
    int64_t output_strides[4];
} thriffty_sizes;

/**
 * Where the time of a plan went on this rank, in seconds, since the plan was made or
 * `thriffty_plan_clear_timings` was called. Later versions have more fields at the end.
 */
typedef struct thriffty_timings {
    /**
     * Bytes of this struct in the program's header.
     */
    size_t struct_size;
    /**
     * Packing and encoding messages.
     */
    double pack;
    /**
     * Sending, receiving and waiting: the rest of an exchange.
     */
    double exchange;
    /**
     * Decoding and unpacking messages.
     */
    double unpack;
    /**
     * Copying data that stays on the rank.
     */
    double own;
    /**
     * Copying from and to memory that ranks of the host share.
     */
    double shared;
    /**
     * Local transforms and scaling.
     */
    double fft;
    /**
     * Bytes of messages to other ranks.
     */
    int64_t sent;
    /**
     * Bytes of headers and of forwarded messages.
     */
    int64_t forwarded;
    /**
     * Real numbers that are encoded in the sent bytes.
     */
    int64_t reals;
} thriffty_timings;

/**
 * A brick in a local array, which may be larger: with ghost points or padded rows, in any order of
 * axes. `thriffty_subarray_init` fills it for the usual cases.
 */
typedef struct thriffty_subarray {
    /**
     * The brick of the grid.
     */
    struct thriffty_brick brick;
    /**
     * The number of its array among those that the copy is given, from 0. Several bricks may be in
     * one array.
     */
    int64_t array;
    /**
     * The index in the array of the brick's first point.
     */
    int64_t offset;
    /**
     * Elements from a point to its neighbour along each axis.
     */
    int64_t strides[4];
    /**
     * Elements from an array of a batch to the next.
     */
    int64_t distance;
} thriffty_subarray;

/**
 * The functions of a process group that another framework has started, from which
 * `thriffty_comm_create` makes a communicator. Later versions have more functions at the end.
 *
 * Each gets the context of `thriffty_comm_create`. A status is 0 for success; after another one
 * the communicator fails, on this rank with the text of `error`. If a rank has ended, calls must
 * fail on the others instead of waiting for it. `allgather` and `alltoallv` are collective: all
 * ranks call them in the same order. The others may be NULL.
 */
typedef struct thriffty_group_callbacks {
    /**
     * Bytes of this struct in the program's header.
     */
    size_t struct_size;
    /**
     * Gathers `bytes` bytes of every rank, `mine`, into `all`, in order of ranks.
     */
    int32_t (*allgather)(void *context, const void *mine, void *all, size_t bytes);
    /**
     * Sends `send_bytes[r]` bytes, from `send_offsets[r]` bytes after `send` on, to each rank `r`,
     * also to this one. The data from rank `r` has `recv_bytes[r]` bytes, the number that the
     * sender sends, and begins `recv_offsets[r]` bytes after `recv`.
     */
    int32_t (*alltoallv)(void *context,
                         const void *send,
                         const size_t *send_bytes,
                         const size_t *send_offsets,
                         void *recv,
                         const size_t *recv_bytes,
                         const size_t *recv_offsets);
    /**
     * Starts to send a message, and writes a number of its own to `request`. Messages from one
     * rank to another with equal tags arrive in order. All of `isend`, `irecv` and `test` are
     * NULL, or none is.
     */
    int32_t (*isend)(void *context, int32_t to, uint32_t tag, const void *message, size_t bytes, uint64_t *request);
    /**
     * Starts to receive a message of at most `bytes` bytes, as `isend`. If there are several from
     * one rank with equal tags, each is tested only after the ones before it have completed.
     */
    int32_t (*irecv)(void *context, int32_t from, uint32_t tag, void *room, size_t bytes, uint64_t *request);
    /**
     * Writes 1 to `done` if a request has completed and, if it was to receive, the length of the
     * message to `bytes`. Otherwise it writes 0 to `done`. The memory of the message stays where
     * it is until `test` has written 1 or failed. Then the request is not tested again.
     */
    int32_t (*test)(void *context, uint64_t request, int32_t *done, size_t *bytes);
    /**
     * The host of this process. Processes share memory if they return equal names; NULL, or no
     * function, stands for the machine and the namespace of processes.
     */
    const char *(*host)(void *context);
    /**
     * A rank that has ended, if the group knows one, or -1. For ranks on the same host the library
     * notices itself.
     */
    int32_t (*lost)(void *context);
    /**
     * Called when this rank takes part in no more collectives, so that others that wait in one
     * should fail: closes connections, if the group has any.
     */
    void (*abandon)(void *context);
    /**
     * Why the last function failed, in words, or NULL; valid until the next call.
     */
    const char *(*error)(void *context);
    /**
     * As `alltoallv`, for memory on the devices of plans. The data to send is ready when it is
     * called, and it must return only after all data has arrived. If a rank has none, data of
     * devices passes through the host.
     */
    int32_t (*device_alltoallv)(void *context,
                                const void *send,
                                const size_t *send_bytes,
                                const size_t *send_offsets,
                                void *recv,
                                const size_t *recv_bytes,
                                const size_t *recv_offsets);
} thriffty_group_callbacks;

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The version of the library, "0.1.0".
 */
const char *thriffty_version(void);

/**
 * Why the last failing call of this thread failed, in a sentence; "" when none has. Valid until
 * the next failure on this thread.
 */
const char *thriffty_last_error(void);

/**
 * Makes a plan of one process, without MPI. Its only brick is the whole grid. See
 * `thriffty_plan_create`.
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
 * `transform` is `THRIFFTY_TRANSFORM_C2C` or another, `axes` is 1 to 4, and `shape` has the points
 * along each axis; the last axis is contiguous. `input` and `output` are this rank's bricks of
 * physical and of spectral data; NULL is an even cut or, where ranks share a single axis, a block
 * that suits its factors (see `thriffty_plan_sizes`). The bricks of all ranks tile the grid. The
 * spectral grid has n/2 + 1 points along an axis of kind r2c. `options` may be NULL. On failure
 * `*plan` is NULL.
 *
 * MPI must be initialised and not finalised. MPI_COMM_NULL, inter-communicators and threads that
 * may not call MPI are refused with `THRIFFTY_STATUS_TRANSPORT`, on this rank alone. Freed
 * communicators are not detected.
 *
 * If the option "device" names a CUDA device, the data is there; all ranks use devices, or none
 * does. Without such a device the status is `THRIFFTY_STATUS_DEVICE`.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say. The communicator has not been freed, and the
 * stream is valid. With `MPI_THREAD_SERIALIZED`, calls of MPI and of this library do not overlap.
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
 * As of `thriffty_plan_create`.
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
 * Destroys a plan. Collective over its ranks if these are MPI processes. NULL is ignored. After
 * MPI_Finalize, objects of MPI are left to MPI.
 */
thriffty_status thriffty_plan_destroy(struct thriffty_plan *plan);

/**
 * Transforms physical to spectral data. Collective; the same status on every rank.
 *
 * The arrays are this rank's bricks, and do not overlap; `input` is not written to. `input_bytes`
 * and `output_bytes` are the sizes of the arrays, at least the ones that `thriffty_plan_sizes`
 * returns.
 *
 * If the plan has a device, the arrays are there and begin at multiples of 16 bytes. NULL, memory
 * elsewhere, and more bytes than were allocated are refused. Work is queued on the plan's stream.
 * The call returns when it is queued or, if a wire is lossy or messages pass the host, done.
 *
 * What the caller promises:
 * `input` has `input_bytes` bytes, which nobody writes to meanwhile, and `output` has
 * `output_bytes` bytes, which nobody else touches; on a device, until the queued work is done.
 */
thriffty_status thriffty_forward(struct thriffty_plan *plan,
                                 const void *input,
                                 size_t input_bytes,
                                 void *output,
                                 size_t output_bytes);

/**
 * Transforms spectral to physical data, as `thriffty_forward`. Collective.
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
 * Transforms physical to spectral data in one array of at least `in_place_bytes` bytes (see
 * `thriffty_plan_sizes`): input and output both begin at its start, without padding. Collective.
 *
 * What the caller promises:
 * `data` has `bytes` bytes, which nobody else touches meanwhile.
 */
thriffty_status thriffty_forward_in_place(struct thriffty_plan *plan, void *data, size_t bytes);

/**
 * Transforms spectral to physical data in one array, as `thriffty_forward_in_place`. Collective.
 *
 * What the caller promises:
 * As of `thriffty_forward_in_place`.
 */
thriffty_status thriffty_inverse_in_place(struct thriffty_plan *plan, void *data, size_t bytes);

/**
 * Allocates an array of `in_place_bytes` bytes (see `thriffty_plan_sizes`), all 0: room for the
 * input or the output of this plan, in memory that the processes of a host share (the option
 * "shared_arrays"), or on the plan's device. It lives as long as the plan, and MPI. Collective;
 * `*array` is NULL on failure.
 *
 * What the caller promises:
 * `array` is NULL or has room for a pointer.
 */
thriffty_status thriffty_allocate(struct thriffty_plan *plan, void **array);

/**
 * Writes this rank's bricks and sizes of memory. `struct_size` is `sizeof(thriffty_sizes)`.
 *
 * What the caller promises:
 * `sizes` is NULL or has room for `struct_size` bytes.
 */
thriffty_status thriffty_plan_sizes(const struct thriffty_plan *plan, struct thriffty_sizes *sizes, size_t struct_size);

/**
 * Writes where the time of the plan's transforms went on this rank. `struct_size` is
 * `sizeof(thriffty_timings)`. If processes have several threads, times are those of the first.
 *
 * What the caller promises:
 * `timings` is NULL or has room for `struct_size` bytes.
 */
thriffty_status thriffty_plan_timings(const struct thriffty_plan *plan,
                                      struct thriffty_timings *timings,
                                      size_t struct_size);

/**
 * Sets the times of the plan on this rank to zero.
 */
thriffty_status thriffty_plan_clear_timings(struct thriffty_plan *plan);

/**
 * Writes the error of encoded messages in the last transform, relative to the l2 norm of its
 * result: an estimate, and an upper bound. Both are 0 if no wire is lossy, or nothing has run. The
 * same on all ranks.
 *
 * What the caller promises:
 * Each pointer is NULL, if the number is not wanted, or has room for one.
 */
thriffty_status thriffty_plan_wire_error(const struct thriffty_plan *plan, double *estimate, double *bound);

/**
 * Writes the recipe, in one line, as snprintf does: at most `room` bytes with the final zero.
 * Returns the length of the whole text without the zero or, on failure, a status times -1.
 *
 * What the caller promises:
 * `recipe` is NULL or has room for `room` bytes.
 */
int64_t thriffty_plan_recipe(const struct thriffty_plan *plan, char *recipe, size_t room);

/**
 * Writes, as `thriffty_plan_recipe`, why the recipe was chosen, for example "from wisdom, measured
 * 33.80 ms", and the candidates as a table, one line each, with predicted and measured times, and
 * a mark at the choice.
 *
 * What the caller promises:
 * `report` is NULL or has room for `room` bytes.
 */
int64_t thriffty_plan_report(const struct thriffty_plan *plan, char *report, size_t room);

/**
 * Fails on this rank in place of a transform. Every rank, also one that transforms, returns
 * `THRIFFTY_STATUS_ARGUMENT` and the text "`what`: found `found`, expected `expected`". For
 * programs and bindings that check more than the library can, such as types of elements.
 * Collective.
 *
 * What the caller promises:
 * Each text is NULL or ends with a zero.
 */
thriffty_status thriffty_plan_refuse(struct thriffty_plan *plan,
                                     const char *what,
                                     const char *found,
                                     const char *expected);

/**
 * Saves the result of "measure" of the option "tuning", for "wisdom:FILE" in later plans: adds an
 * entry to this file, or replaces the entry of this transform on this machine. Collective.
 *
 * What the caller promises:
 * `path` is NULL or a text that ends with a zero.
 */
thriffty_status thriffty_plan_save_wisdom(const struct thriffty_plan *plan, const char *path);

/**
 * Fills a struct for a brick in a dense array. The array has `lower` extra points below the brick
 * and `upper` above it along each axis: ghost points, or padded rows. NULL stands for none.
 * `order` is the order of axes in memory, slowest first; NULL as in C. With `components` above 1,
 * the components of a point are next to each other. Otherwise the arrays of a batch follow each
 * other.
 *
 * The array's number is 0; set `array` for others.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say: as many numbers as axes.
 */
thriffty_status thriffty_subarray_init(struct thriffty_subarray *subarray,
                                       int32_t axes,
                                       const struct thriffty_brick *brick,
                                       const int64_t *lower,
                                       const int64_t *upper,
                                       const int32_t *order,
                                       int64_t components);

/**
 * Plans a copy of data like the data of one side of a plan, `THRIFFTY_SIDE_INPUT` or
 * `THRIFFTY_SIDE_OUTPUT`: the same grid, elements and batch, on the host or on the plan's device.
 * Each point of the targets comes from the source that has it, on whichever rank. Collective over
 * the plan's ranks; the same status on every rank. The plan may be destroyed before the copy. On
 * failure `*copy` is NULL.
 *
 * Sources are disjoint, and have all points of the targets. To load a plan's data from a program's
 * arrays, the target is the brick of `thriffty_plan_sizes` in its order of axes. Plans with
 * `transposed_input` and `transposed_output` then have one reshape less on each side.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say; there are as many structs as the counts say.
 */
thriffty_status thriffty_copy_create(struct thriffty_copy **copy,
                                     struct thriffty_plan *plan,
                                     int32_t side,
                                     size_t source_count,
                                     const struct thriffty_subarray *sources,
                                     size_t target_count,
                                     const struct thriffty_subarray *targets);

/**
 * Plans the exchange that fills the ghost points of arrays, also at edges and corners, from the
 * bricks that have them. `side` is as for `thriffty_copy_create`. Collective. It runs in place.
 *
 * There are `lower` ghost points below each brick and `upper` above it along each axis. If
 * `periodic` is not 0, the grid continues at its other end; otherwise ghost points beyond the grid
 * stay as they are.
 *
 * What the caller promises:
 * As of `thriffty_copy_create`; `lower`, `upper` and `periodic` have as many numbers as the plan
 * has axes.
 */
thriffty_status thriffty_halo_create(struct thriffty_copy **copy,
                                     struct thriffty_plan *plan,
                                     int32_t side,
                                     const int64_t *lower,
                                     const int64_t *upper,
                                     const int32_t *periodic,
                                     size_t count,
                                     const struct thriffty_subarray *subarrays);

/**
 * Copies from source arrays to target arrays; each side has as many arrays as its subarrays refer
 * to. If there are sources and `sources` is NULL, it works in place: targets are also sources. A
 * halo always runs in place. Collective; the same status on every rank.
 *
 * Arrays do not overlap; bricks that are in one array have the same number. On a device arrays
 * begin at multiples of 16 bytes, and the copy is queued on the plan's stream, which lives as long
 * as the plan and its copies.
 *
 * What the caller promises:
 * Each array has the elements that its subarrays name, which nobody else touches meanwhile; on a
 * device, until the queued work is done.
 */
thriffty_status thriffty_copy_run(struct thriffty_copy *copy, const void *const *sources, void *const *targets);

/**
 * Destroys a copy. Collective over its ranks. NULL is ignored.
 */
thriffty_status thriffty_copy_destroy(struct thriffty_copy *copy);

/**
 * Sets the difference schemes whose symbols later calls of `thriffty_apply` and
 * `thriffty_wavenumbers` use: names with commas between them, one for each axis, or one for all.
 * NULL stands for "exact". Not collective.
 *
 * "central2" and "central4" are central differences of second and fourth order. "staggered2" and
 * "staggered4" have scalars at cells, and components of vectors at the faces between a cell and
 * the next: gradients are differences forward, divergences backward. The spacing follows from the
 * length of an axis, for cosine and sine transforms the distance of the ends where a value or a
 * slope is 0. On devices, operators with first derivatives refuse staggered schemes.
 *
 * What the caller promises:
 * `schemes` is NULL or a text that ends with a zero.
 */
thriffty_status thriffty_set_schemes(struct thriffty_plan *plan, const char *schemes);

/**
 * As `thriffty_set_schemes`, with the axes in the order of Fortran.
 *
 * What the caller promises:
 * As of `thriffty_set_schemes`.
 */
thriffty_status thriffty_set_schemes_f(struct thriffty_plan *plan, const char *schemes);

/**
 * Sets the coefficients of a difference scheme along the axis of kind "tridiagonal", for later
 * calls of `thriffty_apply` with the operators Laplacian, Poisson and Helmholtz: the second
 * derivative of point j is `lower[j] f[j-1] + diagonal[j] f[j] + upper[j] f[j+1]`. Not collective.
 *
 * `lower[0]` multiplies the last point and `upper[n-1]` the first; both are 0 unless the axis is
 * periodic. If no end fixes the mean of a solution, it is 0, and the mean of the right-hand side
 * is ignored. Both are weighted so that fluxes cancel, for example by the widths of cells.
 *
 * What the caller promises:
 * Each array is NULL, which is refused, or has `n` numbers.
 */
thriffty_status thriffty_set_tridiagonal(struct thriffty_plan *plan,
                                         const double *lower,
                                         const double *diagonal,
                                         const double *upper,
                                         size_t n);

/**
 * Sets the coefficients of the second derivative of second order on a stretched grid, as
 * `thriffty_set_tridiagonal`, by the boundary conditions at its ends and the places of its `count`
 * faces, in ascending order: one more than points at cells.
 *
 * `ends` is "neumann", "dirichlet", "neumann-dirichlet" or "dirichlet-neumann", with "@faces"
 * behind where the points are the faces, except for ends where the value is 0, or "periodic".
 *
 * What the caller promises:
 * `ends` is NULL, which is refused, or a text that ends with a zero; `faces` is NULL, which is
 * refused, or has `count` numbers.
 */
thriffty_status thriffty_set_stretched(struct thriffty_plan *plan, const char *ends, const double *faces, size_t count);

/**
 * Makes a communicator of the processes of a group, in which this one is `rank` of `size`.
 * Collective; the same status on every rank, except that a `rank`, `size` or struct without a
 * meaning is refused on this rank only. On failure `*comm` is NULL.
 *
 * `callbacks` is copied, and its `struct_size` is `sizeof(thriffty_group_callbacks)`. The ranks of
 * a host share memory, so that functions of the group are called only now, if it has one host,
 * except `device_alltoallv`. If a process ends, calls on the other ranks fail with
 * `THRIFFTY_STATUS_TRANSPORT` and a text that names it, and so do later calls. The others can then
 * make a communicator of a smaller group. Groups need Linux. docs/without-mpi.md has more.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say. The functions do what
 * `thriffty_group_callbacks` says, return without an exception or a jump, may be called on any
 * thread that calls this library, and stay valid with the context until the communicator and all
 * plans and copies that were made with it are destroyed.
 */
thriffty_status thriffty_comm_create(struct thriffty_comm **comm,
                                     int32_t rank,
                                     int32_t size,
                                     const struct thriffty_group_callbacks *callbacks,
                                     void *context);

/**
 * Makes a plan of the ranks of a communicator, as `thriffty_plan_create`. Collective; the same
 * status on every rank. The plan may outlive the communicator.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say, and the stream is valid.
 */
thriffty_status thriffty_plan_create_group(struct thriffty_plan **plan,
                                           struct thriffty_comm *comm,
                                           int32_t transform,
                                           int32_t axes,
                                           const int64_t *shape,
                                           const struct thriffty_brick *input,
                                           const struct thriffty_brick *output,
                                           const struct thriffty_options *options);

/**
 * Agrees that all ranks can go on: `why` is NULL, or says why this rank cannot. Then every rank
 * returns `THRIFFTY_STATUS_ARGUMENT` and the text of the lowest rank that has one. For programs
 * that check their arguments before they call. Collective.
 *
 * What the caller promises:
 * `why` is NULL or a text that ends with a zero.
 */
thriffty_status thriffty_comm_agree(struct thriffty_comm *comm, const char *why);

/**
 * Destroys a communicator, at once. Plans and copies that were made with it go on. NULL is
 * ignored.
 */
thriffty_status thriffty_comm_destroy(struct thriffty_comm *comm);

/**
 * Makes options, which all have their defaults. On failure `*options` is NULL.
 *
 * What the caller promises:
 * `options` is NULL or has room for a pointer.
 */
thriffty_status thriffty_options_create(struct thriffty_options **options);

/**
 * Destroys options. NULL is ignored.
 *
 * What the caller promises:
 * `options` is NULL or of `thriffty_options_create`, and not destroyed yet.
 */
thriffty_status thriffty_options_destroy(struct thriffty_options *options);

/**
 * Sets the option of this name to the value that a text describes: for example "tolerance" to
 * "1e-6", "batch" to "3", "shared_arrays" to "true" or "kinds" to "c2c,r2c". "default" is always
 * allowed. Unknown names and values are refused with `THRIFFTY_STATUS_ARGUMENT`, and a text that
 * lists the known ones. Not collective.
 *
 * The options keep the first failure of this and the following calls, and every plan that is made
 * with them fails with it, on all ranks. So you need to check only the plan's status, and no rank
 * waits for one that gave up.
 *
 * What the caller promises:
 * `options` is NULL or of `thriffty_options_create`; each text is NULL or ends with a zero.
 */
thriffty_status thriffty_options_set(struct thriffty_options *options, const char *name, const char *value);

/**
 * As `thriffty_options_set`, but values for each axis are in the order of Fortran, and axes are
 * counted from 1.
 *
 * What the caller promises:
 * As of `thriffty_options_set`.
 */
thriffty_status thriffty_options_set_f(struct thriffty_options *options, const char *name, const char *value);

/**
 * Sets an option that has a whole number for each axis, such as "zero_padded" or "input_order", to
 * `count` numbers.
 *
 * What the caller promises:
 * As of `thriffty_options_set`; `values` is NULL or has `count` numbers.
 */
thriffty_status thriffty_options_set_integers(struct thriffty_options *options,
                                              const char *name,
                                              size_t count,
                                              const int64_t *values);

/**
 * Sets the CUDA stream for all work of plans on a device: a `CUstream` or `cudaStream_t` of the
 * device's primary context, which lives as long as the plan and its copies. NULL is CUDA's default
 * stream.
 *
 * What the caller promises:
 * `options` is NULL or of `thriffty_options_create`.
 */
thriffty_status thriffty_options_set_stream(struct thriffty_options *options, void *stream);

/**
 * Sets options from the environment, as in `THRIFFTY_TOLERANCE=1e-6`: only options for how a
 * transform is done, so that arrays and results keep their form. For programs whose users cannot
 * set options otherwise.
 *
 * What the caller promises:
 * `options` is NULL or of `thriffty_options_create`.
 */
thriffty_status thriffty_options_read_environment(struct thriffty_options *options);

/**
 * Writes the value of the option of this name, as snprintf does: at most `room` bytes with the
 * final zero. Returns the length of the whole text without the zero or, on failure, a status times
 * -1. So you can test whether a library has an option: the options do not keep this failure.
 *
 * What the caller promises:
 * `options` is NULL or of `thriffty_options_create`, `name` is NULL or ends with a zero, and
 * `value` is NULL or has room for `room` bytes.
 */
int64_t thriffty_options_get(const struct thriffty_options *options, const char *name, char *value, size_t room);

/**
 * As `thriffty_options_get`, but values for each axis are in the order of Fortran, and axes are
 * counted from 1.
 *
 * What the caller promises:
 * As of `thriffty_options_get`.
 */
int64_t thriffty_options_get_f(const struct thriffty_options *options, const char *name, char *value, size_t room);

/**
 * Writes all options as JSON, as `thriffty_options_get` writes one: an array of objects with
 * "name", "form", "names", "scope", "default" and "meaning". For programs that make their own
 * interface from them.
 *
 * What the caller promises:
 * `json` is NULL or has room for `room` bytes.
 */
int64_t thriffty_options_describe(char *json, size_t room);

/**
 * Transforms physical to spectral data on this process, without a plan of yours. The library makes
 * a plan as `thriffty_plan_create_serial` does and keeps it, so that later calls with equal
 * arguments cost little. Several threads may call this at the same time.
 *
 * `input_bytes` and `output_bytes` are the sizes of the arrays. The arrays do not overlap, or are
 * one array: then `input` is `output`, and both sizes are the size of the longer side, as a whole
 * number of spectral points. Plans are kept while they hold at most 256 MiB together, not counting
 * the last one; `thriffty_clear_plans` frees them. Small arrays are transformed on the calling
 * thread, others on the number of threads that the option `threads` sets. Data on devices needs a
 * plan.
 *
 * What the caller promises:
 * Pointers are NULL or point at what their types say. `input` has `input_bytes` bytes, which
 * nobody writes to meanwhile, and `output` has `output_bytes` bytes, which nobody else touches.
 */
thriffty_status thriffty_forward_serial(int32_t transform,
                                        int32_t axes,
                                        const int64_t *shape,
                                        const struct thriffty_options *options,
                                        const void *input,
                                        size_t input_bytes,
                                        void *output,
                                        size_t output_bytes);

/**
 * Transforms spectral to physical data on this process, as `thriffty_forward_serial`.
 *
 * What the caller promises:
 * As of `thriffty_forward_serial`.
 */
thriffty_status thriffty_inverse_serial(int32_t transform,
                                        int32_t axes,
                                        const int64_t *shape,
                                        const struct thriffty_options *options,
                                        const void *input,
                                        size_t input_bytes,
                                        void *output,
                                        size_t output_bytes);

/**
 * Frees the plans that `thriffty_forward_serial` and `thriffty_inverse_serial` have made, with
 * their memory and threads. Later calls make new ones.
 */
thriffty_status thriffty_clear_plans(void);

/**
 * The most threads of a plan of one process whose option "threads" is "default": the environment
 * variable `THRIFFTY_THREADS`, or `OMP_NUM_THREADS`, or the number of cores that this process may
 * use by its affinity and the quota of its control group.
 */
int32_t thriffty_default_threads(void);

/**
 * Applies an operator to each mode of this rank's spectral data, on a box with these `lengths`,
 * one for each axis. Not collective, unless ranks divide the axis of kind "tridiagonal" of the
 * spectrum, so that a brick of spectral data does not hold it whole. Then all ranks must apply the
 * same operators in the same order, and an error on one rank is reported on every rank.
 *
 * `operator` is `THRIFFTY_OPERATOR_GRADIENT` or another. `parameter` is the axis of a derivative,
 * from 0 on, the shift of Helmholtz's equation, the standard deviation of a Gaussian or the
 * fraction of a cutoff, for which NAN, as none, is refused. For other operators it is NAN or 0.
 *
 * Components of a vector follow each other in memory, in the order of axes, as the arrays of a
 * batch do. The arrays have as many components as the operator, or several times as many. With
 * `output` equal to `input` it works in place, if the result has as many components.
 *
 * If a plan of several ranks fails here, its next transform fails, too, on every rank, because the
 * others may be in it already.
 *
 * What the caller promises:
 * As of `thriffty_forward`; `lengths` is NULL or has as many numbers as the plan has axes.
 */
thriffty_status thriffty_apply(struct thriffty_plan *plan,
                               int32_t operator_,
                               double parameter,
                               const double *lengths,
                               const void *input,
                               size_t input_bytes,
                               void *output,
                               size_t output_bytes);

/**
 * As `thriffty_apply`, in the order of Fortran: the first component of a vector is that along the
 * last axis, and the axis of a derivative is counted from 1, for the last axis, on.
 *
 * What the caller promises:
 * As of `thriffty_apply`.
 */
thriffty_status thriffty_apply_f(struct thriffty_plan *plan,
                                 int32_t operator_,
                                 double parameter,
                                 const double *lengths,
                                 const void *input,
                                 size_t input_bytes,
                                 void *output,
                                 size_t output_bytes);

/**
 * Multiplies each mode of this rank's spectral data by the same mode of `kernel`, or by its
 * complex conjugate: convolves with a kernel, or correlates. Not collective.
 *
 * The kernel is one array, transformed by this plan or one with the same spectrum, unscaled. For a
 * batch, each array is multiplied.
 *
 * After a failure the next transform fails, too, as after `thriffty_apply`.
 *
 * What the caller promises:
 * As of `thriffty_forward`.
 */
thriffty_status thriffty_convolve(struct thriffty_plan *plan,
                                  const void *kernel,
                                  size_t kernel_bytes,
                                  int32_t correlate,
                                  void *data,
                                  size_t bytes);

/**
 * Writes the transform of Green's function in open space, for a grid with this `spacing`: a kernel
 * for `thriffty_convolve`, with which -laplacian(phi) = rho is solved without walls or periods.
 * Collective.
 *
 * The plan has 2 or 3 axes, and its option "zero_padded" is twice the shape, or more. The kernel
 * has `output_bytes` of `thriffty_plan_sizes`, where the plan's data is. Densities are assumed to
 * be constant in each cell; in two dimensions the potential of a point is -ln(r)/2 pi.
 *
 * What the caller promises:
 * `spacing` is NULL or has as many numbers as the plan has axes; `kernel` has `bytes` bytes, which
 * nobody else touches meanwhile.
 */
thriffty_status thriffty_green_function(struct thriffty_plan *plan, const double *spacing, void *kernel, size_t bytes);

/**
 * Writes the wavenumbers of this rank's spectral brick along an axis of a box that is `length`
 * long there: `k`, and `odd` for derivatives of odd order, where the middle mode of an even number
 * of points is 0. Either may be NULL; `room` applies to both. Not collective.
 *
 * What the caller promises:
 * Each pointer is NULL or has room for `room` numbers.
 */
thriffty_status thriffty_wavenumbers(struct thriffty_plan *plan,
                                     int32_t axis,
                                     double length,
                                     double *k,
                                     double *odd,
                                     size_t room);

/**
 * The smallest length of at least `n` points whose transform is fast: a product of powers of 2, 3
 * and 5. 0 if there is none.
 */
size_t thriffty_next_fast_len(size_t n);

#ifdef __cplusplus
}
#endif

#endif  /* THRIFFTY_H */
