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
            await_tile();
            store_tile(box, tile, shared, dst, to);
            __syncthreads();
            continue;
        }
        // Neighbours on both sides, or on one of them: there is nothing to turn.
        const Finder<const E> reads(box, box.from, from, tile, src + tile.from);
        const Finder<E> writes(box, box.to, to, tile, dst + tile.to);
        from.note(box, box.from, tile);
        to.note(box, box.to, tile);
        __syncthreads();
        if (box.uneven) {
#pragma unroll 1
            for (u32 col = threadIdx.x; col < tile.cols; col += THREADS)
                *writes.template at<false>(0, col) = *reads.template at<false>(0, col);
            continue;
        }
        // Several at once, so that many reads are under way.
        constexpr u32 MANY = 8;
        const u32 cols = tile.cols;
#pragma unroll
        for (u32 first = threadIdx.x; first < TILE<E>; first += MANY * THREADS) {
            E held[MANY];
#pragma unroll
            for (u32 k = 0; k < MANY; k++)
                if (first + k * THREADS < cols) held[k] = *reads.template at<true>(0, first + k * THREADS);
#pragma unroll
            for (u32 k = 0; k < MANY; k++)
                if (first + k * THREADS < cols) *writes.template at<true>(0, first + k * THREADS) = held[k];
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
