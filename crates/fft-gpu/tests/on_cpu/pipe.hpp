// Launches come on the standard input, one after the other: what kernels are told, and what is in
// the memory of a device. What they make of it goes out on the standard output. The other side is
// crates/fft-gpu/src/on_cpu/tests.rs.
#pragma once

#include <unistd.h>

#include "threads.hpp"

#include "../../kernels/src/message.cuh"

// What is told first of the next launch, if there is one. Blocks that wait for each other must not
// do so for ever.
template <class First> static bool begin(First& first)
{
    alarm(300);
    const size_t bytes = fread(&first, 1, sizeof(first), stdin);
    if (bytes != 0 && bytes != sizeof(first)) fail("the input ends too early");
    return bytes != 0;
}
// Says that this was all of a launch.
inline void end()
{
    fwrite("all done", 1, 8, stdout);
    fflush(stdout);
}
template <class N> static std::vector<N> take(size_t many)
{
    std::vector<N> all(many + 1);
    if (fread(all.data(), sizeof(N), many, stdin) != many) fail("the input ends too early");
    return all;
}

// Items and their tiles.
template <class Item>
struct Items {
    std::vector<Item> items;
    std::vector<Tile> tiles;
    std::vector<u32> firsts;
    u64 many, all;

    Items(u64 many, u64 all) : items(take<Item>(many)), tiles(take<Tile>(all)), firsts(take<u32>(many + 1)), many(many), all(all) {}
    Batch<Item> batch() const { return {items.data(), tiles.data(), firsts.data(), u32(many), u32(all)}; }
};

// What kernels write, with something in front and behind that must stay as it is.
class Room {
  public:
    explicit Room(u64 bytes) : bytes(bytes), memory(bytes + 3 * AROUND, FILL)
    {
        const uintptr_t first = reinterpret_cast<uintptr_t>(memory.data()) + AROUND;
        front = (first + AROUND - 1) / AROUND * AROUND - reinterpret_cast<uintptr_t>(memory.data());
        current = this;
    }
    u8* begin() { return memory.data() + front; }
    bool has(const void* to, u64 many) { return to >= begin() && static_cast<const u8*>(to) + many <= begin() + bytes; }
    void check()
    {
        for (size_t i = 0; i < memory.size(); i++)
            if ((i < front || i >= front + bytes) && memory[i] != FILL) fail("something was written outside");
    }
    // Puts it out.
    void send()
    {
        check();
        fwrite(begin(), 1, bytes, stdout);
    }
    static Room* current;

  private:
    static constexpr size_t AROUND = 256;
    static constexpr u8 FILL = 0xA5;
    u64 bytes;
    size_t front;
    std::vector<u8> memory;
};
Room* Room::current;

void check_store(const void* to, unsigned bytes)
{
    if (reinterpret_cast<uintptr_t>(to) % bytes != 0 || !Room::current->has(to, bytes)) fail("a store is not aligned, or outside");
}

// Numbers of wires: of encoders, and of decoders.
enum : u64 { BITS, TOLERANCE, F32, WIRES };

// What launches are told of messages.
struct Told {
    u64 real, width, wire, blocks, seed, bits;
    double part, step;
    u64 raw, items, tiles, source, room;
};

// Calls `SERVE`, which names kernels by their numbers, for the kind of numbers that is told. Those
// of double precision have one more, which `F32_OF` names.
#define SERVE_KIND                                                                  \
    if (told.real == 4 && told.width == 1) SERVE(f32x1, float, );                   \
    if (told.real == 4 && told.width == 2) SERVE(f32x2, float, );                   \
    if (told.real == 8 && told.width == 1) SERVE(f64x1, double, F32_OF(f64x1));     \
    if (told.real == 8 && told.width == 2) SERVE(f64x2, double, F32_OF(f64x2))
