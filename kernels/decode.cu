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

// Calls `work` for each tile, to bring its numbers into shared memory, unless they are there as they are.
template <class T, u32 WIDTH, class Work>
__device__ void each_tile(const Job<T>& job, bool in_order, Work work)
{
    using Element = typename ElementOf<T, WIDTH>::Type;
    __shared__ __align__(128) u8 memory[TILE * sizeof(Element)];
    Shared shared{memory};
    u32 item = 0;
    for (u32 number = in_order ? job.queue.draw() : blockIdx.x; number < job.batch.tiles;
         number = in_order ? job.queue.draw() : number + gridDim.x) {
        item = item_of(job.batch.firsts, job.batch.count, number, item);
        const Message& message = job.batch.items[item];
        Tile tile = tile_at(message.box, number);
        Told told = read_header(job, message);
        State& state = job.states[item];
        if (!told.good) {
            refuse(state);
            continue;
        }
        if (tile.element == 0 && threadIdx.x == 0) state.bytes = HEADER + told.body;
        const u8* body = job.messages + message.place + HEADER;
        if (told.raw) {
            const Element* elements = reinterpret_cast<const Element*>(body) + tile.element;
#pragma unroll
            for (u32 k = 0; k < PER_THREAD; k++) {
                u32 i = threadIdx.x + k * THREADS;
                if (i < tile.cols) shared.at<Element>(i) = elements[i];
            }
        } else {
            work(message, state, tile, number, told, body, shared);
        }
        store_tile(message.box, tile, shared, reinterpret_cast<Element*>(job.dst));
        __syncthreads();
    }
}

template <class T, u32 WIDTH, class Format>
__device__ void decode_format(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, false, [&](const Message& message, State& state, const Tile& tile, u32, const Told&, const u8* body, Shared shared) {
        Team team;
#pragma unroll
        for (u32 n = 0; n < WIDTH; n++) {
            u32 local = threadIdx.x / 8 + n * BLOCKS_AT_ONCE;
            u32 first = tile.element * WIDTH + local * BLOCK;
            if (first >= message.box.elements * WIDTH) continue;
            int scale = reinterpret_cast<const int16_t*>(body)[first / 256];
            if (scale < LEAST_SCALE || scale > MOST_SCALE) {
                refuse(state);
                continue;
            }
            alignas(16) T x[8];
            decode_span<Format>(body + message.table + u64(first / BLOCK) * (8 * Format::BITS), scale, x, team);
            shared.write((local * BLOCK + team.lane * 8) * sizeof(T), x);
        }
    });
}

template <class T, u32 WIDTH>
__device__ void decode_mantissa(const Job<T>& job)
{
    u32 bits = job.bits;
    u32 size = 8 * (8 * sizeof(T) - (bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0));
    each_tile<T, WIDTH>(job, false, [&](const Message& message, State&, const Tile& tile, u32, const Told&, const u8* body, Shared shared) {
        Team team;
#pragma unroll
        for (u32 n = 0; n < WIDTH; n++) {
            u32 local = threadIdx.x / 8 + n * BLOCKS_AT_ONCE;
            u32 first = tile.element * WIDTH + local * BLOCK;
            if (first >= message.box.elements * WIDTH) continue;
            alignas(16) T x[8];
            decode_trimmed(body + u64(first / BLOCK) * size, bits, x, team);
            shared.write((local * BLOCK + team.lane * 8) * sizeof(T), x);
        }
    });
}

template <class T, u32 WIDTH>
__device__ void decode_bits(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, false, [&](const Message& message, State& state, const Tile& tile, u32, const Told& told, const u8* body, Shared shared) {
        Team team;
        u32 local = threadIdx.x / 8 * BLOCK, element = tile.element + local;
        if (element >= message.box.elements) return;
        alignas(16) T x[8 * WIDTH];
        u32 block = element / BLOCK * WIDTH;
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            u32 scale = reinterpret_cast<const u16*>(body)[block + plane];
            const u8* from = body + message.table + u64(block + plane) * (8 * job.bits);
            if (scale < 0x7FF << 5) {
                Integers{from_bits(u64(scale) << 47), job.bits}.decode<WIDTH>(from, x + plane, team);
                // Codes of a block of zeros mean nothing.
                if (scale == 0)
#pragma unroll
                    for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
                continue;
            }
            u64 number = *reinterpret_cast<const u64*>(from);
            u64 behind = message.fixed + (number + 1) * RAW_BYTES<T>;
            if (scale != 0xFFFF || number >= (told.body - message.fixed) / RAW_BYTES<T>) {
                refuse(state);
                continue;
            }
            if (team.lane == 0) atomicAdd(&state.raw_blocks, 1);
            get_raw<WIDTH>(body + behind - RAW_BYTES<T>, x + plane, team);
        }
        shared.write((local + team.lane * 8) * WIDTH * sizeof(T), x);
    });
}

template <class T, u32 WIDTH>
__device__ void decode_tolerance(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, true, [&](const Message& message, State& state, const Tile& tile, u32 number, const Told& told, const u8* body, Shared shared) {
        Team team;
        u32 local = threadIdx.x / 8 * BLOCK, element = tile.element + local;
        bool there = element < message.box.elements;
        u32 widths[WIDTH], units = 0;
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            widths[plane] = there ? body[element / BLOCK * WIDTH + plane] : 0;
            if (widths[plane] == 1 || (widths[plane] > 52 && widths[plane] != 255)) {
                refuse(state);
                widths[plane] = 0;
            }
            units += widths[plane] == 255 ? u32(RAW_BYTES<T>) / 8 : widths[plane];
        }
        u64 end, place = place_of(units, job.queue, number, message.box.first_tile, end);
        bool last = tile.element + tile.cols == message.box.elements;
        if (threadIdx.x == 0 && last && message.table + 8 * end != told.body) refuse(state);
        if (!there) return;
        alignas(16) T x[8 * WIDTH];
        const u8* from = body + message.table + 8 * place;
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            u32 bits = widths[plane], bytes = bits == 255 ? RAW_BYTES<T> : 8 * bits;
            bool within = u64(from - body) + bytes <= told.body;
            if (!within) refuse(state);
            if (!within || bits == 0) {
#pragma unroll
                for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
            } else if (bits == 255) {
                get_raw<WIDTH>(from, x + plane, team);
            } else {
                Integers{told.step, bits}.decode<WIDTH>(from, x + plane, team);
            }
            from += bytes;
        }
        shared.write((local + team.lane * 8) * WIDTH * sizeof(T), x);
    });
}

#define DECODE(wire, real, T, WIDTH, ...)                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) decode_##wire##_##real(Job<T> job)         \
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
