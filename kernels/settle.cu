// The end of encoding: headers, sums of errors, raw messages. One launch after that of encode.cu,
// which may begin while that ends. All blocks wait for it, so that later work on the stream follows
// both.
//
// CPU twin: `Frame::pack` of crates/fft-core/src/codec/frame.rs. Bytes moved: 8 for each tile. If
// any message is raw, also 48 for each, and all of that message, which encode.cu has read in vain.
#include "message.cuh"

template <class T>
struct Rest {
    Batch<Message> batch;
    const T* src;
    u8* messages;
    State* states;
    const double* errors;
    // Of `tolerance`, else 0.
    double step;
    // Which messages are raw: none, some perhaps, or all. The host has the same (`Raw`).
    u32 raw;
};
// A message without elements is its numbers as they are even where none is: it has no header.
constexpr u32 NONE_RAW = 0, ALL_RAW = 2;

template <class T>
__device__ bool is_raw(const Rest<T>& rest, u32 item)
{
    return rest.raw == ALL_RAW || rest.states[item].raw || never_shrinks(rest.batch.items[item]);
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
__device__ double errors_of(const Rest<T>& rest, u32 item)
{
    constexpr u32 MANY = 32;
    const u32 end = rest.batch.firsts[item + 1];
    double sum = 0;
    for (u32 tile = rest.batch.firsts[item] + threadIdx.x; tile < end; tile += MANY * THREADS) {
        double some[MANY];
#pragma unroll
        for (u32 i = 0; i < MANY; i++) some[i] = tile + i * THREADS < end ? rest.errors[tile + i * THREADS] : 0;
#pragma unroll
        for (u32 i = 0; i < MANY; i++) sum += some[i];
    }
    return sum;
}

// The header, the step, and zeros behind the table. Has barriers. What it asks for is far: what the
// host has written is asked for before the encoder is done, and all the rest before errors are
// added up.
template <class T>
__device__ void finish(const Rest<T>& rest, u32 item)
{
    const Message& message = rest.batch.items[item];
    State& state = rest.states[item];
    const u64 place = message.place, room = message.room, fixed = message.fixed, head = message.head;
    const u64 filled = message.filled, table = message.table;
    await_last();
    const u64 units = state.units;
    const bool raw = is_raw(rest, item);
    const double squared_error = sum_of_block(errors_of(rest, item));
    if (threadIdx.x != 0) return;
    if (!raw) {
        u8* const bytes = rest.messages + place;
        *reinterpret_cast<u64*>(bytes) = head;
        if (rest.step != 0) *reinterpret_cast<u64*>(bytes + HEADER) = bits_of(rest.step);
        for (u64 i = filled; i < table; i++) bytes[HEADER + i] = 0;
    }
    state.bytes = raw ? room : HEADER + fixed + 8 * units;
    state.squared_error = raw ? 0 : squared_error;
}

// A tile of a message that is its numbers as they are. Has barriers.
template <class T, u32 WIDTH>
__device__ void put_numbers(const Rest<T>& rest, const Tile& tile, Shared shared, Places& places)
{
    using E = Element<T, WIDTH>;
    const Message& message = rest.batch.items[tile.item];
    const Body body(message, rest.messages);
    fetch_tile<E, Cuts::ANY>(message.box, tile, reinterpret_cast<const E*>(rest.src), shared, places);
    await_tile();
    for (u32 i = threadIdx.x; i < TILE<E>; i += THREADS) {
        bool there;
        u32 element = body.element_at(tile, i, there);
        if (there)
            reinterpret_cast<E*>(rest.messages + message.place)[element] =
                *reinterpret_cast<const E*>(shared.memory + body.place_of<E>(tile, i));
    }
    __syncthreads();
}

template <class T, u32 WIDTH>
__device__ void settle(const Rest<T>& rest)
{
    __shared__ __align__(128) u8 memory[TILE<Element<T, WIDTH>> * WIDTH * sizeof(T)];
    __shared__ Places places;
    Shared shared{memory};
    for (u32 item = blockIdx.x; item < rest.batch.count; item += gridDim.x) finish(rest, item);
    await_last();
    // The next launch draws its tiles from the first one on.
    if (blockIdx.x == 0 && threadIdx.x == 0) rest.states[rest.batch.count].bytes = 0;
    if (rest.raw == NONE_RAW) return;
    bool any = false;
    for (u32 item = threadIdx.x; item < rest.batch.count; item += THREADS) any |= is_raw(rest, item);
    if (!__syncthreads_or(any)) return;
    // Each thread finds out about one tile of the block's, and then all do those that are to be
    // done.
    __shared__ u32 raw[THREADS / 32];
    for (u32 first = 0; blockIdx.x + first * gridDim.x < rest.batch.tiles; first += THREADS) {
        auto tile = [&](u32 k) -> const Tile* {
            const u32 place = blockIdx.x + (first + k) * gridDim.x;
            return place < rest.batch.tiles ? rest.batch.list + place : nullptr;
        };
        const Tile* const own = tile(threadIdx.x);
        const u32 found = __ballot_sync(0xFFFFFFFF, own != nullptr && is_raw(rest, own->item));
        if (threadIdx.x % 32 == 0) raw[threadIdx.x / 32] = found;
        __syncthreads();
        for (u32 warp = 0; warp < THREADS / 32; warp++)
            for (u32 left = raw[warp]; left != 0; left &= left - 1)
                put_numbers<T, WIDTH>(rest, *tile(32 * warp + __ffs(left) - 1), shared, places);
        __syncthreads();
    }
}

#define SETTLE(real, T, WIDTH)                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, 5) settle_##real(Rest<T> rest)             \
    {                                                                                                \
        settle<T, WIDTH>(rest);                                                                      \
    }

SETTLE(f32x1, float, 1)
SETTLE(f32x2, float, 2)
SETTLE(f64x1, double, 1)
SETTLE(f64x2, double, 2)
