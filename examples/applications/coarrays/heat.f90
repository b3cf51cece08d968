! Heat in a square plate, in strips of rows, one to an image: each takes its neighbours' outer rows when they are ready.
! usage: heat ROWS STEPS
program heat
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer :: me, images, rows, columns, step, steps, above, below
  real(real64), allocatable :: t(:, :)[:], new(:, :)
  real(real64) :: change
  character(len=12) :: argument

  me = this_image()
  images = num_images()
  call get_command_argument(1, argument)
  read (argument, *) columns
  call get_command_argument(2, argument)
  read (argument, *) steps
  rows = columns / images
  above = me - 1
  below = me + 1
  allocate (t(columns, 0:rows + 1)[*], new(columns, rows))
  t = 0
  if (me == 1) t(:, 0) = 100
  sync all

  do step = 1, steps
    if (above >= 1) t(:, 0) = t(:, rows)[above]
    if (below <= images) t(:, rows + 1) = t(:, 1)[below]
    new = t(:, 1:rows)
    new(2:columns - 1, :) = 0.25_real64 * (t(1:columns - 2, 1:rows) + t(3:columns, 1:rows) + t(2:columns - 1, 0:rows - 1) &
                                           + t(2:columns - 1, 2:rows + 1))
    change = maxval(abs(new - t(:, 1:rows)))
    call wait_for_neighbours()  ! they have what they need of the old rows
    t(:, 1:rows) = new
    call wait_for_neighbours()
    if (mod(step, 50) == 0) then
      call co_max(change)
      if (me == 1) print '(a, i0, a, es16.9)', 'step ', step, ', largest change ', change
    end if
  end do
  change = sum(t(:, 1:rows))
  call co_sum(change)
  if (me == 1) print '(a, es16.9)', 'heat ', change

contains

  subroutine wait_for_neighbours()
    if (above >= 1 .and. below <= images) then
      sync images([above, below])
    else if (above >= 1) then
      sync images(above)
    else if (below <= images) then
      sync images(below)
    end if
  end subroutine
end program
