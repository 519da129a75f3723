// Reshapes on the way into a transform: what cuFFT calls instead of loading an element, linked into
// its own kernels when a plan is made (`cufftXtSetJITCallback`). Each element is read from the
// memory of the rank that has it, so that a reshape costs no pass. Compiled to the intermediate
// code that this takes.
//
// CPU twin: `Pieces::place`, and a product. Bytes moved: none but those of the transform.
#include "pieces.cuh"

template <u32 FIRST, u32 OTHERS>
__device__ __forceinline__ double2 fetch(unsigned long long number, const void* told)
{
    const Pieces* pieces = static_cast<const Pieces*>(told);
    const double2 z = *place<FIRST, OTHERS>(number, pieces);
    return {z.x * pieces->factor, z.y * pieces->factor};
}

// The arguments are cuFFT's: where the array would begin, the element's number there, and what the
// plan was told.
__device__ double2 gather_1_1(void*, unsigned long long number, void* told, void*)
{
    return fetch<1, 1>(number, told);
}

__device__ double2 gather_7_1(void*, unsigned long long number, void* told, void*)
{
    return fetch<7, 1>(number, told);
}

__device__ double2 gather_7_3(void*, unsigned long long number, void* told, void*)
{
    return fetch<7, 3>(number, told);
}
