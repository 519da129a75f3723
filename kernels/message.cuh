// Messages of the wires that have a header: docs/wire.md.
#pragma once

#include "codes.cuh"

constexpr u32 HEADER = 8;
constexpr u32 LOG_BLOCK = 6, BLOCK = 1 << LOG_BLOCK;
// Teams of eight threads.
constexpr u32 TEAMS = THREADS / 8;

// What is known before a message is made or read.
struct Message {
    Box box;
    // Where it begins, in bytes: a multiple of 8, and of 16 if it may be its numbers as they are.
    u64 place;
    // Bytes of its numbers as they are. A message of as many is these, without a header; others are
    // shorter.
    u64 room;
    // Bytes of the body whose place does not depend on the data, of the table at its front, and of
    // what of that encoders write.
    u64 fixed, table, filled;
    // The header.
    u64 head;
};
static_assert(sizeof(Message) == 224, "the host has the same");

// A message that does not, whatever the data, is left to settle.cu.
__device__ inline bool never_shrinks(const Message& message) { return HEADER + message.fixed >= message.room; }

// What an encoder or decoder needs of a message, held in registers: the descriptor would be read
// again after every store.
struct Body {
    u8* bytes;
    // What it must stay below, and its table.
    const u64 room, table;
    const u32 elements, pitch, log_rows, log_cols, skew;
    // Of elements of 4 bytes, which bits of a place in shared memory are shuffled.
    const u32 shuffled;

    // `rows` says whether tiles may have several.
    __device__ Body(const Message& message, const u8* messages, bool rows = true)
        : bytes(const_cast<u8*>(messages) + message.place + HEADER), room(message.room - HEADER), table(message.table),
          elements(message.box.elements), pitch(message.box.pitch), log_rows(rows ? message.box.log_rows : 0),
          log_cols(message.box.log_cols), skew(message.box.skew), shuffled(Shared::shuffled<u32>(message.box))
    {
    }
    // The place of an element of a tile, in the message; `there` says whether the message has it.
    __device__ u32 element_at(const Tile& tile, u32 local, bool& there) const
    {
        const u32 row = local >> log_cols, col = local & ((1 << log_cols) - 1), begin = tile.element + row * pitch;
        const u32 element = next_whole(begin, skew) + col;
        there = row < tile.rows && (skew == 0 ? col < tile.cols : element < min(next_whole(begin - tile.start + pitch, skew), elements));
        return element;
    }
    // The same of a tile of one row.
    __device__ u32 element_along(const Tile& tile, u32 local, bool& there) const
    {
        there = local < tile.cols;
        return tile.element + local;
    }
    // The same of a tile that is read.
    __device__ u32 read_at(const Tile& tile, u32 local, bool& there) const
    {
        const u32 row = local >> log_cols, col = local & ((1 << log_cols) - 1), begin = tile.element + row * pitch;
        const u32 element = (begin & ~skew) + col;
        there = row < tile.rows && element < begin + tile.cols;
        return element;
    }
    // The index in shared memory, before units are shuffled, of an element of a tile, in the order
    // of the message.
    __device__ u32 shared_at(u32 local) const
    {
        u32 row = local >> log_cols, col = local & ((1 << log_cols) - 1);
        return (col << log_rows) + row;
    }
    // The same of a tile with skewed rows, as a byte of its lines.
    template <class E> __device__ u32 byte_of(const Tile& tile, u32 local) const
    {
        const u32 row = local >> log_cols, col = local & ((1 << log_cols) - 1), begin = tile.element + row * pitch;
        return (next_whole(begin, skew) - begin + col) * Skewed<E>::LINE + row * sizeof(E);
    }
    template <class E> __device__ u32 shuffled_of() const { return sizeof(E) == 4 ? shuffled : Shared::SHUFFLED; }
    // The byte in shared memory at which an element of a tile is.
    template <class E> __device__ u32 place_of(const Tile& tile, u32 local) const
    {
        if (skew != 0) return Skewed<E>::place(byte_of<E>(tile, local));
        return Shared::place(shared_at(local) * sizeof(E), shuffled_of<E>());
    }
};

// The outcome: zeroed before a launch, as is one more behind all, which counts tiles. At a fixed
// rate units and flags are not written, and settle.cu zeroes that count, so that another launch of
// the encoder may follow.
struct State {
    // Bytes of the message.
    u64 bytes;
    double squared_error;
    // Of the tolerance codec, units of 8 bytes behind the table.
    u64 units;
    // Whether all of it is sent as it is.
    u32 raw;
    // Whether a message that was read does not decode.
    u32 bad;
};
static_assert(sizeof(State) == 32, "the host has the same");

// Marks a message that does not decode.
__device__ inline void refuse(State& state) { atomicOr(&state.bad, 1); }

// The numbers of a decoder's tiles, for the first thread. All but the first few, which are
// assigned, are drawn from a counter behind all states. Blocks progress unevenly, and so tiles are
// written in about the order of their list, which is the fastest.
struct Numbers {
    u64* const counter;
    const u32 dealt;
    u32 drawn;

    __device__ Numbers(State* states, u32 messages, u32 dealt)
        : counter(&states[messages].bytes), dealt(dealt * gridDim.x), drawn(::draw(counter))
    {
    }
    // Begins to ask for the next one, some time before it is needed.
    __device__ void draw() { drawn = ::draw(counter); }
    __device__ u32 next() const { return dealt + drawn; }
};

// The number of an encoder's tile of this turn, the fourth or a later one, for the first thread.
// Most are assigned, and only the last quarter is drawn: encoders write little and gain little by
// drawing. Those of `tolerance` draw all (`Queue`).
__device__ inline u32 number_of(u32 turn, u32 tiles, State* states, u32 messages)
{
    const u32 dealt = max(3 * gridDim.x, tiles / 4 * 3), own = blockIdx.x + turn * gridDim.x;
    if (own < dealt) return own;
    return dealt + draw(&states[messages].bytes);
}

// An element of WIDTH reals: what is moved at once.
template <class T, u32 WIDTH> struct ElementOf;
template <> struct ElementOf<float, 1> { using Type = u32; };
template <> struct ElementOf<float, 2> { using Type = uint2; };
template <> struct ElementOf<double, 1> { using Type = uint2; };
template <> struct ElementOf<double, 2> { using Type = uint4; };

template <class T, u32 WIDTH> using Element = typename ElementOf<T, WIDTH>::Type;

// As follows, of a tile of one row.
template <class E, u32 N, class T, class Team>
__device__ void read_run(Shared shared, const Body& body, u32 first, u32 further, T (&x)[N], Team team)
{
    constexpr u32 HALF = N * sizeof(T) / sizeof(E) / 2, UNITS = HALF * sizeof(E) / 16;
    const u32 shuffled = body.shuffled_of<E>();
    const u32 base = Shared::place((first + HALF * team.lane) * sizeof(E), shuffled) ^ Shared::place(further * sizeof(E), shuffled);
#pragma unroll
    for (u32 unit = 0; unit < 2 * UNITS; unit++) {
        const u32 byte = 16 * (unit % UNITS) + (unit < UNITS ? 0 : 8 * HALF * sizeof(E));
        reinterpret_cast<uint4*>(x)[unit] = *reinterpret_cast<const uint4*>(shared.memory + (base ^ Shared::place(byte, shuffled)));
    }
}

// The numbers of a team's block, or of its two planes, out of shared memory and back: of each half
// of the block a thread has neighbours, in the order of its codes. `first` is the first element in
// the tile of one of the team's blocks, and `further` by how many the block is behind that, of
// which neither has a bit that the other has: places are sums of bits without a carry, each of
// which is shuffled for itself, and what differs by thread is worked out once for all blocks.
template <class E, u32 N, class T, class Team>
__device__ void read_block(Shared shared, const Body& body, u32 first, u32 further, T (&x)[N], Team team)
{
    if (body.log_rows == 0) return read_run<E>(shared, body, first, further, x, team);
    constexpr u32 HALF = N * sizeof(T) / sizeof(E) / 2;
    const u32 element = first + HALF * team.lane;
    E* elements = reinterpret_cast<E*>(x);
    const u32 base = Shared::place(body.shared_at(element) * sizeof(E)) ^ Shared::place(body.shared_at(further) * sizeof(E));
    const u32 next = Shared::place(sizeof(E) << body.log_rows);
    const u32 other = Shared::place(2 * sizeof(E) << body.log_rows), half = Shared::place(8 * HALF * sizeof(E) << body.log_rows);
#pragma unroll
    for (u32 i = 0; i < 2 * HALF; i++) {
        u32 at = base ^ (i & 1 ? next : 0) ^ (i & 2 && HALF > 2 ? other : 0) ^ (i & HALF ? half : 0);
        elements[i] = *reinterpret_cast<const E*>(shared.memory + at);
    }
}

// The same of a tile with skewed rows.
template <class E, u32 N, class T>
__device__ void read_skewed(Shared shared, const Body& body, const Tile& tile, u32 first, T (&x)[N])
{
    constexpr u32 HALF = N * sizeof(T) / sizeof(E) / 2;
    const u32 byte = body.byte_of<E>(tile, first + HALF * (threadIdx.x & 7));
#pragma unroll
    for (u32 i = 0; i < 2 * HALF; i++) {
        const u32 further = i < HALF ? i : i + 7 * HALF;
        reinterpret_cast<E*>(x)[i] = *reinterpret_cast<const E*>(shared.memory + Skewed<E>::place(byte + further * Skewed<E>::LINE));
    }
}

// Into a tile of one row: a thread's numbers of its team's blocks, `STEP` bytes from one to the
// next.
template <u32 STEP, u32 MANY, u32 N, class T>
__device__ void write_blocks(Shared shared, u32 shuffled, const T (&x)[MANY][N], Team team)
{
    constexpr u32 HALF = N * sizeof(T) / 2, UNITS = HALF / 16;
    u32 own = Shared::place(threadIdx.x / 8 * (16 * HALF) + HALF * team.lane, shuffled);
    // Or the compiler works out all places before the first tile, for which there are not registers
    // enough.
    change(own);
#pragma unroll
    for (u32 block = 0; block < MANY; block++)
#pragma unroll
        for (u32 unit = 0; unit < 2 * UNITS; unit++) {
            const u32 further = block * STEP + 16 * (unit % UNITS) + (unit < UNITS ? 0 : 8 * HALF);
            shared.unit(own, further, shuffled) = reinterpret_cast<const uint4*>(x[block])[unit];
        }
}
