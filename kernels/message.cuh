// Messages of the wires that have a header: docs/wire.md.
#pragma once

#include "codes.cuh"

constexpr u32 HEADER = 8;
constexpr u32 BLOCK = 64;
// Teams of eight threads.
constexpr u32 TEAMS = THREADS / 8;

// What is known before a message is made or read.
struct Message {
    Box box;
    // Where it begins, in bytes, a multiple of 16.
    u64 place;
    // Bytes of its numbers as they are. A message of as many is these, without a header; others are shorter.
    u64 room;
    // Bytes of the body whose place does not depend on the data, of the table at its front, and of what of that encoders write.
    u64 fixed, table, filled;
    // The header.
    u64 head;
};
static_assert(sizeof(Message) == 240, "the host has the same");

// A message that does not, whatever the data, is left to settle.cu.
__device__ inline bool never_shrinks(const Message& message) { return HEADER + message.fixed >= message.room; }

// What an encoder or decoder needs of a message, held in registers: the descriptor would be read again after every store.
struct Body {
    u8* bytes;
    // What it must stay below, and its table.
    const u64 room, table;
    const u32 elements, pitch, log_cols;

    __device__ Body(const Message& message, const u8* messages)
        : bytes(const_cast<u8*>(messages) + message.place + HEADER), room(message.room - HEADER), table(message.table),
          elements(message.box.elements), pitch(message.box.pitch), log_cols(message.box.log_cols)
    {
    }
    // The place of an element of a tile, in the message; `there` says whether the message has it.
    __device__ u32 element_at(const Tile& tile, u32 local, bool& there) const
    {
        u32 row = local >> log_cols, col = local & ((1 << log_cols) - 1);
        there = row < tile.rows && col < tile.cols;
        return tile.element + row * pitch + col;
    }
};

// What comes of it: set to zeros before a launch.
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

// An element of WIDTH reals: what is moved at once.
template <class T, u32 WIDTH> struct ElementOf;
template <> struct ElementOf<float, 1> { using Type = u32; };
template <> struct ElementOf<float, 2> { using Type = uint2; };
template <> struct ElementOf<double, 1> { using Type = uint2; };
template <> struct ElementOf<double, 2> { using Type = uint4; };

template <class T, u32 WIDTH> using Element = typename ElementOf<T, WIDTH>::Type;

// The numbers of a team's block, or of its two planes, out of shared memory and back: eight elements of a thread, in the
// order of its codes. `first` is the block's first element in the tile.
template <u32 WIDTH, class T>
__device__ void read_block(Shared shared, u32 first, T (&x)[8 * WIDTH], Team team)
{
    u32 byte = (first + 4 * team.lane) * WIDTH * sizeof(T);
    shared.read<4 * WIDTH>(byte, x);
    shared.read<4 * WIDTH>(byte + 32 * WIDTH * sizeof(T), x + 4 * WIDTH);
}

template <u32 WIDTH, class T>
__device__ void write_block(Shared shared, u32 first, const T (&x)[8 * WIDTH], Team team)
{
    u32 byte = (first + 4 * team.lane) * WIDTH * sizeof(T);
    shared.write<4 * WIDTH>(byte, x);
    shared.write<4 * WIDTH>(byte + 32 * WIDTH * sizeof(T), x + 4 * WIDTH);
}
