/* thriffty in the place of heFFTe 2.4: what all transforms have. MIT OR Apache-2.0. */
#ifndef THRIFFTY_HEFFTE_TRANSFORM_H
#define THRIFFTY_HEFFTE_TRANSFORM_H

#include <cstring>
#include <functional>

#include "heffte_plans.h"

namespace heffte {
namespace detail {

/** Copies of arrays where a backend has them. */
template <typename location_tag>
struct memory;

template <>
struct memory<tag::cpu> {
    /** Room of our own. */
    using bytes = std::vector<char>;
    static int32_t device() { return -1; }
    static void copy(void *target, void const *source, size_t bytes, void *) { std::memcpy(target, source, bytes); }
    /** Real numbers become the first parts of pairs. */
    template <typename real>
    static void widen(real *pairs, real const *numbers, size_t count, void *) {
        for (size_t i = 0; i < count; i++) {
            pairs[2 * i] = numbers[i];
            pairs[2 * i + 1] = 0;
        }
    }
    /** The first parts of pairs. */
    template <typename real>
    static void narrow(real *numbers, real const *pairs, size_t count, void *) {
        for (size_t i = 0; i < count; i++) numbers[i] = pairs[2 * i];
    }
};

#ifdef Heffte_ENABLE_CUDA
template <>
struct memory<tag::gpu> {
    using bytes = gpu::vector<char>;
    static int32_t device() {
        int current = 0;
        gpu::check(cudaGetDevice(&current));
        return current;
    }
    static void copy(void *target, void const *source, size_t bytes, cudaStream_t stream) {
        gpu::check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream));
    }
    template <typename real>
    static void widen(real *pairs, real const *numbers, size_t count, cudaStream_t stream) {
        gpu::check(cudaMemsetAsync(pairs, 0, 2 * count * sizeof(real), stream));
        strided(pairs, 2, numbers, 1, count, stream);
    }
    template <typename real>
    static void narrow(real *numbers, real const *pairs, size_t count, cudaStream_t stream) {
        strided(numbers, 1, pairs, 2, count, stream);
    }

private:
    /** Copies numbers at distances of `to` and `from` numbers. */
    template <typename real>
    static void strided(real *target, size_t to, real const *source, size_t from, size_t count, cudaStream_t stream) {
        size_t const one = sizeof(real);
        gpu::check(cudaMemcpy2DAsync(target, to * one, source, from * one, one, count, cudaMemcpyDeviceToDevice, stream));
    }
};
#endif

/** Runs a plan on arrays that may be the same or overlap. Collective. */
template <typename location_tag>
void run_plan(thriffty_plan *plan, direction way, void const *input, size_t input_bytes, void *output, size_t output_bytes,
              typename backend::device_instance<location_tag>::stream_type stream) {
    bool const forward = way == direction::forward;
    if (input == output && input != nullptr) {
        size_t const most = std::max(input_bytes, output_bytes);
        return check(forward ? thriffty_forward_in_place(plan, output, most)
                             : thriffty_inverse_in_place(plan, output, most));
    }
    typename memory<location_tag>::bytes own;
    auto const *const first = static_cast<char const *>(input);
    auto const *const target = static_cast<char const *>(output);
    std::less<char const *> const before{};
    if (input_bytes > 0 && output_bytes > 0 && input != nullptr && output != nullptr &&
        before(first, target + output_bytes) && before(target, first + input_bytes)) {
        own = typename memory<location_tag>::bytes(input_bytes);
        memory<location_tag>::copy(own.data(), input, input_bytes, stream);
        input = own.data();
    }
    check(forward ? thriffty_forward(plan, input, input_bytes, output, output_bytes)
                  : thriffty_inverse(plan, input, input_bytes, output, output_bytes));
}

inline namespace THRIFFTY_HEFFTE_BACKWARD {

/** What `fft3d` and `fft3d_r2c` have in common. They can be moved, but not copied. */
template <typename backend_tag, typename index>
class transform : public backend::device_instance<typename backend::buffer_traits<backend_tag>::location> {
    static_assert(backend::is_enabled<backend_tag>::value, "this installation does not have the backend");

public:
    using location_tag = typename backend::buffer_traits<backend_tag>::location;
    using backend_device = backend::device_instance<location_tag>;
    using stream_type = typename backend_device::stream_type;
    template <typename T>
    using buffer_container = typename backend::buffer_traits<backend_tag>::template container<T>;
    template <typename T>
    using real_buffer_container = buffer_container<typename define_real_type<T>::type>;

    transform(transform &&) = default;
    transform &operator=(transform &&) = default;

    box3d<index> inbox() const { return inbox_; }
    box3d<index> outbox() const { return outbox_; }
    long long size_inbox() const { return inbox_.count(); }
    long long size_outbox() const { return outbox_.count(); }

    /**
     * Complex numbers of the workspace of one array. Only real arrays of complex transforms
     * use it.
     */
    size_t size_workspace() const { return static_cast<size_t>(std::max(size_inbox(), size_outbox())); }
    size_t size_comm_buffers() const { return size_workspace(); }

    /** The factor of a scale. */
    double get_scale_factor(scale scaling) const {
        double const points = plans_->boxes().logical_points();
        return scaling == scale::none ? 1.0 : scaling == scale::full ? 1.0 / points : 1.0 / std::sqrt(points);
    }

    /** Transforms this rank's array. Collective, as all that follow. */
    template <typename In, typename Out>
    void forward(In const input[], Out output[], scale scaling = scale::none) const {
        run(direction::forward, 1, input, output, nullptr, scaling);
    }
    template <typename In, typename Out, typename Work>
    void forward(In const input[], Out output[], Work workspace[], scale scaling = scale::none) const {
        run(direction::forward, 1, input, output, workspace, scaling);
    }
    /** Transforms arrays that follow each other in memory. */
    template <typename In, typename Out>
    void forward(int batch_size, In const input[], Out output[], scale scaling = scale::none) const {
        run(direction::forward, batch_size, input, output, nullptr, scaling);
    }
    template <typename In, typename Out, typename Work>
    void forward(int batch_size, In const input[], Out output[], Work workspace[], scale scaling = scale::none) const {
        run(direction::forward, batch_size, input, output, workspace, scaling);
    }

    template <typename In, typename Out>
    void backward(In const input[], Out output[], scale scaling = scale::none) const {
        run(direction::backward, 1, input, output, nullptr, scaling);
    }
    template <typename In, typename Out, typename Work>
    void backward(In const input[], Out output[], Work workspace[], scale scaling = scale::none) const {
        run(direction::backward, 1, input, output, workspace, scaling);
    }
    template <typename In, typename Out>
    void backward(int batch_size, In const input[], Out output[], scale scaling = scale::none) const {
        run(direction::backward, batch_size, input, output, nullptr, scaling);
    }
    template <typename In, typename Out, typename Work>
    void backward(int batch_size, In const input[], Out output[], Work workspace[], scale scaling = scale::none) const {
        run(direction::backward, batch_size, input, output, workspace, scaling);
    }

protected:
    /** Whole spectra, complex or real as the backend says. */
    transform(stream_type stream, box3d<index> const &inbox, box3d<index> const &outbox, MPI_Comm comm,
              plan_options const &options)
        : backend_device(stream), inbox_(inbox), outbox_(outbox), is_complex_(!is_real),
          plans_(plan_cache::find(whole(inbox, outbox, options, stream), comm)), backward_plans_(plans_) {
        if (one_way) backward_plans_ = plan_cache::find(whole(outbox, inbox, options, stream), comm);
    }

    /** Spectra of real data, half along a dimension. */
    transform(stream_type stream, box3d<index> const &inbox, box3d<index> const &outbox, int halved, MPI_Comm comm,
              plan_options const &options)
        : backend_device(stream), inbox_(inbox), outbox_(outbox), is_complex_(false),
          plans_(plan_cache::find(half(inbox, outbox, halved, options, stream), comm)), backward_plans_(plans_) {
        static_assert(!is_real, "cosine and sine transforms have whole spectra");
    }

    /** Numbers of an array before and after a transform. */
    std::array<size_t, 2> lengths(direction way) const {
        size_t const in = static_cast<size_t>(size_inbox()), out = static_cast<size_t>(size_outbox());
        if (way == direction::forward || (one_way && is_complex_)) return {{in, out}};
        return {{out, in}};
    }

    /** An input of another length is refused on every rank. */
    template <typename In, typename Out>
    void run_vector(direction way, buffer_container<In> const &input, buffer_container<Out> &output, scale scaling) const {
        size_t const length = lengths(way)[0];
        // NULL is an array that is too short: thriffty tells the other ranks.
        In const *const numbers = input.size() < length ? nullptr : input.data();
        run(way, 1, numbers, output.data(), nullptr, scaling);
    }

private:
    /** Cosine and sine transforms. */
    static constexpr bool is_real = backend::kind<backend_tag>::value != kind::c2c;

#ifdef THRIFFTY_HEFFTE_ONE_WAY
    static constexpr bool one_way = !is_real;
#else
    static constexpr bool one_way = false;
#endif

    static box3d<long long> wide(box3d<index> const &box) {
        return box3d<long long>({{box.low[0], box.low[1], box.low[2]}}, {{box.high[0], box.high[1], box.high[2]}},
                                box.order);
    }

    using place = memory<location_tag>;

    static problem whole(box3d<index> const &inbox, box3d<index> const &outbox, plan_options const &options,
                         stream_type stream) {
        problem wanted = {wide(inbox), wide(outbox), {}, THRIFFTY_TRANSFORM_C2C, options, place::device(), stream};
        if (is_real) wanted.transform = THRIFFTY_TRANSFORM_R2R;
        wanted.kinds.fill(backend::kind<backend_tag>::value);
        return wanted;
    }

    static problem half(box3d<index> const &inbox, box3d<index> const &outbox, int halved, plan_options const &options,
                        stream_type stream) {
        problem wanted = {wide(inbox), wide(outbox), {}, THRIFFTY_TRANSFORM_R2C, options, place::device(), stream};
        wanted.kinds.fill(kind::c2c);
        // Another number is no dimension: all ranks refuse a problem without one.
        if (halved >= 0 && halved < 3) wanted.kinds[static_cast<size_t>(halved)] = kind::r2c;
        return wanted;
    }

    template <typename In, typename Out>
    void run(direction way, int64_t count, In const *input, Out *output, void *workspace, scale scaling) const {
        static_assert(precision<In>::value != 0 && precision<In>::value == precision<Out>::value,
                      "arrays of float, double or complex numbers, both of one precision");
        bool const forward = way == direction::forward;
        int const physical = forward ? width<In>::value : width<Out>::value;
        int const spectral = forward ? width<Out>::value : width<In>::value;
        if (spectral != (is_real ? 1 : 2) || (physical == 2 && !is_complex_))
            throw std::invalid_argument("real arrays where the transform has complex numbers, or the reverse");
        if (count == 0) return;
        plans &chosen = forward ? *plans_ : *backward_plans_;
        thriffty_plan *const plan = chosen.find(precision<In>::value, count, way, scaling);
        std::array<size_t, 2> const length = lengths(way);
        size_t const points = length[0] * static_cast<size_t>(count), results = length[1] * static_cast<size_t>(count);
        if (is_complex_ && physical == 1) {
            using Complex = typename std::conditional<width<In>::value == 2, In, Out>::type;
            return forward ? widened<Complex>(plan, input, points, output, results, workspace)
                           : narrowed<Complex>(plan, input, points, output, results, workspace);
        }
        run_plan<location_tag>(plan, way, input, points * sizeof(In), output, results * sizeof(Out), this->stream());
    }

    /** Room for complex numbers: the workspace, or memory of our own. */
    template <typename Complex>
    static Complex *room(void *workspace, typename place::bytes &own, size_t numbers) {
        if (workspace != nullptr) return static_cast<Complex *>(workspace);
        own = typename place::bytes(numbers * sizeof(Complex));
        return reinterpret_cast<Complex *>(own.data());
    }

    /** A forward transform of real numbers. */
    template <typename Complex, typename In, typename Out>
    void widened(thriffty_plan *plan, In const *input, size_t points, Out *output, size_t results, void *workspace) const {
        using real = typename define_real_type<In>::type;
        typename place::bytes own;
        Complex *numbers = nullptr;
        if (input != nullptr) {
            numbers = room<Complex>(workspace, own, points);
            place::widen(reinterpret_cast<real *>(numbers), reinterpret_cast<real const *>(input), points, this->stream());
        }
        run_plan<location_tag>(plan, direction::forward, numbers, points * sizeof(Complex), output, results * sizeof(Out),
                               this->stream());
    }

    /** A backward transform to real numbers. */
    template <typename Complex, typename In, typename Out>
    void narrowed(thriffty_plan *plan, In const *input, size_t points, Out *output, size_t results, void *workspace) const {
        using real = typename define_real_type<Out>::type;
        typename place::bytes own;
        Complex *const numbers = output == nullptr ? nullptr : room<Complex>(workspace, own, results);
        run_plan<location_tag>(plan, direction::backward, input, points * sizeof(In), numbers, results * sizeof(Complex),
                               this->stream());
        if (numbers != nullptr)
            place::narrow(reinterpret_cast<real *>(output), reinterpret_cast<real const *>(numbers), results, this->stream());
    }

    box3d<index> inbox_, outbox_;
    bool is_complex_;
    std::shared_ptr<plans> plans_, backward_plans_;
};

} // namespace THRIFFTY_HEFFTE_BACKWARD
} // namespace detail
} // namespace heffte

#endif
