// Decoding and unpacking in one pass: messages become boxes of an array. One launch reads all messages of a reshape.
//
// CPU twins: `Codec::unpack` of crates/fft-core/src/codec/{frame,rounded,bits,tolerance}.rs. Whatever a message holds, nothing is
// read outside its slot or written outside its box; what is wrong with one is marked, and said by the CPU, who reads it again.
#include "edge.cuh"
#include "formats.cuh"
#include "places.cuh"

template <class T>
struct Job {
    Batch<Message> batch;
    const u8* messages;
    T* dst;
    State* states;
    // Bytes of each message: those of its numbers, of its header and what is `fixed`, or of `tolerance` anything between.
    const u64* lengths;
    u32 bits;
    Queue queue;
};

template <class T>
__device__ bool is_raw(const Job<T>& job, u32 item)
{
    return job.lengths[item] == job.batch.items[item].room;
}

__device__ inline void refuse(State& state) { atomicOr(&state.bad, 1); }

// Reads one tile: `decode` brings its numbers into shared memory, unless they are there as they are. Has barriers.
template <class T, u32 WIDTH, class Decode>
__device__ void put_tile(const Job<T>& job, u32 item, const Tile& tile, Shared shared, Runs& runs, Decode decode)
{
    using E = Element<T, WIDTH>;
    const Message& message = job.batch.items[item];
    const u8* bytes = job.messages + message.place;
    if (is_raw(job, item)) {
        const E* elements = reinterpret_cast<const E*>(bytes) + tile.element;
#pragma unroll
        for (u32 k = 0; k < PER_THREAD<E>; k++) {
            u32 i = threadIdx.x + k * THREADS;
            if (i < tile.cols) shared.at<E>(i) = elements[i];
        }
    } else {
        if (*reinterpret_cast<const u64*>(bytes) != message.head) return refuse(job.states[item]);
        decode(Body(message, job.messages), job.states[item], tile, shared);
    }
    store_tile(message.box, tile, shared, reinterpret_cast<E*>(job.dst), runs);
    __syncthreads();
}

// Reads all tiles.
template <class T, u32 WIDTH, class Decode>
__device__ void each_tile(const Job<T>& job, Decode decode)
{
    using E = Element<T, WIDTH>;
    __shared__ __align__(128) u8 memory[TILE<E> * sizeof(E)];
    __shared__ Runs runs;
    u32 item = 0;
    for (u32 number = blockIdx.x; number < job.batch.tiles; number += gridDim.x) {
        item = item_of(job.batch.firsts, job.batch.count, number, item);
        put_tile<T, WIDTH>(job, item, tile_at(job.batch.items[item].box, number), Shared{memory}, runs, decode);
    }
}

template <class T, u32 WIDTH, class Format>
__device__ void decode_format(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, [&](const Body& body, State& state, const Tile& tile, Shared shared) {
        Team team;
        constexpr u32 BLOCKS = TILE<Element<T, WIDTH>> * WIDTH / BLOCK;
#pragma unroll
        for (u32 n = 0; n < BLOCKS / TEAMS; n++) {
            u32 local = threadIdx.x / 8 + n * TEAMS, first = tile.element * WIDTH + local * BLOCK;
            if (first >= body.elements * WIDTH) continue;
            int scale = reinterpret_cast<const int16_t*>(body.bytes)[first / 256];
            if (scale < LEAST_SCALE || scale > MOST_SCALE) {
                refuse(state);
                continue;
            }
            alignas(16) T x[8];
            decode_span<Format>(body.bytes + body.table + u64(first / BLOCK) * (8 * Format::BITS), scale, x, team);
            write_block<1>(shared, local * BLOCK, x, team);
        }
    });
}

template <class T, u32 WIDTH>
__device__ void decode_mantissa(const Job<T>& job)
{
    u32 bits = job.bits;
    u32 size = 8 * (8 * sizeof(T) - (bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0));
    each_tile<T, WIDTH>(job, [&](const Body& body, State&, const Tile& tile, Shared shared) {
        Team team;
        constexpr u32 BLOCKS = TILE<Element<T, WIDTH>> * WIDTH / BLOCK;
#pragma unroll
        for (u32 n = 0; n < BLOCKS / TEAMS; n++) {
            u32 local = threadIdx.x / 8 + n * TEAMS, first = tile.element * WIDTH + local * BLOCK;
            if (first >= body.elements * WIDTH) continue;
            alignas(16) T x[8];
            decode_trimmed(body.bytes + u64(first / BLOCK) * size, bits, x, team);
            write_block<1>(shared, local * BLOCK, x, team);
        }
    });
}

template <class T, u32 WIDTH>
__device__ void decode_bits(const Job<T>& job)
{
    const u32 bits = job.bits;
    each_tile<T, WIDTH>(job, [&](const Body& body, State& state, const Tile& tile, Shared shared) {
        Team team;
        constexpr u32 GROUPS = TILE<Element<T, WIDTH>> / BLOCK;
        // Bits for blocks that are put off until others are done, so that these keep their registers.
        u32 later = 0;
#pragma unroll
        for (u32 n = 0; n < GROUPS / TEAMS; n++) {
            u32 local = (threadIdx.x / 8 + n * TEAMS) * BLOCK, element = tile.element + local;
            if (element >= body.elements) continue;
            alignas(16) T x[8 * WIDTH];
            u32 block = element / BLOCK * WIDTH;
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                u32 scale = reinterpret_cast<const u16*>(body.bytes)[block + plane];
                const u8* from = body.bytes + body.table + u64(block + plane) * (8 * bits);
                double step = step_of(scale);
                if (Edge<T>::is_far(step, bits)) {
                    Integers{step, 0, bits}.decode<WIDTH>(from, x + plane, team);
                    // Codes of a block of zeros mean nothing.
                    if (scale == 0)
#pragma unroll
                        for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
                } else {
                    later |= 1 << (n * WIDTH + plane);
#pragma unroll
                    for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
                }
            }
            write_block<WIDTH>(shared, local, x, team);
        }
        for (; later != 0; later &= later - 1) {
            u32 bit = __ffs(later) - 1, plane = bit % WIDTH, local = (threadIdx.x / 8 + bit / WIDTH * TEAMS) * BLOCK;
            u32 block = (tile.element + local) / BLOCK * WIDTH + plane;
            u32 scale = reinterpret_cast<const u16*>(body.bytes)[block];
            Eight eight;
            if (!decode_edge<T>(scale, bits, body.bytes + body.table + u64(block) * (8 * bits), eight)) {
                refuse(state);
                continue;
            }
            for (u32 i = 0; i < 8; i++) number_at<T, WIDTH>(shared, local, plane, i) = T(eight.x[i]);
        }
    });
}

// The width of a block, out of the table. The last may be in one byte, with nothing behind it.
__device__ inline u32 width_at(const u8* widths, u32 block)
{
    u64 bit = u64(block) * WIDTH_BITS;
    u32 shift = u32(bit) % 8, low = widths[bit / 8], high = shift > 8 - WIDTH_BITS ? widths[bit / 8 + 1] : 0;
    return (low | high << 8) >> shift & RAW;
}

// The blocks of a tile whose places depend on those before.
struct Measured {
    static constexpr u32 MOST = 2048 / BLOCK;
    u8 widths[MOST][2];
    u32 before[MOST + 1];
    u32 number, item;
};

// `tolerance`: a tile is measured before the one in front of it is decoded, and only then is asked where that begins.
template <class T, u32 WIDTH>
__device__ void decode_tolerance(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    constexpr u32 GROUPS = TILE<E> / BLOCK;
    __shared__ __align__(128) u8 memory[TILE<E> * sizeof(E)];
    __shared__ Runs runs;
    __shared__ Measured measured[2];
    const Team team;

    // Draws the next tile, and says how long it is.
    auto measure = [&](u32 turn) {
        Measured& found = measured[turn % 2];
        __syncthreads();
        if (threadIdx.x == 0) {
            found.number = job.queue.draw();
            u32 guess = turn == 0 ? 0 : measured[(turn + 1) % 2].item;
            bool there = found.number < job.batch.tiles;
            found.item = there ? item_of(job.batch.firsts, job.batch.count, found.number, guess) : guess;
        }
        __syncthreads();
        if (found.number >= job.batch.tiles) return false;
        const Message& message = job.batch.items[found.item];
        if (threadIdx.x < 32) {
            u32 group = threadIdx.x, units = 0;
            u32 element = (found.number - message.box.first_tile) * TILE<E> + group * BLOCK;
            bool there = group < GROUPS && element < message.box.elements;
            const u8* widths = job.messages + message.place + HEADER + STEP_BYTES;
            // Of a raw message these would be numbers.
            there &= !is_raw(job, found.item);
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                u32 bits = there ? width_at(widths, element / BLOCK * WIDTH + plane) : 0;
                if (bits == 1 || (bits > 52 && bits != RAW)) {
                    refuse(job.states[found.item]);
                    bits = 0;
                }
                if (group < GROUPS) found.widths[group][plane] = u8(bits);
                units += bits == RAW ? u32(RAW_BYTES<T>) / 8 : bits;
            }
            u32 sum = units;
#pragma unroll
            for (u32 distance = 1; distance < 32; distance *= 2) {
                u32 before = __shfl_up_sync(0xFFFFFFFF, sum, distance);
                if (group >= distance) sum += before;
            }
            found.before[group] = sum - units;
            if (group == 31) {
                found.before[GROUPS] = sum;
                publish_length(job.queue, found.number, message.box.first_tile, sum);
            }
        }
        __syncthreads();
        return true;
    };

    auto decode = [&](u32 turn) {
        const Measured& found = measured[turn % 2];
        const Message& message = job.batch.items[found.item];
        u64 length = found.before[GROUPS];
        u64 begin = look_back(job.queue, found.number, message.box.first_tile, length);
        auto work = [&](const Body& body, State& state, const Tile& tile, Shared shared) {
            const u64 behind = job.lengths[found.item] - HEADER, word = *reinterpret_cast<const u64*>(body.bytes);
            bool last = tile.element + tile.cols == body.elements;
            if (threadIdx.x == 0 && last && body.table + 8 * (begin + length) != behind) refuse(state);
            // A step is a normal number above 0.
            if (word >> 52 == 0 || word >= INFINITE) return refuse(state);
#pragma unroll
            for (u32 n = 0; n < GROUPS / TEAMS; n++) {
                u32 group = threadIdx.x / 8 + n * TEAMS;
                if (group * BLOCK >= tile.cols) continue;
                alignas(16) T x[8 * WIDTH];
                const u8* from = body.bytes + body.table + 8 * (begin + found.before[group]);
#pragma unroll
                for (u32 plane = 0; plane < WIDTH; plane++) {
                    u32 bits = found.widths[group][plane], bytes = bits == RAW ? RAW_BYTES<T> : 8 * bits;
                    bool within = u64(from - body.bytes) + bytes <= behind;
                    if (!within) refuse(state);
                    if (!within || bits == 0) {
#pragma unroll
                        for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
                    } else if (bits == RAW) {
                        get_raw<WIDTH>(from, x + plane, team);
                    } else {
                        Integers{from_bits(word), 0, bits}.decode<WIDTH>(from, x + plane, team);
                    }
                    from += bytes;
                }
                write_block<WIDTH>(shared, group * BLOCK, x, team);
            }
        };
        put_tile<T, WIDTH>(job, found.item, tile_at(message.box, found.number), Shared{memory}, runs, work);
    };

    bool there = measure(0);
    for (u32 turn = 0; there; turn++) {
        there = measure(turn + 1);
        decode(turn);
    }
}

#define DECODE(wire, real, T, WIDTH, ...)                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS, 8) decode_##wire##_##real(Job<T> job)         \
    {                                                                                                \
        __VA_ARGS__(job);                                                                            \
    }

#define DECODE_ALL(real, T, WIDTH)                                                                   \
    DECODE(f32, real, T, WIDTH, decode_format<T, WIDTH, Single>)                                     \
    DECODE(f16, real, T, WIDTH, decode_format<T, WIDTH, Half>)                                       \
    DECODE(bf16, real, T, WIDTH, decode_format<T, WIDTH, Brain>)                                     \
    DECODE(mantissa, real, T, WIDTH, decode_mantissa<T, WIDTH>)                                      \
    DECODE(bits, real, T, WIDTH, decode_bits<T, WIDTH>)                                              \
    DECODE(tolerance, real, T, WIDTH, decode_tolerance<T, WIDTH>)

DECODE_ALL(f32x1, float, 1)
DECODE_ALL(f32x2, float, 2)
DECODE_ALL(f64x1, double, 1)
DECODE_ALL(f64x2, double, 2)
