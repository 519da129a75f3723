// The end of encoding: headers, sums of errors, raw messages. One launch after that of encode.cu,
// which may begin while that ends. All blocks wait for it, so that later work on the stream follows
// both.
//
// CPU twin: `Frame::pack` of crates/fft-core/src/codec/frame.rs. Bytes moved: 8 for each tile. If
// any message is raw, also 48 for each, and all of that message, which encode.cu has read in vain.
#include "job.cuh"

template <class T>
__device__ bool is_raw(const Job<T>& job, u32 item)
{
    return job.raw == ALL_RAW || job.states[item].raw || never_shrinks(job.batch.items[item]);
}

// Adds up what the threads of a block have, always in the same order; the sum is the first
// thread's. Has barriers.
__device__ inline double sum_of_block(double x)
{
    __shared__ double sums[THREADS / 32];
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xFFFFFFFF, x, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (double part : sums) sum += part;
    __syncthreads();
    return sum;
}

// The errors of a thread's share of the tiles of a message. Many at once: a message may have many
// tiles, and a block adds up them all.
template <class T>
__device__ double errors_of(const Job<T>& job, u32 item)
{
    constexpr u32 MANY = 32;
    const u32 end = job.batch.firsts[item + 1];
    double sum = 0;
    for (u32 tile = job.batch.firsts[item] + threadIdx.x; tile < end; tile += MANY * THREADS) {
        double some[MANY];
#pragma unroll
        for (u32 i = 0; i < MANY; i++) some[i] = tile + i * THREADS < end ? job.errors[tile + i * THREADS] : 0;
#pragma unroll
        for (u32 i = 0; i < MANY; i++) sum += some[i];
    }
    return sum;
}

// The header, the step, and zeros behind the table. Has barriers. What it asks for is far: what the
// host has written is asked for before the encoder is done, and all the rest before errors are
// added up.
template <class T>
__device__ void finish(const Job<T>& job, u32 item)
{
    const Message& message = job.batch.items[item];
    State& state = job.states[item];
    const u64 place = message.place, room = message.room, fixed = message.fixed, head = message.head;
    const u64 filled = message.filled, table = message.table;
    await_last();
    const u64 units = state.units;
    const bool raw = is_raw(job, item);
    const double squared_error = sum_of_block(errors_of(job, item));
    if (threadIdx.x != 0) return;
    if (!raw) {
        u8* const bytes = job.messages + place;
        *reinterpret_cast<u64*>(bytes) = head;
        if (job.step != 0) *reinterpret_cast<u64*>(bytes + HEADER) = bits_of(job.step);
        for (u64 i = filled; i < table; i++) bytes[HEADER + i] = 0;
    }
    state.bytes = raw ? room : HEADER + fixed + 8 * units;
    state.squared_error = raw ? 0 : squared_error;
}

// A tile of a message that is its numbers as they are. Has barriers.
template <class T, u32 WIDTH>
__device__ void put_numbers(const Job<T>& job, const Tile& tile, Shared shared, Places& places)
{
    using E = Element<T, WIDTH>;
    const Message& message = job.batch.items[tile.item];
    const Body body(message, job.messages);
    fetch_tile<E, Cuts::ANY>(message.box, tile, reinterpret_cast<const E*>(job.src), shared, places);
    await_tile();
    for (u32 i = threadIdx.x; i < TILE<E>; i += THREADS) {
        bool there;
        u32 element = body.element_at(tile, i, there);
        if (there)
            reinterpret_cast<E*>(job.messages + message.place)[element] =
                *reinterpret_cast<const E*>(shared.memory + body.place_of<E>(tile, i));
    }
    __syncthreads();
}

template <class T, u32 WIDTH>
__device__ void settle(const Job<T>& job)
{
    __shared__ __align__(128) u8 memory[TILE<Element<T, WIDTH>> * WIDTH * sizeof(T)];
    __shared__ Places places;
    Shared shared{memory};
    for (u32 item = blockIdx.x; item < job.batch.count; item += gridDim.x) finish(job, item);
    await_last();
    // The next launch draws its tiles from the first one on.
    if (blockIdx.x == 0 && threadIdx.x == 0) job.states[job.batch.count].bytes = 0;
    if (job.raw == NONE_RAW) return;
    bool any = false;
    for (u32 item = threadIdx.x; item < job.batch.count; item += THREADS) any |= is_raw(job, item);
    if (!__syncthreads_or(any)) return;
    // Each thread finds out about one tile of the block's, and then all do those that are to be
    // done.
    __shared__ u32 raw[THREADS / 32];
    for (u32 first = 0; blockIdx.x + first * gridDim.x < job.batch.tiles; first += THREADS) {
        auto tile = [&](u32 k) -> const Tile* {
            const u32 place = blockIdx.x + (first + k) * gridDim.x;
            return place < job.batch.tiles ? job.batch.list + place : nullptr;
        };
        const Tile* const own = tile(threadIdx.x);
        const u32 found = __ballot_sync(0xFFFFFFFF, own != nullptr && is_raw(job, own->item));
        if (threadIdx.x % 32 == 0) raw[threadIdx.x / 32] = found;
        __syncthreads();
        for (u32 warp = 0; warp < THREADS / 32; warp++)
            for (u32 left = raw[warp]; left != 0; left &= left - 1)
                put_numbers<T, WIDTH>(job, *tile(32 * warp + __ffs(left) - 1), shared, places);
        __syncthreads();
    }
}

#define SETTLE(real, T, WIDTH)                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, 5) settle_##real(Job<T> job)             \
    {                                                                                                \
        settle<T, WIDTH>(job);                                                                      \
    }

SETTLE(f32x1, float, 1)
SETTLE(f32x2, float, 2)
SETTLE(f64x1, double, 1)
SETTLE(f64x2, double, 2)
