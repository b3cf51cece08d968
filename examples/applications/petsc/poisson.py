"""Solves Poisson's equation on a square by several Krylov methods, some of which use non-blocking reductions."""

import sys

import petsc4py

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

SIDE = int(sys.argv[1])
NEIGHBOURS = ((0, 0, 4.0), (-1, 0, -1.0), (1, 0, -1.0), (0, -1, -1.0), (0, 1, -1.0))

grid = PETSc.DMDA().create([SIDE, SIDE], stencil_width=1)
matrix = grid.createMatrix()
(left, right), (bottom, top) = grid.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for j in range(bottom, top):
    for i in range(left, right):
        row.index = (i, j)
        for di, dj, value in NEIGHBOURS:
            if 0 <= i + di < SIDE and 0 <= j + dj < SIDE:
                column.index = (i + di, j + dj)
                matrix.setValueStencil(row, column, value)
matrix.assemble()
b, x = matrix.createVecLeft(), matrix.createVecRight()
b.set(1.0)
for method, preconditioner in (("cg", "jacobi"), ("gmres", "bjacobi"), ("pipecg", "jacobi"), ("bcgs", "none")):
    solver = PETSc.KSP().create()
    solver.setOperators(matrix)
    solver.setType(method)
    solver.getPC().setType(preconditioner)
    solver.setTolerances(rtol=1e-8)
    x.set(0.0)
    solver.solve(b, x)
    PETSc.Sys.Print(f"{method}: {solver.getIterationNumber()} iterations, norm {x.norm():.6f}")
