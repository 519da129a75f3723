/* thriffty in the place of heFFTe 2.4: what this installation has. MIT OR Apache-2.0. */
#ifndef THRIFFTY_HEFFTE_CONFIG_H
#define THRIFFTY_HEFFTE_CONFIG_H

/* Both names of CPU backends are the same transforms. */
#define Heffte_ENABLE_FFTW
#define Heffte_ENABLE_MKL

#define Heffte_VERSION_MAJOR 2
#define Heffte_VERSION_MINOR 4
#define Heffte_VERSION_PATCH 1
#define Heffte_VERSION "2.4.1"

/* GPUs, where a program asks for them: headers and library of CUDA's runtime are its own. */
#ifdef THRIFFTY_HEFFTE_CUDA
#define Heffte_ENABLE_CUDA
#define Heffte_ENABLE_GPU
#endif

/* Plans over MPI. */
#ifndef THRIFFTY_WITH_MPI
#define THRIFFTY_WITH_MPI
#endif

#include <mpi.h>

#include "../../thriffty.h"

#endif
