/**
 * thriffty in the place of heFFTe 2.4: names of backends, and types of numbers. MIT OR
 * Apache-2.0.
 */
#ifndef THRIFFTY_HEFFTE_BACKENDS_H
#define THRIFFTY_HEFFTE_BACKENDS_H

#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "heffte_config.h"
#include "heffte_utils.h"

namespace heffte {

namespace detail {

/** What is done along a dimension. */
enum class kind { none, c2c, r2c, dct1, dct2, dst1, dst2 };

} // namespace detail

/** Where data is. */
namespace tag {
struct cpu {};
struct gpu {};
} // namespace tag

/** Backends. Those of the CPU have different names and are the same. */
namespace backend {

/** Whether the library has it. */
template <typename backend_tag>
struct is_enabled : std::false_type {};

/** What a backend does along each axis: real transforms of this kind, or complex ones. */
template <typename backend_tag>
struct kind : std::integral_constant<detail::kind, detail::kind::c2c> {};

template <typename backend_tag>
std::string name() {
    return "not enabled";
}

/** The type of arrays of a backend. */
template <typename backend_tag>
struct buffer_traits {
    using location = tag::cpu;
    template <typename T>
    using container = std::vector<T>;
};

/** The queue of a device; there is none on the CPU. */
template <typename location_tag>
struct device_instance {
    using stream_type = void *;
    device_instance(void * = nullptr) {}
    virtual ~device_instance() = default;
    stream_type stream() const { return nullptr; }
    void synchronize_device() const {}
};

#define THRIFFTY_HEFFTE_BACKEND(TAG, ENABLED, NAME, KIND)                                 \
    struct TAG {};                                                                        \
    template <>                                                                           \
    struct is_enabled<TAG> : ENABLED {};                                                  \
    template <>                                                                           \
    struct kind<TAG> : std::integral_constant<detail::kind, detail::kind::KIND> {};       \
    template <>                                                                           \
    inline std::string name<TAG>() {                                                      \
        return NAME;                                                                      \
    }

#define THRIFFTY_HEFFTE_BACKENDS(TAG, ENABLED, NAME)                       \
    THRIFFTY_HEFFTE_BACKEND(TAG, ENABLED, NAME, c2c)                       \
    THRIFFTY_HEFFTE_BACKEND(TAG##_cos, ENABLED, NAME "-cos-type-II", dct2) \
    THRIFFTY_HEFFTE_BACKEND(TAG##_sin, ENABLED, NAME "-sin-type-II", dst2) \
    THRIFFTY_HEFFTE_BACKEND(TAG##_cos1, ENABLED, NAME "-cos-type-I", dct1) \
    THRIFFTY_HEFFTE_BACKEND(TAG##_sin1, ENABLED, NAME "-sin-type-I", dst1)

THRIFFTY_HEFFTE_BACKENDS(stock, std::true_type, "stock")
THRIFFTY_HEFFTE_BACKENDS(fftw, std::true_type, "fftw")
THRIFFTY_HEFFTE_BACKENDS(mkl, std::true_type, "mkl")
#ifdef Heffte_ENABLE_CUDA
THRIFFTY_HEFFTE_BACKENDS(cufft, std::true_type, "cufft")
#else
THRIFFTY_HEFFTE_BACKENDS(cufft, std::false_type, "cufft")
#endif
THRIFFTY_HEFFTE_BACKENDS(rocfft, std::false_type, "rocfft")
THRIFFTY_HEFFTE_BACKENDS(onemkl, std::false_type, "onemkl")

#undef THRIFFTY_HEFFTE_BACKENDS
#undef THRIFFTY_HEFFTE_BACKEND

/** The backend of a location. */
template <typename location_tag>
struct default_backend {};
template <>
struct default_backend<tag::cpu> {
    using type = fftw;
};

template <typename backend_tag>
struct uses_gpu : std::is_same<typename buffer_traits<backend_tag>::location, tag::gpu> {};

} // namespace backend

/** Whether a type is two `float`s: programs may say so of their own types. */
template <typename scalar_type>
struct is_ccomplex : std::is_same<scalar_type, std::complex<float>> {};

/** Whether a type is two `double`s: programs may say so of their own types. */
template <typename scalar_type>
struct is_zcomplex : std::is_same<scalar_type, std::complex<double>> {};

/** The type of a spectrum of such numbers. */
template <typename scalar_type>
struct fft_output {
    using type = scalar_type;
};
template <>
struct fft_output<float> {
    using type = std::complex<float>;
};
template <>
struct fft_output<double> {
    using type = std::complex<double>;
};

/** As `fft_output`; cosine and sine transforms of real numbers are real. */
template <typename scalar_type, typename backend_tag>
struct transform_output {
    using type = typename std::conditional<backend::kind<backend_tag>::value == detail::kind::c2c,
                                           typename fft_output<scalar_type>::type, scalar_type>::type;
};

/** A type of the standard library with the same numbers. */
template <typename scalar_type>
struct define_standard_type {
    using type = typename std::conditional<
        is_ccomplex<scalar_type>::value, std::complex<float>,
        typename std::conditional<is_zcomplex<scalar_type>::value, std::complex<double>, scalar_type>::type>::type;
};

/** The type of the parts of a number. */
template <typename scalar_type>
struct define_real_type {
    using type = typename std::conditional<
        is_ccomplex<scalar_type>::value, float,
        typename std::conditional<is_zcomplex<scalar_type>::value, double, scalar_type>::type>::type;
};

namespace detail {

/** Real numbers in one number. */
template <typename scalar_type>
struct width : std::integral_constant<int, is_ccomplex<scalar_type>::value || is_zcomplex<scalar_type>::value ? 2 : 1> {};

/** Bits of a real number; 0 for no number that can be transformed. */
template <typename scalar_type>
struct precision : std::integral_constant<int, std::is_same<scalar_type, float>::value || is_ccomplex<scalar_type>::value    ? 32
                                               : std::is_same<scalar_type, double>::value || is_zcomplex<scalar_type>::value ? 64
                                                                                                                             : 0> {};

} // namespace detail

} // namespace heffte

// Types of data on a GPU belong to the backends.
#include "heffte_gpu.h"

#endif
