// Packing and encoding in one pass: boxes of an array become messages, bit for bit those of the CPU.
//
// CPU twins: `Codec::pack` of crates/fft-core/src/codec/{rounded,bits,tolerance}.rs. One launch makes all messages of a
// reshape. What is left for settle.cu: headers, and messages that did not shrink.
#include "edge.cuh"
#include "formats.cuh"
#include "pairs.cuh"
#include "places.cuh"
#include "together.cuh"

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

// `mantissa`: a team takes two blocks of 64 reals.
template <class T, u32 WIDTH>
__device__ void encode_mantissa(const Job<T>& job)
{
    using E = Element<T, WIDTH>;
    const u32 bits = job.bits;
    const u32 each = 8 * sizeof(T) - (bits < Real<T>::MANTISSA ? Real<T>::MANTISSA - bits : 0);
    each_tile<T, WIDTH>(job, [&](const Message& message, State& state, const Tile& tile, Shared shared) {
        const Body body(message, job.messages);
        // Whether the blocks of a warp follow each other, and have parts that are no whole sectors.
        const bool whole = body.log_rows == 0 && tile.cols == TILE<E>;
        const bool gathers = sizeof(T) == 4 && each % 16 != 0 && whole && reinterpret_cast<uintptr_t>(body.bytes) % 16 == 0;
        double error = 0;
        constexpr u32 BLOCKS = TILE<E> * WIDTH / BLOCK;
#pragma unroll(sizeof(T) == 4 ? 1 : 2)
        for (u32 local = threadIdx.x / 8 * 2; local < BLOCKS; local += 2 * TEAMS) {
            typename Real<T>::Word code[2][8];
            u32 has[2], at[2];
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                const u32 element = (local + k) * BLOCK / WIDTH;
                bool there;
                at[k] = body.element_at(tile, element, there) * WIDTH / BLOCK * each;
                // Where there is none the tile has zeros, which are encoded for nothing.
                has[k] = there ? each : 0;
                alignas(16) T x[8];
                read_block<E>(shared, body, element, x, Together());
                if (trim(x, bits, code[k], error) && bits == 0) state.raw = 1;
            }
            if constexpr (sizeof(T) == 4) {
                if (gathers) {
                    // From the first block of the warp on.
                    const u32 before = threadIdx.x % 32 / 8 * 2;
                    u8* const read = shared.memory + (local - before) * BLOCK * sizeof(T);
                    store_together(code, each, body.bytes + 8 * u64(at[0] - before * each), read);
                    continue;
                }
            }
            store_two(code, has, each, body.bytes, at);
        }
        return error;
    });
}

// `bits`: where a block goes is known. Each thread works out the scale of one of the blocks, and tells its team.
template <class T, u32 WIDTH>
__device__ void encode_bits(const Job<T>& job)
{
    using P = Pairs<T, WIDTH>;
    each_tile<T, WIDTH>(job, [&](const Message& message, State&, const Tile& tile, Shared shared) {
        const Together team;
        const Body body(message, job.messages);
        u8* const codes = body.bytes + body.table;
        const u32 bits = job.bits;
        double error = 0;
        alignas(16) T x[P::PAIRS][16];
#pragma unroll
        for (u32 pair = 0; pair < P::PAIRS; pair++) P::read(shared, body, pair, x[pair]);
        const u64 most = P::largest([&](u32 pair, T (&numbers)[16]) {
#pragma unroll
            for (u32 i = 0; i < 16; i++) numbers[i] = x[pair][i];
        });
        const u32 scale = most == 0 ? 0 : most < INFINITE ? scale_of(from_bits(most) * job.part) : STRANGE;
        const double inverse = Integers(step_of(scale), bits).inverse;
        if constexpr (sizeof(T) == 4) {
            const u32 first = tile.element / BLOCK * WIDTH;
            u8* const out = codes + 8 * u64(first * bits);
            const bool run = tile.rows * tile.cols == TILE<typename P::E> && (body.log_rows == 0 || tile.cols == body.pitch);
            const bool together = run && bits >= FEWEST_TOGETHER && bits <= MOST_TOGETHER && reinterpret_cast<uintptr_t>(out) % 16 == 0;
            const bool plain = most == 0 || (most < Real<T>::HUGE_BITS && Integers::few_digits(step_of(scale)));
            // Of several rows, numbers of a warp are where those of others are: all must have read theirs.
            if (together && (body.log_rows == 0 ? __all_sync(0xFFFFFFFF, plain) : __syncthreads_and(plain))) {
                const u32 mine = P::mine();
                if (team.lane < P::BLOCKS)
                    reinterpret_cast<u16*>(body.bytes)[first + P::group(mine / 2, mine % 2) * WIDTH + mine % WIDTH] = u16(scale);
                encode_together<T, WIDTH>(shared, x, scale, inverse, bits, out, error);
                return error;
            }
        }
        // Bits for blocks that are put off until others are done, so that these keep their registers.
        u32 later = 0;
#pragma unroll 1
        for (u32 pair = 0; pair < P::PAIRS; pair++) {
            // Of several pairs there are not registers enough for all of them until here.
            if (P::PAIRS > 1) P::read(shared, body, pair, x[0]);
            u32 has[2], at[2], code[2][8];
            bool usual[2];
            double steps[2], inverses[2];
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                const u32 from = kept_in<P::BLOCKS>(2 * pair + k);
                const u32 known = __shfl_sync(0xFFFFFFFF, scale | (most < Real<T>::HUGE_BITS ? 1 << 16 : 0), from, 8);
                steps[k] = step_of(known & 0xFFFF);
                inverses[k] = __shfl_sync(0xFFFFFFFF, inverse, from, 8);
                bool there;
                const u32 block = body.element_at(tile, P::group(pair, k) * BLOCK, there) / BLOCK * WIDTH + k % WIDTH;
                if (there && team.lane == 0) reinterpret_cast<u16*>(body.bytes)[block] = u16(known);
                at[k] = block * bits;
                usual[k] = known >> 16;
                has[k] = there && usual[k] ? bits : 0;
                if (!usual[k]) later |= 1 << (2 * pair + k);
            }
            const Integers integers[2] = {{steps[0], inverses[0], bits, Integers::few_digits(steps[0])},
                                          {steps[1], inverses[1], bits, Integers::few_digits(steps[1])}};
            if (sizeof(T) == 4 || bits <= 32) {
                // Where there is no block the tile has zeros.
                round_two<T, WIDTH, true>(integers, x[0], usual, code, error);
                store_two(code, has, bits, codes, at);
            } else {
#pragma unroll
                for (u32 k = 0; k < 2; k++) {
                    const double sum = integers[k].template encode<WIDTH>(x[0] + P::NEXT * k, has[k], codes + 8 * u64(at[k]), Team());
                    error += usual[k] ? sum : 0;
                }
            }
        }
        for (; later != 0; later &= later - 1) {
            const u32 bit = __ffs(later) - 1, plane = bit % WIDTH, local = P::group(bit / 2, bit % 2) * BLOCK;
            bool there;
            u32 block = body.element_at(tile, local, there) / BLOCK * WIDTH + plane;
            const Team team;
            Eight eight;
            for (u32 i = 0; i < 8; i++) eight.x[i] = double(number_at<T, WIDTH>(shared, body, local, plane, i));
            __syncwarp(team.mask);
            u32 scale = *reinterpret_cast<const volatile u16*>(body.bytes + 2 * u64(block));
            error += encode_edge<T>(scale, bits, eight, codes + u64(block) * (8 * bits));
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

// Bits of the codes of a block of such a width.
template <class T> __device__ u32 bits_of(u32 width) { return width == RAW ? 8 * sizeof(T) : width; }

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
    using P = Pairs<T, WIDTH>;
    // Whether the numbers of a tile are taken into registers, so that the next one is fetched while they are encoded. In single precision
    // registers do not suffice for that, as two blocks are encoded at once: it is fetched when only the last two are left.
    constexpr bool EARLY = sizeof(T) == 8;
    __shared__ __align__(128) u8 memory[2][TILE<E> * sizeof(E)];
    __shared__ Places places;
    __shared__ Drawn<Message> drawn[3];
    __shared__ Measured<E> measured[2];
    __shared__ Errors errors;
    const E* src = reinterpret_cast<const E*>(job.src);
    const Together team;
    const bool few = Integers::few_digits(job.step);

    // What it finds is there for all after a barrier.
    auto measure = [&](u32 turn) {
        Measured<E>& found = measured[turn % 2];
        const Work<Message>& work = drawn[turn % 3].work;
        const Body body(work.item, job.messages);
        const u32 elements = work.tile.rows * work.tile.cols;
        const u32 mine = P::mine(), group = P::group(mine / 2, mine % 2);
        const u64 word = P::largest([&](u32 pair, T (&x)[16]) { P::read(Shared{memory[turn % 2]}, body, pair, x); });
        // Behind the last block the table has zeros.
        const u32 bits = group * BLOCK < elements ? width_of<T>(word, job.inverse) : 0;
        u32 units = bits_of<T>(bits);
        if (WIDTH == 2) units += team.across(units, P::BLOCKS / 2);
        if (team.lane < P::BLOCKS) {
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
        if (there) fetch_tile<E, EARLY ? 1 : AT_ONCE<E>>(next.work.item.box, next.work.tile, src, Shared{memory[turn % 2]}, places);
        return there;
    };

    // Encodes a tile of which the codes begin there, and its numbers, where they are taken early, are these. Calls `meanwhile` when all
    // are in registers.
    auto encode = [&](u32 turn, u64 begin, T (&x)[16], auto meanwhile) {
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
        u8* const codes = body.bytes + body.table + 8 * begin;
#pragma unroll 1
        for (u32 pair = 0; pair < P::PAIRS; pair++) {
            if (!EARLY) P::read(Shared{memory[turn % 2]}, body, pair, x);
            if (pair + 1 == P::PAIRS) meanwhile();
            u32 widths[2], bits[2], at[2];
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                const u32 group = P::group(pair, k);
                widths[k] = group * BLOCK < coded ? found.widths[group][k % WIDTH] : 0;
                bits[k] = bits_of<T>(widths[k]);
                at[k] = k % WIDTH == 1 ? at[0] + bits[0] : found.before[group];
            }
            auto integers = [&](u32 k) { return Integers{job.step, job.inverse, max(widths[k], 2), few}; };
            if (sizeof(T) == 4) {
                // Nothing is clipped, as bits are for the largest number; of zeros any will do.
                const Integers both[2] = {integers(0), integers(1)};
                u32 code[2][8];
                const bool counts[2] = {widths[0] != RAW, widths[1] != RAW};
                const bool raws = !round_two<T, WIDTH, false>(both, x, counts, code, error);
#pragma unroll
                for (u32 i = 0; i < 16 && raws; i++) {
                    const u32 k = i / 8, word = u32(Real<T>::word(x[P::NEXT * k + WIDTH * (i % 8)]));
                    code[k][i % 8] = counts[k] ? code[k][i % 8] : word;
                }
                store_two(code, bits, team.all(bits[0] | bits[1]), codes, at);
                continue;
            }
            // In double precision one after the other: registers do not suffice for two.
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                const T* numbers = x + P::NEXT * k;
                u8* out = codes + 8 * u64(at[k]);
                // Zeros, without which registers do not suffice.
                u32 code[8] = {};
                if (bits[k] <= 32) integers(k).template round<false, WIDTH, false>(numbers, code, error);
                else if (widths[k] == RAW) put_raw<WIDTH>(numbers, out, Team());
                else error += integers(k).template encode<WIDTH>(numbers, bits[k], out, Team());
                store_codes(code, bits[k] <= 32 ? bits[k] : 0, out, team);
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
        alignas(16) T x[16];
        if (turn > 0) {
            const Work<Message>& work = drawn[(turn - 1) % 3].work;
            begin = look_back(job.queue, work.number, work.tile.first, measured[(turn - 1) % 2].length);
            if (EARLY) P::read(Shared{memory[(turn - 1) % 2]}, Body(work.item, job.messages), 0, x);
        }
        auto fetch_next = [&](bool now) {
            if (now && !last) there = fetch(turn + 1);
        };
        fetch_next(EARLY || turn == 0);
        if (turn > 0) encode(turn - 1, begin, x, [&] { fetch_next(!EARLY); });
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
    ENCODE(bits, real, T, WIDTH, 5, encode_bits<T, WIDTH>)                                              \
    ENCODE(tolerance, real, T, WIDTH, 6, encode_tolerance<T, WIDTH>)

ENCODE_ALL(f32x1, float, 1)
ENCODE_ALL(f32x2, float, 2)
ENCODE_ALL(f64x1, double, 1)
ENCODE_ALL(f64x2, double, 2)
