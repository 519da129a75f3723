! thriffty: distributed Fourier transforms, for Fortran 2008. MIT OR Apache-2.0.
!
! Axes are those of Fortran arrays: R2C transforms keep n/2 + 1 points of the first, contiguous one.
! Bricks are half-open and from 0: brick%lo(a) + 1 is the first index along axis a of an array from
! 1 on, brick%hi(a) the last. Otherwise everything is as include/thriffty.h says; options need no
! init. Subroutines end with a status, of which thriffty_last_error() is the text.
!
! THRIFFTY_WITH_MPI is defined for a library with plans over MPI.

module thriffty
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_int32_t, c_int64_t, &
        c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t, c_sizeof
#ifdef THRIFFTY_WITH_MPI
    use mpi_f08, only: MPI_Comm
#endif
    implicit none
    private

    integer(c_int32_t), parameter, public :: &
        THRIFFTY_STATUS_OK = 0, THRIFFTY_STATUS_GEOMETRY = 1, THRIFFTY_STATUS_ARGUMENT = 2, &
        THRIFFTY_STATUS_MEMORY = 3, THRIFFTY_STATUS_MESSAGE = 4, THRIFFTY_STATUS_TRANSPORT = 5, &
        THRIFFTY_STATUS_SHARED_MEMORY = 6, THRIFFTY_STATUS_PLAN = 7, THRIFFTY_STATUS_INTERNAL = 8, &
        THRIFFTY_STATUS_DEVICE = 9, THRIFFTY_STATUS_THREADS = 10, &
        THRIFFTY_TRANSFORM_C2C = 0, THRIFFTY_TRANSFORM_R2C = 1, THRIFFTY_TRANSFORM_R2R = 2, &
        THRIFFTY_KIND_DEFAULT = 0, THRIFFTY_KIND_NONE = 1, THRIFFTY_KIND_C2C = 2, THRIFFTY_KIND_R2C = 3, &
        THRIFFTY_KIND_DCT1 = 4, THRIFFTY_KIND_DCT2 = 5, THRIFFTY_KIND_DCT3 = 6, THRIFFTY_KIND_DCT4 = 7, &
        THRIFFTY_KIND_DST1 = 8, THRIFFTY_KIND_DST2 = 9, THRIFFTY_KIND_DST3 = 10, THRIFFTY_KIND_DST4 = 11, &
        THRIFFTY_PRECISION_F32 = 32, THRIFFTY_PRECISION_F64 = 64, &
        THRIFFTY_SCALE_NONE = 0, THRIFFTY_SCALE_FULL = 1, THRIFFTY_SCALE_SYMMETRIC = 2, &
        THRIFFTY_TUNE_MODEL = 0, THRIFFTY_TUNE_MEASURE = 1, THRIFFTY_TUNE_WISDOM = 2, THRIFFTY_TUNE_EXACT = 3

    !> A half-open box of the grid. Holds nothing where hi <= lo along any axis.
    type, public, bind(C) :: thriffty_brick
        integer(c_int64_t) :: lo(4) = 0, hi(4) = 0
    end type

    !> What a plan needs of this rank, all arrays of a batch together. Orders are as in the options.
    type, public, bind(C) :: thriffty_sizes
        integer(c_size_t) :: struct_size = 0
        type(thriffty_brick) :: input, output
        integer(c_size_t) :: input_points = 0, output_points = 0, input_bytes = 0, output_bytes = 0
        integer(c_size_t) :: in_place_bytes = 0, workspace_bytes = 0
        integer(c_int32_t) :: input_order(4) = 0, output_order(4) = 0
    end type

    !> Options of a plan. Orders of axes in memory are fastest first, with axes from 1 on.
    type, public :: thriffty_options
        integer(c_int32_t) :: precision = THRIFFTY_PRECISION_F64
        integer(c_int32_t) :: kinds(4) = THRIFFTY_KIND_DEFAULT
        integer(c_int32_t) :: input_order(4) = [1, 2, 3, 4], output_order(4) = [1, 2, 3, 4]
        integer(c_int32_t) :: forward_scale = THRIFFTY_SCALE_NONE, inverse_scale = THRIFFTY_SCALE_FULL
        integer(c_int64_t) :: howmany = 1
        character(:), allocatable :: exchange, wire
        real(c_double) :: tolerance = 0, tune_seconds = 10
        logical :: strict = .false., wire_everywhere = .false., shared_arrays = .false.
        integer(c_int32_t) :: tune = THRIFFTY_TUNE_MODEL
        character(:), allocatable :: tune_text
        integer(c_int32_t) :: device = -1
        type(c_ptr) :: stream = c_null_ptr
        character(:), allocatable :: passage, memory, layouts, machine
        integer(c_int32_t) :: threads = 1
        logical :: transposed_input = .false., transposed_output = .false.
        integer(c_int64_t) :: transform(4) = 0, modes(4) = 0
    end type

    !> A distributed transform. Copies are the same plan.
    type, public :: thriffty_plan
        private
        type(c_ptr) :: handle = c_null_ptr
        integer, public :: axes = 0
    end type

    public :: thriffty_plan_create_serial, thriffty_plan_destroy, thriffty_plan_sizes, thriffty_plan_error
    public :: thriffty_plan_recipe, thriffty_plan_report, thriffty_plan_save_wisdom, thriffty_plan_refuse
    public :: thriffty_forward, thriffty_inverse, thriffty_forward_in_place, thriffty_inverse_in_place
    public :: thriffty_allocate, thriffty_plan_handle, thriffty_last_error

#ifdef THRIFFTY_WITH_MPI
    public :: thriffty_plan_create

    !> Makes a plan over a communicator, an integer or of type(MPI_Comm). Collective.
    interface thriffty_plan_create
        module procedure create_integer, create_f08
    end interface
#endif

    !> thriffty_options as C has it.
    type, bind(C) :: c_options
        integer(c_size_t) :: struct_size
        integer(c_int32_t) :: precision, kinds(4), input_order(4), output_order(4)
        integer(c_int32_t) :: forward_scale, inverse_scale
        integer(c_int64_t) :: howmany
        type(c_ptr) :: exchange, wire
        real(c_double) :: tolerance
        integer(c_int32_t) :: strict, wire_everywhere, tune, shared_arrays
        real(c_double) :: tune_seconds
        type(c_ptr) :: tune_text
        integer(c_int32_t) :: device
        type(c_ptr) :: stream, passage, memory, layouts
        integer(c_int32_t) :: threads, transposed_output
        integer(c_int64_t) :: transform(4), modes(4)
        integer(c_int32_t) :: transposed_input
        type(c_ptr) :: machine
    end type

    !> What C reads while a plan is made: kept alive here.
    type :: request
        type(c_options) :: options
        integer(c_int64_t) :: shape(4)
        type(thriffty_brick) :: input, output
        character(kind=c_char), allocatable :: exchange(:), wire(:), tune_text(:), passage(:)
        character(kind=c_char), allocatable :: memory(:), layouts(:), machine(:)
    end type

    interface
        function c_create_serial(plan, transform, axes, shape, options) result(status) &
                bind(C, name="thriffty_plan_create_serial")
            import :: c_int32_t, c_int64_t, c_options, c_ptr
            type(c_ptr), intent(out) :: plan
            integer(c_int32_t), value :: transform, axes
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_options), intent(in) :: options
            integer(c_int32_t) :: status
        end function
#ifdef THRIFFTY_WITH_MPI
        function c_create(plan, comm, transform, axes, shape, input, output, options) result(status) &
                bind(C, name="thriffty_plan_create_f")
            import :: c_int, c_int32_t, c_int64_t, c_options, c_ptr
            type(c_ptr), intent(out) :: plan
            integer(c_int), value :: comm
            integer(c_int32_t), value :: transform, axes
            integer(c_int64_t), intent(in) :: shape(*)
            type(c_ptr), value :: input, output
            type(c_options), intent(in) :: options
            integer(c_int32_t) :: status
        end function
#endif
        function c_destroy(plan) result(status) bind(C, name="thriffty_plan_destroy")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: plan
            integer(c_int32_t) :: status
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
        function c_error(plan, estimate, bound) result(status) bind(C, name="thriffty_plan_error")
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
    end interface

    abstract interface
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

    procedure(transforms), bind(C, name="thriffty_forward") :: c_forward
    procedure(transforms), bind(C, name="thriffty_inverse") :: c_inverse
    procedure(transforms_in_place), bind(C, name="thriffty_forward_in_place") :: c_forward_in_place
    procedure(transforms_in_place), bind(C, name="thriffty_inverse_in_place") :: c_inverse_in_place
    procedure(writes_text), bind(C, name="thriffty_plan_recipe") :: c_recipe
    procedure(writes_text), bind(C, name="thriffty_plan_report") :: c_report

contains

    !> Makes a plan of one process. shape has the points along each axis, 1 to 4 of them.
    subroutine thriffty_plan_create_serial(plan, transform, shape, options, status)
        type(thriffty_plan), intent(out) :: plan
        integer(c_int32_t), intent(in) :: transform
        integer, intent(in) :: shape(:)
        type(thriffty_options), intent(in), optional :: options
        integer(c_int32_t), intent(out) :: status
        type(request), target :: asked

        plan%axes = size(shape)
        call ask(asked, shape, options)
        status = c_create_serial(plan%handle, transform, size(shape, kind=c_int32_t), asked%shape, asked%options)
    end subroutine

#ifdef THRIFFTY_WITH_MPI
    !> shape has the points along each axis; input and output are this rank's part of physical and
    !> spectral data, or absent for an even cut into bricks.
    subroutine create_integer(plan, comm, transform, shape, input, output, options, status)
        type(thriffty_plan), intent(out) :: plan
        integer, intent(in) :: comm
        integer(c_int32_t), intent(in) :: transform
        integer, intent(in) :: shape(:)
        type(thriffty_brick), intent(in), optional :: input, output
        type(thriffty_options), intent(in), optional :: options
        integer(c_int32_t), intent(out) :: status
        type(request), target :: asked
        type(c_ptr) :: in, out

        plan%axes = size(shape)
        call ask(asked, shape, options)
        in = c_null_ptr
        if (present(input)) then
            asked%input = turned(input, size(shape))
            in = c_loc(asked%input)
        end if
        out = c_null_ptr
        if (present(output)) then
            asked%output = turned(output, size(shape))
            out = c_loc(asked%output)
        end if
        status = c_create(plan%handle, int(comm, c_int), transform, size(shape, kind=c_int32_t), &
            asked%shape, in, out, asked%options)
    end subroutine

    subroutine create_f08(plan, comm, transform, shape, input, output, options, status)
        type(thriffty_plan), intent(out) :: plan
        type(MPI_Comm), intent(in) :: comm
        integer(c_int32_t), intent(in) :: transform
        integer, intent(in) :: shape(:)
        type(thriffty_brick), intent(in), optional :: input, output
        type(thriffty_options), intent(in), optional :: options
        integer(c_int32_t), intent(out) :: status

        call create_integer(plan, comm%MPI_VAL, transform, shape, input, output, options, status)
    end subroutine
#endif

    !> Destroys a plan; nothing for one that was not made. Collective.
    subroutine thriffty_plan_destroy(plan, status)
        type(thriffty_plan), intent(inout) :: plan
        integer(c_int32_t), intent(out) :: status

        status = c_destroy(plan%handle)
        plan%handle = c_null_ptr
    end subroutine

    !> Transforms physical to spectral data, contiguous arrays of so many bytes: call
    !> thriffty_forward(plan, c_loc(x), sizes%input_bytes, c_loc(y), sizes%output_bytes, status).
    !> Collective. Of a plan on a device: addresses there, such as c_devloc(x) of CUDA Fortran.
    subroutine thriffty_forward(plan, input, input_bytes, output, output_bytes, status)
        type(thriffty_plan), intent(in) :: plan
        type(c_ptr), intent(in) :: input, output
        integer(c_size_t), intent(in) :: input_bytes, output_bytes
        integer(c_int32_t), intent(out) :: status

        status = c_forward(plan%handle, input, input_bytes, output, output_bytes)
    end subroutine

    !> Transforms spectral to physical data, as thriffty_forward. Collective.
    subroutine thriffty_inverse(plan, input, input_bytes, output, output_bytes, status)
        type(thriffty_plan), intent(in) :: plan
        type(c_ptr), intent(in) :: input, output
        integer(c_size_t), intent(in) :: input_bytes, output_bytes
        integer(c_int32_t), intent(out) :: status

        status = c_inverse(plan%handle, input, input_bytes, output, output_bytes)
    end subroutine

    !> Transforms physical to spectral data in one array of sizes%in_place_bytes. Collective.
    subroutine thriffty_forward_in_place(plan, data, bytes, status)
        type(thriffty_plan), intent(in) :: plan
        type(c_ptr), intent(in) :: data
        integer(c_size_t), intent(in) :: bytes
        integer(c_int32_t), intent(out) :: status

        status = c_forward_in_place(plan%handle, data, bytes)
    end subroutine

    !> Transforms spectral to physical data in one array. Collective.
    subroutine thriffty_inverse_in_place(plan, data, bytes, status)
        type(thriffty_plan), intent(in) :: plan
        type(c_ptr), intent(in) :: data
        integer(c_size_t), intent(in) :: bytes
        integer(c_int32_t), intent(out) :: status

        status = c_inverse_in_place(plan%handle, data, bytes)
    end subroutine

    !> Makes an array of sizes%in_place_bytes, all 0, that processes of one host see; to be pointed
    !> at by c_f_pointer, unless the plan is on a device, where this is an address there. It lives
    !> as long as the plan. Collective.
    subroutine thriffty_allocate(plan, array, status)
        type(thriffty_plan), intent(in) :: plan
        type(c_ptr), intent(out) :: array
        integer(c_int32_t), intent(out) :: status

        status = c_allocate(plan%handle, array)
    end subroutine

    !> Tells this rank's bricks and what memory a plan needs.
    subroutine thriffty_plan_sizes(plan, sizes, status)
        type(thriffty_plan), intent(in) :: plan
        type(thriffty_sizes), intent(out) :: sizes
        integer(c_int32_t), intent(out) :: status
        integer :: n

        status = c_sizes(plan%handle, sizes, c_sizeof(sizes))
        sizes%input = turned(sizes%input, plan%axes)
        sizes%output = turned(sizes%output, plan%axes)
        n = min(plan%axes, 4)
        sizes%input_order(:n) = n - sizes%input_order(n:1:-1)
        sizes%output_order(:n) = n - sizes%output_order(n:1:-1)
    end subroutine

    !> The plan as C has it, for interfaces of one's own.
    pure function thriffty_plan_handle(plan) result(handle)
        type(thriffty_plan), intent(in) :: plan
        type(c_ptr) :: handle

        handle = plan%handle
    end function

    !> What the last transform lost on the wire: an estimate, and what it cannot exceed.
    subroutine thriffty_plan_error(plan, estimate, bound, status)
        type(thriffty_plan), intent(in) :: plan
        real(c_double), intent(out) :: estimate, bound
        integer(c_int32_t), intent(out) :: status

        estimate = 0
        bound = 0
        status = c_error(plan%handle, estimate, bound)
    end subroutine

    !> How the transform is done, in one line, with the axes as C has them; empty for a plan that is
    !> none.
    function thriffty_plan_recipe(plan) result(recipe)
        type(thriffty_plan), intent(in) :: plan
        character(:), allocatable :: recipe

        recipe = written(c_recipe, plan)
    end function

    !> The candidates for the recipe as a table, one line each; empty for a plan that is none.
    function thriffty_plan_report(plan) result(report)
        type(thriffty_plan), intent(in) :: plan
        character(:), allocatable :: report

        report = written(c_report, plan)
    end function

    !> The text that a call writes as snprintf does.
    function written(call, plan) result(text)
        procedure(writes_text) :: call
        type(thriffty_plan), intent(in) :: plan
        character(:), allocatable :: text
        character(kind=c_char), allocatable, target :: letters(:)
        integer(c_int64_t) :: length

        length = max(call(plan%handle, c_null_ptr, 0_c_size_t), 0_c_int64_t)
        allocate (letters(length + 1))
        letters = c_null_char
        length = max(call(plan%handle, c_loc(letters), int(length + 1, c_size_t)), 0_c_int64_t)
        allocate (character(length) :: text)
        text = joined(letters(:length))
    end function

    !> Fails on this rank in place of a transform: all ranks have the status of a wrong argument,
    !> and the text "what: found found, expected expected". Collective.
    subroutine thriffty_plan_refuse(plan, what, found, expected, status)
        type(thriffty_plan), intent(in) :: plan
        character(*), intent(in) :: what, found, expected
        integer(c_int32_t), intent(out) :: status

        status = c_refuse(plan%handle, ended(what), ended(found), ended(expected))
    end subroutine

    !> Adds what was measured to a file. Collective.
    subroutine thriffty_plan_save_wisdom(plan, path, status)
        type(thriffty_plan), intent(in) :: plan
        character(*), intent(in) :: path
        integer(c_int32_t), intent(out) :: status

        status = c_save_wisdom(plan%handle, ended(path))
    end subroutine

    !> Why the last call that failed did so.
    function thriffty_last_error() result(text)
        character(:), allocatable :: text
        type(c_ptr) :: found
        character(kind=c_char), pointer :: letters(:)

        found = c_last_error()
        call c_f_pointer(found, letters, [c_strlen(found)])
        text = joined(letters)
    end function

    !> Options and shape as C has them.
    subroutine ask(asked, shape, options)
        type(request), intent(inout), target :: asked
        integer, intent(in) :: shape(:)
        type(thriffty_options), intent(in), optional :: options
        type(thriffty_options) :: o
        integer :: axes

        if (present(options)) o = options
        axes = min(size(shape), 4)
        asked%shape = 1
        asked%shape(:axes) = shape(axes:1:-1)
        asked%options = c_options(c_sizeof(asked%options), o%precision, o%kinds, o%input_order, o%output_order, &
            o%forward_scale, o%inverse_scale, o%howmany, c_null_ptr, c_null_ptr, o%tolerance, merge(1, 0, o%strict), &
            merge(1, 0, o%wire_everywhere), o%tune, merge(1, 0, o%shared_arrays), o%tune_seconds, c_null_ptr, &
            o%device, o%stream, c_null_ptr, c_null_ptr, c_null_ptr, o%threads, merge(1, 0, o%transposed_output), &
            o%transform, o%modes, merge(1, 0, o%transposed_input), c_null_ptr)
        asked%options%transform(:axes) = o%transform(axes:1:-1)
        asked%options%modes(:axes) = o%modes(axes:1:-1)
        asked%options%kinds(:axes) = o%kinds(axes:1:-1)
        asked%options%input_order(:axes) = axes - o%input_order(axes:1:-1)
        asked%options%output_order(:axes) = axes - o%output_order(axes:1:-1)
        call keep(o%exchange, asked%exchange, asked%options%exchange)
        call keep(o%wire, asked%wire, asked%options%wire)
        call keep(o%tune_text, asked%tune_text, asked%options%tune_text)
        call keep(o%passage, asked%passage, asked%options%passage)
        call keep(o%memory, asked%memory, asked%options%memory)
        call keep(o%layouts, asked%layouts, asked%options%layouts)
        call keep(o%machine, asked%machine, asked%options%machine)
    end subroutine

    !> Keeps a text as C has it, and its address.
    subroutine keep(text, letters, address)
        character(:), allocatable, intent(in) :: text
        character(kind=c_char), allocatable, target, intent(inout) :: letters(:)
        type(c_ptr), intent(inout) :: address

        if (.not. allocated(text)) return
        letters = ended(text)
        address = c_loc(letters)
    end subroutine

    !> A brick with its axes the other way round.
    pure function turned(brick, axes) result(other)
        type(thriffty_brick), intent(in) :: brick
        integer, intent(in) :: axes
        type(thriffty_brick) :: other
        integer :: n

        n = min(axes, 4)
        other%lo(:n) = brick%lo(n:1:-1)
        other%hi(:n) = brick%hi(n:1:-1)
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
