! Callbacks that call MPI: attributes, a reduction and an error handler.
module callbacks
  implicit none
  include 'mpif.h'
contains
  subroutine look(times)
    integer, intent(in) :: times
    integer :: i, ierror, status(MPI_STATUS_SIZE)
    logical :: flag
    do i = 1, times
      call MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_SELF, flag, status, ierror)
    end do
  end subroutine

  subroutine copy(comm, key, extra, value, made, flag, ierror)
    integer :: comm, key, ierror
    integer(MPI_ADDRESS_KIND) :: extra, value, made
    logical :: flag
    call look(3)
    made = value
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, key, value, extra, ierror)
    integer :: comm, key, ierror
    integer(MPI_ADDRESS_KIND) :: extra, value
    call look(5)
    call MPI_Barrier(MPI_COMM_SELF, ierror)
  end subroutine

  subroutine add(in, inout, length, type)
    integer :: length, type, in(*), inout(*)
    call look(1)
    inout(1:length) = inout(1:length) + in(1:length)
  end subroutine

  subroutine failed(comm, code)
    integer :: comm, code
    call look(2)
  end subroutine
end module

program calls_back
  use callbacks
  implicit none
  integer :: ierror, key, made, rank, op, handler, mine, total
  integer(MPI_ADDRESS_KIND) :: value
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  value = 42
  call MPI_Comm_create_keyval(copy, delete, key, value, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, made, ierror)
  call MPI_Comm_free(made, ierror)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierror)
  call MPI_Op_create(add, .true., op, ierror)
  mine = 1
  call MPI_Reduce(mine, total, 1, MPI_INTEGER, op, 0, MPI_COMM_WORLD, ierror)
  call MPI_Comm_create_errhandler(failed, handler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierror)
  call MPI_Send(mine, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a,i0)', 'sum ', total
  call MPI_Finalize(ierror)
end program
