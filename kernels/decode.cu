// Decoding and unpacking in one pass: messages become boxes of an array. One launch reads all
// messages of a reshape.
//
// CPU twins: `Codec::unpack` of crates/fft-core/src/codec/{frame,rounded,bits,tolerance}.rs.
// Whatever a message holds, nothing is read outside its slot or written outside its box. A message
// that does not decode is marked in its state.
#include "edge.cuh"
#include "single.cuh"
#include "turned.cuh"

template <class T>
struct Job {
    Batch<Message> batch;
    const u8* messages;
    T* dst;
    State* states;
    // Bytes of each message: those of its numbers, of its header and what is `fixed`, or of
    // `tolerance` anything between.
    const u64* lengths;
    u32 bits;
    // Of `tolerance`, units of 8 bytes of codes before each tile, in all messages together, and one
    // more: see measure.
    u64* begins;
    Queue queue;
    // What is measured of groups, if tiles are not all runs of their messages.
    Group* groups;
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

// Where codes have a fixed place: so many bytes for each block of 64 numbers, and scales for so
// many numbers each.
template <class T, u32 WIDTH>
struct Fixed {
    // Messages come in the receiver's order.
    static constexpr Cuts CUTS = Cuts::RUNS;
    const Job<T>& job;
    u32 block, numbers;

    // When a tile and its item are described, and when both are there.
    __device__ void also(const Work<Message>&, u32) const {}
    __device__ Part part(const Work<Message>& work, u32, u64) const
    {
        constexpr u32 NUMBERS = TILE<Element<T, WIDTH>> * WIDTH;
        const Message& message = work.item;
        const u8* body = job.messages + message.place + HEADER;
        const u64 number = u64(work.tile.element) * WIDTH, first = number / BLOCK * block;
        Part part{body + message.table + first, nullptr, 0, 0};
        part.code_bytes = u32(min(u64(NUMBERS / BLOCK * block), message.fixed - message.table - first));
        const u64 scale = 2 * (number / numbers);
        part.scales = body + scale;
        part.scale_bytes = u32(min(u64(2 * NUMBERS / numbers), message.table - scale));
        return part;
    }
    // When its codes are.
    __device__ void begin(const Work<Message>&, u32, const u8*) const {}
};

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
struct Never {
    template <class... Told> __device__ bool operator()(Told&...) const { return false; }
};

// Moves a tile to its box, out of raw numbers or of codes. `decode` makes a thread's `N` numbers of
// each piece, and says of which planes it cannot; `mend` does these when numbers have taken the
// place of the codes. `quick` makes all pieces of a warp beforehand, or says that it does not. Has
// barriers.
template <u32 WIDTH, u32 N, Cuts CUTS, class T, class Decode, class Mend, class Quick>
__device__ void put_tile(const Job<T>& job, const Work<Message>& work, bool raw, const u8* codes,
                         Buffer<Element<T, WIDTH>>& buffer, const Places& places, Numbers& numbers, Decode decode, Mend mend, Quick quick)
{
    using E = Element<T, WIDTH>;
    constexpr u32 BYTES = TILE<E> * sizeof(E), PIECES = BYTES / (THREADS * N * sizeof(T)), ELEMENTS = 8 * N / WIDTH;
    const Message& message = work.item;
    const Tile& tile = work.tile;
    const Shared shared{buffer.memory};
    const u32 shuffled = Shared::shuffled<E>(message.box);
    if (raw && shuffled != Shared::STRAIGHT) {
        uint4 units[BYTES / THREADS / 16];
#pragma unroll
        for (u32 k = 0; k < BYTES / THREADS / 16; k++)
            units[k] = reinterpret_cast<const uint4*>(buffer.memory)[threadIdx.x + k * THREADS];
        __syncthreads();
        // As in `write_blocks`.
        u32 own = Shared::place(16 * threadIdx.x);
        change(own);
#pragma unroll
        for (u32 k = 0; k < BYTES / THREADS / 16; k++) shared.unit(own, 16 * k * THREADS) = units[k];
    } else if (!raw) {
        const Body body(message, job.messages);
        State& state = job.states[tile.item];
        if (threadIdx.x == 0 && tile.element == 0 && reinterpret_cast<const u64*>(body.bytes)[-1] != message.head) refuse(state);
        alignas(16) T x[PIECES][N];
        u32 later = 0;
        auto piece = [&](u32 n) -> Piece {
            u32 local = (threadIdx.x / 8 + n * TEAMS) * ELEMENTS;
            return {body, state, codes, buffer.scales, local, tile.element + local};
        };
        const bool done = quick(tile, codes, buffer.scales, x);
#pragma unroll
        for (u32 n = 0; n < PIECES; n++)
            if (!done && piece(n).local < tile.cols) later |= decode(piece(n), x[n]) << (2 * n);
        __syncthreads();
        // Apart, so that of straight tiles one place is worked out.
        auto write = [&](u32 bits) { write_blocks<TEAMS * ELEMENTS * sizeof(E)>(shared, bits, x, Team()); };
        shuffled == Shared::STRAIGHT ? write(Shared::STRAIGHT) : write(Shared::SHUFFLED);
        for (; later != 0; later &= later - 1) {
            u32 bit = __ffs(later) - 1;
            mend(piece(bit / 2), shared, bit % 2);
        }
    }
    // Not while numbers fill the registers, nor when it is asked for at once.
    numbers.draw();
    __syncthreads();
    leave_tile<E, CUTS>(message.box, tile, shared, reinterpret_cast<E*>(job.dst), places);
}

// Reads all tiles. While one is decoded, the next one's codes are fetched, from where `source`
// says, and the one after that is found.
template <u32 WIDTH, u32 N, class T, class Source, class Decode, class Mend = Nothing, class Quick = Never>
__device__ void each_tile(const Job<T>& job, Source source, Decode decode, Mend mend = Nothing(), Quick quick = Never())
{
    using E = Element<T, WIDTH>;
    __shared__ Buffer<E> buffers[2];
    __shared__ Places places;
    __shared__ Ahead<Message> ahead;
    __shared__ __align__(8) u64 lengths[4];
    auto also = [&](const Work<Message>& work) {
        if (work.number >= job.batch.tiles) return;
        u32 slot = &work - ahead.works;
        if (threadIdx.x == 31) __pipeline_memcpy_async(lengths + slot, job.lengths + work.tile.item, 8);
        source.also(work, slot);
    };
    auto raw = [&](u32 turn) { return lengths[turn % 4] == ahead.work(turn).item.room; };
    auto fetch = [&](u32 turn) {
        const Work<Message>& work = ahead.work(turn);
        if (work.number >= job.batch.tiles) return;
        buffers[turn % 2].fetch(raw(turn) ? raw_part<WIDTH>(job, work.item, work.tile) : source.part(work, turn, lengths[turn % 4]));
    };
    ahead.begin(job.batch, also);
    fetch(0);
    Numbers numbers(job.states, job.batch.count, ahead.DEALT);
    for (u32 turn = 0; ahead.work(turn).number < job.batch.tiles; turn++) {
        const u32 number = numbers.next();
        await_tile();
        fetch(turn + 1);
        ahead.next(turn, job.batch, number, also);
        const Work<Message>& work = ahead.work(turn);
        // Where the tile belongs is worked out before it is known what it has.
        if (threadIdx.x / 32 == 3)
            note_tile<E, Source::CUTS>(work.item.box, work.tile, reinterpret_cast<E*>(job.dst), places, Crew::warp());
        Buffer<E>& buffer = buffers[turn % 2];
        if (!raw(turn)) source.begin(work, turn, reinterpret_cast<const u8*>(buffer.scales));
        put_tile<WIDTH, N, Source::CUTS>(job, work, raw(turn), buffer.codes(), buffer, places, numbers, decode, mend, quick);
    }
}

template <u32 WIDTH>
__device__ void decode_f32(const Job<double>& job)
{
    each_tile<WIDTH, 8>(job, Fixed<double, WIDTH>{job, 4 * BLOCK, SPAN}, [&](const Piece& piece, double (&x)[8]) {
        const u32 first = piece.local * WIDTH;
        int scale = int16_t(piece.scales[first / SPAN]);
        if (scale < LEAST_SCALE || scale > MOST_SCALE) {
            refuse(piece.state);
            scale = 0;
        }
        decode_span(piece.codes + first / BLOCK * (4 * BLOCK), scale, x, Team());
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
                const u8* from = piece.codes + (block + plane) * (8 * bits);
                Integers{scale == 0 ? 0 : step, 0, bits, Integers::few_digits(step)}.decode<WIDTH>(from, x + plane, Team());
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
        for (u32 i = 0; i < 8; i++) {
            const u32 byte = (element_of(piece.local, i) * WIDTH + plane) * sizeof(T);
            *reinterpret_cast<T*>(
                shared.memory + Shared::place(byte, piece.body.shuffled_of<Element<T, WIDTH>>())) = T(eight.x[i]);
        }
    };
    // In single precision, where that has what all codes of a warp stand for: nearly always.
    auto quick = [&](const Tile& tile, const u8* codes, const u16* scales, auto& x) {
        if constexpr (sizeof(T) == 8) {
            return false;
        } else {
            constexpr u32 PIECES = sizeof(x) / sizeof(x[0]);
            auto block = [](u32 n, u32 plane) { return (threadIdx.x / 8 + n * TEAMS) * WIDTH + plane; };
            float steps[PIECES][WIDTH];
            bool single = bits <= SINGLE_BITS;
#pragma unroll
            for (u32 n = 0; n < PIECES; n++)
#pragma unroll
                for (u32 plane = 0; plane < WIDTH; plane++) {
                    const u32 scale = scales[block(n, plane)];
                    steps[n][plane] = single_step_of(scale);
                    // Behind the last block there may be anything.
                    single &= is_single_scale(scale) || block(n, 0) * (BLOCK / WIDTH) >= tile.cols;
                }
            if (!__all_sync(0xFFFFFFFF, single)) return false;
#pragma unroll
            for (u32 n = 0; n < PIECES; n++)
#pragma unroll
                for (u32 plane = 0; plane < WIDTH; plane++) {
                    const u8* from = codes + block(n, plane) * (8 * bits);
                    Integers::decode_single<WIDTH>(steps[n][plane], bits, from, x[n] + plane, Team());
                }
            return true;
        }
    };
    each_tile<WIDTH, 8 * WIDTH>(job, Fixed<T, WIDTH>{job, 8 * bits, BLOCK}, decode, mend, quick);
}

// The blocks of a tile, by each warp for itself.
template <class E>
struct Measured {
    static constexpr u32 GROUPS = TILE<E> / BLOCK;
    u64 step;
    u16 before[2 * GROUPS];
    u8 bits[2 * GROUPS];
};

// Where the codes of a tile are when all have been measured.
template <class T, u32 WIDTH>
struct Found {
    using E = Element<T, WIDTH>;
    static constexpr u32 BLOCKS = Widths<E, WIDTH>::BLOCKS;
    static constexpr Cuts CUTS = Cuts::FOLDED;
    const Job<T>& job;
    // Where its codes begin and end, and the codes of its message, of the turns to come; and the
    // step.
    u64 (*places)[3];
    u64* steps;
    Measured<E>* measured;

    __device__ void also(const Work<Message>& work, u32 slot) const
    {
        const u32 from[3] = {work.tile.number, work.tile.number + 1, work.tile.first};
#pragma unroll
        for (u32 i = 0; i < 3; i++)
            if (threadIdx.x == i) __pipeline_memcpy_async(places[slot] + i, job.begins + from[i], 8);
    }
    __device__ Part part(const Work<Message>& work, u32 turn, u64 length) const
    {
        const Message& message = work.item;
        const u64* place = places[turn % 4];
        const u8* body = job.messages + message.place + HEADER;
        const Widths<E, WIDTH> widths(message, work.tile.element);
        const u64 begin = message.table + 8 * (place[0] - place[2]), end = message.table + 8 * (place[1] - place[2]);
        const u64 behind = length - HEADER;
        if (threadIdx.x == 0) {
            __pipeline_memcpy_async(steps + turn % 2, body, 8);
            bool last = work.tile.element + work.tile.cols == message.box.elements;
            if (end > behind || (last && end != behind)) refuse(job.states[work.tile.item]);
        }
        // What is not in a message is not read, nor what is before it.
        const bool inside = end <= behind;
        return {inside ? body + begin : body, body + widths.at, inside ? u32(end - begin) : 0, widths.bytes};
    }
    __device__ void begin(const Work<Message>& work, u32 turn, const u8* widths) const
    {
        Measured<E>& mine = measured[threadIdx.x / 32];
        // A step is a normal number above 0.
        if (threadIdx.x == 0 && (steps[turn % 2] >> 52 == 0 || steps[turn % 2] >= INFINITE)) refuse(job.states[work.tile.item]);
        if (threadIdx.x % 32 == 0) mine.step = steps[turn % 2];
        u32 sum = 0;
#pragma unroll
        for (u32 first = 0; first < BLOCKS; first += 32) {
            u32 block = first + threadIdx.x % 32, bit = WIDTH_BITS * block;
            u32 pair = widths[bit / 8] | u32(widths[bit / 8 + 1]) << 8;
            bool there = block < (work.tile.cols + BLOCK - 1) / BLOCK * WIDTH;
            u32 bits = there ? pair >> bit % 8 & RAW : 0, units = units_of<T>(bits), end = sum + running_sum(units);
            mine.bits[block] = u8(units == 0 ? 0 : bits);
            mine.before[block] = u16(end - units);
            sum = __shfl_sync(0xFFFFFFFF, end, 31);
        }
        __syncwarp();
    }
};

template <class T, u32 WIDTH>
__device__ void decode_tolerance(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    __shared__ __align__(8) u64 places[4][3];
    __shared__ __align__(8) u64 steps[2];
    __shared__ Measured<E> measured[THREADS / 32];
    const Measured<E>& mine = measured[threadIdx.x / 32];
    each_tile<WIDTH, 8 * WIDTH>(job, Found<T, WIDTH>{job, places, steps, measured}, [&](const Piece& piece, T (&x)[8 * WIDTH]) {
#pragma unroll
        for (u32 plane = 0; plane < WIDTH; plane++) {
            const u32 block = piece.local / BLOCK * WIDTH + plane;
            decode_block<WIDTH>(mine.step, mine.bits[block], piece.codes + 8 * mine.before[block], x + plane);
        }
        return 0;
    });
}

#define DECODE(name, T, BOUNDS, ...)                                                                 \
    extern "C" __global__ void __launch_bounds__ BOUNDS name(Job<T> job)                             \
    {                                                                                                \
        __VA_ARGS__(job);                                                                            \
    }

#define DECODE_ALL(real, T, WIDTH)                                                                   \
    DECODE(measure_##real, T, (THREADS), measure<T, WIDTH>)                                          \
    DECODE(decode_turned_##real, T, (THREADS, 4), decode_turned<T, WIDTH>)                           \
    DECODE(decode_bits_##real, T, (THREADS, 4), decode_bits<T, WIDTH>)                               \
    DECODE(decode_tolerance_##real, T, (THREADS, 5), decode_tolerance<T, WIDTH>)

DECODE_ALL(f32x1, float, 1)
DECODE_ALL(f32x2, float, 2)
DECODE_ALL(f64x1, double, 1)
DECODE_ALL(f64x2, double, 2)
DECODE(decode_f32_f64x1, double, (THREADS, 4), decode_f32<1>)
DECODE(decode_f32_f64x2, double, (THREADS, 4), decode_f32<2>)
