/* What MPI libraries define as macros, and so differently that bindings made from headers miss them. */
#include <mpi.h>

int thriffty_return_errors(MPI_Comm comm);

int thriffty_return_errors(MPI_Comm comm)
{
    return MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}
