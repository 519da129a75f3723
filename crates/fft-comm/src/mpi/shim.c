/* What MPI libraries define as macros, and so differently that bindings made from headers miss them. */
#include <mpi.h>

int thriffty_return_errors(MPI_Comm comm);

int thriffty_return_errors(MPI_Comm comm)
{
    return MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

int thriffty_split_hosts(MPI_Comm comm, MPI_Comm *part);

int thriffty_split_hosts(MPI_Comm comm, MPI_Comm *part)
{
    return MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, part);
}
