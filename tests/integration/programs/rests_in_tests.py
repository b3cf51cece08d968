"""Rank 0 works, then sends to rank 1, which waits in a loop of tests that does nothing else, and prints what part of its waiting
it took from its core.

usage: rests_in_tests.py test|probe WAIT_US ROUNDS
"""

import sys
import time

from mpi4py import MPI

how, wait_s, rounds = sys.argv[1], 1e-6 * float(sys.argv[2]), int(sys.argv[3])
world = MPI.COMM_WORLD
data = bytearray(8)
on_core = waited = 0.0
for number in range(rounds):
    if world.rank == 0:
        end = time.perf_counter() + wait_s
        while time.perf_counter() < end:
            pass
        world.Send(number.to_bytes(8, "little"), 1, 7)
        continue
    began, core_began = time.perf_counter(), time.thread_time()
    if how == "test":
        request = world.Irecv(data, 0, 7)
        while not request.Test():
            pass
    else:
        while not world.iprobe(source=0, tag=7):
            pass
        world.Recv(data, 0, 7)
    on_core += time.thread_time() - core_began
    waited += time.perf_counter() - began
    assert int.from_bytes(data, "little") == number
if world.rank == 1:
    print(f"awake {on_core / waited:.3f}")
