! A process group whose functions are Fortran's: here they call MPI, and say that every second rank
! is on another host, so that the group is used. Compared with plans over MPI.
!
!     mpif90 fortran_group.f90 -o group $(pkg-config --cflags --libs thriffty-fortran)
!     mpirun -n 4 ./group

module group_functions
    use, intrinsic :: iso_c_binding
    use mpi_f08
    implicit none

    character(kind=c_char), target :: host(2) = ["0", c_null_char]
    character(kind=c_char), target :: reason(7) = ["b", "r", "o", "k", "e", "n", c_null_char]
    logical :: is_broken = .false.

contains

    function allgather(context, mine, all, bytes) result(status) bind(C)
        type(c_ptr), value :: context, mine, all
        integer(c_size_t), value :: bytes
        integer(c_int32_t) :: status
        integer(c_int8_t), pointer :: from(:), to(:)
        integer, pointer :: ranks
        integer :: n, error

        call c_f_pointer(context, ranks)
        call c_f_pointer(mine, from, [bytes])
        call c_f_pointer(all, to, [bytes * ranks])
        n = int(bytes)
        call MPI_Allgather(from, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD, error)
        status = merge(1, error, is_broken)
    end function

    function alltoallv(context, send, send_bytes, send_offsets, recv, recv_bytes, recv_offsets) result(status) bind(C)
        type(c_ptr), value :: context, send, send_bytes, send_offsets, recv, recv_bytes, recv_offsets
        integer(c_int32_t) :: status
        integer(c_int8_t), pointer :: from(:), to(:)
        integer, pointer :: ranks
        integer :: error

        call c_f_pointer(context, ranks)
        call c_f_pointer(send, from, [ending(send_bytes, send_offsets)])
        call c_f_pointer(recv, to, [ending(recv_bytes, recv_offsets)])
        call MPI_Alltoallv(from, numbers(send_bytes), numbers(send_offsets), MPI_BYTE, &
            to, numbers(recv_bytes), numbers(recv_offsets), MPI_BYTE, MPI_COMM_WORLD, error)
        status = error

    contains

        function numbers(at) result(found)
            type(c_ptr), intent(in) :: at
            integer :: found(ranks)
            integer(c_size_t), pointer :: long(:)

            call c_f_pointer(at, long, [ranks])
            found = int(long)
        end function

        integer function ending(bytes, offsets)
            type(c_ptr), intent(in) :: bytes, offsets

            ending = maxval(numbers(bytes) + numbers(offsets))
        end function
    end function

    function host_name(context) result(name) bind(C)
        type(c_ptr), value :: context
        type(c_ptr) :: name

        name = c_null_ptr
        if (c_associated(context)) name = c_loc(host)
    end function

    function why(context) result(text) bind(C)
        type(c_ptr), value :: context
        type(c_ptr) :: text

        text = c_null_ptr
        if (c_associated(context)) text = c_loc(reason)
    end function
end module

program fortran_group
    use, intrinsic :: iso_c_binding
    use mpi_f08
    use thriffty
    use group_functions
    implicit none

    integer, parameter :: n(3) = [8, 6, 10]
    type(thriffty_group_callbacks) :: callbacks
    type(thriffty_comm) :: comm, none
    type(thriffty_plan) :: mine, reference
    type(thriffty_sizes) :: sizes
    complex(c_double_complex), allocatable, target :: x(:), y(:), expected(:)
    real(c_double), allocatable :: parts(:, :)
    integer, target :: ranks
    integer :: rank, status

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    host(1) = merge("0", "1", mod(rank, 2) == 0)
    callbacks%allgather = c_funloc(allgather)
    callbacks%alltoallv = c_funloc(alltoallv)
    callbacks%host = c_funloc(host_name)
    callbacks%error = c_funloc(why)
    call thriffty_comm_create(comm, rank, ranks, callbacks, c_loc(ranks), status)
    call expect(THRIFFTY_STATUS_OK)

    call thriffty_plan_create(mine, comm, THRIFFTY_TRANSFORM_C2C, n, status=status)
    call expect(THRIFFTY_STATUS_OK)
    call thriffty_plan_sizes(mine, sizes, status)
    call expect(THRIFFTY_STATUS_OK)
    call thriffty_plan_create(reference, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_C2C, n, sizes%input, sizes%output, &
        status=status)
    call expect(THRIFFTY_STATUS_OK)
    allocate (x(sizes%input_len), y(sizes%output_len), expected(sizes%output_len))
    allocate (parts(sizes%input_len, 2))
    call random_number(parts)
    x = cmplx(parts(:, 1), parts(:, 2), c_double_complex)
    call thriffty_forward(mine, c_loc(x), sizes%input_bytes, c_loc(y), sizes%output_bytes, status)
    call expect(THRIFFTY_STATUS_OK)
    call thriffty_forward(reference, c_loc(x), sizes%input_bytes, c_loc(expected), sizes%output_bytes, status)
    call expect(THRIFFTY_STATUS_OK)
    if (any(abs(y - expected) > 1e-12_c_double)) call fail("another result than over MPI")

    call thriffty_comm_agree(comm, status)
    call expect(THRIFFTY_STATUS_OK)
    if (rank == ranks - 1) then
        call thriffty_comm_agree(comm, status, "no such field")
    else
        call thriffty_comm_agree(comm, status)
    end if
    call expect(THRIFFTY_STATUS_ARGUMENT)
    if (index(thriffty_last_error(), "no such field") == 0) call fail(thriffty_last_error())
    call thriffty_plan_create(reference, none, THRIFFTY_TRANSFORM_C2C, n, status=status)
    call expect(THRIFFTY_STATUS_PLAN)
    is_broken = ranks > 1
    call thriffty_comm_agree(comm, status)
    if (is_broken) then
        call expect(THRIFFTY_STATUS_TRANSPORT)
        if (index(thriffty_last_error(), "broken") == 0) call fail(thriffty_last_error())
    end if
    call thriffty_comm_destroy(comm, status)
    call expect(THRIFFTY_STATUS_OK)
    call thriffty_plan_destroy(mine, status)
    call expect(THRIFFTY_STATUS_OK)
    if (rank == 0) print "(a)", "a process group of Fortran's functions"
    call MPI_Finalize()

contains

    subroutine expect(wanted)
        integer(c_int32_t), intent(in) :: wanted

        if (status /= wanted) call fail(thriffty_last_error())
    end subroutine

    subroutine fail(text)
        character(*), intent(in) :: text

        print "(a, i0, a, i0, 2a)", "rank ", rank, ": status ", status, ": ", text
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine
end program
