"""Sums and a message through nothing but a handle of the MPI library, as `ctypes` looks functions up.

usage: by_ctypes.py FAMILY LIBRARY
"""

import ctypes
import sys

family, path = sys.argv[1:]
mpi = ctypes.CDLL(path)
if family == "openmpi":
    world, byte, integer, add = (
        ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, f"ompi_mpi_{name}")))
        for name in ("comm_world", "byte", "int", "op_sum")
    )
    no_status = ctypes.c_void_p(0)
elif family == "mpich":
    world, byte, integer, add = (ctypes.c_int(handle) for handle in (0x44000000, 0x4C00010D, 0x4C000405, 0x58000003))
    no_status = ctypes.c_void_p(1)
else:  # MPI 5.0, appendix A: the values of the standard ABI
    world, byte, integer, add = (ctypes.c_void_p(handle) for handle in (0x101, 0x247, 0x209, 0x021))
    no_status = ctypes.c_void_p(0)

mpi.MPI_Init(None, None)
rank, total = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
data = ctypes.create_string_buffer(b"at home ", 9)
if rank.value == 0:
    mpi.MPI_Send(b"far away", 8, byte, 1, 3, world)
else:
    mpi.MPI_Recv(data, 8, byte, 0, 3, world, no_status)
for _ in range(5):
    mpi.MPI_Allreduce(ctypes.byref(ctypes.c_int(rank.value + 1)), ctypes.byref(total), 1, integer, add, world)
mpi.MPI_Finalize()
if rank.value == 1:
    print(data.value.decode(), total.value)
