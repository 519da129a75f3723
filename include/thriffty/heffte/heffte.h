/* thriffty in the place of heFFTe 2.4: all of it. MIT OR Apache-2.0.
 *
 * Programs of heFFTe compile against these headers unchanged; docs/heffte.md has the differences.
 */
#ifndef THRIFFTY_HEFFTE_ALL_H
#define THRIFFTY_HEFFTE_ALL_H

#include "heffte_fft3d.h"
#include "heffte_fft3d_r2c.h"

#endif
