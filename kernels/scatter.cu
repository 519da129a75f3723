// Reshapes on the way out of a transform: what cuFFT calls instead of storing a result, linked into
// its own kernels when a plan is made (`cufftXtSetJITCallback`). Each element is written to the
// memory of the rank that it is for, so that a reshape costs no pass. In a file of its own, as a
// plan may link both this and `gather.cu`. Compiled to the intermediate code that this takes.
//
// CPU twin: `Pieces::place`. Bytes moved: none but those of the transform.
#include "pieces.cuh"

// The arguments are cuFFT's: where the array would begin, the element's number there, its value,
// and what the plan was told.
__device__ void scatter_1_1(void*, unsigned long long number, double2 z, void* told, void*)
{
    *place<1, 1>(number, static_cast<const Pieces*>(told)) = z;
}

__device__ void scatter_7_1(void*, unsigned long long number, double2 z, void* told, void*)
{
    *place<7, 1>(number, static_cast<const Pieces*>(told)) = z;
}

__device__ void scatter_7_3(void*, unsigned long long number, double2 z, void* told, void*)
{
    *place<7, 3>(number, static_cast<const Pieces*>(told)) = z;
}
