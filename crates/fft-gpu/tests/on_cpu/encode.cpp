// Makes the messages that it is told to, by the kernels: launches come on the standard input, and messages and what became of them go out
// on the standard output. The other side is crates/fft-gpu/src/encoder/on_cpu.rs.
#include "threads.hpp"

#include "../../../../kernels/encode.cu"
#include "../../../../kernels/settle.cu"

// Where kernels may write messages, with something in front and behind that must stay as it is.
static std::vector<u8> memory;
static constexpr size_t AROUND = 256;
static u8* messages() { return reinterpret_cast<u8*>((reinterpret_cast<uintptr_t>(memory.data()) + 2 * AROUND - 1) / AROUND * AROUND); }

void check_store(const void* to, unsigned bytes)
{
    const u8 *first = static_cast<const u8*>(to), *begin = messages(), *end = memory.data() + memory.size() - AROUND;
    if (reinterpret_cast<uintptr_t>(to) % bytes != 0 || first < begin || first + bytes > end) fail("a store is not aligned, or outside");
}

template <class N> static std::vector<N> take(size_t many)
{
    std::vector<N> all(many + 1);
    if (fread(all.data(), sizeof(N), many, stdin) != many) fail("the input ends too early");
    return all;
}

struct Told {
    u64 real, width, wire, blocks, seed, bits;
    double part, step;
    u64 all_raw, items, tiles, source, room;
};

template <class T>
static void serve(const Told& told, void (*const (&encoders)[6])(Job<T>), void (*settler)(Rest<T>))
{
    const auto items = take<Message>(told.items);
    const auto tiles = take<Tile>(told.tiles);
    const auto firsts = take<u32>(told.items + 1);
    const auto source = take<uint4>((told.source + 15) / 16);
    std::vector<State> states(told.items + 1);
    std::vector<double> errors(told.tiles + 1);
    std::vector<u64> queue(told.tiles + 1);
    memory.assign(told.room + 3 * AROUND, 0xA5);
    // What is after the room is not to be written, either.
    memory.resize(size_t(messages() - memory.data()) + told.room + AROUND);
    const Batch<Message> batch{items.data(), tiles.data(), firsts.data(), u32(told.items), u32(told.tiles)};
    const T* src = reinterpret_cast<const T*>(source.data());
    const u32 blocks = u32(told.blocks), seed = u32(told.seed);
    const double step = told.step;
    const Job<T> job{batch, src, messages(), states.data(), errors.data(), u32(told.bits), told.part, step, 1 / step, {queue.data()}};
    if (!told.all_raw && told.tiles > 0) launch(encoders[told.wire], blocks, seed, job);
    const Rest<T> rest{batch, src, messages(), states.data(), errors.data(), step, u32(told.all_raw)};
    launch(settler, blocks, seed, rest);
    const size_t front = size_t(messages() - memory.data());
    for (size_t i = 0; i < memory.size(); i++)
        if ((i < front || i >= front + told.room) && memory[i] != 0xA5) fail("something was written outside");
    fwrite(messages(), 1, told.room, stdout);
    fwrite(states.data(), sizeof(State), told.items, stdout);
    fflush(stdout);
}

#define SERVE(real, T)                                                                                                          \
    serve<T>(told,                                                                                                              \
             {encode_f32_##real, encode_f16_##real, encode_bf16_##real, encode_mantissa_##real, encode_bits_##real,             \
              encode_tolerance_##real},                                                                                         \
             settle_##real)

int main()
{
    for (Told told; fread(&told, sizeof(told), 1, stdin) == 1;) {
        if (told.real == 4 && told.width == 1) SERVE(f32x1, float);
        if (told.real == 4 && told.width == 2) SERVE(f32x2, float);
        if (told.real == 8 && told.width == 1) SERVE(f64x1, double);
        if (told.real == 8 && told.width == 2) SERVE(f64x2, double);
    }
}
