// Copies of boxes with any order of axes: packing and unpacking as it is, and keeping one's own data.
//
// CPU twin: `Transfer::run`. One launch copies any number of boxes. Bytes moved: each element is read once and written once.
#include "tile.cuh"

// Elements of 4, 8 or 16 bytes: only their size matters.
template <class E>
__device__ void transfer(Batch<Box> batch, const E* src, E* dst)
{
    __shared__ __align__(128) u8 memory[TILE<E> * sizeof(E)];
    __shared__ Places from, to;
    __shared__ Ahead<Box> ahead;
    Shared shared{memory};
    auto nothing = [](const Work<Box>&) {};
    ahead.begin(batch, nothing);
    for (u32 turn = 0; ahead.work(turn).number < batch.tiles; turn++) {
        const Work<Box>& work = ahead.work(turn);
        ahead.next(turn, batch, work.number + 3 * gridDim.x, nothing);
        fetch_tile(work.item, work.tile, src, shared, from);
        await_tile();
        store_tile(work.item, work.tile, shared, dst, to);
        await_tile();
    }
}

#define TRANSFER(name, element)                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS, 8)                                         \
        name(Batch<Box> batch, const element* src, element* dst)                                     \
    {                                                                                                \
        transfer(batch, src, dst);                                                                   \
    }

TRANSFER(transfer_4, u32)
TRANSFER(transfer_8, uint2)
TRANSFER(transfer_16, uint4)
