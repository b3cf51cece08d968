! Tests for a message again and again with some work in between.
!
! usage: tests_in_fortran TESTS
program tests_in_fortran
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Request) :: request
#else
  use mpi
  implicit none
  integer :: request
#endif
  integer, parameter :: messages = 3
  integer :: ierror, i, k, message, got, tests
  logical :: found
  real(8) :: work
  character(16) :: argument
  call get_command_argument(1, argument)
  read (argument, *) tests
  work = 1
  call MPI_Init(ierror)
  do message = 1, messages
    call MPI_Irecv(got, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request, ierror)
    do i = 1, tests
      call MPI_Test(request, found, MPI_STATUS_IGNORE, ierror)
      if (found) stop 1
      do k = 1, 90
        work = sqrt(work + k)
      end do
    end do
    call MPI_Send(message, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    if (got /= message) stop 2
  end do
  if (work < 0) stop 3
  call MPI_Finalize(ierror)
end program
