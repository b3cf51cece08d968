! The calls through the mpi module, in free form.
program calls
use mpi
implicit none
#define COMM_T integer
#define REQUEST_T integer
#define STATUS_T integer
#define STATUS_SHAPE (MPI_STATUS_SIZE)
#define STATUSES_SHAPE (MPI_STATUS_SIZE, 4)
#define STATUS_SOURCE status(MPI_SOURCE)
#define GROUP_T integer
#define WIN_T integer
#define FILE_T integer
#define MESSAGE_T integer
#include "calls_body.h"
end program
#include "calls_failed.h"
