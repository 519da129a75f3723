! Calls with default integers and logicals, which have 8 bytes where the program is compiled with
! -fdefault-integer-8, and with statuses of both kinds.

program integers
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64
    use mpi_f08, only: MPI_Abort, MPI_COMM_WORLD, MPI_Comm_rank, MPI_Comm_size, MPI_Finalize, MPI_Init
    use thriffty
    implicit none

    integer, parameter :: n(2) = [6, 4], around(2) = [1, 0]
    logical, parameter :: periodic(2) = [.true., .true.]
    type(thriffty_plan) :: plan
    type(thriffty_options) :: options
    type(thriffty_sizes) :: sizes
    type(thriffty_timings) :: timings
    integer(int64) :: long
    integer :: status

    call MPI_Init()
    call alone()
    call over_ranks()
    call line()
    call copies()
    call settings()
    if (thriffty_next_fast_len(97) /= 100) call fail("the next fast length")
    if (thriffty_next_fast_len(97_int64) /= 100_int64) call fail("the next fast length of 8 bytes")
    call MPI_Finalize()

contains

    !> A single axis that ranks share, cyclic on both sides: a constant has one mode.
    subroutine line()
        complex(c_double_complex), target :: x(144), y(144)
        integer(int64) :: points, position, each, k
        integer(int32) :: ranks
        type(thriffty_options) :: cyclic

        call MPI_Comm_size(MPI_COMM_WORLD, ranks)
        call cyclic%set("input_cyclic", [ranks])
        call cyclic%set("output_cyclic", [ranks])
        call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_C2C, [144], options=cyclic, status=status)
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        call check(status)
        if (any(sizes%input_strides(:1) /= ranks)) call fail("strides of a cyclic layout")
        x = 1
        call thriffty_forward(plan, c_loc(x), sizes%input_bytes, c_loc(y), sizes%output_bytes, status)
        call check(status)
        each = 144 / sizes%output_strides(1)
        do points = 1, sizes%output_len
            position = sizes%output%lo(1) + points - 1
            k = position / each + sizes%output_strides(1) * modulo(position, each)
            if (abs(y(points) - merge(144, 0, k == 0)) > 1e-10_c_double) call fail("a cyclic transform")
        end do
        call thriffty_plan_destroy(plan, status)
        call check(status)
    end subroutine

    !> A plan of one process, and operators on its spectrum.
    subroutine alone()
        real(c_double), target :: x(6, 4), back(6, 4)
        complex(c_double_complex), target :: y(4, 4), kernel(4, 4)
        real(c_double) :: k(6), odd(6), estimate, bound
        integer :: i, j

        do j = 1, n(2)
            x(:, j) = [(real(modulo(5 * i + 3 * j, 7), c_double), i = 1, n(1))]
        end do
        call options%set("batch", 1)
        call options%set("ignore_shared_memory", .false.)
        call options%set("forward_scale", "none  ")
        call thriffty_plan_create_serial(plan, THRIFFTY_TRANSFORM_R2C, n, options, status)
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        call check(status)
        if (sizes%output_len /= 16 .or. any(sizes%input%hi(:2) /= n)) call fail("sizes")
        call thriffty_forward(plan, c_loc(x), sizes%input_bytes, c_loc(y), sizes%output_bytes, status)
        call check(status)
        if (abs(y(1, 1) - sum(x)) > 1e-12_c_double) call fail("the mean")
        call thriffty_forward_serial(THRIFFTY_TRANSFORM_R2C, n, c_loc(x), sizes%input_bytes, c_loc(kernel), &
            sizes%output_bytes, status, options)
        call check(status)
        if (any(kernel /= y)) call fail("a transform without a plan")
        call thriffty_inverse_serial(THRIFFTY_TRANSFORM_R2C, int(n, int64), c_loc(kernel), sizes%output_bytes, &
            c_loc(back), sizes%input_bytes, long)
        call check(int(long))
        if (any(abs(back - x) > 1e-12_c_double)) call fail("there and back without a plan")
        call thriffty_clear_plans(status)
        call check(status)
        if (thriffty_default_threads() < 1) call fail("the number of threads")
        kernel = 2
        call thriffty_convolve(plan, c_loc(kernel), sizes%output_bytes, .true., c_loc(y), sizes%output_bytes, status)
        call check(status)
        call thriffty_apply(plan, THRIFFTY_OPERATOR_CUTOFF, [1.0_c_double, 1.0_c_double], c_loc(y), &
            sizes%output_bytes, c_loc(y), sizes%output_bytes, status, parameter=10.0_c_double)
        call check(status)
        call thriffty_inverse(plan, c_loc(y), sizes%output_bytes, c_loc(back), sizes%input_bytes, status)
        call check(status)
        if (any(abs(back - 2 * x) > 1e-12_c_double)) call fail("there and back")
        call thriffty_wavenumbers(plan, 2, 4.0_c_double, k, odd, status)
        call check(status)
        if (abs(k(4) / k(2) + 1) > 1e-12_c_double) call fail("wavenumbers")
        call thriffty_green_function(plan, [1.0_c_double, 1.0_c_double], c_loc(kernel), sizes%output_bytes, status)
        if (status /= THRIFFTY_STATUS_ARGUMENT) call fail("Green's function of a plan without padding")
        call thriffty_plan_wire_error(plan, estimate, bound, status)
        call check(status)
        call thriffty_plan_timings(plan, timings, status)
        call check(status)
        if (.not. timings%fft > 0) call fail("the time of transforms")
        call thriffty_plan_clear_timings(plan, status)
        call check(status)
        call thriffty_plan_timings(plan, timings, status)
        call check(status)
        if (timings%fft > 0) call fail("times that were cleared")
        call thriffty_plan_save_wisdom(plan, "/no/such/folder/wisdom.toml", status)
        if (status == THRIFFTY_STATUS_OK) call fail("wisdom in a folder that is not there")
        call thriffty_plan_destroy(plan, status)
        call check(status)
    end subroutine

    !> Communicators of all types, and shapes of both kinds.
    subroutine over_ranks()
        integer :: comm
        integer(int32) :: short
        type(c_ptr) :: array

        comm = MPI_COMM_WORLD%MPI_VAL
        call thriffty_plan_create(plan, comm, THRIFFTY_TRANSFORM_C2C, n, status=status)
        call settle()
        call thriffty_plan_create(plan, int(comm, int32), THRIFFTY_TRANSFORM_C2C, n, status=long)
        if (long /= THRIFFTY_STATUS_OK) call fail(thriffty_last_error())
        call settle()
        call thriffty_plan_create(plan, int(comm, int64), THRIFFTY_TRANSFORM_C2C, int(n, int64), status=short)
        if (short /= THRIFFTY_STATUS_OK) call fail(thriffty_last_error())
        call settle()
        call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_C2C, [8, 8, 8], options=options, status=status)
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        call check(status)
        call thriffty_allocate(plan, array, status)
        call check(status)
        call thriffty_forward_in_place(plan, array, sizes%in_place_bytes, status)
        call check(status)
        call thriffty_inverse_in_place(plan, array, sizes%in_place_bytes, status)
        call check(status)
        call thriffty_plan_refuse(plan, "test", "this", "that", status)
        if (status /= THRIFFTY_STATUS_ARGUMENT) call fail("a refusal")
        call settle()
    end subroutine

    !> Destroys a plan with statuses of both kinds.
    subroutine settle()
        integer(int32) :: short

        call thriffty_plan_sizes(plan, sizes, short)
        call check(int(short))
        call thriffty_plan_destroy(plan, long)
        call check(int(long))
    end subroutine

    !> An array with a ghost point on each side of its first axis.
    subroutine copies()
        type(thriffty_subarray) :: here(1), own(1)
        type(thriffty_copy) :: load, halo
        real(c_double), allocatable, target :: u(:, :), x(:)
        integer :: i, rows

        call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, status=status)
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        call check(status)
        rows = int(sizes%input%hi(1) - sizes%input%lo(1))
        allocate (u(0:rows + 1, sizes%input%hi(2) - sizes%input%lo(2)), x(sizes%input_len))
        call thriffty_subarray_init(own(1), sizes%input, [0, 0], [0, 0], status, array=0, components=1)
        call check(status)
        call thriffty_subarray_init(here(1), sizes%input, around, around, status)
        call check(status)
        call thriffty_copy_create(load, plan, THRIFFTY_SIDE_INPUT, own, here, status)
        call check(status)
        call thriffty_halo_create(halo, plan, THRIFFTY_SIDE_INPUT, around, around, periodic, here, status)
        call check(status)
        ! The value of a point is its index along the first axis.
        x = [(real(sizes%input%lo(1) + modulo(i - 1, max(rows, 1)), c_double), i = 1, size(x))]
        u = -1
        call thriffty_copy_run(load, [c_loc(x)], [c_loc(u)], status)
        call check(status)
        call thriffty_copy_run_in_place(halo, [c_loc(u)], status)
        call check(status)
        do i = 0, rows + 1
            if (any(u(i, :) /= modulo(sizes%input%lo(1) + i - 1, int(n(1), int64)))) call fail("a ghost point")
        end do
        call thriffty_copy_destroy(halo, status)
        call check(status)
        call thriffty_copy_destroy(load, long)
        call check(int(long))
        call settle()
    end subroutine

    !> Values of all types, in Fortran's order of axes, and errors on one rank.
    subroutine settings()
        type(thriffty_options) :: other
        integer(int32) :: rank, ranks

        call MPI_Comm_rank(MPI_COMM_WORLD, rank)
        call MPI_Comm_size(MPI_COMM_WORLD, ranks)
        call other%set("kinds", "r2c,c2c")
        call other%set("zero_padded", [12_int64, 8_int64])
        call other%set("modes", [10_int32, 4_int32])
        call other%set("output_order", [2, 1])
        call other%set("batch", 2_int64)
        call other%set("shared_arrays", .true._int32)
        call other%set("ignore_shared_memory", .true._int64)
        call other%set("ignore_shared_memory", "default" // c_null_char)
        call other%set_stream(c_null_ptr)
        call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, options=other, status=status)
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        call check(status)
        if (any(sizes%output_order(:2) /= [2, 1])) call fail("an order of axes")
        if (ranks == 1 .and. sizes%output_len /= 2 * 6 * 4) call fail("modes")
        if (ranks == 1 .and. any(sizes%output%hi(:2) /= [6, 4])) call fail("modes along each axis")
        call settle()
        if (other%get("modes") /= "10,4" .or. other%get("output_order") /= "2,1") call fail("values of options")
        if (other%get("wire") /= "default" .or. other%get("howmany") /= "") call fail("no value of an option")
        options = other
        call options%read_environment()
        if (options%get("batch") /= other%get("batch")) call fail("options of the environment")
        options = other
        if (rank == 0) call options%set("howmany", 2)
        call refused("howmany")
        options = other
        if (rank == ranks - 1) call options%set("modes", [1, 2, 3, 4, 5])
        call refused("modes")
        options = other
        call options%set("tolerance", 1.1_c_float)
        call refused("found 1.1E+000,")
        options = other
        call options%set("tolerance", 1.5_c_double)
        call refused("found 1.5")
    end subroutine

    !> The options are an error of all ranks.
    subroutine refused(why)
        character(*), intent(in) :: why

        call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, options=options, status=status)
        if (status /= THRIFFTY_STATUS_ARGUMENT) call fail("an option that is wrong: " // why)
        if (index(thriffty_last_error(), why) == 0) call fail(thriffty_last_error())
    end subroutine

    subroutine check(status)
        integer, intent(in) :: status

        if (status /= THRIFFTY_STATUS_OK) call fail(thriffty_last_error())
    end subroutine

    subroutine fail(why)
        character(*), intent(in) :: why

        print "(2a)", "integers: ", why
        call MPI_Abort(MPI_COMM_WORLD, 1_int32)
    end subroutine
end program
