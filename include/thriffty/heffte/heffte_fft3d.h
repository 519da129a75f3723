/* thriffty in the place of heFFTe 2.4: transforms. MIT OR Apache-2.0. */
#ifndef THRIFFTY_HEFFTE_FFT3D_H
#define THRIFFTY_HEFFTE_FFT3D_H

#include "heffte_transform.h"

namespace heffte {
inline namespace THRIFFTY_HEFFTE_BACKWARD {

/**
 * Transforms of complex data, or cosine and sine transforms of real data, as the backend says.
 *
 * Arrays are boxes of the ranks, in memory by the box's order. Results are unscaled unless a call
 * says otherwise, in both directions. Arrays of real numbers are data of a complex transform whose
 * imaginary parts are 0 or dropped. Input and output may be the same array.
 *
 * Constructors and transforms are collective, and so is freeing the communicator. All ranks give
 * the same scale and number of arrays. An error is a `std::runtime_error` with the same text on
 * every rank.
 */
template <typename backend_tag, typename index = int>
class fft3d : public detail::transform<backend_tag, index> {
    using base = detail::transform<backend_tag, index>;

public:
    using stream_type = typename base::stream_type;
    template <typename T>
    using buffer_container = typename base::template buffer_container<T>;
    template <typename T>
    using real_buffer_container = typename base::template real_buffer_container<T>;
    template <typename T>
    using output_buffer_container = buffer_container<typename transform_output<T, backend_tag>::type>;

    fft3d(box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm,
          plan_options const options = default_options<backend_tag>())
        : base(nullptr, inbox, outbox, comm, options) {}

    fft3d(stream_type stream, box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm,
          plan_options const options = default_options<backend_tag>())
        : base(stream, inbox, outbox, comm, options) {}

    using base::backward;
    using base::forward;

    template <typename T>
    output_buffer_container<T> forward(buffer_container<T> const &input, scale scaling = scale::none) const {
        output_buffer_container<T> output(this->lengths(direction::forward)[1]);
        this->run_vector(direction::forward, input, output, scaling);
        return output;
    }

    template <typename T>
    buffer_container<T> backward(buffer_container<T> const &input, scale scaling = scale::none) const {
        buffer_container<T> output(this->lengths(direction::backward)[1]);
        this->run_vector(direction::backward, input, output, scaling);
        return output;
    }

    /** The real parts of the inverse transform. */
    template <typename T>
    real_buffer_container<T> backward_real(buffer_container<T> const &input, scale scaling = scale::none) const {
        real_buffer_container<T> output(this->lengths(direction::backward)[1]);
        this->run_vector(direction::backward, input, output, scaling);
        return output;
    }
};

template <typename backend_tag, typename index = int>
using fft2d = fft3d<backend_tag, index>;

/** Cosine and sine transforms. */
template <typename backend_tag, typename index = int>
using rtransform = fft3d<backend_tag, index>;

template <typename backend_tag, typename index>
rtransform<backend_tag, index> make_rtransform(box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm,
                                               plan_options const options = default_options<backend_tag>()) {
    return rtransform<backend_tag, index>(inbox, outbox, comm, options);
}

template <typename backend_tag, typename index>
fft3d<backend_tag, index> make_fft3d(box3d<index> const inbox, box3d<index> const outbox, MPI_Comm const comm,
                                     plan_options const options = default_options<backend_tag>()) {
    return fft3d<backend_tag, index>(inbox, outbox, comm, options);
}

} // namespace THRIFFTY_HEFFTE_BACKWARD
} // namespace heffte

#endif
