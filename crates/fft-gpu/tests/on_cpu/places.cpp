// Where tiles of unknown length begin, by kernels/places.cuh.
#include "pipe.hpp"

#include "../../kernels/src/places.cuh"

struct Asked {
    u64 blocks, seed, tiles, items, forwards;
};

// What one warp of each block does. `items` has that of each tile. Blocks say how long one tile is
// before they ask for the one before it, as encoders do; or one block says all, and then asks for
// so many from the first on, so that their series have an end, and for the others from the last on,
// of which none has.
static void stand(Queue queue, const u64* lengths, const u32* items, const u32* firsts, u32 tiles, u64 forwards, u64* begins)
{
    const u32 lane = threadIdx.x;
    if (lane >= 32) return;
    auto line = [&](u32 number) { return InLine(queue, number, items[number], firsts[items[number]]); };
    auto say = [&](u32 number) {
        if (lane == 0) line(number).say(lengths[number]);
    };
    auto ask = [&](u32 number) {
        const u64 begin = line(number).begin(lengths[number]);
        if (lane == 0) begins[number] = begin;
    };
    if (forwards <= tiles) {
        for (u32 number = 0; number < tiles; number++) say(number);
        __syncwarp();
        for (u32 number = 0; number < forwards; number++) ask(number);
        for (u32 number = tiles; number-- > forwards;) ask(number);
        return;
    }
    for (u32 before = tiles;;) {
        const u32 number = __shfl_sync(0xFFFFFFFF, queue.draw(lane), 0);
        if (number < tiles) say(number);
        if (before < tiles) ask(before);
        if (number >= tiles) return;
        before = number;
    }
}

static void serve(const Asked& asked)
{
    const auto lengths = take<u64>(asked.tiles);
    const auto items = take<u32>(asked.tiles), firsts = take<u32>(asked.items);
    std::vector<u64> words(asked.tiles + 1), begins(asked.tiles);
    std::vector<Series> series(asked.tiles / SERIES + asked.items);
    const Queue queue{words.data(), series.data()};
    const u32 tiles = u32(asked.tiles);
    launch_all([&] { stand(queue, lengths.data(), items.data(), firsts.data(), tiles, asked.forwards, begins.data()); },
               u32(asked.blocks), u32(asked.seed));
    fwrite(begins.data(), 8, asked.tiles, stdout);
}

int main()
{
    for (Asked asked; begin(asked); end()) serve(asked);
}
