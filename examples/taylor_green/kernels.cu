// What the flow does point by point. Arrays of spectra are real numbers: two for each mode.

typedef unsigned long long count;

__device__ count first() { return blockIdx.x * (count)blockDim.x + threadIdx.x; }
__device__ count stride() { return gridDim.x * (count)blockDim.x; }

// Copies a spectrum to two others.
extern "C" __global__ void copy(const double *from, double *next, double *stage, count numbers) {
    for (count i = first(); i < numbers; i += stride()) next[i] = stage[i] = from[i];
}

// Replaces u by u x omega. Each array has three components of so many points.
extern "C" __global__ void cross(double *u, const double *omega, count points) {
    for (count i = first(); i < points; i += stride()) {
        const double ux = u[i], uy = u[points + i], uz = u[2 * points + i];
        const double wx = omega[i], wy = omega[points + i], wz = omega[2 * points + i];
        u[i] = uy * wz - uz * wy;
        u[points + i] = uz * wx - ux * wz;
        u[2 * points + i] = ux * wy - uy * wx;
    }
}

// One stage: see Place::advance.
extern "C" __global__ void advance(const double *velocity, const double *rate, double *next,
                                   double *stage, double viscosity, double weight, double ahead,
                                   count numbers) {
    for (count i = first(); i < numbers; i += stride()) {
        const double f = rate[i] + viscosity * stage[i];
        next[i] += weight * f;
        stage[i] = velocity[i] + ahead * f;
    }
}

// The sum of the squares of each block's numbers. Blocks have 256 threads.
extern "C" __global__ void squares(const double *u, double *sums, count numbers) {
    __shared__ double of_thread[256];
    double sum = 0;
    for (count i = first(); i < numbers; i += stride()) sum += u[i] * u[i];
    of_thread[threadIdx.x] = sum;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) of_thread[threadIdx.x] += of_thread[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = of_thread[0];
}
