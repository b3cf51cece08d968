! The calls through the mpi_f08 module.
program calls
use mpi_f08
implicit none
#define COMM_T type(MPI_Comm)
#define REQUEST_T type(MPI_Request)
#define STATUS_T type(MPI_Status)
#define STATUS_SHAPE
#define STATUSES_SHAPE (4)
#define STATUS_SOURCE status%MPI_SOURCE
#define GROUP_T type(MPI_Group)
#define WIN_T type(MPI_Win)
#define FILE_T type(MPI_File)
#define MESSAGE_T type(MPI_Message)
#include "calls_body.h"
end program
#include "calls_failed.h"
