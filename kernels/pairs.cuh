// Blocks of 64 numbers by twos, which a team of eight threads has of a tile: the largest magnitude
// of each, and their codes.
#pragma once

#include "integers.cuh"

// Of a tile a team takes `PAIRS` pairs of blocks of 64 numbers: of real and imaginary parts of the
// same elements, or of reals one after the other. Groups of 64 elements that a team has are side by
// side (`BESIDE`), of tiles of one row, or those of several teams are.
template <class T, u32 WIDTH, bool BESIDE = false>
struct Pairs {
    using E = Element<T, WIDTH>;
    static constexpr u32 PAIRS = TILE<E> * WIDTH / BLOCK / TEAMS / 2, BLOCKS = 2 * PAIRS, GROUPS = BLOCKS / WIDTH;
    // What these are, for others.
    static constexpr u32 PLANES = WIDTH;
    static constexpr bool SIDE_BY_SIDE = BESIDE;
    // From the first of a thread's numbers in a block to that in the next one.
    static constexpr u32 NEXT = WIDTH == 2 ? 1 : 8;

    // The group of a tile that a block of a pair is of.
    __device__ static u32 group(u32 pair, u32 k)
    {
        const u32 team = threadIdx.x / 8, n = WIDTH == 2 ? pair : 2 * pair + k;
        return SIDE_BY_SIDE ? team * GROUPS + n : team + n * TEAMS;
    }
    __device__ static void read(Shared shared, const Body& body, u32 pair, T (&x)[16])
    {
#pragma unroll
        for (u32 k = 0; k < 2; k += WIDTH) {
            // Of elements of 4 bytes there are most blocks; with others a register more is one too
            // many for `bits`.
            const u32 first = group(sizeof(E) == 4 ? 0 : pair, 0), further = group(pair, k) - first;
            auto& numbers = *reinterpret_cast<T(*)[8 * WIDTH]>(x + 8 * k);
            if (SIDE_BY_SIDE) read_run<E>(shared, body, first * BLOCK, further * BLOCK, numbers, Together());
            else read_block<E>(shared, body, first * BLOCK, further * BLOCK, numbers, Together());
        }
    }
    // The same of a tile with skewed rows.
    __device__ static void read_skewed(Shared shared, const Body& body, const Tile& tile, u32 pair, T (&x)[16])
    {
#pragma unroll
        for (u32 k = 0; k < 2; k += WIDTH)
            ::read_skewed<E>(shared, body, tile, group(pair, k) * BLOCK, *reinterpret_cast<T(*)[8 * WIDTH]>(x + 8 * k));
    }
    // Of any tile.
    __device__ static void read(Shared shared, const Body& body, const Tile& tile, u32 pair, T (&x)[16])
    {
        SIDE_BY_SIDE || body.skew == 0 ? read(shared, body, pair, x) : read_skewed(shared, body, tile, pair, x);
    }
    // Each thread goes on with one of its team's blocks, of which it is told the largest magnitude.
    // `read` gives the numbers of a pair.
    __device__ static u32 mine() { return kept_by<BLOCKS>(Together()); }
    template <class Read> __device__ static u64 largest(Read read)
    {
        const Together team;
        auto come_to = [&](auto& found, auto larger) {
#pragma unroll
            for (u32 pair = 0; pair < PAIRS; pair++) {
                alignas(16) T x[16];
                read(pair, x);
#pragma unroll
                for (u32 i = 0; i < 16; i++) {
                    auto& of = found[2 * pair + (WIDTH == 2 ? i % 2 : i / 8)];
                    of = larger(of, x[i]);
                }
            }
        };
        int most[BLOCKS] = {};
        come_to(most, [](int most, T x) { return Real<T>::larger(most, x); });
        const int key = largest_kept(most, team);
        const u64 word = word_of_key<T>(key);
        if (sizeof(T) == 4 || !team.any(key == 0)) return word;
        u32 low[BLOCKS] = {};
        come_to(low, [](u32 low, T x) { return max(low, u32(Real<T>::word(x))); });
        const u32 rest = largest_kept(low, team);
        return key == 0 ? rest : word;
    }
};

// Rounds two blocks of numbers to codes of up to 32 bits, and adds up squared errors of those that
// count. For whole warps. `CLIP` says that bits may be too few for the largest number. Returns
// whether single precision has what all codes of the warp stand for; of such, if nothing is
// clipped, all count.
template <class T, u32 WIDTH, bool CLIP>
__device__ bool round_two(const Integers (&integers)[2], T (&x)[16], const bool (&counts)[2], u32 (&code)[2][8], double& error)
{
    auto round = [&](auto single, auto clip) {
#pragma unroll
        for (u32 k = 0; k < 2; k++) {
            double sum = error;
            integers[k].template round<clip.value, WIDTH, single.value>(x + Pairs<T, WIDTH>::NEXT * k, code[k], sum);
            if ((single.value && !CLIP) || counts[k]) error = sum;
        }
    };
    const bool clip = CLIP && integers[0].bits <= 5;
    if (sizeof(T) == 4 && __all_sync(0xFFFFFFFF, !clip && integers[0].template is_single<T>() && integers[1].template is_single<T>())) {
        round(Yes{}, No{});
        return true;
    }
    // For the compiler other numbers: what is seldom must not begin, and take registers, before it
    // is known to be.
    if constexpr (sizeof(T) == 4)
        for (T& number : x) change(number);
    if (clip) round(No{}, Yes{});
    else round(No{}, No{});
    return false;
}
