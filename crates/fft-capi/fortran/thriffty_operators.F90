! Operators on spectra for Fortran 2008, beside the module thriffty. MIT OR Apache-2.0.
!
! Axes are those of Fortran arrays, from 1 on, and components of a vector go with them: the first
! along the first axis. Otherwise everything is as include/thriffty.h says.

module thriffty_operators
    use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_null_ptr, c_ptr, c_size_t
    use thriffty, only: thriffty_plan, thriffty_plan_handle
    implicit none
    private

    integer(c_int32_t), parameter, public :: &
        THRIFFTY_OPERATOR_DERIVATIVE = 0, THRIFFTY_OPERATOR_GRADIENT = 1, THRIFFTY_OPERATOR_DIVERGENCE = 2, &
        THRIFFTY_OPERATOR_CURL = 3, THRIFFTY_OPERATOR_LAPLACIAN = 4, THRIFFTY_OPERATOR_POISSON = 5, &
        THRIFFTY_OPERATOR_HELMHOLTZ = 6, THRIFFTY_OPERATOR_PROJECT = 7, THRIFFTY_OPERATOR_GAUSSIAN = 8, &
        THRIFFTY_OPERATOR_CUTOFF = 9

    public :: thriffty_apply, thriffty_multiply, thriffty_wavenumbers, thriffty_next_fast_len, &
        thriffty_green_function

    interface
        function c_apply(plan, operator, parameter, lengths, input, input_bytes, output, output_bytes) &
                result(status) bind(C, name="thriffty_apply_f")
            import :: c_double, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan, input, output
            integer(c_int32_t), value :: operator
            real(c_double), value :: parameter
            real(c_double), intent(in) :: lengths(*)
            integer(c_size_t), value :: input_bytes, output_bytes
            integer(c_int32_t) :: status
        end function
        function c_multiply(plan, kernel, kernel_bytes, conjugate, data, bytes) result(status) &
                bind(C, name="thriffty_multiply")
            import :: c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan, kernel, data
            integer(c_size_t), value :: kernel_bytes, bytes
            integer(c_int32_t), value :: conjugate
            integer(c_int32_t) :: status
        end function
        function c_wavenumbers(plan, axis, length, k, odd, room) result(status) &
                bind(C, name="thriffty_wavenumbers")
            import :: c_double, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan
            integer(c_int32_t), value :: axis
            real(c_double), value :: length
            real(c_double), intent(inout) :: k(*), odd(*)
            integer(c_size_t), value :: room
            integer(c_int32_t) :: status
        end function
        function c_green_function(plan, spacing, kernel, bytes) result(status) &
                bind(C, name="thriffty_green_function")
            import :: c_double, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan, kernel
            real(c_double), intent(in) :: spacing(*)
            integer(c_size_t), value :: bytes
            integer(c_int32_t) :: status
        end function
        function c_next_fast_len(n) result(length) bind(C, name="thriffty_next_fast_len")
            import :: c_size_t
            integer(c_size_t), value :: n
            integer(c_size_t) :: length
        end function
    end interface

contains

    !> Applies an operator to this rank's spectral data, on a box with these lengths. Not
    !> collective; a failure of a plan of several ranks is also that of its next transform, on every
    !> rank.
    !>
    !> input and output may be the same array, if the result has as many components. parameter is
    !> the axis of a derivative, the shift of Helmholtz's equation, the standard deviation of a
    !> Gaussian, or the fraction of a cutoff. These need it, and the other operators have none.
    subroutine thriffty_apply(plan, operator, lengths, input, input_bytes, output, output_bytes, status, parameter)
        type(thriffty_plan), intent(in) :: plan
        integer(c_int32_t), intent(in) :: operator
        real(c_double), intent(in) :: lengths(:)
        type(c_ptr), intent(in) :: input, output
        integer(c_size_t), intent(in) :: input_bytes, output_bytes
        integer(c_int32_t), intent(out) :: status
        real(c_double), intent(in), optional :: parameter
        real(c_double) :: given, turned(4)
        integer :: axes

        axes = min(plan%axes, 4)
        ! Other numbers of lengths are refused, as lengths of 0 are.
        turned = 0
        if (size(lengths) == axes) turned(:axes) = lengths(axes:1:-1)
        ! Stands for none.
        given = ieee_value(given, ieee_quiet_nan)
        if (present(parameter)) given = parameter
        status = c_apply(thriffty_plan_handle(plan), operator, given, turned, input, input_bytes, output, output_bytes)
    end subroutine

    !> Multiplies each mode by that of a kernel, or by its conjugate: convolves or correlates.
    subroutine thriffty_multiply(plan, kernel, kernel_bytes, conjugate, data, bytes, status)
        type(thriffty_plan), intent(in) :: plan
        type(c_ptr), intent(in) :: kernel, data
        integer(c_size_t), intent(in) :: kernel_bytes, bytes
        logical, intent(in) :: conjugate
        integer(c_int32_t), intent(out) :: status

        status = c_multiply(thriffty_plan_handle(plan), kernel, kernel_bytes, merge(1_c_int32_t, 0_c_int32_t, conjugate), &
            data, bytes)
    end subroutine

    !> The transform of Green's function in open space, for a grid with this spacing and a plan that
    !> is padded to twice its length: a kernel for thriffty_multiply. Collective.
    subroutine thriffty_green_function(plan, spacing, kernel, bytes, status)
        type(thriffty_plan), intent(in) :: plan
        real(c_double), intent(in) :: spacing(:)
        type(c_ptr), intent(in) :: kernel
        integer(c_size_t), intent(in) :: bytes
        integer(c_int32_t), intent(out) :: status
        real(c_double) :: turned(4)
        integer :: axes

        axes = min(plan%axes, 4)
        turned = 0
        if (size(spacing) == axes) turned(:axes) = spacing(axes:1:-1)
        status = c_green_function(thriffty_plan_handle(plan), turned, kernel, bytes)
    end subroutine

    !> The wavenumbers of this rank's spectral brick along an axis, and those of derivatives: 0 for
    !> the middle mode of an even number of points.
    subroutine thriffty_wavenumbers(plan, axis, length, k, odd, status)
        type(thriffty_plan), intent(in) :: plan
        integer, intent(in) :: axis
        real(c_double), intent(in) :: length
        real(c_double), intent(inout) :: k(:), odd(:)
        integer(c_int32_t), intent(out) :: status

        status = c_wavenumbers(thriffty_plan_handle(plan), int(plan%axes - axis, c_int32_t), length, k, odd, &
            int(min(size(k), size(odd)), c_size_t))
    end subroutine

    !> The smallest length of at least n points whose transform is fast.
    integer function thriffty_next_fast_len(n)
        integer, intent(in) :: n

        thriffty_next_fast_len = int(c_next_fast_len(int(n, c_size_t)))
    end function
end module
