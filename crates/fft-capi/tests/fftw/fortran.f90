! A real transform in three dimensions, over both kinds of communicators, compared with FFTW.

program transform
    use, intrinsic :: iso_c_binding
    use mpi_f08, only: MPI_Abort, MPI_Allreduce, MPI_COMM_WORLD, MPI_Comm_rank, MPI_DOUBLE_PRECISION, MPI_Finalize, &
        MPI_Init, MPI_MAX
    use thriffty
    implicit none
    include "fftw3.f03"

    integer, parameter :: n(3) = [18, 20, 24], half = n(1) / 2 + 1
    complex(c_double_complex) :: whole(half, n(2), n(3))
    integer :: rank

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call transform_whole()
    call compare("integer", .false.)
    call compare("type(MPI_Comm)", .true.)
    call in_shared_arrays()
    call fftw_cleanup()
    call MPI_Finalize()

contains

    pure real(c_double) function field(i, j, k)
        integer, intent(in) :: i, j, k

        field = sin(1 + 0.7_c_double * i) * cos(0.3_c_double * (j * k)) + 0.01_c_double * mod(k, 5)
    end function

    subroutine check(status)
        integer(c_int32_t), intent(in) :: status

        if (status /= THRIFFTY_STATUS_OK) then
            print *, "thriffty: ", thriffty_last_error()
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine

    !> FFTW's transform; its axes are in the order of C.
    subroutine transform_whole()
        real(c_double), allocatable :: x(:, :, :)
        type(c_ptr) :: plan
        integer :: i, j, k

        allocate (x(n(1), n(2), n(3)))
        plan = fftw_plan_dft_r2c_3d(n(3), n(2), n(1), x, whole, FFTW_ESTIMATE)
        do concurrent (k = 1:n(3), j = 1:n(2), i = 1:n(1))
            x(i, j, k) = field(i, j, k)
        end do
        call fftw_execute_dft_r2c(plan, x, whole)
        call fftw_destroy_plan(plan)
    end subroutine

    !> Compares this rank's brick of the transform with FFTW's.
    subroutine compare(name, f08)
        character(*), intent(in) :: name
        logical, intent(in) :: f08
        type(thriffty_plan) :: plan
        type(thriffty_sizes) :: sizes
        type(thriffty_options) :: options
        real(c_double), allocatable, target :: x(:, :, :), back(:, :, :)
        complex(c_double_complex), allocatable, target :: y(:, :, :)
        integer(c_int32_t) :: status
        integer(c_int64_t) :: lo(3), hi(3)
        integer :: i, j, k
        real(c_double) :: error, largest

        call options%set("exchange", "p2p")
        call options%set("memory", "least")
        call options%set("threads", 2)
        if (f08) then
            call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, options=options, status=status)
        else
            call thriffty_plan_create(plan, MPI_COMM_WORLD%MPI_VAL, THRIFFTY_TRANSFORM_R2C, n, status=status)
        end if
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        call check(status)

        ! Indices of the grid, from 1 on.
        lo = sizes%input%lo(:3)
        hi = sizes%input%hi(:3)
        allocate (x(lo(1) + 1:hi(1), lo(2) + 1:hi(2), lo(3) + 1:hi(3)))
        allocate (back, mold=x)
        do concurrent (k = lbound(x, 3):ubound(x, 3), j = lbound(x, 2):ubound(x, 2), i = lbound(x, 1):ubound(x, 1))
            x(i, j, k) = field(i, j, k)
        end do
        lo = sizes%output%lo(:3)
        hi = sizes%output%hi(:3)
        allocate (y(lo(1) + 1:hi(1), lo(2) + 1:hi(2), lo(3) + 1:hi(3)))

        call thriffty_forward(plan, c_loc(x), sizes%input_bytes, c_loc(y), sizes%output_bytes, status)
        call check(status)
        call thriffty_inverse(plan, c_loc(y), sizes%output_bytes, c_loc(back), sizes%input_bytes, status)
        call check(status)

        error = maxval(abs(y - whole(lo(1) + 1:hi(1), lo(2) + 1:hi(2), lo(3) + 1:hi(3))))
        error = max(error, maxval(abs(back - x)))
        call MPI_Allreduce(error, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
        if (rank == 0) print "(3a, es8.1)", "communicator ", name, ": from FFTW", largest
        if (rank == 0) print "(2a)", "  ", thriffty_plan_recipe(plan)
        if (rank == 0) print "(a)", thriffty_plan_report(plan)

        ! What one rank refuses, all do.
        if (rank == 0) then
            call thriffty_plan_refuse(plan, "shape of x", "(1)", "(2)", status)
        else
            call thriffty_forward(plan, c_loc(x), sizes%input_bytes, c_loc(y), sizes%output_bytes, status)
        end if
        if (status /= THRIFFTY_STATUS_ARGUMENT) call MPI_Abort(MPI_COMM_WORLD, 3)
        if (index(thriffty_last_error(), "shape of x: found (1), expected (2)") == 0) call MPI_Abort(MPI_COMM_WORLD, 4)
        if (.not. largest < 1e-10_c_double) call MPI_Abort(MPI_COMM_WORLD, 2)
        call thriffty_plan_destroy(plan, status)
        call check(status)
    end subroutine

    !> The same in arrays that the processes of a host share: nothing is copied into a window.
    subroutine in_shared_arrays()
        type(thriffty_plan) :: plan
        type(thriffty_sizes) :: sizes
        type(thriffty_options) :: options
        type(c_ptr) :: arrays(2)
        real(c_double), pointer :: x(:, :, :)
        complex(c_double_complex), pointer :: y(:, :, :)
        integer(c_int32_t) :: status
        integer(c_int64_t) :: lo(3), hi(3)
        integer :: i, j, k
        real(c_double) :: error, largest

        call options%set("shared_arrays", .true.)
        call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, options=options, status=status)
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        call check(status)
        do i = 1, 2
            call thriffty_allocate(plan, arrays(i), status)
            call check(status)
        end do
        lo = sizes%input%lo(:3)
        hi = sizes%input%hi(:3)
        call c_f_pointer(arrays(1), x, hi - lo)
        do concurrent (k = 1:size(x, 3), j = 1:size(x, 2), i = 1:size(x, 1))
            x(i, j, k) = field(i + int(lo(1)), j + int(lo(2)), k + int(lo(3)))
        end do
        lo = sizes%output%lo(:3)
        hi = sizes%output%hi(:3)
        call c_f_pointer(arrays(2), y, hi - lo)
        call thriffty_forward(plan, arrays(1), sizes%input_bytes, arrays(2), sizes%output_bytes, status)
        call check(status)
        error = maxval(abs(y - whole(lo(1) + 1:hi(1), lo(2) + 1:hi(2), lo(3) + 1:hi(3))))
        call MPI_Allreduce(error, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
        if (rank == 0) print "(a, es8.1)", "shared arrays: from FFTW", largest
        if (.not. largest < 1e-10_c_double) call MPI_Abort(MPI_COMM_WORLD, 3)
        call thriffty_plan_destroy(plan, status)
        call check(status)
    end subroutine
end program
