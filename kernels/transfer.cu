// Copies of boxes with any order of axes: packing and unpacking as it is, and keeping one's own
// data.
//
// CPU twin: `Transfer::run`. One launch copies any number of boxes, with a block for each tile.
// Bytes moved: each element is read once and written once.
//
// Nothing is fetched ahead: there are blocks enough to wait. As the device begins them in order,
// what is moved at a time is side by side.
#include "tile.cuh"

// Elements of 4, 8 or 16 bytes: only their size matters.
template <class E>
__device__ void transfer(Batch<Box> batch, const E* src, E* dst)
{
    __shared__ __align__(128) u8 memory[TILE<E> * sizeof(E)];
    __shared__ Places from, to;
    __shared__ Work<Box> work;
    Shared shared{memory};
    if (threadIdx.x < 32) {
        work.find(batch, blockIdx.x);
        await_fetched();
        __syncwarp();
        work.describe(batch);
    }
    await_tile();
    fetch_tile<E, Cuts::ROWS>(work.item, work.tile, src, shared, from);
    await_tile();
    store_tile(work.item, work.tile, shared, dst, to);
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
