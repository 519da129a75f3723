! An array with ghost points: loaded, transformed forth and back, stored, and its ghost points.

program arrays
    use, intrinsic :: iso_c_binding
    use mpi_f08, only: MPI_Abort, MPI_COMM_WORLD, MPI_Finalize, MPI_Init
    use thriffty
    implicit none

    integer, parameter :: n(3) = [8, 6, 10], below(3) = [1, 0, 2], above(3) = [1, 1, 0]
    type(thriffty_plan) :: plan, bricks
    type(thriffty_options) :: options
    type(thriffty_sizes) :: sizes, even
    type(thriffty_subarray) :: here(1), own(1)
    type(thriffty_copy) :: load, store, halo
    integer(c_int32_t) :: status
    real(c_double), allocatable, target :: u(:, :, :), x(:)
    complex(c_double_complex), allocatable, target :: y(:)
    integer :: lo(3), hi(3), i, j, k

    call MPI_Init()
    ! The program's bricks are an even cut; the plan's are where its first transform is cheapest.
    call thriffty_plan_create(bricks, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, status=status)
    call check(status)
    call thriffty_plan_sizes(bricks, even, status)
    call options%set("transposed_input", .true.)
    call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, options=options, status=status)
    call check(status)
    call thriffty_plan_sizes(plan, sizes, status)
    lo = int(even%input%lo(:3)) + 1
    hi = int(even%input%hi(:3))
    allocate (u(lo(1) - below(1):hi(1) + above(1), lo(2) - below(2):hi(2) + above(2), &
        lo(3) - below(3):hi(3) + above(3)), source=0.0_c_double)
    allocate (x(sizes%input_len), y(sizes%output_len))
    do k = lo(3), hi(3)
        do j = lo(2), hi(2)
            do i = lo(1), hi(1)
                u(i, j, k) = value(i, j, k)
            end do
        end do
    end do

    call thriffty_subarray_init(here(1), even%input, below, above, status)
    call check(status)
    if (here(1)%strides(1) /= 1 .or. here(1)%strides(2) /= size(u, 1)) call fail("strides")
    call thriffty_subarray_init(own(1), sizes%input, [0, 0, 0], [0, 0, 0], status)
    call check(status)
    ! The plan's order of axes is fastest first.
    own(1)%strides(sizes%input_order(1)) = 1
    do i = 2, 3
        own(1)%strides(sizes%input_order(i)) = own(1)%strides(sizes%input_order(i - 1)) * &
            (sizes%input%hi(sizes%input_order(i - 1)) - sizes%input%lo(sizes%input_order(i - 1)))
    end do
    call thriffty_copy_create(load, plan, THRIFFTY_SIDE_INPUT, here, own, status)
    call check(status)
    call thriffty_copy_create(store, plan, THRIFFTY_SIDE_INPUT, own, here, status)
    call check(status)
    call thriffty_halo_create(halo, plan, THRIFFTY_SIDE_INPUT, below, above, [.true., .true., .true.], here, status)
    call check(status)

    call thriffty_copy_run(load, [c_loc(u)], [c_loc(x)], status)
    call check(status)
    call thriffty_forward(plan, c_loc(x), sizes%input_bytes, c_loc(y), sizes%output_bytes, status)
    call check(status)
    call thriffty_inverse(plan, c_loc(y), sizes%output_bytes, c_loc(x), sizes%input_bytes, status)
    call check(status)
    u = -1
    call thriffty_copy_run(store, [c_loc(x)], [c_loc(u)], status)
    call check(status)
    call thriffty_copy_run_in_place(halo, [c_loc(u)], status)
    call check(status)
    do k = lbound(u, 3), ubound(u, 3)
        do j = lbound(u, 2), ubound(u, 2)
            do i = lbound(u, 1), ubound(u, 1)
                if (abs(u(i, j, k) - value(i, j, k)) > 1e-11) call fail("a ghost point")
            end do
        end do
    end do
    ! Two axes of three.
    call thriffty_copy_destroy(halo, status)
    call check(status)
    call thriffty_halo_create(halo, plan, THRIFFTY_SIDE_INPUT, below(:2), above, [.true., .true., .true.], here, status)
    if (status == 0) call fail("ghost points along two axes")

    call thriffty_copy_destroy(load, status)
    call check(status)
    call thriffty_copy_destroy(store, status)
    call check(status)
    call thriffty_plan_destroy(plan, status)
    call thriffty_plan_destroy(bricks, status)
    call MPI_Finalize()

contains

    !> The value of a point, which may be beyond the grid.
    pure real(c_double) function value(i, j, k)
        integer, intent(in) :: i, j, k

        value = modulo(i - 1, n(1)) + 10 * modulo(j - 1, n(2)) + 100 * modulo(k - 1, n(3))
    end function

    subroutine check(status)
        integer(c_int32_t), intent(in) :: status

        if (status /= 0) call fail(thriffty_last_error())
    end subroutine

    subroutine fail(why)
        character(*), intent(in) :: why

        print *, why
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine
end program
