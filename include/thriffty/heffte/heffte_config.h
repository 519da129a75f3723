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

/* Backward transforms of complex data from the input boxes to the output boxes, as those of fftMPI.
 *
 * LAMMPS, which defines FFT_HEFFTE, means these: PPPM makes a transform from the layout of its
 * spectrum to that of its particles and only runs it backward. heFFTe reads the output boxes there,
 * so forces are wrong unless both layouts are equal, as on one rank.
 */
#ifdef FFT_HEFFTE
#define THRIFFTY_HEFFTE_ONE_WAY
/* The namespace of classes, which differ. */
#define THRIFFTY_HEFFTE_BACKWARD backward_to_output
#else
#define THRIFFTY_HEFFTE_BACKWARD backward_to_input
#endif

/* Plans over MPI. */
#ifndef THRIFFTY_WITH_MPI
#define THRIFFTY_WITH_MPI
#endif

#include <mpi.h>

#include "../../thriffty.h"

#endif
