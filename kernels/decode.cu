// Decoding and unpacking in one pass: messages become boxes of an array. One launch reads all messages of a reshape.
//
// CPU twins: `Codec::unpack` of crates/fft-core/src/codec/{frame,rounded,bits,tolerance}.rs. Whatever a message holds, nothing is
// read outside its slot or written outside its box; what is wrong with one is marked, and said by the CPU, who reads it again.
#include "formats.cuh"
#include "integers.cuh"
#include "places.cuh"

template <class T>
struct Job {
    Batch<Message> batch;
    const u8* messages;
    T* dst;
    State* states;
    u32 bits;
    // Whether the wire has a step in its header.
    u32 has_step;
    // Whether what is behind `fixed` depends on the data.
    u32 grows;
    Queue queue;
};

// What a header says.
struct Told {
    bool good, raw;
    double step;
    // Bytes behind the header.
    u64 body;
};

template <class T>
__device__ Told read_header(const Job<T>& job, const Message& message)
{
    const u64* words = reinterpret_cast<const u64*>(job.messages + message.place);
    u64 flag = 1ull << 32;
    Told told{true, (words[0] & flag) != 0, from_bits(words[3]), words[2] - HEADER};
    told.good = (words[0] & ~flag) == message.head[0] && words[1] == message.head[1] && words[2] >= HEADER
        && told.body <= message.room;
    if (told.raw) {
        told.good &= told.body == message.room && words[3] == 0;
    } else {
        // A normal number above 0, or none.
        bool normal = words[3] >> 52 != 0 && words[3] < INFINITE;
        told.good &= (job.has_step ? normal : words[3] == 0)
            && (job.grows ? told.body >= message.fixed : told.body == message.fixed);
    }
    return told;
}

__device__ inline void refuse(State& state) { atomicOr(&state.bad, 1); }

// Reads one tile: `decode` brings its numbers into shared memory, unless they are there as they are. Has barriers.
template <class T, u32 WIDTH, class Decode>
__device__ void put_tile(const Job<T>& job, const Message& message, State& state, const Tile& tile, Shared shared,
    Runs& runs, Decode decode)
{
    using E = Element<T, WIDTH>;
    Told told = read_header(job, message);
    if (!told.good) return refuse(state);
    if (tile.element == 0 && threadIdx.x == 0) state.bytes = HEADER + told.body;
    const Body body(message, job.messages);
    if (told.raw) {
        const E* elements = reinterpret_cast<const E*>(body.bytes) + tile.element;
#pragma unroll
        for (u32 k = 0; k < PER_THREAD<E>; k++) {
            u32 i = threadIdx.x + k * THREADS;
            if (i < tile.cols) shared.at<E>(i) = elements[i];
        }
    } else {
        decode(body, state, tile, told, shared);
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
        const Message& message = job.batch.items[item];
        put_tile<T, WIDTH>(job, message, job.states[item], tile_at(message.box, number), Shared{memory}, runs, decode);
    }
}

template <class T, u32 WIDTH, class Format>
__device__ void decode_format(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, [&](const Body& body, State& state, const Tile& tile, const Told&, Shared shared) {
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
    each_tile<T, WIDTH>(job, [&](const Body& body, State&, const Tile& tile, const Told&, Shared shared) {
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
    each_tile<T, WIDTH>(job, [&](const Body& body, State& state, const Tile& tile, const Told& told, Shared shared) {
        Team team;
        const u64 fixed = body.table + u64((body.elements + BLOCK - 1) / BLOCK) * WIDTH * (8 * bits);
        constexpr u32 GROUPS = TILE<Element<T, WIDTH>> / BLOCK;
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
                if (scale < 0x7FF << 5) {
                    Integers{from_bits(u64(scale) << 47), 0, bits}.decode<WIDTH>(from, x + plane, team);
                    // Codes of a block of zeros mean nothing.
                    if (scale == 0)
#pragma unroll
                        for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
                    continue;
                }
                u64 number = *reinterpret_cast<const u64*>(from);
                if (scale != 0xFFFF || number >= (told.body - fixed) / RAW_BYTES<T>) {
                    refuse(state);
                    continue;
                }
                if (team.lane == 0) atomicAdd(&state.raw_blocks, 1);
                get_raw<WIDTH>(body.bytes + fixed + number * RAW_BYTES<T>, x + plane, team);
            }
            write_block<WIDTH>(shared, local, x, team);
        }
    });
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
            const u8* widths = job.messages + message.place + HEADER + u64(element / BLOCK) * WIDTH;
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                u32 bits = there && !never_shrinks(message) ? widths[plane] : 0;
                if (bits == 1 || (bits > 52 && bits != 255)) {
                    // Of a raw message these are numbers.
                    if (!read_header(job, message).raw) refuse(job.states[found.item]);
                    bits = 0;
                }
                if (group < GROUPS) found.widths[group][plane] = u8(bits);
                units += bits == 255 ? u32(RAW_BYTES<T>) / 8 : bits;
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
        auto work = [&](const Body& body, State& state, const Tile& tile, const Told& told, Shared shared) {
            bool last = tile.element + tile.cols == body.elements;
            if (threadIdx.x == 0 && last && body.table + 8 * (begin + length) != told.body) refuse(state);
#pragma unroll
            for (u32 n = 0; n < GROUPS / TEAMS; n++) {
                u32 group = threadIdx.x / 8 + n * TEAMS;
                if (group * BLOCK >= tile.cols) continue;
                alignas(16) T x[8 * WIDTH];
                const u8* from = body.bytes + body.table + 8 * (begin + found.before[group]);
#pragma unroll
                for (u32 plane = 0; plane < WIDTH; plane++) {
                    u32 bits = found.widths[group][plane], bytes = bits == 255 ? RAW_BYTES<T> : 8 * bits;
                    bool within = u64(from - body.bytes) + bytes <= told.body;
                    if (!within) refuse(state);
                    if (!within || bits == 0) {
#pragma unroll
                        for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
                    } else if (bits == 255) {
                        get_raw<WIDTH>(from, x + plane, team);
                    } else {
                        Integers{told.step, 0, bits}.decode<WIDTH>(from, x + plane, team);
                    }
                    from += bytes;
                }
                write_block<WIDTH>(shared, group * BLOCK, x, team);
            }
        };
        Tile tile = tile_at(message.box, found.number);
        put_tile<T, WIDTH>(job, message, job.states[found.item], tile, Shared{memory}, runs, work);
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
