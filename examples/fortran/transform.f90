! A real transform in three dimensions, over both kinds of communicators: of a wave, one mode
! remains.
!
!     mpif90 transform.f90 -o transform $(pkg-config --cflags --libs thriffty-fortran)
!     mpirun -n 4 ./transform

program transform
    use, intrinsic :: iso_c_binding
    use mpi_f08, only: MPI_Abort, MPI_Allreduce, MPI_COMM_WORLD, MPI_Comm_rank, MPI_DOUBLE_PRECISION, MPI_Finalize, &
        MPI_Init, MPI_MAX
    use thriffty
    implicit none

    integer, parameter :: n(3) = [18, 20, 24], wave(3) = [5, 7, 3]
    integer :: rank

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call compare("integer", .false.)
    call compare("type(MPI_Comm)", .true.)
    call in_shared_arrays()
    call MPI_Finalize()

contains

    !> The wave, at indices of the grid from 1 on.
    pure real(c_double) function field(i, j, k)
        integer, intent(in) :: i, j, k
        real(c_double), parameter :: turn = 2 * acos(-1.0_c_double)

        field = cos(turn * sum(wave * real([i, j, k] - 1, c_double) / n))
    end function

    !> Half of the points is in the mode of the wave. The other half is in the mode of the opposite
    !> wave, which half a spectrum leaves out.
    pure complex(c_double_complex) function mode(i, j, k)
        integer, intent(in) :: i, j, k

        mode = merge(product(n) / 2, 0, all([i, j, k] - 1 == wave))
    end function

    !> The largest error of a part of the spectrum that begins after these indices.
    pure real(c_double) function difference(y, lo)
        complex(c_double_complex), intent(in) :: y(:, :, :)
        integer(c_int64_t), intent(in) :: lo(3)
        integer :: i, j, k

        difference = 0
        do k = 1, size(y, 3)
            do j = 1, size(y, 2)
                do i = 1, size(y, 1)
                    difference = max(difference, abs(y(i, j, k) - mode(i + int(lo(1)), j + int(lo(2)), k + int(lo(3)))))
                end do
            end do
        end do
    end function

    subroutine check(status)
        integer(c_int32_t), intent(in) :: status

        if (status /= THRIFFTY_STATUS_OK) then
            print *, "thriffty: ", thriffty_last_error()
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine

    !> Transforms over a communicator of either kind.
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

        error = difference(y, lo)
        error = max(error, maxval(abs(back - x)))
        call MPI_Allreduce(error, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
        if (rank == 0) print "(3a, es8.1)", "communicator ", name, ": error", largest
        if (rank == 0) print "(2a)", "  ", thriffty_plan_recipe(plan)
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
        error = difference(y, lo)
        call MPI_Allreduce(error, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
        if (rank == 0) print "(a, es8.1)", "shared arrays: error", largest
        if (.not. largest < 1e-10_c_double) call MPI_Abort(MPI_COMM_WORLD, 3)
        call thriffty_plan_destroy(plan, status)
        call check(status)
    end subroutine
end program
