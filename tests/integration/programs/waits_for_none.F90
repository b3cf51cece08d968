! A wait for no requests, which the bindings carry out by themselves, and calls of the C functions after it. Of Open MPI.
program waits_for_none
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr
  use mpi
  implicit none
  interface
    type(c_ptr) function to_c(comm) bind(c, name='MPI_Comm_f2c')
      import :: c_int, c_ptr
      integer(c_int), value :: comm
    end function
    integer(c_int) function c_barrier(comm) bind(c, name='MPI_Barrier')
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
    end function
  end interface
  integer :: ierror, i, none(1)
  call MPI_Init(ierror)
  do i = 1, 10
    call MPI_Waitall(0, none, MPI_STATUSES_IGNORE, ierror)
    ierror = c_barrier(to_c(MPI_COMM_WORLD))  ! the place of the barriers
  end do
  call MPI_Finalize(ierror)
end program
