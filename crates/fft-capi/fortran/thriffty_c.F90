! C's side of the Fortran modules: its calls, as include/thriffty.h has them, and texts.
! MIT OR Apache-2.0.
!
! THRIFFTY_WITH_MPI is defined for a library with plans over MPI.

module thriffty_c
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_int32_t, c_int64_t, &
        c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t
    use thriffty_types, only: thriffty_brick, thriffty_group_callbacks, thriffty_sizes, thriffty_subarray, &
        thriffty_timings
    implicit none
    private

    public :: c_options_create, c_options_destroy, c_options_get, c_options_set, c_options_set_stream
    public :: c_options_read_environment
    public :: c_create_serial, c_destroy, c_allocate, c_sizes, c_timings, c_clear_timings, c_wire_error, c_refuse, c_save_wisdom
    public :: c_forward, c_inverse, c_forward_in_place, c_inverse_in_place, c_recipe, c_report
    public :: c_comm_create, c_comm_agree, c_comm_destroy, c_create_group
    public :: c_forward_serial, c_inverse_serial, c_clear_plans, c_default_threads
    public :: c_set_schemes, c_set_tridiagonal, c_set_stretched
    public :: c_apply, c_convolve, c_wavenumbers, c_green_function, c_next_fast_len
    public :: c_subarray_init, c_copy_create, c_halo_create, c_copy_run, c_copy_run_in_place, c_copy_destroy
    public :: c_brick, c_shape, ended, last_error, reversed, turned, written
#ifdef THRIFFTY_WITH_MPI
    public :: c_create
#endif

    interface
        function c_options_create(options) result(status) bind(C, name="thriffty_options_create")
            import :: c_int32_t, c_ptr
            type(c_ptr), intent(out) :: options
            integer(c_int32_t) :: status
        end function
        function c_options_set(options, name, text) result(status) bind(C, name="thriffty_options_set_f")
            import :: c_char, c_int32_t, c_ptr
            type(c_ptr), value :: options
            character(kind=c_char), intent(in) :: name(*), text(*)
            integer(c_int32_t) :: status
        end function
        function c_options_get(options, name, text, room) result(length) bind(C, name="thriffty_options_get_f")
            import :: c_char, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: options
            character(kind=c_char), intent(in) :: name(*)
            character(kind=c_char), intent(out) :: text(*)
            integer(c_size_t), value :: room
            integer(c_int64_t) :: length
        end function
        function c_options_set_stream(options, stream) result(status) bind(C, name="thriffty_options_set_stream")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: options, stream
            integer(c_int32_t) :: status
        end function
        function c_create_serial(plan, transform, axes, shape, options) result(status) &
                bind(C, name="thriffty_plan_create_serial")
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: plan
            integer(c_int32_t), value :: transform, axes
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_ptr), value :: options
            integer(c_int32_t) :: status
        end function
        function c_create_group(plan, comm, transform, axes, shape, input, output, options) result(status) &
                bind(C, name="thriffty_plan_create_group")
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: plan
            type(c_ptr), value :: comm
            integer(c_int32_t), value :: transform, axes
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_ptr), value :: input, output, options
            integer(c_int32_t) :: status
        end function
        function c_comm_create(comm, rank, size, callbacks, context) result(status) &
                bind(C, name="thriffty_comm_create")
            import :: c_int32_t, c_ptr, thriffty_group_callbacks
            type(c_ptr), intent(out) :: comm
            integer(c_int32_t), value :: rank, size
            type(thriffty_group_callbacks), intent(in) :: callbacks
            type(c_ptr), value :: context
            integer(c_int32_t) :: status
        end function
        function c_comm_agree(comm, why) result(status) bind(C, name="thriffty_comm_agree")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: comm, why
            integer(c_int32_t) :: status
        end function
#ifdef THRIFFTY_WITH_MPI
        function c_create(plan, comm, transform, axes, shape, input, output, options) result(status) &
                bind(C, name="thriffty_plan_create_f")
            import :: c_int, c_int32_t, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: plan
            integer(c_int), value :: comm
            integer(c_int32_t), value :: transform, axes
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_ptr), value :: input, output, options
            integer(c_int32_t) :: status
        end function
#endif
        function c_clear_plans() result(status) bind(C, name="thriffty_clear_plans")
            import :: c_int32_t
            integer(c_int32_t) :: status
        end function
        function c_default_threads() result(threads) bind(C, name="thriffty_default_threads")
            import :: c_int32_t
            integer(c_int32_t) :: threads
        end function
        function c_allocate(plan, array) result(status) bind(C, name="thriffty_allocate")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: plan
            type(c_ptr), intent(out) :: array
            integer(c_int32_t) :: status
        end function
        function c_sizes(plan, sizes, struct_size) result(status) bind(C, name="thriffty_plan_sizes")
            import :: c_int32_t, c_ptr, c_size_t, thriffty_sizes
            type(c_ptr), value :: plan
            type(thriffty_sizes), intent(inout) :: sizes
            integer(c_size_t), value :: struct_size
            integer(c_int32_t) :: status
        end function
        function c_timings(plan, timings, struct_size) result(status) bind(C, name="thriffty_plan_timings")
            import :: c_int32_t, c_ptr, c_size_t, thriffty_timings
            type(c_ptr), value :: plan
            type(thriffty_timings), intent(inout) :: timings
            integer(c_size_t), value :: struct_size
            integer(c_int32_t) :: status
        end function
        function c_clear_timings(plan) result(status) bind(C, name="thriffty_plan_clear_timings")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: plan
            integer(c_int32_t) :: status
        end function
        function c_wire_error(plan, estimate, bound) result(status) bind(C, name="thriffty_plan_wire_error")
            import :: c_double, c_int32_t, c_ptr
            type(c_ptr), value :: plan
            real(c_double), intent(inout) :: estimate, bound
            integer(c_int32_t) :: status
        end function
        function c_refuse(plan, what, found, expected) result(status) bind(C, name="thriffty_plan_refuse")
            import :: c_char, c_int32_t, c_ptr
            type(c_ptr), value :: plan
            character(kind=c_char), intent(in) :: what(*), found(*), expected(*)
            integer(c_int32_t) :: status
        end function
        function c_save_wisdom(plan, path) result(status) bind(C, name="thriffty_plan_save_wisdom")
            import :: c_char, c_int32_t, c_ptr
            type(c_ptr), value :: plan
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int32_t) :: status
        end function
        function c_last_error() result(text) bind(C, name="thriffty_last_error")
            import :: c_ptr
            type(c_ptr) :: text
        end function
        function c_strlen(text) result(length) bind(C, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
        function c_set_schemes(plan, schemes) result(status) bind(C, name="thriffty_set_schemes_f")
            import :: c_char, c_int32_t, c_ptr
            type(c_ptr), value :: plan
            character(kind=c_char), intent(in) :: schemes(*)
            integer(c_int32_t) :: status
        end function
        function c_set_tridiagonal(plan, lower, diagonal, upper, n) result(status) &
                bind(C, name="thriffty_set_tridiagonal")
            import :: c_double, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan
            real(c_double), intent(in) :: lower(*), diagonal(*), upper(*)
            integer(c_size_t), value :: n
            integer(c_int32_t) :: status
        end function
        function c_set_stretched(plan, ends, faces, count) result(status) bind(C, name="thriffty_set_stretched")
            import :: c_char, c_double, c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan
            character(kind=c_char), intent(in) :: ends(*)
            real(c_double), intent(in) :: faces(*)
            integer(c_size_t), value :: count
            integer(c_int32_t) :: status
        end function
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
        function c_convolve(plan, kernel, kernel_bytes, correlate, data, bytes) result(status) &
                bind(C, name="thriffty_convolve")
            import :: c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan, kernel, data
            integer(c_size_t), value :: kernel_bytes, bytes
            integer(c_int32_t), value :: correlate
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
        function c_subarray_init(subarray, axes, brick, lower, upper, order, components) result(status) &
                bind(C, name="thriffty_subarray_init")
            import :: c_int32_t, c_int64_t, c_ptr, thriffty_brick, thriffty_subarray
            type(thriffty_subarray), intent(inout) :: subarray
            integer(c_int32_t), value :: axes
            type(thriffty_brick), intent(in) :: brick
            integer(c_int64_t), intent(in) :: lower(*), upper(*)
            type(c_ptr), value :: order
            integer(c_int64_t), value :: components
            integer(c_int32_t) :: status
        end function
        function c_copy_create(copy, plan, side, source_count, sources, target_count, targets) result(status) &
                bind(C, name="thriffty_copy_create")
            import :: c_int32_t, c_ptr, c_size_t, thriffty_subarray
            type(c_ptr), intent(out) :: copy
            type(c_ptr), value :: plan
            integer(c_int32_t), value :: side
            integer(c_size_t), value :: source_count, target_count
            type(thriffty_subarray), intent(in) :: sources(*), targets(*)
            integer(c_int32_t) :: status
        end function
        function c_halo_create(copy, plan, side, lower, upper, periodic, count, subarrays) result(status) &
                bind(C, name="thriffty_halo_create")
            import :: c_int32_t, c_int64_t, c_ptr, c_size_t, thriffty_subarray
            type(c_ptr), intent(out) :: copy
            type(c_ptr), value :: plan
            integer(c_int32_t), value :: side
            integer(c_int64_t), intent(in) :: lower(*), upper(*)
            integer(c_int32_t), intent(in) :: periodic(*)
            integer(c_size_t), value :: count
            type(thriffty_subarray), intent(in) :: subarrays(*)
            integer(c_int32_t) :: status
        end function
        function c_copy_run(copy, sources, targets) result(status) bind(C, name="thriffty_copy_run")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: copy
            type(c_ptr), intent(in) :: sources(*), targets(*)
            integer(c_int32_t) :: status
        end function
        function c_copy_run_in_place(copy, sources, arrays) result(status) bind(C, name="thriffty_copy_run")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: copy, sources
            type(c_ptr), intent(in) :: arrays(*)
            integer(c_int32_t) :: status
        end function
    end interface

    abstract interface
        function destroys(handle) result(status) bind(C)
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: handle
            integer(c_int32_t) :: status
        end function
        function transforms_serially(transform, axes, shape, options, input, input_bytes, output, output_bytes) &
                result(status) bind(C)
            import :: c_int32_t, c_int64_t, c_ptr, c_size_t
            integer(c_int32_t), value :: transform, axes
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_ptr), value :: options, input, output
            integer(c_size_t), value :: input_bytes, output_bytes
            integer(c_int32_t) :: status
        end function
        function transforms(plan, input, input_bytes, output, output_bytes) result(status) bind(C)
            import :: c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan, input, output
            integer(c_size_t), value :: input_bytes, output_bytes
            integer(c_int32_t) :: status
        end function
        function transforms_in_place(plan, data, bytes) result(status) bind(C)
            import :: c_int32_t, c_ptr, c_size_t
            type(c_ptr), value :: plan, data
            integer(c_size_t), value :: bytes
            integer(c_int32_t) :: status
        end function
        function writes_text(plan, text, room) result(length) bind(C)
            import :: c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: plan, text
            integer(c_size_t), value :: room
            integer(c_int64_t) :: length
        end function
    end interface

    procedure(destroys), bind(C, name="thriffty_plan_destroy") :: c_destroy
    procedure(destroys), bind(C, name="thriffty_copy_destroy") :: c_copy_destroy
    procedure(destroys), bind(C, name="thriffty_comm_destroy") :: c_comm_destroy
    procedure(destroys), bind(C, name="thriffty_options_destroy") :: c_options_destroy
    procedure(destroys), bind(C, name="thriffty_options_read_environment") :: c_options_read_environment
    procedure(transforms_serially), bind(C, name="thriffty_forward_serial") :: c_forward_serial
    procedure(transforms_serially), bind(C, name="thriffty_inverse_serial") :: c_inverse_serial
    procedure(transforms), bind(C, name="thriffty_forward") :: c_forward
    procedure(transforms), bind(C, name="thriffty_inverse") :: c_inverse
    procedure(transforms_in_place), bind(C, name="thriffty_forward_in_place") :: c_forward_in_place
    procedure(transforms_in_place), bind(C, name="thriffty_inverse_in_place") :: c_inverse_in_place
    procedure(writes_text), bind(C, name="thriffty_plan_recipe") :: c_recipe
    procedure(writes_text), bind(C, name="thriffty_plan_report") :: c_report

contains

    !> The points along each axis in C's order, for at most four axes.
    pure function c_shape(shape)
        integer(c_int64_t), intent(in) :: shape(:)
        integer(c_int64_t) :: c_shape(4)
        integer(c_int32_t) :: axes

        axes = min(size(shape, kind=c_int32_t), 4_c_int32_t)
        c_shape = 1
        c_shape(:axes) = shape(axes:1:-1)
    end function

    !> The address of room, with the brick in C's order there; NULL without a brick.
    function c_brick(brick, axes, room) result(at)
        type(thriffty_brick), intent(in), optional :: brick
        integer(c_int32_t), intent(in) :: axes
        type(thriffty_brick), intent(out), target :: room
        type(c_ptr) :: at

        at = c_null_ptr
        if (.not. present(brick)) return
        room = turned(brick, axes)
        at = c_loc(room)
    end function

    !> The text that a call writes as snprintf does.
    function written(call, plan) result(text)
        procedure(writes_text) :: call
        type(c_ptr), intent(in) :: plan
        character(:), allocatable :: text
        character(kind=c_char), allocatable, target :: letters(:)
        integer(c_int64_t) :: length

        length = max(call(plan, c_null_ptr, 0_c_size_t), 0_c_int64_t)
        allocate (letters(length + 1))
        letters = c_null_char
        length = max(call(plan, c_loc(letters), int(length + 1, c_size_t)), 0_c_int64_t)
        allocate (character(length) :: text)
        text = joined(letters(:length))
    end function

    !> Why the last call that failed did so.
    function last_error() result(text)
        character(:), allocatable :: text
        type(c_ptr) :: found
        character(kind=c_char), pointer :: letters(:)

        found = c_last_error()
        call c_f_pointer(found, letters, [c_strlen(found)])
        text = joined(letters)
    end function

    !> A brick with its axes in C's order, or back.
    pure function turned(brick, axes) result(other)
        type(thriffty_brick), intent(in) :: brick
        integer(c_int32_t), intent(in) :: axes
        type(thriffty_brick) :: other
        integer(c_int32_t) :: n

        n = min(axes, 4_c_int32_t)
        other%lo(:n) = brick%lo(n:1:-1)
        other%hi(:n) = brick%hi(n:1:-1)
    end function

    !> A subarray with its axes in C's order, or back.
    elemental function reversed(subarray, axes)
        type(thriffty_subarray), intent(in) :: subarray
        integer(c_int32_t), intent(in) :: axes
        type(thriffty_subarray) :: reversed
        integer(c_int32_t) :: n

        n = min(axes, 4_c_int32_t)
        reversed = subarray
        reversed%brick = turned(subarray%brick, n)
        reversed%strides(:n) = subarray%strides(n:1:-1)
    end function

    !> A text as C has it.
    pure function ended(text) result(letters)
        character(*), intent(in) :: text
        character(kind=c_char) :: letters(len(text) + 1)

        letters = transfer(text // c_null_char, letters)
    end function

    !> A text as Fortran has it.
    pure function joined(letters) result(text)
        character(kind=c_char), intent(in) :: letters(:)
        character(size(letters)) :: text

        text = transfer(letters, text)
    end function
end module
