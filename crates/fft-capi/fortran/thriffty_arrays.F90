! Copies between local arrays for Fortran 2008, beside the module thriffty. MIT OR Apache-2.0.
!
! Axes are those of Fortran arrays, from 1 on. Otherwise everything is as include/thriffty.h says.

module thriffty_arrays
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t, c_null_ptr, c_ptr, c_size_t
    use thriffty, only: thriffty_brick, thriffty_plan, thriffty_plan_handle
    implicit none
    private

    integer(c_int32_t), parameter, public :: THRIFFTY_SIDE_INPUT = 0, THRIFFTY_SIDE_OUTPUT = 1

    !> A brick in a local array. Arrays of a copy are numbered from 0. The offset is that of the
    !> brick's first point, in elements.
    type, public, bind(C) :: thriffty_subarray
        type(thriffty_brick) :: brick
        integer(c_int64_t) :: array = 0, offset = 0, strides(4) = 0, distance = 0
    end type

    !> A copy between local arrays of all ranks.
    type, public :: thriffty_copy
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    public :: thriffty_subarray_init, thriffty_copy_create, thriffty_halo_create, thriffty_copy_run, &
        thriffty_copy_run_in_place, thriffty_copy_destroy

    interface
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
        function c_copy_destroy(copy) result(status) bind(C, name="thriffty_copy_destroy")
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: copy
            integer(c_int32_t) :: status
        end function
    end interface

contains

    !> Describes a brick in an array with so many more points below and above it along each axis.
    !> With components above 1, those of a point are side by side, along the array's first axis.
    subroutine thriffty_subarray_init(subarray, brick, lower, upper, status, array, components)
        type(thriffty_subarray), intent(out) :: subarray
        type(thriffty_brick), intent(in) :: brick
        integer, intent(in) :: lower(:), upper(:)
        integer(c_int32_t), intent(out) :: status
        integer, intent(in), optional :: array, components
        integer(c_int64_t) :: around(4, 2)
        integer :: axes, given

        ! Without axes it is refused.
        axes = merge(min(size(lower), 4), 0, size(lower) == size(upper))
        around = 0
        around(:axes, 1) = lower(axes:1:-1)
        around(:axes, 2) = upper(axes:1:-1)
        given = 1
        if (present(components)) given = components
        status = c_subarray_init(subarray, int(axes, c_int32_t), turned(brick, axes), around(:, 1), around(:, 2), &
            c_null_ptr, int(given, c_int64_t))
        subarray = reversed(subarray, axes)
        if (present(array)) subarray%array = array
    end subroutine

    !> Plans a copy of data like that of one side of a plan, over its ranks. Collective.
    subroutine thriffty_copy_create(copy, plan, side, sources, targets, status)
        type(thriffty_copy), intent(out) :: copy
        type(thriffty_plan), intent(in) :: plan
        integer(c_int32_t), intent(in) :: side
        type(thriffty_subarray), intent(in) :: sources(:), targets(:)
        integer(c_int32_t), intent(out) :: status

        status = c_copy_create(copy%handle, thriffty_plan_handle(plan), side, size(sources, kind=c_size_t), &
            reversed(sources, plan%axes), size(targets, kind=c_size_t), reversed(targets, plan%axes))
    end subroutine

    !> Plans the exchange of ghost points. Collective. It runs in place.
    subroutine thriffty_halo_create(copy, plan, side, lower, upper, periodic, subarrays, status)
        type(thriffty_copy), intent(out) :: copy
        type(thriffty_plan), intent(in) :: plan
        integer(c_int32_t), intent(in) :: side
        integer, intent(in) :: lower(:), upper(:)
        logical, intent(in) :: periodic(:)
        type(thriffty_subarray), intent(in) :: subarrays(:)
        integer(c_int32_t), intent(out) :: status
        integer(c_int64_t) :: around(4, 2)
        integer(c_int32_t) :: wraps(4)
        integer :: n

        n = min(plan%axes, 4)
        ! Other numbers of axes are refused, as negative numbers of points are.
        around = -1
        wraps = 0
        if (size(lower) == n .and. size(upper) == n .and. size(periodic) == n) then
            around(:n, 1) = lower(n:1:-1)
            around(:n, 2) = upper(n:1:-1)
            wraps(:n) = merge(1, 0, periodic(n:1:-1))
        end if
        status = c_halo_create(copy%handle, thriffty_plan_handle(plan), side, around(:, 1), around(:, 2), wraps, &
            size(subarrays, kind=c_size_t), reversed(subarrays, plan%axes))
    end subroutine

    !> Copies from source arrays to target arrays: the addresses of as many as the subarrays name.
    !> Collective.
    subroutine thriffty_copy_run(copy, sources, targets, status)
        type(thriffty_copy), intent(in) :: copy
        type(c_ptr), intent(in) :: sources(:), targets(:)
        integer(c_int32_t), intent(out) :: status

        status = c_copy_run(copy%handle, sources, targets)
    end subroutine

    !> Copies within arrays that are both sources and targets, as ghost points are. Collective.
    subroutine thriffty_copy_run_in_place(copy, arrays, status)
        type(thriffty_copy), intent(in) :: copy
        type(c_ptr), intent(in) :: arrays(:)
        integer(c_int32_t), intent(out) :: status

        status = c_copy_run_in_place(copy%handle, c_null_ptr, arrays)
    end subroutine

    !> Destroys a copy; nothing for one that was not made. Collective.
    subroutine thriffty_copy_destroy(copy, status)
        type(thriffty_copy), intent(inout) :: copy
        integer(c_int32_t), intent(out) :: status

        status = c_copy_destroy(copy%handle)
        copy%handle = c_null_ptr
    end subroutine

    !> A brick with its axes in C's order, or back.
    pure function turned(brick, axes)
        type(thriffty_brick), intent(in) :: brick
        integer, intent(in) :: axes
        type(thriffty_brick) :: turned
        integer :: n

        n = min(axes, 4)
        turned%lo(:n) = brick%lo(n:1:-1)
        turned%hi(:n) = brick%hi(n:1:-1)
    end function

    !> A subarray with its axes in C's order, or back.
    elemental function reversed(subarray, axes)
        type(thriffty_subarray), intent(in) :: subarray
        integer, intent(in) :: axes
        type(thriffty_subarray) :: reversed
        integer :: n

        n = min(axes, 4)
        reversed = subarray
        reversed%brick = turned(subarray%brick, n)
        reversed%strides(:n) = subarray%strides(n:1:-1)
    end function
end module
