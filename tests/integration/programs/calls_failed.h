      subroutine failed(failures, line)
      integer failures, line
      print '(A, I0)', 'FAILED line ', line
      failures = failures + 1
      end subroutine
