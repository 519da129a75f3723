/* thriffty in the place of heFFTe 2.4: data on a GPU. MIT OR Apache-2.0.
 *
 * Only where THRIFFTY_HEFFTE_CUDA is defined, as the component CUDA of the CMake package does.
 */
#ifndef THRIFFTY_HEFFTE_GPU_H
#define THRIFFTY_HEFFTE_GPU_H

#include "heffte_config.h"

#ifdef Heffte_ENABLE_CUDA

#include <stdexcept>
#include <utility>

#include <cuda_runtime_api.h>

#include "heffte_backends.h"

namespace heffte {
namespace gpu {

inline void check(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

inline int device_count() {
    int count = 0;
    check(cudaGetDeviceCount(&count));
    return count;
}
inline void device_set(int device) { check(cudaSetDevice(device)); }
inline void synchronize_default_stream() { check(cudaStreamSynchronize(nullptr)); }

/** An array on the current device. Its numbers are not initialised. */
template <typename T>
class vector {
public:
    using value_type = T;

    vector() = default;
    explicit vector(size_t count) : size_(count) {
        if (count > 0) check(cudaMalloc(reinterpret_cast<void **>(&data_), count * sizeof(T)));
    }
    /** A copy of numbers on the device. */
    vector(T const *begin, T const *end) : vector(static_cast<size_t>(end - begin)) {
        check(cudaMemcpy(data_, begin, size_ * sizeof(T), cudaMemcpyDeviceToDevice));
    }
    vector(vector const &other) : vector(other.data_, other.data_ + other.size_) {}
    vector(vector &&other) noexcept { swap(other); }
    vector &operator=(vector other) noexcept {
        swap(other);
        return *this;
    }
    ~vector() { cudaFree(data_); }

    T *data() { return data_; }
    T const *data() const { return data_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

private:
    void swap(vector &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    T *data_ = nullptr;
    size_t size_ = 0;
};

/** Copies between host and device. */
struct transfer {
    template <typename T>
    static vector<T> load(T const *numbers, size_t count) {
        vector<T> loaded(count);
        check(cudaMemcpy(loaded.data(), numbers, count * sizeof(T), cudaMemcpyHostToDevice));
        return loaded;
    }
    template <typename T>
    static vector<T> load(std::vector<T> const &numbers) {
        return load(numbers.data(), numbers.size());
    }
    template <typename T>
    static std::vector<T> unload(T const *numbers, size_t count) {
        std::vector<T> unloaded(count);
        check(cudaMemcpy(unloaded.data(), numbers, count * sizeof(T), cudaMemcpyDeviceToHost));
        return unloaded;
    }
    template <typename T>
    static std::vector<T> unload(vector<T> const &numbers) {
        return unload(numbers.data(), numbers.size());
    }
};

} // namespace gpu

namespace backend {

#define THRIFFTY_HEFFTE_ON_GPU(TAG)                       \
    template <>                                           \
    struct buffer_traits<TAG> {                           \
        using location = tag::gpu;                        \
        template <typename T>                             \
        using container = gpu::vector<T>;                 \
    };
THRIFFTY_HEFFTE_ON_GPU(cufft)
THRIFFTY_HEFFTE_ON_GPU(cufft_cos)
THRIFFTY_HEFFTE_ON_GPU(cufft_sin)
THRIFFTY_HEFFTE_ON_GPU(cufft_cos1)
THRIFFTY_HEFFTE_ON_GPU(cufft_sin1)
#undef THRIFFTY_HEFFTE_ON_GPU

template <>
struct default_backend<tag::gpu> {
    using type = cufft;
};

/** The queue of transforms: CUDA's default stream unless another is given. */
template <>
struct device_instance<tag::gpu> {
    using stream_type = cudaStream_t;
    device_instance(cudaStream_t stream = nullptr) : stream_(stream) {}
    virtual ~device_instance() = default;
    stream_type stream() const { return stream_; }
    void synchronize_device() const { gpu::check(cudaStreamSynchronize(stream_)); }

private:
    cudaStream_t stream_;
};

} // namespace backend

} // namespace heffte

#endif

#endif
