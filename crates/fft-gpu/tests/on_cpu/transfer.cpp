// Boxes copied, by the kernels of transfer.cu.
#include "pipe.hpp"

#include "../../kernels/src/transfer.cu"

// `element` is the bytes of one.
struct Moved {
    u64 element, seed, items, tiles, source, room;
};

template <class E> static void serve(const Moved& moved, void (*kernel)(Batch<Box>, const E*, E*))
{
    const Items<Box> all(moved.items, moved.tiles);
    const auto source = take<uint4>((moved.source + 15) / 16);
    Room dst(moved.room);
    const E* src = reinterpret_cast<const E*>(source.data());
    // A block for each tile.
    const Batch<Box> batch = all.batch();
    E* to = reinterpret_cast<E*>(dst.begin());
    launch_all([&] { kernel(batch, src, to); }, u32(moved.tiles), u32(moved.seed));
    dst.send();
}

int main()
{
    for (Moved moved; begin(moved); end()) {
        if (moved.element == 4) serve(moved, transfer_4);
        if (moved.element == 8) serve(moved, transfer_8);
        if (moved.element == 16) serve(moved, transfer_16);
    }
}
