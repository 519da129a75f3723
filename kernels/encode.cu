// Packing and encoding in one pass: boxes of an array become messages, bit for bit those of the
// CPU.
//
// CPU twins: `Codec::pack` of crates/fft-core/src/codec/{rounded,bits,tolerance}.rs. One launch
// makes all messages of a reshape. settle.cu writes headers, and messages that did not shrink.
#include "single.cuh"
#include "together.cuh"
#include "tolerance.cuh"

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
        if (there) fetch_tile<E, Cuts::ANY>(work.item.box, work.tile, src, Shared{memory[turn % 2]}, places);
        return there;
    };
    ahead.begin(job.batch, nothing);
    bool there = fetch(0);
    for (u32 turn = 0; there; turn++) {
        const u32 number = threadIdx.x < 32 ? number_of(turn + 3, job.batch.tiles, job.states, job.batch.count) : 0;
        await_tile();
        // Before the barrier behind which others take the place of these errors, and of that tile's
        // description.
        if (threadIdx.x / 32 == 2 && turn > 0) errors.keep(job.errors, ahead.work(turn - 1).tile);
        there = fetch(turn + 1);
        if (!there) {
            let_next_begin();
            __syncthreads();
        }
        const Work<Message>& work = ahead.work(turn);
        ahead.next(turn, job.batch, number, nothing);
        double error = 0;
        if (!never_shrinks(work.item)) error = encode(work.item, work.tile, Shared{memory[turn % 2]});
        errors.add(error);
        if (!there) {
            __syncthreads();
            if (threadIdx.x / 32 == 2) errors.keep(job.errors, work.tile);
        }
    }
}

// `f32` of double precision: a warp takes a span of 256 reals.
template <u32 WIDTH>
__device__ void encode_f32(const Job<double>& job)
{
    using E = Element<double, WIDTH>;
    each_tile<double, WIDTH>(job, [&](const Message& message, const Tile& tile, Shared shared) {
        const Team team;
        double error = 0;
        const Body body(message, job.messages);
        constexpr u32 SPANS = TILE<E> * WIDTH / SPAN;
#pragma unroll
        for (u32 span = threadIdx.x / 32; span < SPANS; span += THREADS / 32) {
            bool there;
            const u32 first = body.element_at(tile, span * (SPAN / WIDTH), there) * WIDTH;
            if (!there) continue;
            alignas(16) double x[8];
            const u32 local = (span * SPAN + threadIdx.x % 32 / 8 * BLOCK) / WIDTH;
            if (body.skew == 0) read_block<E>(shared, body, local, 0, x, team);
            else read_skewed<E>(shared, body, tile, local, x);
            const u32 block = first / BLOCK + threadIdx.x % 32 / 8;
            const bool writes = block * BLOCK < body.elements * WIDTH;
            const int scale = encode_span(x, body.bytes + body.table + u64(block) * (4 * BLOCK), writes, team, error);
            if (threadIdx.x % 32 == 0) reinterpret_cast<int16_t*>(body.bytes)[first / SPAN] = int16_t(scale);
        }
        return error;
    });
}

// A tile of `bits`: where a block goes is known. Each thread works out the scale of one of the
// blocks, and tells its team. Returns the thread's squared errors.
template <class P, class T>
__device__ double encode_bits_of(const Job<T>& job, const Body& body, const Tile& tile, Shared shared)
{
    constexpr u32 WIDTH = P::PLANES;
    const Together team;
    u8* const codes = body.bytes + body.table;
    const u32 bits = job.bits;
    auto element_at = [&](u32 local, bool& there) {
        return P::SIDE_BY_SIDE ? body.element_along(tile, local, there) : body.element_at(tile, local, there);
    };
    double error = 0;
    alignas(16) T x[P::PAIRS][16];
    if (P::SIDE_BY_SIDE || body.skew == 0) {
#pragma unroll
        for (u32 pair = 0; pair < P::PAIRS; pair++) P::read(shared, body, pair, x[pair]);
    } else {
#pragma unroll
        for (u32 pair = 0; pair < P::PAIRS; pair++) P::read_skewed(shared, body, tile, pair, x[pair]);
    }
    const u64 most = P::largest([&](u32 pair, T (&numbers)[16]) {
#pragma unroll
        for (u32 i = 0; i < 16; i++) numbers[i] = x[pair][i];
    });
    const u32 scale = scale_for<T>(most, job.part);
    const double inverse = inverse_of<T>(scale);
    if constexpr (sizeof(T) == 4) {
        // Codes of a tile that is a run of the message follow each other.
        const u32 first = tile.element / BLOCK * WIDTH;
        const bool run = tile.rows * tile.cols == TILE<typename P::E> && (body.log_rows == 0 || tile.cols == body.pitch);
        const bool rows = body.log_rows != 0 && Destination<P>::fits(bits);
        u8* const out = codes + (run ? 8 * u64(first * bits) : 0);
        const bool few = bits >= FEWEST_TOGETHER && bits <= MOST_TOGETHER;
        const bool together = (run || rows) && few && reinterpret_cast<uintptr_t>(out) % 16 == 0;
        const bool plain = most < Real<T>::HUGE_BITS && is_single_scale(scale);
        // Of several rows, numbers of a warp are where those of others are: before codes are put
        // there, which those of 16 bits are not, all must have read theirs.
        if (together && (bits == 16 || body.log_rows == 0 ? __all_sync(0xFFFFFFFF, plain) : __syncthreads_and(plain))) {
            const u32 mine = P::mine(), group = P::group(mine / 2, mine % 2);
            bool there = true;
            const u32 element = run ? tile.element + group * BLOCK : element_at(group * BLOCK, there);
            const u32 block = there ? element / BLOCK * WIDTH + mine % WIDTH : Destination<P>::NONE;
            if (there && team.lane < P::BLOCKS) reinterpret_cast<u16*>(body.bytes)[block] = u16(scale);
            const Destination<P> to{out, bits, run ? Destination<P>::RUN : block};
            encode_together<P>(shared, x, scale, inverse, bits, to, error);
            return error;
        }
    }
    // Bits for blocks that are put off until others are done, so that these keep their registers.
    u32 later = 0;
#pragma unroll 1
    for (u32 pair = 0; pair < P::PAIRS; pair++) {
        // Of several pairs there are not registers enough for all of them until here.
        if (P::PAIRS > 1) P::read(shared, body, tile, pair, x[0]);
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
            const u32 block = element_at(P::group(pair, k) * BLOCK, there) / BLOCK * WIDTH + k % WIDTH;
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
            store_two<false>(code, has, bits, codes, at);
        } else {
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                u8* const out = codes + 8 * u64(at[k]);
                const double sum = integers[k].template encode<false, WIDTH>(x[0] + P::NEXT * k, has[k], out, Team());
                error += usual[k] ? sum : 0;
            }
        }
    }
    for (; later != 0; later &= later - 1) {
        const u32 bit = __ffs(later) - 1, plane = bit % WIDTH, local = P::group(bit / 2, bit % 2) * BLOCK;
        bool there;
        u32 block = element_at(local, there) / BLOCK * WIDTH + plane;
        const Team team;
        Eight eight;
        for (u32 i = 0; i < 8; i++) {
            const u32 place = body.place_of<typename P::E>(tile, element_of(local, i));
            eight.x[i] = double(reinterpret_cast<const T*>(shared.memory + place)[plane]);
        }
        __syncwarp(team.mask);
        u32 scale = *reinterpret_cast<const volatile u16*>(body.bytes + 2 * u64(block));
        error += encode_edge<T>(scale, bits, eight, codes + u64(block) * (8 * bits));
    }
    return error;
}

// `bits`.
template <class T, u32 WIDTH>
__device__ void encode_bits(const Job<T>& job)
{
    each_tile<T, WIDTH>(job, [&](const Message& message, const Tile& tile, Shared shared) {
        if (sizeof(T) == 4 && message.box.log_rows == 0)
            return encode_bits_of<Pairs<T, WIDTH, true>>(job, Body(message, job.messages, false), tile, shared);
        return encode_bits_of<Pairs<T, WIDTH>>(job, Body(message, job.messages), tile, shared);
    });
}

#define ENCODE(name, T, BLOCKS, ...)                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) encode_##name(Job<T> job)          \
    {                                                                                                \
        __VA_ARGS__(job);                                                                            \
    }

#define ENCODE_ALL(real, T, WIDTH)                                                                   \
    ENCODE(bits_##real, T, 5, encode_bits<T, WIDTH>)                                                 \
    ENCODE(tolerance_##real, T, 6, encode_tolerance<T, WIDTH>)

ENCODE_ALL(f32x1, float, 1)
ENCODE_ALL(f32x2, float, 2)
ENCODE_ALL(f64x1, double, 1)
ENCODE_ALL(f64x2, double, 2)
ENCODE(f32_f64x1, double, 5, encode_f32<1>)
ENCODE(f32_f64x2, double, 5, encode_f32<2>)
