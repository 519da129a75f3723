/* The C interface of heFFTe 2.4, as libthriffty_heffte has it. MIT OR Apache-2.0.
 *
 * Programs that were linked with libheffte.so.2 need nothing of this: they run with
 *
 *     LD_LIBRARY_PATH=PREFIX/lib/thriffty mpirun -n 4 ./program
 *
 * Bounds of boxes are inclusive; dimension 0 is the nearest in memory unless an order says
 * otherwise. Arrays of complex numbers are pairs. A workspace has heffte_size_workspace complex
 * numbers.
 */
#ifndef THRIFFTY_HEFFTE_H
#define THRIFFTY_HEFFTE_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define Heffte_BACKEND_STOCK 0
#define Heffte_BACKEND_FFTW 1
#define Heffte_BACKEND_MKL 2

#define Heffte_SUCCESS 0

#define Heffte_SCALE_NONE 0
#define Heffte_SCALE_FULL 1
#define Heffte_SCALE_SYMMETRIC 2

typedef struct {
    int use_reorder, algorithm, use_pencils, use_gpu_aware;
} heffte_plan_options;

typedef struct {
    int backend_type;
    int using_r2c;
    void *fft;
} heffte_fft_plan;

typedef heffte_fft_plan *heffte_plan;

int heffte_set_default_options(int backend, heffte_plan_options *options);
int heffte_plan_create(int backend, const int inbox_low[3], const int inbox_high[3], const int *inbox_order,
                       const int outbox_low[3], const int outbox_high[3], const int *outbox_order, MPI_Comm comm,
                       const heffte_plan_options *options, heffte_plan *plan);
int heffte_plan_create_r2c(int backend, const int inbox_low[3], const int inbox_high[3], const int *inbox_order,
                           const int outbox_low[3], const int outbox_high[3], const int *outbox_order, int r2c_direction,
                           MPI_Comm comm, const heffte_plan_options *options, heffte_plan *plan);
int heffte_plan_destroy(heffte_plan plan);

int heffte_size_inbox(const heffte_plan plan);
int heffte_size_outbox(const heffte_plan plan);
int heffte_size_workspace(const heffte_plan plan);
int heffte_get_backend(const heffte_plan plan);
int heffte_is_r2c(const heffte_plan plan);

void heffte_forward_s2c(const heffte_plan plan, const float *input, void *output, int scale);
void heffte_forward_c2c(const heffte_plan plan, const void *input, void *output, int scale);
void heffte_forward_d2z(const heffte_plan plan, const double *input, void *output, int scale);
void heffte_forward_z2z(const heffte_plan plan, const void *input, void *output, int scale);
void heffte_forward_s2c_buffered(const heffte_plan plan, const float *input, void *output, void *workspace, int scale);
void heffte_forward_c2c_buffered(const heffte_plan plan, const void *input, void *output, void *workspace, int scale);
void heffte_forward_d2z_buffered(const heffte_plan plan, const double *input, void *output, void *workspace, int scale);
void heffte_forward_z2z_buffered(const heffte_plan plan, const void *input, void *output, void *workspace, int scale);

void heffte_backward_c2s(const heffte_plan plan, const void *input, float *output, int scale);
void heffte_backward_c2c(const heffte_plan plan, const void *input, void *output, int scale);
void heffte_backward_z2d(const heffte_plan plan, const void *input, double *output, int scale);
void heffte_backward_z2z(const heffte_plan plan, const void *input, void *output, int scale);
void heffte_backward_c2s_buffered(const heffte_plan plan, const void *input, float *output, void *workspace, int scale);
void heffte_backward_c2c_buffered(const heffte_plan plan, const void *input, void *output, void *workspace, int scale);
void heffte_backward_z2d_buffered(const heffte_plan plan, const void *input, double *output, void *workspace, int scale);
void heffte_backward_z2z_buffered(const heffte_plan plan, const void *input, void *output, void *workspace, int scale);

#ifdef __cplusplus
}
#endif

#endif
