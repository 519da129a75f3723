! Options of plans, by name. MIT OR Apache-2.0.

module thriffty_settings
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_null_char, c_null_ptr, c_ptr, c_size_t
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    use thriffty_c, only: c_options_create, c_options_destroy, c_options_get, c_options_read_environment, &
        c_options_set, c_options_set_stream
    implicit none
    private
    public :: c_options, free

    !> Stands for a value that no option has.
    character(*), parameter :: other = "a value of another type"

    !> Stands for the names of all options that the environment has.
    character(*), parameter :: environment = achar(1)

    !> Options of a plan: call options%set("tolerance", 1e-6). docs/options.md has their names and
    !> defaults. A value is a text, a number, a logical, or a number for each axis. Values for each
    !> axis begin with the first axis, also in texts; orders of axes are fastest first, with axes
    !> from 1 on.
    !>
    !> If a name or a value is unknown, the call that makes the plan fails, on every rank.
    type, public :: thriffty_options
        private
        !> Names and values in turns, each ending with a zero.
        character(:), allocatable :: texts
        type(c_ptr) :: stream = c_null_ptr
    contains
        private
        procedure :: set_one, set_each
        generic, public :: set => set_one, set_each
        procedure, public :: get, read_environment, set_stream
    end type

contains

    subroutine set_one(self, name, value)
        class(thriffty_options), intent(inout) :: self
        character(*), intent(in) :: name
        class(*), intent(in) :: value
        character(24) :: text

        text = other
        select type (value)
        type is (character(*))
            call keep(self, name, value)
            return
        type is (integer(int32))
            write (text, "(i0)") value
        type is (integer(int64))
            write (text, "(i0)") value
        type is (real(real32))
            text = shortest(real(value, real64), real(spacing(value), real64), 8_int32)
        type is (real(real64))
            text = shortest(value, spacing(value), 16_int32)
        type is (logical(int32))
            text = merge("true ", "false", value)
        type is (logical(int64))
            text = merge("true ", "false", value)
        end select
        call keep(self, name, adjustl(text))
    end subroutine

    !> The fewest digits that stand for this number among those that are `step` apart, so that 1e-6
    !> is 1e-6 in either precision.
    function shortest(number, step, most) result(text)
        real(real64), intent(in) :: number, step
        integer(int32), intent(in) :: most
        character(24) :: text, layout
        real(real64) :: read_back
        integer(int32) :: digits

        do digits = 1, most
            write (layout, "('(es24.', i0, 'e3)')") digits
            write (text, layout) number
            read (text, *) read_back
            if (abs(read_back - number) < step / 2) exit
        end do
    end function

    subroutine set_each(self, name, values)
        class(thriffty_options), intent(inout) :: self
        character(*), intent(in) :: name
        class(*), intent(in) :: values(:)
        character(24 * max(size(values), 1)) :: text

        text = other
        select type (values)
        type is (integer(int32))
            write (text, "(*(i0, :, ','))") values
        type is (integer(int64))
            write (text, "(*(i0, :, ','))") values
        end select
        call keep(self, name, text)
    end subroutine

    subroutine keep(options, name, value)
        class(thriffty_options), intent(inout) :: options
        character(*), intent(in) :: name, value

        if (.not. allocated(options%texts)) options%texts = ""
        options%texts = options%texts // ended(name) // ended(value)
    end subroutine

    !> Sets each option whose name the environment has, as in THRIFFTY_TOLERANCE=1e-6: those that
    !> say how a transform is done, and leave arrays and results as they are.
    subroutine read_environment(self)
        class(thriffty_options), intent(inout) :: self

        call keep(self, environment, "")
    end subroutine

    !> The value of the option of this name as text, "default" if the library decides; empty for an
    !> unknown name.
    function get(self, name) result(value)
        class(thriffty_options), intent(in) :: self
        character(*), intent(in) :: name
        character(:), allocatable :: value
        type(c_ptr) :: handle
        character(1) :: none
        integer(int64) :: length

        handle = c_options(self)
        length = max(c_options_get(handle, ended(name), none, 0_c_size_t), 0_int64)
        allocate (character(length + 1) :: value)
        length = c_options_get(handle, ended(name), value, int(length + 1, c_size_t))
        call free(handle)
        value = value(:max(length, 0_int64))
    end function

    !> The CUDA stream for all work of plans on a device. It lives as long as the plans.
    subroutine set_stream(self, stream)
        class(thriffty_options), intent(inout) :: self
        type(c_ptr), intent(in) :: stream

        self%stream = stream
    end subroutine

    !> Options as C has them, to be freed: NULL if there are none. They keep the first failure, for
    !> the call that makes a plan.
    function c_options(options) result(handle)
        class(thriffty_options), intent(in), optional :: options
        type(c_ptr) :: handle
        integer(c_int32_t) :: status
        integer(int64) :: name, value

        handle = c_null_ptr
        if (.not. present(options)) return
        status = c_options_create(handle)
        status = c_options_set_stream(handle, options%stream)
        if (.not. allocated(options%texts)) return
        name = 1
        do while (name <= len(options%texts, int64))
            value = name + index(options%texts(name:), c_null_char, kind=int64)
            if (options%texts(name:name) == environment) then
                status = c_options_read_environment(handle)
            else
                status = c_options_set(handle, options%texts(name:), options%texts(value:))
            end if
            name = value + index(options%texts(value:), c_null_char, kind=int64)
        end do
    end function

    subroutine free(handle)
        type(c_ptr), intent(in) :: handle
        integer(c_int32_t) :: status

        status = c_options_destroy(handle)
    end subroutine

    !> A text as C has it, up to the first zero or the blanks at its end.
    pure function ended(text)
        character(*), intent(in) :: text
        character(:), allocatable :: ended

        ended = trim(text(:index(text // c_null_char, c_null_char) - 1)) // c_null_char
    end function
end module
