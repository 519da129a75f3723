/* thriffty in the place of heFFTe 2.4: transforms of real data. MIT OR Apache-2.0. */
#ifndef THRIFFTY_HEFFTE_FFT3D_R2C_H
#define THRIFFTY_HEFFTE_FFT3D_R2C_H

#include "heffte_transform.h"

namespace heffte {
inline namespace THRIFFTY_HEFFTE_BACKWARD {

/**
 * Transforms of real data to half a spectrum: n/2 + 1 points along dimension `r2c_direction`. As
 * `fft3d` otherwise.
 */
template <typename backend_tag, typename index = int>
class fft3d_r2c : public detail::transform<backend_tag, index> {
    using base = detail::transform<backend_tag, index>;

public:
    using stream_type = typename base::stream_type;
    template <typename T>
    using buffer_container = typename base::template buffer_container<T>;
    template <typename T>
    using real_buffer_container = typename base::template real_buffer_container<T>;
    template <typename T>
    using output_buffer_container = buffer_container<typename fft_output<T>::type>;

    fft3d_r2c(box3d<index> const inbox, box3d<index> const outbox, int r2c_direction, MPI_Comm const comm,
              plan_options const options = default_options<backend_tag>())
        : base(nullptr, inbox, outbox, r2c_direction, comm, options) {}

    fft3d_r2c(stream_type stream, box3d<index> const inbox, box3d<index> const outbox, int r2c_direction, MPI_Comm const comm,
              plan_options const options = default_options<backend_tag>())
        : base(stream, inbox, outbox, r2c_direction, comm, options) {}

    using base::backward;
    using base::forward;

    template <typename T>
    output_buffer_container<T> forward(buffer_container<T> const &input, scale scaling = scale::none) const {
        output_buffer_container<T> output(static_cast<size_t>(this->size_outbox()));
        this->run_vector(direction::forward, input, output, scaling);
        return output;
    }

    template <typename T>
    real_buffer_container<T> backward(buffer_container<T> const &input, scale scaling = scale::none) const {
        real_buffer_container<T> output(static_cast<size_t>(this->size_inbox()));
        this->run_vector(direction::backward, input, output, scaling);
        return output;
    }
};

template <typename backend_tag, typename index = int>
using fft2d_r2c = fft3d_r2c<backend_tag, index>;

template <typename backend_tag, typename index>
fft3d_r2c<backend_tag, index> make_fft3d_r2c(box3d<index> const inbox, box3d<index> const outbox, int r2c_direction,
                                             MPI_Comm const comm,
                                             plan_options const options = default_options<backend_tag>()) {
    return fft3d_r2c<backend_tag, index>(inbox, outbox, r2c_direction, comm, options);
}

} // namespace THRIFFTY_HEFFTE_BACKWARD
} // namespace heffte

#endif
