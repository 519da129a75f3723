// Copies of boxes with any order of axes: packing and unpacking as it is, and keeping one's own data.
//
// CPU twin: `Transfer::run`. One launch copies any number of boxes. Bytes moved: each element is read once and written once.
#include "box.cuh"

// Elements of 4, 8 or 16 bytes: only their size matters.
template <class E>
__device__ void transfer(Batch<Box> batch, const E* src, E* dst)
{
    __shared__ __align__(128) u8 memory[TILE<E> * sizeof(E)];
    __shared__ Runs from, to;
    Shared shared{memory};
    u32 item = 0;
    for (u32 number = blockIdx.x; number < batch.tiles; number += gridDim.x) {
        item = item_of(batch.firsts, batch.count, number, item);
        const Box& box = batch.items[item];
        Tile tile = tile_at(box, number);
        if (box.log_rows != 0) {
            fetch_tile(box, tile, src, shared, from);
            await_tile(false);
            store_tile(box, tile, shared, dst, to);
            __syncthreads();
            continue;
        }
        // Neighbours on both sides, or on one of them: there is nothing to turn.
        from.note(box, box.from, tile);
        to.note(box, box.to, tile);
        __syncthreads();
        E held[PER_THREAD<E>];
#pragma unroll
        for (u32 k = 0; k < PER_THREAD<E>; k++) {
            u32 col = threadIdx.x + k * THREADS;
            if (col < tile.cols) held[k] = src[tile.from + from.of(box, box.from, tile, col)];
        }
#pragma unroll
        for (u32 k = 0; k < PER_THREAD<E>; k++) {
            u32 col = threadIdx.x + k * THREADS;
            if (col < tile.cols) dst[tile.to + to.of(box, box.to, tile, col)] = held[k];
        }
        __syncthreads();
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
