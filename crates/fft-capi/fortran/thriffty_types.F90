! Constants and types of the module thriffty. MIT OR Apache-2.0.
!
! Every integer and logical has an explicit kind, because a compiler option can give default ones 8
! bytes. So the modules are the same with -fdefault-integer-8 and without.

module thriffty_types
    use, intrinsic :: iso_c_binding, only: c_double, c_funptr, c_int32_t, c_int64_t, c_null_funptr, c_null_ptr, c_ptr, c_size_t
    implicit none
    private :: c_funptr, c_int32_t, c_int64_t, c_null_funptr, c_null_ptr, c_ptr, c_size_t

    integer(c_int32_t), parameter :: &
        THRIFFTY_STATUS_OK = 0, THRIFFTY_STATUS_GEOMETRY = 1, THRIFFTY_STATUS_ARGUMENT = 2, &
        THRIFFTY_STATUS_MEMORY = 3, THRIFFTY_STATUS_MESSAGE = 4, THRIFFTY_STATUS_TRANSPORT = 5, &
        THRIFFTY_STATUS_SHARED_MEMORY = 6, THRIFFTY_STATUS_PLAN = 7, THRIFFTY_STATUS_INTERNAL = 8, &
        THRIFFTY_STATUS_DEVICE = 9, THRIFFTY_STATUS_THREADS = 10, &
        THRIFFTY_TRANSFORM_C2C = 0, THRIFFTY_TRANSFORM_R2C = 1, THRIFFTY_TRANSFORM_R2R = 2

    integer(c_int32_t), parameter :: &
        THRIFFTY_OPERATOR_DERIVATIVE = 0, THRIFFTY_OPERATOR_GRADIENT = 1, THRIFFTY_OPERATOR_DIVERGENCE = 2, &
        THRIFFTY_OPERATOR_CURL = 3, THRIFFTY_OPERATOR_LAPLACIAN = 4, THRIFFTY_OPERATOR_POISSON = 5, &
        THRIFFTY_OPERATOR_HELMHOLTZ = 6, THRIFFTY_OPERATOR_PROJECT = 7, THRIFFTY_OPERATOR_GAUSSIAN = 8, &
        THRIFFTY_OPERATOR_CUTOFF = 9

    integer(c_int32_t), parameter :: THRIFFTY_SIDE_INPUT = 0, THRIFFTY_SIDE_OUTPUT = 1

    !> A half-open box of the grid. Holds nothing where hi <= lo along any axis.
    type, bind(C) :: thriffty_brick
        integer(c_int64_t) :: lo(4) = 0, hi(4) = 0
    end type

    !> What a plan needs of this rank, all arrays of a batch together. Orders of axes are
    !> fastest first, with axes from 1 on. Where strides are not 1, bricks count positions: of n
    !> points with stride s, position p has the index p/(n/s) + s mod(p, n/s), both from 0 on. Only
    !> cyclic and transposed data of a single axis has such strides.
    type, bind(C) :: thriffty_sizes
        integer(c_size_t) :: struct_size = 0
        type(thriffty_brick) :: input, output
        integer(c_size_t) :: input_len = 0, output_len = 0, input_bytes = 0, output_bytes = 0
        integer(c_size_t) :: in_place_bytes = 0, workspace_bytes = 0
        integer(c_int32_t) :: input_order(4) = 0, output_order(4) = 0
        integer(c_int64_t) :: input_strides(4) = 1, output_strides(4) = 1
    end type

    !> Where the time of a plan went on this rank, in seconds, and what it sent.
    type, bind(C) :: thriffty_timings
        integer(c_size_t) :: struct_size = 0
        real(c_double) :: pack = 0, exchange = 0, unpack = 0, own = 0, shared = 0, fft = 0
        integer(c_int64_t) :: sent = 0, forwarded = 0, reals = 0
    end type

    !> A distributed transform. Copies are the same plan. `handle` is the plan as C has it.
    type :: thriffty_plan
        type(c_ptr) :: handle = c_null_ptr
        integer(c_int32_t) :: axes = 0
    end type

    !> The ranks of a process group, without MPI. Copies are the same communicator.
    type :: thriffty_comm
        type(c_ptr) :: handle = c_null_ptr
    end type

    !> The functions of a process group, which are bind(C), as c_funloc has them: their arguments
    !> are those that include/thriffty.h says. Those that are not set are NULL.
    type, bind(C) :: thriffty_group_callbacks
        integer(c_size_t) :: struct_size = 0
        type(c_funptr) :: allgather = c_null_funptr, alltoallv = c_null_funptr
        type(c_funptr) :: isend = c_null_funptr, irecv = c_null_funptr, test = c_null_funptr
        type(c_funptr) :: host = c_null_funptr, lost = c_null_funptr, abandon = c_null_funptr, error = c_null_funptr
        type(c_funptr) :: device_alltoallv = c_null_funptr
    end type

    !> A brick in a local array. Arrays of a copy are numbered from 0. The offset of the
    !> brick's first point is in elements.
    type, bind(C) :: thriffty_subarray
        type(thriffty_brick) :: brick
        integer(c_int64_t) :: array = 0, offset = 0, strides(4) = 0, distance = 0
    end type

    !> A copy between local arrays of all ranks.
    type :: thriffty_copy
        type(c_ptr) :: handle = c_null_ptr
    end type
end module
