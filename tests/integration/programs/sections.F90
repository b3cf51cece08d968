! Array sections: the bindings of mpi_f08 may pass them with a datatype that they make themselves.
program sections
use mpi_f08
implicit none
integer :: rank, size, next, last, round
real(8) :: grid(60, 60), edge(60, 60)
type(MPI_Request) :: requests(2)
type(MPI_Datatype) :: own
call MPI_Init()
call MPI_Comm_rank(MPI_COMM_WORLD, rank)
call MPI_Comm_size(MPI_COMM_WORLD, size)
next = mod(rank + 1, size)
last = mod(rank + size - 1, size)
grid = rank
edge = -1
if (MPI_SUBARRAYS_SUPPORTED) then
  do round = 1, 10
    call MPI_Irecv(edge(1:60:3, 5), 20, MPI_DOUBLE_PRECISION, last, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(grid(1:60:3, 2), 20, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Sendrecv(grid(3, 1:50), 50, MPI_DOUBLE_PRECISION, next, 2, &
                      edge(7, 1:50), 50, MPI_DOUBLE_PRECISION, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, own)
    call MPI_Type_free(own)
  end do
  if (edge(4, 5) /= last .or. edge(2, 5) /= -1 .or. edge(7, 50) /= last) print *, 'wrong section'
end if
if (rank == 0) print *, 'sections done'
call MPI_Finalize()
end program
