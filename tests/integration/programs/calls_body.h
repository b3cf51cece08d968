! Known numbers of MPI calls, two ranks; the same text for mpif.h, use mpi and use mpi_f08. It is valid in fixed
! and in free form (lines of any length), and the files that include it say how handles are declared.
      integer me, ranks, peer, ierr, i, sum, one, got, expect, outcount, indices(4), failures
      integer values(1000), other(1000), counts(2), displs(2), dims(1)
      logical flag, periods(1)
      double precision real_in, real_out
      integer(kind=MPI_ADDRESS_KIND) bytes, at
      integer(kind=MPI_OFFSET_KIND) offset
      REQUEST_T requests(4)
      STATUS_T status STATUS_SHAPE
      STATUS_T statuses STATUSES_SHAPE
      COMM_T half, copy, pair, line
      GROUP_T group
      WIN_T win
      FILE_T file
      MESSAGE_T message
      failures = 0
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
      peer = 1 - me
      one = 1
! Send 5, Recv 5
      do i = 1, 5
        values(1) = me * 10 + i
        if (me .eq. 0) call MPI_Send(values, i, MPI_INTEGER, peer, i, MPI_COMM_WORLD, ierr)
        call MPI_Recv(other, 1000, MPI_INTEGER, peer, i, MPI_COMM_WORLD, status, ierr)
        if (me .eq. 1) call MPI_Send(values, i, MPI_INTEGER, peer, i, MPI_COMM_WORLD, ierr)
        call MPI_Get_count(status, MPI_INTEGER, got, ierr)
        if (other(1) .ne. peer * 10 + i .or. got .ne. i .or. STATUS_SOURCE .ne. peer) call failed(failures, __LINE__)
      end do
! Ssend 1, Recv 1
      if (me .eq. 0) call MPI_Ssend(values, 1, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, ierr)
      call MPI_Recv(other, 1, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      if (me .eq. 1) call MPI_Ssend(values, 1, MPI_INTEGER, peer, 6, MPI_COMM_WORLD, ierr)
! Irecv 3, Isend 3, Waitall 3
      do i = 1, 3
        call MPI_Irecv(other, 1000, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Isend(values, 1000, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(2), ierr)
        if (i .eq. 1) call MPI_Waitall(2, requests, statuses, ierr)
        if (i .ne. 1) call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
        if (other(1) .ne. peer * 10 + 5) call failed(failures, __LINE__)
      end do
! Irecv 2, Isend 2, Wait 4
      do i = 1, 2
        call MPI_Irecv(other, 1000, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Isend(values, 1000, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(2), ierr)
        call MPI_Wait(requests(1), status, ierr)
        call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
      end do
! Irecv 1, Isend 1, Waitany 2
      call MPI_Irecv(other, 1000, MPI_INTEGER, peer, 7, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Isend(values, 1000, MPI_INTEGER, peer, 7, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Waitany(2, requests, indices(1), status, ierr)
      call MPI_Waitany(2, requests, indices(2), MPI_STATUS_IGNORE, ierr)
! MPICH 4.0 gives Fortran programs indices of its own kind: they are compared between runs, not with the standard.
      print '(A, I0, A, I0)', 'rank ', me, ' waitany ', indices(1) + indices(2)
! Irecv 1, Isend 1, Wait 1, Waitsome 1
      call MPI_Irecv(other, 1, MPI_INTEGER, me, 8, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Isend(values, 1, MPI_INTEGER, me, 8, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
      call MPI_Waitsome(1, requests, outcount, indices, statuses, ierr)
      print '(A, I0, A, I0, A, I0)', 'rank ', me, ' waitsome ', outcount, ' index ', indices(1)
! Test 4, Testall 2, Testany 1, Testsome 1: of requests that are done
      do i = 1, 4
        flag = .false.
        call MPI_Test(requests(1), flag, status, ierr)
        if (.not. flag) call failed(failures, __LINE__)
      end do
      do i = 1, 2
        flag = .false.
        call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE, ierr)
        if (.not. flag) call failed(failures, __LINE__)
      end do
      call MPI_Testany(2, requests, indices(1), flag, status, ierr)
      if (.not. flag) call failed(failures, __LINE__)
      print '(A, I0, A, I0)', 'rank ', me, ' testany ', indices(1)
      call MPI_Testsome(2, requests, outcount, indices, MPI_STATUSES_IGNORE, ierr)
      if (outcount .ne. MPI_UNDEFINED) call failed(failures, __LINE__)
! Sendrecv 6, Sendrecv_replace 2
      do i = 1, 6
        call MPI_Sendrecv(me, 1, MPI_INTEGER, peer, i, got, 1, MPI_INTEGER, peer, i, MPI_COMM_WORLD, status, ierr)
        if (got .ne. peer) call failed(failures, __LINE__)
      end do
      got = me
      do i = 1, 2
        call MPI_Sendrecv_replace(got, 1, MPI_INTEGER, peer, i, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      end do
      if (got .ne. me) call failed(failures, __LINE__)
! Isend 2, Probe 2, Recv 2, Wait 2, Iprobe 3
      do i = 1, 2
        call MPI_Isend(values, i, MPI_INTEGER, peer, i, MPI_COMM_WORLD, requests(1), ierr)
        call MPI_Probe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, status, ierr)
        call MPI_Get_count(status, MPI_INTEGER, got, ierr)
        call MPI_Recv(other, got, MPI_INTEGER, STATUS_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
        if (got .ne. i) call failed(failures, __LINE__)
      end do
      do i = 1, 3
        flag = .true.
        call MPI_Iprobe(peer, 999, MPI_COMM_WORLD, flag, status, ierr)
        if (flag) call failed(failures, __LINE__)
      end do
! Isend 1, Mprobe 1, Mrecv 1, Wait 1
      call MPI_Isend(values, 3, MPI_INTEGER, peer, 1, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Mprobe(peer, 1, MPI_COMM_WORLD, message, status, ierr)
      call MPI_Mrecv(other, 3, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierr)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
! Bcast 7, Barrier 9, Allreduce 8 of which 3 in place
      do i = 1, 7
        got = me * 100 + i
        call MPI_Bcast(got, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, ierr)
        if (got .ne. 100 + i) call failed(failures, __LINE__)
      end do
      do i = 1, 9
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
      end do
      do i = 1, 5
        real_in = 0.5d0 + me
        call MPI_Allreduce(real_in, real_out, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
        if (real_out .ne. 2d0) call failed(failures, __LINE__)
      end do
      do i = 1, 3
        sum = me + 1
        call MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
        if (sum .ne. 3) call failed(failures, __LINE__)
      end do
! Reduce 2, Gather 1, Scatter 1, Allgather 2, Alltoall 2, Scan 1, Allgatherv 1, Alltoallv 1, Reduce_scatter_block 1
      sum = me + 1
      call MPI_Reduce(one, sum, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
      if (me .eq. 0 .and. sum .ne. 2) call failed(failures, __LINE__)
      sum = 5
      if (me .eq. 0) call MPI_Reduce(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
      if (me .eq. 1) call MPI_Reduce(one, got, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
      if (me .eq. 0 .and. sum .ne. 6) call failed(failures, __LINE__)
      call MPI_Gather(me, 1, MPI_INTEGER, other, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      if (me .eq. 0 .and. other(2) .ne. 1) call failed(failures, __LINE__)
      values(1) = 40
      values(2) = 41
      call MPI_Scatter(values, 1, MPI_INTEGER, got, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      if (got .ne. 40 + me) call failed(failures, __LINE__)
      call MPI_Allgather(me, 1, MPI_INTEGER, other, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      other(me + 1) = 50 + me
      call MPI_Allgather(MPI_IN_PLACE, 1, MPI_INTEGER, other, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      if (other(1) .ne. 50 .or. other(2) .ne. 51) call failed(failures, __LINE__)
      values(1) = me * 2
      values(2) = me * 2 + 1
      do i = 1, 2
        call MPI_Alltoall(values, 1, MPI_INTEGER, other, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
        if (other(1) .ne. me .or. other(2) .ne. 2 + me) call failed(failures, __LINE__)
      end do
      call MPI_Scan(one, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
      if (sum .ne. me + 1) call failed(failures, __LINE__)
      counts(1) = 1
      counts(2) = 1
      displs(1) = 0
      displs(2) = 1
      call MPI_Allgatherv(me, 1, MPI_INTEGER, other, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      if (other(1) .ne. 0 .or. other(2) .ne. 1) call failed(failures, __LINE__)
      call MPI_Alltoallv(values, counts, displs, MPI_INTEGER, other, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
      if (other(1) .ne. me .or. other(2) .ne. 2 + me) call failed(failures, __LINE__)
      call MPI_Reduce_scatter_block(values, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
      if (got .ne. 2 + 2 * me) call failed(failures, __LINE__)
! Ibcast 1, Iallreduce 1, Ibarrier 1, Waitall 1
      got = 7 + me
      sum = me
      call MPI_Ibcast(got, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Iallreduce(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Ibarrier(MPI_COMM_WORLD, requests(3), ierr)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, ierr)
      if (got .ne. 7 .or. sum .ne. 1) call failed(failures, __LINE__)
! Send_init 1, Recv_init 1, Startall 1, Waitall 1, Start 2, Wait 2, Request_free 2
      values(1) = me + 60
      call MPI_Send_init(values, 1, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Recv_init(other, 1, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, requests(2), ierr)
      call MPI_Startall(2, requests, ierr)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
      call MPI_Start(requests(2), ierr)
      call MPI_Start(requests(1), ierr)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
      if (other(1) .ne. peer + 60) call failed(failures, __LINE__)
      call MPI_Request_free(requests(1), ierr)
      call MPI_Request_free(requests(2), ierr)
! Comm_split 2, Comm_dup 1, Comm_create 1, Cart_create 1, Comm_free 5
      do i = 1, 2
        call MPI_Comm_split(MPI_COMM_WORLD, me, 0, half, ierr)
        call MPI_Comm_free(half, ierr)
      end do
      call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierr)
      call MPI_Comm_group(copy, group, ierr)
      call MPI_Comm_create(copy, group, pair, ierr)
      call MPI_Group_free(group, ierr)
      dims(1) = 2
      periods(1) = .true.
      call MPI_Cart_create(copy, 1, dims, periods, .false., line, ierr)
      call MPI_Comm_free(line, ierr)
      call MPI_Comm_free(pair, ierr)
      call MPI_Comm_free(copy, ierr)
! Win_create 1, Win_fence 4, Put 3, Get 1, Accumulate 1, Win_lock 1, Win_unlock 1, Win_free 1
      do i = 1, 1000
        other(i) = -i
      end do
      bytes = 4000
      call MPI_Win_create(other, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
      call MPI_Win_fence(0, win, ierr)
      do i = 1, 3
        at = i - 1
        values(i) = me * 100 + i
        call MPI_Put(values(i), 1, MPI_INTEGER, peer, at, 1, MPI_INTEGER, win, ierr)
      end do
      call MPI_Win_fence(0, win, ierr)
      if (other(3) .ne. peer * 100 + 3) call failed(failures, __LINE__)
      at = 3
      call MPI_Accumulate(one, 1, MPI_INTEGER, peer, at, 1, MPI_INTEGER, MPI_SUM, win, ierr)
      call MPI_Win_fence(0, win, ierr)
      at = 2
      call MPI_Get(got, 1, MPI_INTEGER, peer, at, 1, MPI_INTEGER, win, ierr)
      call MPI_Win_fence(0, win, ierr)
      if (got .ne. me * 100 + 3 .or. other(4) .ne. -3) call failed(failures, __LINE__)
      call MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, win, ierr)
      call MPI_Win_unlock(peer, win, ierr)
      call MPI_Win_free(win, ierr)
! File_open 1, File_write_at_all 2, File_sync 1, File_read_at 1, File_close 1
      call MPI_File_open(MPI_COMM_WORLD, 'calls.data', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, ierr)
      do i = 1, 2
        offset = 400 * (2 * (i - 1) + me)
        call MPI_File_write_at_all(file, offset, values, 100, MPI_INTEGER, status, ierr)
      end do
      call MPI_File_sync(file, ierr)
      call MPI_File_read_at(file, offset, other, 100, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
      if (other(2) .ne. me * 100 + 2) call failed(failures, __LINE__)
      call MPI_File_close(file, ierr)
      call MPI_Finalize(ierr)
      if (failures .ne. 0) stop 1
      if (me .eq. 0) print '(A)', 'calls done'
