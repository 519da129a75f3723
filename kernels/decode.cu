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

__device__ inline void refuse(State& state) { atomicOr(&state.bad, 1); }

// What is common to all tiles of a message: so many bytes for each block of 64 numbers, and scales for so many numbers each.
struct Rate {
    u32 block, numbers;
};

// What of a message must be read for a tile.
struct Part {
    const u8 *codes, *scales;
    u32 code_bytes, scale_bytes;
};

// Of a message that is the numbers as they are.
template <u32 WIDTH, class T>
__device__ Part raw_part(const Job<T>& job, const Message& message, const Tile& tile)
{
    constexpr u32 ELEMENT = WIDTH * sizeof(T);
    return {job.messages + message.place + u64(tile.element) * ELEMENT, nullptr, tile.cols * ELEMENT, 0};
}

// Where codes have a fixed place.
template <u32 WIDTH, class T>
__device__ Part fixed_part(const Job<T>& job, const Message& message, const Tile& tile, Rate rate)
{
    constexpr u32 NUMBERS = TILE<Element<T, WIDTH>> * WIDTH;
    const u8* body = job.messages + message.place + HEADER;
    const u64 number = u64(tile.element) * WIDTH, first = number / BLOCK * rate.block;
    Part part{body + message.table + first, nullptr, 0, 0};
    part.code_bytes = u32(min(u64(NUMBERS / BLOCK * rate.block), message.fixed - message.table - first));
    if (rate.numbers == 0) return part;
    const u64 scale = 2 * (number / rate.numbers);
    part.scales = body + scale;
    part.scale_bytes = u32(min(u64(2 * NUMBERS / rate.numbers), message.table - scale));
    return part;
}

// The codes of a tile, and then its numbers in their place.
template <class E>
struct Buffer {
    // Codes begin at a multiple of 8 bytes, here as in the message.
    __align__(128) u8 memory[TILE<E> * sizeof(E) + 16];
    __align__(8) u16 scales[TILE<E> * 2 / BLOCK];
    u32 shift;

    // Begins to fetch.
    __device__ void fetch(const Part& part)
    {
        const u32 shift = reinterpret_cast<uintptr_t>(part.codes) % 16, end = shift + part.code_bytes;
        const u8* from = part.codes - shift;
        if (threadIdx.x == 0) this->shift = shift;
#pragma unroll 1
        for (u32 at = 16 * threadIdx.x; at < end; at += 16 * THREADS) {
            if (end - at >= 16) __pipeline_memcpy_async(memory + at, from + at, 16);
            else
                for (u32 i = at; i < end; i += 4) __pipeline_memcpy_async(memory + i, from + i, 4);
        }
        u32 at = 8 * threadIdx.x;
        if (at < part.scale_bytes) __pipeline_memcpy_async(reinterpret_cast<u8*>(scales) + at, part.scales + at, 8);
    }
    __device__ const u8* codes() const { return memory + shift; }
};

// What a decoder is told of a block of 64 numbers, or of two that make complex ones.
struct Piece {
    const Body& body;
    State& state;
    // The codes and scales of its tile.
    const u8* codes;
    const u16* scales;
    // Its first element, in the tile and in the message.
    u32 local, element;
};

struct Nothing {
    __device__ void operator()(const Piece&, Shared, u32) const {}
};

// Takes a tile to where it belongs, out of its numbers as they are, or else of codes: `decode` makes a thread's `N` numbers of each
// piece, and says of which planes it cannot. When the numbers have taken the place of the codes, `mend` does these. Has barriers.
template <u32 WIDTH, u32 N, class T, class Decode, class Mend>
__device__ void put_tile(const Job<T>& job, const Work<Message>& work, bool raw, const u8* codes,
                         Buffer<Element<T, WIDTH>>& buffer, Places& places, Decode decode, Mend mend)
{
    using E = Element<T, WIDTH>;
    constexpr u32 BYTES = TILE<E> * sizeof(E), PIECES = BYTES / (THREADS * N * sizeof(T)), ELEMENTS = 8 * N / WIDTH;
    const Message& message = work.item;
    const Tile& tile = work.tile;
    const Shared shared{buffer.memory};
    if (raw) {
        uint4 units[BYTES / THREADS / 16];
#pragma unroll
        for (u32 k = 0; k < BYTES / THREADS / 16; k++)
            units[k] = reinterpret_cast<const uint4*>(buffer.memory)[threadIdx.x + k * THREADS];
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < BYTES / THREADS / 16; k++) shared.at<uint4>(threadIdx.x + k * THREADS) = units[k];
    } else {
        const Body body(message, job.messages);
        State& state = job.states[tile.item];
        if (threadIdx.x == 0 && tile.element == 0 && reinterpret_cast<const u64*>(body.bytes)[-1] != message.head) refuse(state);
        alignas(16) T x[PIECES][N];
        u32 later = 0;
        auto piece = [&](u32 n) -> Piece {
            u32 local = (threadIdx.x / 8 + n * TEAMS) * ELEMENTS;
            return {body, state, codes, buffer.scales, local, tile.element + local};
        };
#pragma unroll
        for (u32 n = 0; n < PIECES; n++)
            if (piece(n).local < tile.cols) later |= decode(piece(n), x[n]) << (2 * n);
        __syncthreads();
#pragma unroll
        for (u32 n = 0; n < PIECES; n++) write_block<E>(shared, piece(n).local, x[n], Team());
        for (; later != 0; later &= later - 1) {
            u32 bit = __ffs(later) - 1;
            mend(piece(bit / 2), shared, bit % 2);
        }
    }
    store_tile(message.box, tile, shared, reinterpret_cast<E*>(job.dst), places);
}

// Reads all tiles: while one is decoded the next one's codes are fetched, and the one after that is found.
template <u32 WIDTH, u32 N, class T, class Decode, class Mend = Nothing>
__device__ void each_tile(const Job<T>& job, Rate rate, Decode decode, Mend mend = Nothing())
{
    __shared__ Buffer<Element<T, WIDTH>> buffers[2];
    __shared__ Places places;
    __shared__ Ahead<Message> ahead;
    __shared__ __align__(8) u64 lengths[4];
    auto also = [&](const Work<Message>& work) {
        if (threadIdx.x == 31 && work.number < job.batch.tiles)
            __pipeline_memcpy_async(lengths + (&work - ahead.works), job.lengths + work.tile.item, 8);
    };
    auto raw = [&](u32 turn) { return lengths[turn % 4] == ahead.work(turn).item.room; };
    auto fetch = [&](u32 turn) {
        const Work<Message>& work = ahead.work(turn);
        if (work.number >= job.batch.tiles) return;
        buffers[turn % 2].fetch(raw(turn) ? raw_part<WIDTH>(job, work.item, work.tile)
                                          : fixed_part<WIDTH>(job, work.item, work.tile, rate));
    };
    ahead.begin(job.batch, also);
    fetch(0);
    for (u32 turn = 0; ahead.work(turn).number < job.batch.tiles; turn++) {
        await_tile();
        fetch(turn + 1);
        ahead.next(turn, job.batch, also);
        Buffer<Element<T, WIDTH>>& buffer = buffers[turn % 2];
        put_tile<WIDTH, N>(job, ahead.work(turn), raw(turn), buffer.codes(), buffer, places, decode, mend);
    }
}

template <class T, u32 WIDTH, class Format>
__device__ void decode_format(const Job<T>& job)
{
    each_tile<WIDTH, 8>(job, Rate{8 * Format::BITS, 256}, [&](const Piece& piece, T (&x)[8]) {
        u32 first = piece.local * WIDTH;
        int scale = int16_t(piece.scales[first / 256]);
        if (scale < LEAST_SCALE || scale > MOST_SCALE) {
            refuse(piece.state);
            scale = 0;
        }
        decode_span<Format>(piece.codes + first / BLOCK * (8 * Format::BITS), scale, x, Team());
        return 0;
    });
}

template <class T, u32 WIDTH>
__device__ void decode_mantissa(const Job<T>& job)
{
    const u32 bits = job.bits;
    const u32 size = 8 * (8 * sizeof(T) - (bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0));
    each_tile<WIDTH, 8>(job, Rate{size, 0}, [&](const Piece& piece, T (&x)[8]) {
        decode_trimmed(piece.codes + piece.local * WIDTH / BLOCK * size, bits, x, Team());
        return 0;
    });
}

template <class T, u32 WIDTH>
__device__ void decode_bits(const Job<T>& job)
{
    const u32 bits = job.bits;
    auto decode = [&](const Piece& piece, T (&x)[8 * WIDTH]) {
        u32 block = piece.local / BLOCK * WIDTH, later = 0;
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            u32 scale = piece.scales[block + plane];
            double step = step_of(scale);
            if (Edge<T>::is_far(step, bits)) {
                // Codes of a block of zeros mean nothing.
                Integers{scale == 0 ? 0 : step, 0, bits}.decode<WIDTH>(piece.codes + (block + plane) * (8 * bits), x + plane, Team());
            } else {
                later |= 1 << plane;
            }
        }
        return later;
    };
    // Its codes are gone: they are read again where they are.
    auto mend = [&](const Piece& piece, Shared shared, u32 plane) {
        u32 block = piece.element / BLOCK * WIDTH + plane, scale = reinterpret_cast<const u16*>(piece.body.bytes)[block];
        const u8* from = piece.body.bytes + piece.body.table + u64(block) * (8 * bits);
        Eight eight;
        if (!decode_edge<T>(scale, bits, from, eight)) return refuse(piece.state);
        for (u32 i = 0; i < 8; i++) number_at<T, WIDTH>(shared, piece.body, piece.local, plane, i) = T(eight.x[i]);
    };
    each_tile<WIDTH, 8 * WIDTH>(job, Rate{8 * bits, BLOCK}, decode, mend);
}

// The width of a block, out of the table. The last may be in one byte, with nothing behind it.
__device__ inline u32 width_at(const u8* widths, u32 block)
{
    u64 bit = u64(block) * WIDTH_BITS;
    u32 shift = u32(bit) % 8, low = widths[bit / 8], high = shift > 8 - WIDTH_BITS ? widths[bit / 8 + 1] : 0;
    return (low | high << 8) >> shift & RAW;
}

// The blocks of a tile whose places depend on those before.
template <class E>
struct Measured {
    static constexpr u32 GROUPS = TILE<E> / BLOCK;
    u8 widths[GROUPS][2];
    u32 before[GROUPS + 1];
    u64 length, step;
};

// `tolerance`: a tile is measured before the one in front of it is decoded, and only then is asked where that begins.
template <class T, u32 WIDTH>
__device__ void decode_tolerance(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    constexpr u32 GROUPS = Measured<E>::GROUPS;
    __shared__ Buffer<E> buffer;
    __shared__ Places places;
    __shared__ Drawn<Message> drawn[2];
    __shared__ Measured<E> measured[2];

    // Draws the next tile, and says how long it is. Has barriers.
    auto measure = [&](u32 turn) {
        Measured<E>& found = measured[turn % 2];
        const Work<Message>& work = drawn[turn % 2].work;
        drawn[turn % 2].draw(job.batch, job.queue, turn == 0 ? nullptr : &drawn[(turn + 1) % 2].work);
        if (work.number >= job.batch.tiles) return false;
        if (threadIdx.x < 32) {
            const u8* body = job.messages + work.item.place + HEADER;
            const u64 length = job.lengths[work.tile.item];
            u32 group = threadIdx.x, units = 0, block = work.tile.element / BLOCK * WIDTH;
            // Of a raw message these would be numbers.
            bool coded = length != work.item.room;
            bool there = coded && group < GROUPS && group * BLOCK < work.tile.cols;
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                u32 bits = there ? width_at(body + STEP_BYTES, block + group * WIDTH + plane) : 0;
                if (bits == 1 || (bits != RAW && bits > WIDEST<T>)) {
                    refuse(job.states[work.tile.item]);
                    bits = 0;
                }
                if (group < GROUPS) found.widths[group][plane] = u8(bits);
                units += bits == RAW ? u32(RAW_BYTES<T>) / 8 : bits;
            }
            u32 sum = running_sum(units);
            if (group < GROUPS) found.before[group] = sum - units;
            if (group == 31) {
                found.before[GROUPS] = sum;
                publish_length(job.queue, work.number, work.tile.first, sum);
                found.length = length;
                found.step = coded ? *reinterpret_cast<const u64*>(body) : 0;
            }
        }
        __syncthreads();
        return true;
    };

    auto decode = [&](u32 turn) {
        const Measured<E>& found = measured[turn % 2];
        const Work<Message>& work = drawn[turn % 2].work;
        const u64 length = found.before[GROUPS], behind = found.length - HEADER;
        const u64 begin = look_back(job.queue, work.number, work.tile.first, length);
        const u64 first = work.item.table + 8 * begin;
        const bool raw = found.length == work.item.room;
        if (raw) {
            buffer.fetch(raw_part<WIDTH>(job, work.item, work.tile));
            await_tile();
        } else if (threadIdx.x == 0) {
            bool last = work.tile.element + work.tile.cols == work.item.box.elements;
            // A step is a normal number above 0.
            bool step = found.step >> 52 != 0 && found.step < INFINITE;
            if (!step || (last && first + 8 * length != behind)) refuse(job.states[work.tile.item]);
        }
        auto numbers = [&](const Piece& piece, T (&x)[8 * WIDTH]) {
            u32 group = piece.local / BLOCK;
            u64 at = first + 8 * found.before[group];
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                u32 bits = found.widths[group][plane], bytes = bits == RAW ? RAW_BYTES<T> : 8 * bits;
                bool within = at + bytes <= behind;
                if (!within) refuse(piece.state);
                if (!within || bits == 0) {
#pragma unroll
                    for (u32 i = 0; i < 8; i++) x[plane + WIDTH * i] = 0;
                } else if (bits == RAW) {
                    get_raw<WIDTH>(piece.codes + at, x + plane, Team());
                } else {
                    Integers{from_bits(found.step), 0, bits}.decode<WIDTH>(piece.codes + at, x + plane, Team());
                }
                at += bytes;
            }
            return 0;
        };
        const u8* body = job.messages + work.item.place + HEADER;
        put_tile<WIDTH, 8 * WIDTH>(job, work, raw, body, buffer, places, numbers, Nothing());
    };

    bool there = measure(0);
    for (u32 turn = 0; there; turn++) {
        there = measure(turn + 1);
        decode(turn);
    }
}

#define DECODE(wire, real, T, WIDTH, BLOCKS, ...)                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) decode_##wire##_##real(Job<T> job)         \
    {                                                                                                \
        __VA_ARGS__(job);                                                                            \
    }

#define DECODE_ALL(real, T, WIDTH)                                                                   \
    DECODE(f32, real, T, WIDTH, 6, decode_format<T, WIDTH, Single>)                                     \
    DECODE(f16, real, T, WIDTH, 6, decode_format<T, WIDTH, Half>)                                       \
    DECODE(bf16, real, T, WIDTH, 6, decode_format<T, WIDTH, Brain>)                                     \
    DECODE(mantissa, real, T, WIDTH, 6, decode_mantissa<T, WIDTH>)                                      \
    DECODE(bits, real, T, WIDTH, 6, decode_bits<T, WIDTH>)                                              \
    DECODE(tolerance, real, T, WIDTH, 7, decode_tolerance<T, WIDTH>)

DECODE_ALL(f32x1, float, 1)
DECODE_ALL(f32x2, float, 2)
DECODE_ALL(f64x1, double, 1)
DECODE_ALL(f64x2, double, 2)
