! thriffty: distributed Fourier transforms, for Fortran 2008. MIT OR Apache-2.0.
!
! Axes are numbered as in Fortran arrays: R2C transforms keep n/2 + 1 points of the first axis,
! which is contiguous.
! Bricks are half-open and from 0: brick%lo(a) + 1 is the first index along axis a of an array from
! 1 on, brick%hi(a) the last. Options are set by name: call options%set("tolerance", 1e-6).
! Otherwise everything is as in include/thriffty.h. Subroutines end with a status, which
! thriffty_last_error() explains in words.
!
! A status has 4 or 8 bytes. So have the other integers and logicals of a call, which all have the
! same size, except constants of this module and numbers of bytes.
!
! THRIFFTY_WITH_MPI is defined for a library with plans over MPI.

module thriffty
    use thriffty_types
    use thriffty_settings, only: thriffty_options
    use thriffty_calls_4
    use thriffty_calls_8
    use thriffty_calls_4_4
    use thriffty_calls_4_8
    use thriffty_calls_8_4
    use thriffty_calls_8_8
    use thriffty_c, only: c_recipe, c_report, thriffty_default_threads => c_default_threads, &
        thriffty_last_error => last_error, written
    implicit none
    private :: c_recipe, c_report, written

contains

    !> How the transform is done, in one line, with the axes as C has them; empty for a plan that is
    !> none.
    function thriffty_plan_recipe(plan) result(recipe)
        type(thriffty_plan), intent(in) :: plan
        character(:), allocatable :: recipe

        recipe = written(c_recipe, plan%handle)
    end function

    !> The candidates for the recipe as a table, one line each; empty for a plan that is none.
    function thriffty_plan_report(plan) result(report)
        type(thriffty_plan), intent(in) :: plan
        character(:), allocatable :: report

        report = written(c_report, plan%handle)
    end function
end module
