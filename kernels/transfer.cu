// Copies of boxes with any order of axes: packing and unpacking as it is, and keeping one's own data.
//
// CPU twin: `Transfer::run`. One launch copies any number of boxes. Bytes moved: each element is read once and written once.
#include "tile.cuh"

// Copies a tile of neighbours on both sides, or on one of them: there is nothing to turn. Has a barrier.
template <class E>
__device__ void copy_tile(const Box& box, const Tile& tile, const E* src, E* dst, Places& from, Places& to)
{
    const Finder<const E> reads(box, box.from, from, tile, src + (box.from.offset + tile.from));
    const Finder<E> writes(box, box.to, to, tile, dst + (box.to.offset + tile.to));
    note_runs(box, box.from, tile, from);
    note_runs(box, box.to, tile, to);
    __syncthreads();
    const u32 cols = tile.cols;
    if (box.uneven()) {
#pragma unroll 1
        for (u32 col = threadIdx.x; col < cols; col += THREADS)
            *writes.template at<false>(0, col) = *reads.template at<false>(0, col);
    } else {
        // Several at once, so that many reads are under way.
        constexpr u32 MANY = 8;
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
    }
}

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
        ahead.next(turn, batch, nothing);
        if (work.item.log_rows != 0) {
            fetch_tile(work.item, work.tile, src, shared, from);
            await_tile();
            store_tile(work.item, work.tile, shared, dst, to);
        } else {
            copy_tile(work.item, work.tile, src, dst, from, to);
        }
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
