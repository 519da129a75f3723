// What encode.cu leaves: headers, sums of errors, what is sent as it is. One launch after that of encode.cu.
//
// CPU twin: `Frame::pack` of crates/fft-core/src/codec/frame.rs. Bytes moved: 8 for each tile; and all of a message that is
// sent as it is, which encode.cu has read in vain.
#include "integers.cuh"

template <class T>
struct Rest {
    Batch<Message> batch;
    const T* src;
    u8* messages;
    State* states;
    const double* errors;
    double step;
    // Of `bits`, else 0.
    u32 bits;
    // Whether all messages are sent as they are.
    u32 all_raw;
};

template <class T>
__device__ bool is_raw(const Rest<T>& rest, u32 item)
{
    const Message& message = rest.batch.items[item];
    const State& state = rest.states[item];
    u64 behind = message.fixed + u64(state.raw_blocks) * RAW_BYTES<T>;
    return rest.all_raw || state.raw || behind >= message.room;
}

// Adds up what the threads of a block have, always in the same order; the sum is the first thread's. Has barriers.
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

// The errors of a thread's share of the tiles of a message. Several at once, as a message may have many tiles.
template <class T>
__device__ double errors_of(const Rest<T>& rest, u32 item)
{
    double sums[8] = {};
    u32 end = rest.batch.firsts[item + 1];
    for (u32 tile = rest.batch.firsts[item] + threadIdx.x; tile < end; tile += 8 * THREADS)
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            if (tile + i * THREADS < end) sums[i] += rest.errors[tile + i * THREADS];
    double sum = 0;
    for (double part : sums) sum += part;
    return sum;
}

// The header, and zeros behind the table, by one thread.
template <class T>
__device__ void finish(const Rest<T>& rest, u32 item, double squared_error)
{
    const Message& message = rest.batch.items[item];
    State& state = rest.states[item];
    bool raw = is_raw(rest, item);
    u64 body = raw ? message.room : message.fixed + 8 * state.units + u64(state.raw_blocks) * RAW_BYTES<T>;
    u64* words = reinterpret_cast<u64*>(rest.messages + message.place);
    words[0] = message.head[0] | u64(raw) << 32;
    words[1] = message.head[1];
    words[2] = HEADER + body;
    words[3] = raw ? 0 : bits_of(rest.step);
    if (!raw) {
        u8* table = rest.messages + message.place + HEADER;
        for (u64 i = message.filled; i < message.table; i++) table[i] = 0;
    }
    state.bytes = HEADER + body;
    state.squared_error = raw ? 0 : squared_error;
}

// Blocks that `bits` sends as they are, in their order, by a block of threads.
template <class T, u32 WIDTH>
__device__ void put_raw_blocks(const Rest<T>& rest, const Message& message)
{
    __shared__ u32 marked[THREADS / 32];
    u8* body = rest.messages + message.place + HEADER;
    u64 number = 0;
    u32 blocks = u32(message.filled / 2);
    for (u32 first = 0; first < blocks; first += THREADS) {
        u32 mine = first + threadIdx.x;
        bool raw = mine < blocks && reinterpret_cast<const u16*>(body)[mine] == 0xFFFF;
        u32 here = __ballot_sync(0xFFFFFFFF, raw);
        if (threadIdx.x % 32 == 0) marked[threadIdx.x / 32] = here;
        __syncthreads();
        for (u32 word = 0; word < THREADS / 32; word++) {
            for (u32 left = marked[word]; left != 0; left &= left - 1, number++) {
                u32 block = first + 32 * word + __ffs(left) - 1;
                u8* place = body + message.table + u64(block) * (8 * rest.bits);
                if (threadIdx.x < rest.bits)
                    reinterpret_cast<u64*>(place)[threadIdx.x] = threadIdx.x == 0 ? number : 0;
                if (threadIdx.x >= BLOCK) continue;
                u32 element = block / WIDTH * BLOCK + threadIdx.x;
                T x = 0;
                if (element < message.box.elements) {
                    const Box& box = message.box;
                    u64 at = box.from.offset + distance(box, box.from, element, DIMS - 1, box.low);
                    x = rest.src[at * WIDTH + block % WIDTH];
                }
                reinterpret_cast<T*>(body + message.fixed + number * RAW_BYTES<T>)[threadIdx.x] = x;
            }
        }
        __syncthreads();
    }
}

// The body of a message as the numbers are, of which each block of threads does its share.
template <class T, u32 WIDTH>
__device__ void put_raw_body(const Rest<T>& rest, u32 item, Shared shared, Runs& runs)
{
    using E = Element<T, WIDTH>;
    const Message& message = rest.batch.items[item];
    const Box& box = message.box;
    const Body body(message, rest.messages);
    for (u32 number = rest.batch.firsts[item] + blockIdx.x; number < rest.batch.firsts[item + 1];
         number += gridDim.x) {
        Tile tile = tile_at(box, number);
        fetch_tile(box, tile, reinterpret_cast<const E*>(rest.src), shared, runs);
        await_tile(false);
        for (u32 i = threadIdx.x; i < TILE<E>; i += THREADS) {
            bool there;
            u32 element = body.element_at(tile, i, there);
            if (there) reinterpret_cast<E*>(body.bytes)[element] = shared.at<E>(i);
        }
        __syncthreads();
    }
}

template <class T, u32 WIDTH>
__device__ void settle(const Rest<T>& rest)
{
    __shared__ __align__(128) u8 memory[TILE<Element<T, WIDTH>> * WIDTH * sizeof(T)];
    __shared__ Runs runs;
    Shared shared{memory};
    for (u32 item = blockIdx.x; item < rest.batch.count; item += gridDim.x) {
        double error = sum_of_block(is_raw(rest, item) ? 0 : errors_of(rest, item));
        if (threadIdx.x == 0) finish(rest, item, error);
        if (rest.states[item].raw_blocks != 0 && !is_raw(rest, item))
            put_raw_blocks<T, WIDTH>(rest, rest.batch.items[item]);
    }
    for (u32 first = 0; first < rest.batch.count; first += THREADS) {
        u32 mine = first + threadIdx.x;
        if (!__syncthreads_or(mine < rest.batch.count && is_raw(rest, mine))) continue;
        for (u32 item = first; item < min(first + THREADS, rest.batch.count); item++)
            if (is_raw(rest, item)) put_raw_body<T, WIDTH>(rest, item, shared, runs);
    }
}

#define SETTLE(real, T, WIDTH)                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS) settle_##real(Rest<T> rest)                \
    {                                                                                                \
        settle<T, WIDTH>(rest);                                                                      \
    }

SETTLE(f32x1, float, 1)
SETTLE(f32x2, float, 2)
SETTLE(f64x1, double, 1)
SETTLE(f64x2, double, 2)
