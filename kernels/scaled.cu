// Products on the way out: what cuFFT calls instead of storing a result, linked into its own
// kernels when a plan is made (`cufftXtSetJITCallback`). A scale then costs no pass. Compiled to
// the intermediate code that this takes.
//
// CPU twin: a product. The result is that of `scale` in `spectral.cu`.

// The arguments are cuFFT's: where the array begins, the element's number there, its value, and
// what the plan was told.
template <class T>
__device__ void store_real(void* array, unsigned long long number, T x, const void* factor)
{
    static_cast<T*>(array)[number] = x * *static_cast<const T*>(factor);
}

template <class C, class T>
__device__ void store_complex(void* array, unsigned long long number, C z, const void* factor)
{
    const T f = *static_cast<const T*>(factor);
    static_cast<C*>(array)[number] = {z.x * f, z.y * f};
}

__device__ void scaled_f32x1(void* array, unsigned long long number, float x, void* factor, void*)
{
    store_real(array, number, x, factor);
}

__device__ void scaled_f64x1(void* array, unsigned long long number, double x, void* factor, void*)
{
    store_real(array, number, x, factor);
}

__device__ void scaled_f32x2(void* array, unsigned long long number, float2 z, void* factor, void*)
{
    store_complex<float2, float>(array, number, z, factor);
}

__device__ void scaled_f64x2(void* array, unsigned long long number, double2 z, void* factor, void*)
{
    store_complex<double2, double>(array, number, z, factor);
}
