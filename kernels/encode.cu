// Packing and encoding in one pass: boxes of an array become messages, bit for bit those of the CPU.
//
// CPU twins: `Codec::pack` of crates/fft-core/src/codec/{rounded,bits,tolerance}.rs. One launch makes all messages of a
// reshape. What is left for settle.cu: headers, blocks that `bits` sends as they are, messages that did not shrink.
#include "formats.cuh"
#include "integers.cuh"
#include "places.cuh"

// Everything that a launch is told.
template <class T>
struct Job {
    Batch<Message> batch;
    const T* src;
    u8* messages;
    State* states;
    // One for each tile: the sum of its squared errors.
    double* errors;
    // A message is told apart from others by these.
    u32 bits;
    double part, step;
    Queue queue;
};

// The place of an element of a tile, in the message; `there` says whether the message has it.
__device__ inline u32 element_at(const Box& box, const Tile& tile, u32 local, bool& there)
{
    u32 row = local >> (LOG_TILE - box.log_rows), col = local & ((TILE >> box.log_rows) - 1);
    there = row < tile.rows && col < tile.cols;
    return tile.element + row * box.pitch + col;
}

// Calls `work` for each tile with what it needs, and keeps the errors that it returns.
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
        if (never_shrinks(message)) continue;
        Tile tile = tile_at(message.box, number);
        load_tile(message.box, tile, reinterpret_cast<const Element*>(job.src), shared);
        double error = work(message, job.states[item], tile, number, shared);
        error = sum_of_block(error);
        if (threadIdx.x == 0) job.errors[number] = error;
    }
}

// `f32`, `f16`, `bf16`: a warp takes a span of 256 reals.
template <class T, u32 WIDTH, class Format>
__device__ void encode_format(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, false, [&](const Message& message, State&, const Tile& tile, u32, Shared shared) {
        Team team;
        double error = 0;
        u8* body = job.messages + message.place + HEADER;
#pragma unroll
        for (u32 n = 0; n < WIDTH; n++) {
            u32 span = threadIdx.x / 32 + n * (THREADS / 32);
            bool there;
            u32 first = element_at(message.box, tile, span * (256 / WIDTH), there) * WIDTH;
            if (!there) continue;
            alignas(16) T x[8];
            shared.read((span * 256 + threadIdx.x % 32 * 8) * sizeof(T), x);
            u32 block = first / BLOCK + threadIdx.x % 32 / 8;
            bool writes = block * BLOCK < message.box.elements * WIDTH;
            u8* out = body + message.table + u64(block) * (8 * Format::BITS);
            int scale = encode_span<Format>(x, out, writes, team, error);
            if (threadIdx.x % 32 == 0) reinterpret_cast<int16_t*>(body)[first / 256] = int16_t(scale);
        }
        return error;
    });
}

// `mantissa`: a team takes a block of 64 reals.
template <class T, u32 WIDTH>
__device__ void encode_mantissa(const Job<T>& job)
{
    u32 bits = job.bits;
    u32 size = 8 * (8 * sizeof(T) - (bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0));
    each_tile<T, WIDTH>(job, false, [&](const Message& message, State& state, const Tile& tile, u32, Shared shared) {
        Team team;
        double error = 0;
#pragma unroll
        for (u32 n = 0; n < WIDTH; n++) {
            u32 local = threadIdx.x / 8 + n * BLOCKS_AT_ONCE;
            bool there;
            u32 first = element_at(message.box, tile, local * (BLOCK / WIDTH), there) * WIDTH;
            if (!there) continue;
            alignas(16) T x[8];
            shared.read((local * BLOCK + team.lane * 8) * sizeof(T), x);
            u8* out = job.messages + message.place + HEADER + u64(first / BLOCK) * size;
            if (encode_trimmed(x, bits, out, true, team, error) && bits == 0) state.raw = 1;
        }
        return error;
    });
}

// `bits`: a team takes 64 elements, a block of their real and one of their imaginary parts.
template <class T, u32 WIDTH>
__device__ void encode_bits(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, false, [&](const Message& message, State& state, const Tile& tile, u32, Shared shared) {
        Team team;
        double error = 0;
        u32 local = threadIdx.x / 8 * BLOCK;
        bool there;
        u32 block = element_at(message.box, tile, local, there) / BLOCK * WIDTH;
        if (!there) return error;
        alignas(16) T x[8 * WIDTH];
        shared.read((local + team.lane * 8) * WIDTH * sizeof(T), x);
        u8* body = job.messages + message.place + HEADER;
        u16 scales[WIDTH];
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            u64 most = largest<WIDTH>(x + plane, team);
            double step = from_bits(most) * job.part;
            step = step > from_bits(1ull << 52) ? step : from_bits(1ull << 52);
            // Rounded upwards to 11 bits of exponent and 5 of mantissa.
            u16 scale = u16((bits_of(step) + (1ull << 47) - 1) >> 47);
            scales[plane] = most == 0 ? 0 : most < Real<T>::HUGE_BITS ? scale : 0xFFFF;
        }
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            u8* out = body + message.table + u64(block + plane) * (8 * job.bits);
            if (scales[plane] == 0xFFFF) {
                if (team.lane == 0) atomicAdd(&state.raw_blocks, 1);
                continue;
            }
            Integers integers{from_bits(u64(scales[plane]) << 47), job.bits};
            integers.encode<WIDTH>(x + plane, out, team, error);
        }
        if (team.lane < WIDTH)
            reinterpret_cast<u16*>(body)[block + team.lane] = team.lane == 0 ? scales[0] : scales[WIDTH - 1];
        return error;
    });
}

// The bits of the integers of a block, or 255 if it is smaller as it is or cannot be sent otherwise.
template <class T>
__device__ u32 width_of(u64 most, double inverse)
{
    if (most >= Real<T>::HUGE_BITS) return 255;
    double integer = from_bits(most) * inverse;
    if (integer >= double((1ull << 51) - 1)) return 255;
    u64 rounded = __double2ull_rn(integer);
    u32 bits = rounded == 0 ? 0 : 64 - __clzll(rounded) + 1;
    return 8 * bits < RAW_BYTES<T> ? bits : 255;
}

// `tolerance`: as `bits`, but where a block goes is known only when the lengths of all before it are.
template <class T, u32 WIDTH>
__device__ void encode_tolerance(const Job<T>& job)
{
    double inverse = 1 / job.step;
    each_tile<T, WIDTH>(job, true, [&](const Message& message, State& state, const Tile& tile, u32 number, Shared shared) {
        Team team;
        double error = 0;
        u32 local = threadIdx.x / 8 * BLOCK;
        bool there;
        u32 block = element_at(message.box, tile, local, there) / BLOCK * WIDTH;
        alignas(16) T x[8 * WIDTH];
        shared.read((local + team.lane * 8) * WIDTH * sizeof(T), x);
        u32 widths[WIDTH], units = 0;
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            widths[plane] = width_of<T>(largest<WIDTH>(x + plane, team), inverse);
            units += widths[plane] == 255 ? u32(RAW_BYTES<T>) / 8 : widths[plane];
        }
        u64 end, place = place_of(units, job.queue, number, message.box.first_tile, end);
        bool last = tile.element + tile.cols == message.box.elements;
        if (threadIdx.x == 0 && last) {
            state.units = end;
            state.raw = message.table + 8 * end >= message.room;
        }
        if (!there) return error;
        u8* body = job.messages + message.place + HEADER;
        u8* out = body + message.table + 8 * place;
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            u32 bits = widths[plane], bytes = bits == 255 ? RAW_BYTES<T> : 8 * bits;
            // A message that becomes too long will be sent as it is.
            if (u64(out - body) + bytes >= message.room) break;
            if (bits == 255) {
                put_raw<WIDTH>(x + plane, out, team);
            } else if (bits == 0) {
#pragma unroll
                for (u32 i = 0; i < 8; i++)
                    error = fma(double(x[plane + WIDTH * i]), double(x[plane + WIDTH * i]), error);
            } else {
                Integers{job.step, bits}.encode<WIDTH>(x + plane, out, team, error);
            }
            if (team.lane == 0) body[block + plane] = u8(bits);
            out += bytes;
        }
        return error;
    });
}

#define ENCODE(wire, real, T, WIDTH, ...)                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) encode_##wire##_##real(Job<T> job)         \
    {                                                                                                \
        __VA_ARGS__(job);                                                                            \
    }

#define ENCODE_ALL(real, T, WIDTH)                                                                   \
    ENCODE(f32, real, T, WIDTH, encode_format<T, WIDTH, Single>)                                     \
    ENCODE(f16, real, T, WIDTH, encode_format<T, WIDTH, Half>)                                       \
    ENCODE(bf16, real, T, WIDTH, encode_format<T, WIDTH, Brain>)                                     \
    ENCODE(mantissa, real, T, WIDTH, encode_mantissa<T, WIDTH>)                                      \
    ENCODE(bits, real, T, WIDTH, encode_bits<T, WIDTH>)                                              \
    ENCODE(tolerance, real, T, WIDTH, encode_tolerance<T, WIDTH>)

ENCODE_ALL(f32x1, float, 1)
ENCODE_ALL(f32x2, float, 2)
ENCODE_ALL(f64x1, double, 1)
ENCODE_ALL(f64x2, double, 2)
