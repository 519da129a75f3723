! Operators on spectra in Fortran's order of axes: a vortex, its curl, and a gradient.

module functions
    use, intrinsic :: iso_c_binding, only: c_double
    implicit none
    integer, parameter :: n(3) = [10, 12, 8]
    real(c_double), parameter :: pi = acos(-1.0_c_double), lengths(3) = [2, 4, 2] * pi

contains

    !> The place of a point.
    pure function at(i, j, k) result(p)
        integer, intent(in) :: i, j, k
        real(c_double) :: p(3)

        p = 2 * pi * [i - 1, 2 * (j - 1), k - 1] / real(n, c_double)
    end function

    pure function velocity(p) result(u)
        real(c_double), intent(in) :: p(3)
        real(c_double) :: u(3)

        u = [sin(p(1)) * cos(p(2)) * cos(p(3)), -cos(p(1)) * sin(p(2)) * cos(p(3)), 0.0_c_double]
    end function

    pure function vorticity(p) result(w)
        real(c_double), intent(in) :: p(3)
        real(c_double) :: w(3)

        w = [-cos(p(1)) * sin(p(2)) * sin(p(3)), -sin(p(1)) * cos(p(2)) * sin(p(3)), &
            2 * sin(p(1)) * sin(p(2)) * cos(p(3))]
    end function

    pure function potential(p) result(u)
        real(c_double), intent(in) :: p(3)
        real(c_double) :: u(3)

        u = product(sin(p))
    end function

    pure function slope(p) result(u)
        real(c_double), intent(in) :: p(3)
        real(c_double) :: u(3)

        u = [cos(p(1)) * sin(p(2)) * sin(p(3)), sin(p(1)) * cos(p(2)) * sin(p(3)), sin(p(1)) * sin(p(2)) * cos(p(3))]
    end function
end module

program operators
    use, intrinsic :: iso_c_binding
    use mpi_f08, only: MPI_Abort, MPI_COMM_WORLD, MPI_Comm_size, MPI_Finalize, MPI_Init
    use thriffty
    use functions
    implicit none

    type(thriffty_plan) :: scalar, vector
    type(thriffty_options) :: options
    type(thriffty_sizes) :: one, three
    integer(c_int32_t) :: status
    real(c_double), allocatable, target :: x(:, :, :, :), phi(:, :, :)
    complex(c_double_complex), allocatable, target :: y(:), z(:)
    real(c_double) :: k(16), odd(16)
    integer :: i, ranks

    call MPI_Init()
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call options%set("transposed_output", .true.)
    call thriffty_plan_create(scalar, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, options=options, status=status)
    call check(status)
    call thriffty_plan_sizes(scalar, one, status)
    call options%set("transposed_output", .false.)
    call options%set("batch", 3)
    call options%set("output_order", one%output_order(:3))
    call thriffty_plan_create(vector, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2C, n, one%input, one%output, options, status)
    call check(status)
    call thriffty_plan_sizes(vector, three, status)
    allocate (x(one%input%lo(1) + 1:one%input%hi(1), one%input%lo(2) + 1:one%input%hi(2), &
        one%input%lo(3) + 1:one%input%hi(3), 3))
    allocate (phi, mold=x(:, :, :, 1))
    allocate (y(three%output_len), z(three%output_len))

    call visit(velocity)
    call thriffty_forward(vector, c_loc(x), three%input_bytes, c_loc(y), three%output_bytes, status)
    call check(status)
    call thriffty_apply(vector, THRIFFTY_OPERATOR_CURL, lengths, c_loc(y), three%output_bytes, &
        c_loc(z), three%output_bytes, status)
    call check(status)
    call thriffty_inverse(vector, c_loc(z), three%output_bytes, c_loc(x), three%input_bytes, status)
    call compare(vorticity)
    call thriffty_apply(vector, THRIFFTY_OPERATOR_DIVERGENCE, lengths, c_loc(y), three%output_bytes, &
        c_loc(z), one%output_bytes, status)
    call check(status)
    if (any(abs(z(:one%output_len)) > 1e-11)) error stop "a vortex has no divergence"

    call visit(potential)
    phi(:, :, :) = x(:, :, :, 1)
    call thriffty_forward(scalar, c_loc(phi), one%input_bytes, c_loc(y), one%output_bytes, status)
    call thriffty_apply(scalar, THRIFFTY_OPERATOR_GRADIENT, lengths, c_loc(y), one%output_bytes, &
        c_loc(z), three%output_bytes, status)
    call check(status)
    call thriffty_inverse(vector, c_loc(z), three%output_bytes, c_loc(x), three%input_bytes, status)
    call compare(slope)
    ! The derivative along the first axis is the gradient's first component.
    call thriffty_apply(scalar, THRIFFTY_OPERATOR_DERIVATIVE, lengths, c_loc(y), one%output_bytes, &
        c_loc(y), one%output_bytes, status, parameter=1.0_c_double)
    call check(status)
    if (any(abs(y(:one%output_len) - z(:one%output_len)) > 1e-11)) error stop "another derivative"
    call thriffty_convolve(scalar, c_loc(z), one%output_bytes, .true., c_loc(y), one%output_bytes, status)
    call check(status)
    if (any(abs(aimag(y(:one%output_len))) > 1e-9)) error stop "the square of a modulus is real"

    call thriffty_wavenumbers(scalar, 2, lengths(2), k, odd, status)
    call check(status)
    do i = int(one%output%lo(2)), int(one%output%hi(2)) - 1
        if (abs(k(i - one%output%lo(2) + 1) - 0.5_c_double * merge(i, i - 12, i < 6)) > 1e-14) error stop "wavenumbers"
    end do
    call walls()
    ! A parameter is required for operators that have one, and refused for others. Axes are
    ! Fortran's.
    call refused("parameter of the operator: found none, expected the axis", THRIFFTY_OPERATOR_DERIVATIVE)
    call refused("found none, expected the shift", THRIFFTY_OPERATOR_HELMHOLTZ)
    call refused("found none, expected the standard deviation", THRIFFTY_OPERATOR_GAUSSIAN)
    call refused("found none, expected the fraction", THRIFFTY_OPERATOR_CUTOFF)
    call refused("fraction: found -0.5, expected 0 or more", THRIFFTY_OPERATOR_CUTOFF, -0.5_c_double)
    call refused("standard deviation: found -1, expected", THRIFFTY_OPERATOR_GAUSSIAN, -1.0_c_double)
    call refused("parameter of the operator: found 2, expected none", THRIFFTY_OPERATOR_POISSON, 2.0_c_double)
    call refused("axis of the derivative: found 0, expected 1 to 3", THRIFFTY_OPERATOR_DERIVATIVE, 0.0_c_double)
    call refused("axis of the derivative: found 4, expected 1 to 3", THRIFFTY_OPERATOR_DERIVATIVE, 4.0_c_double)
    ! A length too few is an error, here and, of several ranks, of the next transform.
    call thriffty_apply(scalar, THRIFFTY_OPERATOR_LAPLACIAN, lengths(:2), c_loc(y), one%output_bytes, &
        c_loc(z), one%output_bytes, status)
    if (status /= THRIFFTY_STATUS_ARGUMENT) error stop "two lengths of three"
    call thriffty_inverse(scalar, c_loc(z), one%output_bytes, c_loc(phi), one%input_bytes, status)
    if (ranks > 1 .neqv. status == THRIFFTY_STATUS_ARGUMENT) error stop "others are told of a failure"
    if (thriffty_next_fast_len(97) /= 100) error stop "the next fast length"
    call thriffty_plan_destroy(vector, status)
    call thriffty_plan_destroy(scalar, status)
    call MPI_Finalize()

contains

    !> Flow between walls on cells that grow along the first axis, and what its coefficients refuse.
    subroutine walls()
        type(thriffty_plan) :: plan
        type(thriffty_options) :: kinds
        type(thriffty_sizes) :: sizes
        real(c_double), allocatable, target :: u(:, :, :), modes(:)
        real(c_double), parameter :: faces(6) = [0, 1, 3, 7, 8, 10], &
            lower(5) = 1 / [1.0_c_double, 3.0_c_double, 12.0_c_double, 2.5_c_double, 3.0_c_double], &
            upper(5) = 1 / [1.5_c_double, 6.0_c_double, 10.0_c_double, 1.5_c_double, 1.0_c_double], &
            expected(5) = [5.0_c_double, 18.5_c_double, 39.5_c_double, 47.0_c_double, 50.0_c_double]
        real(c_double) :: below(5), middle(5), above(5)
        integer :: i, way

        below = [0.0_c_double, lower(2:)]
        above = [upper(:4), 0.0_c_double]
        middle = -(below + above)
        middle(1) = middle(1) - 2
        call kinds%set("kinds", "tridiagonal, neumann, dirichlet-neumann@faces")
        call kinds%set("transposed_output", .true.)
        call thriffty_plan_create(plan, MPI_COMM_WORLD, THRIFFTY_TRANSFORM_R2R, [5, 6, 7], options=kinds, status=status)
        call check(status)
        call thriffty_plan_sizes(plan, sizes, status)
        allocate (u(sizes%input%lo(1) + 1:sizes%input%hi(1), sizes%input%lo(2) + 1:sizes%input%hi(2), &
            sizes%input%lo(3) + 1:sizes%input%hi(3)), modes(sizes%output_len))
        ! Along the last axis there is only its slowest mode, whose scheme is the first one here.
        call thriffty_set_schemes(plan, "exact, staggered2, central2", status)
        call check(status)
        do way = 1, 2
            if (way == 1) call thriffty_set_tridiagonal(plan, below, middle, above, status)
            if (way == 2) call thriffty_set_stretched(plan, "dirichlet-neumann", real(faces, c_double), status)
            call check(status)
            do i = lbound(u, 3), ubound(u, 3)
                u(:, :, i) = sin(pi * i / 14)
            end do
            call thriffty_forward(plan, c_loc(u), sizes%input_bytes, c_loc(modes), sizes%output_bytes, status)
            call check(status)
            ! A shift takes the derivative along the last axis away.
            call thriffty_apply(plan, THRIFFTY_OPERATOR_HELMHOLTZ, [10.0_c_double, 6.0_c_double, 7.0_c_double], &
                c_loc(modes), sizes%output_bytes, c_loc(modes), sizes%output_bytes, status, &
                parameter=-(2 * sin(pi / 28))**2)
            call check(status)
            call thriffty_inverse(plan, c_loc(modes), sizes%output_bytes, c_loc(u), sizes%input_bytes, status)
            call check(status)
            do i = lbound(u, 3), ubound(u, 3)
                if (any(abs(u(:, :, i) - sin(pi * i / 14) * spread(expected(lbound(u, 1):ubound(u, 1)), 2, size(u, 2))) &
                    > 1e-10)) error stop "another flow between walls"
            end do
        end do
        call thriffty_set_tridiagonal(plan, below, middle(:4), above, status)
        if (status /= THRIFFTY_STATUS_ARGUMENT) error stop "four coefficients of five"
        call thriffty_set_schemes(plan, "exact, exact", status)
        if (status /= THRIFFTY_STATUS_ARGUMENT) error stop "two schemes of three"
        call thriffty_plan_destroy(plan, status)
    end subroutine

    !> An operator with this parameter, if any, is refused for this reason.
    subroutine refused(why, operator, parameter)
        character(*), intent(in) :: why
        integer(c_int32_t), intent(in) :: operator
        real(c_double), intent(in), optional :: parameter

        call thriffty_apply(scalar, operator, lengths, c_loc(y), one%output_bytes, c_loc(z), one%output_bytes, &
            status, parameter)
        if (status /= THRIFFTY_STATUS_ARGUMENT .or. index(thriffty_last_error(), why) == 0) then
            print *, "expected: ", why, ", found: ", thriffty_last_error()
            error stop "another error"
        end if
        call thriffty_forward(scalar, c_loc(phi), one%input_bytes, c_loc(z), one%output_bytes, status)
        if (ranks > 1 .neqv. status == THRIFFTY_STATUS_ARGUMENT) error stop "others are told of a refusal"
    end subroutine

    subroutine check(status)
        integer(c_int32_t), intent(in) :: status

        if (status /= THRIFFTY_STATUS_OK) then
            print *, "thriffty: ", thriffty_last_error()
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine

    subroutine visit(value)
        interface
            pure function value(p) result(u)
                import :: c_double
                real(c_double), intent(in) :: p(3)
                real(c_double) :: u(3)
            end function
        end interface
        integer :: i, j, k

        do k = lbound(x, 3), ubound(x, 3)
            do j = lbound(x, 2), ubound(x, 2)
                do i = lbound(x, 1), ubound(x, 1)
                    x(i, j, k, :) = value(at(i, j, k))
                end do
            end do
        end do
    end subroutine

    subroutine compare(value)
        interface
            pure function value(p) result(u)
                import :: c_double
                real(c_double), intent(in) :: p(3)
                real(c_double) :: u(3)
            end function
        end interface
        integer :: i, j, k

        do k = lbound(x, 3), ubound(x, 3)
            do j = lbound(x, 2), ubound(x, 2)
                do i = lbound(x, 1), ubound(x, 1)
                    if (any(abs(x(i, j, k, :) - value(at(i, j, k))) > 1e-12)) error stop "another field"
                end do
            end do
        end do
    end subroutine
end program
