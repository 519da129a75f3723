// Packing and encoding in one pass: boxes of an array become messages, bit for bit those of the CPU.
//
// CPU twins: `Codec::pack` of crates/fft-core/src/codec/{rounded,bits,tolerance}.rs. One launch makes all messages of a
// reshape. What is left for settle.cu: headers, and messages that did not shrink.
#include "edge.cuh"
#include "formats.cuh"
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
    // The number behind the colon of a wire; of `bits`, one over its largest integer; of `tolerance`, the step and one over it.
    u32 bits;
    double part, step, inverse;
    Queue queue;
};

// Keeps the errors of a tile, which are added up always in the same order. `sums` is for four warps, and the sum is written
// by a later call, after a barrier.
struct Errors {
    double sums[2][THREADS / 32];

    __device__ void add(u32 turn, double error)
    {
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2)
            error += __shfl_xor_sync(0xFFFFFFFF, error, distance);
        if (threadIdx.x % 32 == 0) sums[turn % 2][threadIdx.x / 32] = error;
    }
    __device__ double sum(u32 turn) const
    {
        double sum = 0;
        for (double part : sums[turn % 2]) sum += part;
        return sum;
    }
};

// Calls `encode` for each tile; meanwhile the next one is fetched, and the one after that found.
template <class T, u32 WIDTH, class Encode>
__device__ void each_tile(const Job<T>& job, Encode encode)
{
    using E = Element<T, WIDTH>;
    __shared__ __align__(128) u8 memory[2][TILE<E> * sizeof(E)];
    __shared__ Places places;
    __shared__ Ahead<Message> ahead;
    __shared__ Errors errors;
    const E* src = reinterpret_cast<const E*>(job.src);
    auto nothing = [](const Work<Message>&) {};
    auto fetch = [&](u32 turn) {
        const Work<Message>& work = ahead.work(turn);
        bool there = work.number < job.batch.tiles;
        if (there) fetch_tile(work.item.box, work.tile, src, Shared{memory[turn % 2]}, places);
        return there;
    };
    ahead.begin(job.batch, nothing);
    fetch(0);
    for (u32 turn = 0; ahead.work(turn).number < job.batch.tiles; turn++) {
        const u32 number = number_of(turn + 3, job.batch.tiles, job.states, job.batch.count);
        await_tile();
        bool later = fetch(turn + 1);
        if (!later) __syncthreads();
        const Work<Message>& work = ahead.work(turn);
        if (threadIdx.x == 0 && turn > 0) job.errors[ahead.work(turn - 1).number] = errors.sum(turn - 1);
        ahead.next(turn, job.batch, number, nothing);
        double error = 0;
        if (!never_shrinks(work.item)) error = encode(work.item, job.states[work.tile.item], work.tile, Shared{memory[turn % 2]});
        errors.add(turn, error);
        if (!later) {
            __syncthreads();
            if (threadIdx.x == 0) job.errors[work.number] = errors.sum(turn);
        }
    }
}

// `f32`, `f16`, `bf16`: a warp takes a span of 256 reals.
template <class T, u32 WIDTH, class Format>
__device__ void encode_format(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    each_tile<T, WIDTH>(job, [&](const Message& message, State&, const Tile& tile, Shared shared) {
        Team team;
        double error = 0;
        const Body body(message, job.messages);
        constexpr u32 SPANS = TILE<E> * WIDTH / 256;
#pragma unroll
        for (u32 span = threadIdx.x / 32; span < SPANS; span += THREADS / 32) {
            bool there;
            u32 first = body.element_at(tile, span * (256 / WIDTH), there) * WIDTH;
            if (!there) continue;
            alignas(16) T x[8];
            read_block<E>(shared, body, (span * 256 + threadIdx.x % 32 / 8 * BLOCK) / WIDTH, x, team);
            u32 block = first / BLOCK + threadIdx.x % 32 / 8;
            bool writes = block * BLOCK < body.elements * WIDTH;
            u8* out = body.bytes + body.table + u64(block) * (8 * Format::BITS);
            int scale = encode_span<Format>(x, out, writes, team, error);
            if (threadIdx.x % 32 == 0) reinterpret_cast<int16_t*>(body.bytes)[first / 256] = int16_t(scale);
        }
        return error;
    });
}

// `mantissa`: a team takes a block of 64 reals.
template <class T, u32 WIDTH>
__device__ void encode_mantissa(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    u32 bits = job.bits;
    u32 size = 8 * (8 * sizeof(T) - (bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0));
    each_tile<T, WIDTH>(job, [&](const Message& message, State& state, const Tile& tile, Shared shared) {
        const Body body(message, job.messages);
        double error = 0;
        constexpr u32 BLOCKS = TILE<E> * WIDTH / BLOCK;
#pragma unroll
        for (u32 local = threadIdx.x / 8; local < BLOCKS; local += TEAMS) {
            bool there;
            u32 first = body.element_at(tile, local * BLOCK / WIDTH, there) * WIDTH;
            // Where there is none the tile has zeros, which are encoded for nothing.
            const Alike team(there);
            alignas(16) T x[8];
            read_block<E>(shared, body, local * BLOCK / WIDTH, x, team);
            u8* out = body.bytes + u64(first / BLOCK) * size;
            if (encode_trimmed(x, bits, out, team, error) && bits == 0) state.raw = 1;
        }
        return error;
    });
}

// `bits`: a team takes 64 elements, a block of their real and one of their imaginary parts.
template <class T, u32 WIDTH>
__device__ void encode_bits(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    each_tile<T, WIDTH>(job, [&](const Message& message, State&, const Tile& tile, Shared shared) {
        double error = 0;
        const Body body(message, job.messages);
        const u32 bits = job.bits;
        const double per_integer = job.part;
        // Bits for blocks that are put off until others are done, so that these keep their registers.
        u32 later = 0;
#pragma unroll
        for (u32 n = 0; n < TILE<E> / BLOCK / TEAMS; n++) {
            u32 local = (threadIdx.x / 8 + n * TEAMS) * BLOCK;
            bool there;
            u32 block = body.element_at(tile, local, there) / BLOCK * WIDTH;
            alignas(16) T x[8 * WIDTH];
            read_block<E>(shared, body, local, x, Together());
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                u64 most = largest<WIDTH>(x + plane, Together());
                u32 scale = most == 0 ? 0 : most < INFINITE ? scale_of(from_bits(most) * per_integer) : STRANGE;
                if (there && threadIdx.x % 8 == 0) reinterpret_cast<u16*>(body.bytes)[block + plane] = u16(scale);
                u8* out = body.bytes + body.table + u64(block + plane) * (8 * bits);
                const bool usual = most < Real<T>::HUGE_BITS;
                // Where there is no block the tile has zeros.
                double sum = error;
                Integers integers{step_of(scale), bits};
                integers.encode<WIDTH, true>(x + plane, out, Alike(there && usual), sum);
                if (usual) error = sum;
                else later |= 1 << (n * WIDTH + plane);
            }
        }
        for (; later != 0; later &= later - 1) {
            u32 bit = __ffs(later) - 1, plane = bit % WIDTH, local = (threadIdx.x / 8 + bit / WIDTH * TEAMS) * BLOCK;
            bool there;
            u32 block = body.element_at(tile, local, there) / BLOCK * WIDTH + plane;
            const Team team;
            Eight eight;
            for (u32 i = 0; i < 8; i++) eight.x[i] = double(number_at<T, WIDTH>(shared, body, local, plane, i));
            __syncwarp(team.mask);
            u32 scale = *reinterpret_cast<const volatile u16*>(body.bytes + 2 * u64(block));
            error += encode_edge<T>(scale, bits, eight, body.bytes + body.table + u64(block) * (8 * bits));
        }
        return error;
    });
}

// The bits of the integers of a block, or `RAW` if it is smaller as it is or cannot be sent otherwise.
template <class T>
__device__ u32 width_of(u64 most, double inverse)
{
    if (most >= Real<T>::HUGE_BITS) return RAW;
    double integer = from_bits(most) * inverse;
    if (integer >= double((1ull << 51) - 1)) return RAW;
    u64 rounded = __double2ull_rn(integer);
    u32 bits = rounded == 0 ? 0 : 64 - __clzll(rounded) + 1;
    return 8 * bits < RAW_BYTES<T> ? bits : RAW;
}

// Bytes of the codes of a block of such a width.
template <class T> __device__ u32 bytes_of(u32 bits) { return bits == RAW ? RAW_BYTES<T> : 8 * bits; }

// What is known of a tile before it is known where it goes.
template <class E>
struct Measured {
    static constexpr u32 GROUPS = TILE<E> / BLOCK;
    // Bits of each block, and units of 8 bytes that come before those of each group of 64 elements.
    u8 widths[GROUPS][2];
    u32 before[GROUPS];
    u64 length;
};

// Widths of a tile into the table of its message. A tile has a multiple of 32 blocks, so that of 32-bit words of the table all
// bits are of one tile: a thread of the third warp makes each.
template <u32 WIDTH, u32 GROUPS>
__device__ void put_widths(const Body& body, const Tile& tile, const u8 (&widths)[GROUPS][2])
{
    constexpr u32 BLOCKS = GROUPS * WIDTH, WORDS = BLOCKS * WIDTH_BITS / 32;
    static_assert(BLOCKS % 32 == 0 && WORDS <= 32, "words are shared by tiles");
    u32 lane = threadIdx.x % 32;
    u64 at = STEP_BYTES + u64(tile.element / BLOCK) * WIDTH * WIDTH_BITS / 8 + 4 * lane;
    if (threadIdx.x / 32 != 2 || lane >= WORDS || at >= body.table) return;
    u32 bit = 32 * lane, first = bit / WIDTH_BITS;
    u64 word = 0;
#pragma unroll
    for (u32 i = 0; i < 7; i++) {
        u32 block = first + i;
        if (block < BLOCKS) word |= u64(widths[block / WIDTH][block % WIDTH]) << (WIDTH_BITS * i);
    }
    *reinterpret_cast<u32*>(body.bytes + at) = u32(word >> bit % WIDTH_BITS);
}

// The sum of all before, in place; returns that of all to the last thread. For a warp.
template <u32 N> __device__ u32 sum_up(u32 (&x)[N])
{
    constexpr u32 EACH = (N + 31) / 32;
    u32 first = threadIdx.x % 32 * EACH, mine[EACH], sum = 0;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) sum += mine[i] = first + i < N ? x[first + i] : 0;
    u32 end = running_sum(sum);
#pragma unroll
    for (u32 i = 0, before = end - sum; i < EACH; before += mine[i], i++)
        if (first + i < N) x[first + i] = before;
    return end;
}

// `tolerance`: as `bits`, but where a block goes is known only when the lengths of all before it are. So a tile is measured, the
// one before it is encoded, and only then is asked where the first one begins.
template <class T, u32 WIDTH>
__device__ void encode_tolerance(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    constexpr u32 EACH = TILE<E> / BLOCK / TEAMS, BLOCKS = EACH * WIDTH;
    // Whether the numbers of a tile are taken into registers, so that the next one is fetched while they are encoded. In single precision
    // that takes longer, as there is more to be done per byte, and fewer instructions that come from far are better.
    constexpr bool EARLY = sizeof(T) == 8;
    __shared__ __align__(128) u8 memory[2][TILE<E> * sizeof(E)];
    __shared__ Places places;
    __shared__ Drawn<Message> drawn[3];
    __shared__ Measured<E> measured[2];
    __shared__ Errors errors;
    const E* src = reinterpret_cast<const E*>(job.src);
    const Together team;
    const bool few = Integers::few_digits(job.step);

    auto read = [&](const Body& body, u32 turn, u32 n, T (&x)[8 * WIDTH]) {
        read_block<E>(Shared{memory[turn % 2]}, body, (threadIdx.x / 8 + n * TEAMS) * BLOCK, x, team);
    };

    // What it finds is there for all after a barrier.
    auto measure = [&](u32 turn) {
        Measured<E>& found = measured[turn % 2];
        const Work<Message>& work = drawn[turn % 3].work;
        const Body body(work.item, job.messages);
        const u32 elements = work.tile.rows * work.tile.cols;
        // Of each block that a thread has numbers of, what they come to.
        auto come_to = [&](auto& found, auto larger) {
#pragma unroll
            for (u32 n = 0; n < EACH; n++) {
                alignas(16) T x[8 * WIDTH];
                read(body, turn, n, x);
#pragma unroll
                for (u32 i = 0; i < 8 * WIDTH; i++) {
                    auto& of = found[n * WIDTH + i % WIDTH];
                    of = larger(of, x[i]);
                }
            }
        };
        int most[BLOCKS] = {};
        come_to(most, [](int most, T x) { return Real<T>::larger(most, x); });
        // Each thread goes on with one of the blocks.
        const u32 mine = kept_by<BLOCKS>(team), group = threadIdx.x / 8 + mine / WIDTH * TEAMS;
        const int key = largest_kept(most, team);
        u64 word = word_of_key<T>(key);
        if (sizeof(T) == 8 && team.any(key == 0)) {
            u32 low[BLOCKS] = {};
            come_to(low, [](u32 low, T x) { return max(low, u32(Real<T>::word(x))); });
            u32 rest = largest_kept(low, team);
            if (key == 0) word = rest;
        }
        // Behind the last block the table has zeros.
        const u32 bits = group * BLOCK < elements ? width_of<T>(word, job.inverse) : 0;
        u32 units = bytes_of<T>(bits) / 8;
        if (WIDTH == 2) units += team.across(units, BLOCKS / 2);
        if (team.lane < BLOCKS) {
            found.widths[group][mine % WIDTH] = u8(bits);
            if (mine % WIDTH == 0) found.before[group] = units;
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            u32 length = sum_up(found.before);
            if (threadIdx.x == 31) {
                publish_length(job.queue, work.number, work.tile.first, length);
                found.length = length;
            }
        }
    };

    // Begins to fetch the tile that was found, or the next that can shrink. Has barriers.
    auto fetch = [&](u32 turn) {
        Drawn<Message>& next = drawn[turn % 3];
        next.describe(job.batch, turn == 0 ? nullptr : &drawn[(turn - 1) % 3].work);
        __syncthreads();
        while (next.work.number < job.batch.tiles && never_shrinks(next.work.item)) {
            __syncthreads();
            next.find(job.batch, job.queue.draw());
            next.describe(job.batch, nullptr);
            __syncthreads();
        }
        bool there = next.work.number < job.batch.tiles;
        if (there) fetch_tile(next.work.item.box, next.work.tile, src, Shared{memory[turn % 2]}, places);
        return there;
    };

    // Encodes a tile of which the codes begin there, and its numbers, where they are taken early, are these.
    auto encode = [&](u32 turn, u64 begin, T (&x)[EARLY ? EACH : 1][8 * WIDTH]) {
        const Measured<E>& found = measured[turn % 2];
        const Work<Message>& work = drawn[turn % 3].work;
        const Message& message = work.item;
        const u32 elements = work.tile.rows * work.tile.cols;
        const u64 end = begin + found.length;
        if (threadIdx.x == 0 && work.tile.element + elements == message.box.elements) {
            State& state = job.states[work.tile.item];
            state.units = end;
            state.raw = HEADER + message.table + 8 * end >= message.room;
        }
        double error = 0;
        const Body body(message, job.messages);
        put_widths<WIDTH>(body, work.tile, found.widths);
        // A message that becomes too long will be sent as it is.
        const u32 coded = body.table + 8 * end < body.room ? elements : 0;
#pragma unroll(EARLY ? EACH : 1)
        for (u32 n = 0; n < EACH; n++) {
            const u32 group = threadIdx.x / 8 + n * TEAMS;
            const bool there = group * BLOCK < coded;
            if (!EARLY) read(body, turn, n, x[0]);
            const T* numbers = x[EARLY ? n : 0];
            u8* out = body.bytes + body.table + 8 * (begin + found.before[group]);
#pragma unroll
            for (u32 plane = 0; plane < WIDTH; plane++) {
                const u32 bits = there ? found.widths[group][plane] : 0;
                const Integers integers{job.step, job.inverse, bits, few};
                // Zeros, without which registers do not suffice.
                u32 code[8] = {};
                if (integers.is_common()) {
                    integers.round_common<WIDTH>(numbers + plane, code, error);
                } else if (bits == RAW) {
                    put_raw<WIDTH>(numbers + plane, out, Team());
                } else if (bits != 0) {
                    integers.encode<WIDTH, false>(numbers + plane, out, Team(), error);
                } else if (there) {
#pragma unroll
                    for (u32 i = 0; i < 8; i++)
                        error = fma(double(numbers[plane + WIDTH * i]), double(numbers[plane + WIDTH * i]), error);
                }
                store_codes(code, integers.is_common() ? bits : 0, out, team);
                out += bytes_of<T>(bits);
            }
        }
        errors.add(turn, error);
    };
    // What it has added up, after a barrier.
    auto keep = [&](u32 turn) {
        if (threadIdx.x == 0) job.errors[drawn[turn % 3].work.number] = errors.sum(turn);
    };

    drawn[0].find(job.batch, job.queue.draw());
    bool there = fetch(0);
    for (u32 turn = 0; there || turn > 0; turn++) {
        const bool last = !there;
        if (!last) {
            await_tile();
            if (turn > 1) keep(turn - 2);
            // The next tile's number is on its way while this one is measured, and its description while it is asked where the last begins.
            const u32 ticket = job.queue.draw();
            measure(turn);
            drawn[(turn + 1) % 3].find(job.batch, ticket);
        } else {
            __syncthreads();
            if (turn > 1) keep(turn - 2);
        }
        u64 begin = 0;
        alignas(16) T x[EARLY ? EACH : 1][8 * WIDTH];
        if (turn > 0) {
            const Work<Message>& work = drawn[(turn - 1) % 3].work;
            begin = look_back(job.queue, work.number, work.tile.first, measured[(turn - 1) % 2].length);
            const Body body(work.item, job.messages);
#pragma unroll
            for (u32 n = 0; EARLY && n < EACH; n++) read(body, turn - 1, n, x[n]);
        }
        if (EARLY && !last) there = fetch(turn + 1);
        if (turn > 0) encode(turn - 1, begin, x);
        if (!EARLY && !last) there = fetch(turn + 1);
        if (last) {
            __syncthreads();
            keep(turn - 1);
            break;
        }
    }
}

#define ENCODE(wire, real, T, WIDTH, BLOCKS, ...)                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) encode_##wire##_##real(Job<T> job)         \
    {                                                                                                \
        __VA_ARGS__(job);                                                                            \
    }

#define ENCODE_ALL(real, T, WIDTH)                                                                   \
    ENCODE(f32, real, T, WIDTH, 5, encode_format<T, WIDTH, Single>)                                     \
    ENCODE(f16, real, T, WIDTH, 5, encode_format<T, WIDTH, Half>)                                       \
    ENCODE(bf16, real, T, WIDTH, 5, encode_format<T, WIDTH, Brain>)                                     \
    ENCODE(mantissa, real, T, WIDTH, 5, encode_mantissa<T, WIDTH>)                                      \
    ENCODE(bits, real, T, WIDTH, 6, encode_bits<T, WIDTH>)                                              \
    ENCODE(tolerance, real, T, WIDTH, 6, encode_tolerance<T, WIDTH>)

ENCODE_ALL(f32x1, float, 1)
ENCODE_ALL(f32x2, float, 2)
ENCODE_ALL(f64x1, double, 1)
ENCODE_ALL(f64x2, double, 2)
