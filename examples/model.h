/* The model that BT, SP and LU solve: five coupled quantities that flow and diffuse in a cube.
 *
 *     du/dt = - sum_d d/dx_d f_d(u) + VISCOSITY * laplace(u) - fourth-order dissipation + forcing
 *
 * The benchmarks take the compressible Navier-Stokes equations here. This model has what matters to the work and to
 * the messages: five unknowns per point, dense 5 x 5 Jacobians that depend on the solution, stencils two points deep.
 * The forcing makes a known polynomial the steady state, and holds it outside of the cube, so that a run that starts
 * beside it must come closer. */
#ifndef FALLOW_EXAMPLES_MODEL_H
#define FALLOW_EXAMPLES_MODEL_H

#include "example.h"

enum { X, Y, Z, DIMS, VARS = 5, BLOCK = VARS * VARS, GHOSTS = 2 };

static const double VISCOSITY = 0.05, STEEPENING = 0.2;
static const double DISSIPATION = 0.05; /* times the fourth difference over the spacing */
static const double COURANT = 0.1;      /* time step over spacing */

/* n points inside; the walls are at -1 and n. */
static inline double spacing_for(int n) { return 1.0 / (n + 1); }

/* The steady state at a point; `at` may lie outside. */
static inline void model_exact(int n, const int at[DIMS], double u[VARS]) {
  const double h = spacing_for(n), x = (at[X] + 1) * h, y = (at[Y] + 1) * h, z = (at[Z] + 1) * h;
  for (int m = 0; m < VARS; ++m)
    u[m] = 1 + 0.1 * (m + 1) * (x * (1 + 0.5 * y) - y * y * (1 - 0.3 * z) + z * z * z * (0.4 + 0.2 * x * x));
}

/* What a run starts from inside: the steady state and a bump that is zero on the walls. */
static inline void model_start(int n, const int at[DIMS], double u[VARS]) {
  const double h = spacing_for(n), x = (at[X] + 1) * h, y = (at[Y] + 1) * h, z = (at[Z] + 1) * h;
  model_exact(n, at, u);
  for (int m = 0; m < VARS; ++m) u[m] += 12.8 / (m + 1) * x * (1 - x) * y * (1 - y) * z * (1 - z);
}

/* Symmetric, so that the flow is made of waves; the entries mean nothing. */
static double coupling[DIMS][VARS][VARS];

static inline void model_set_up(void) {
  for (int d = 0; d < DIMS; ++d)
    for (int m = 0; m < VARS; ++m)
      for (int k = 0; k < VARS; ++k) coupling[d][m][k] = 0.3 * cos((d + 1) * (m + 1) * (k + 1)) + (m == k ? 0.5 : 0);
}

/* d f_d / d u, row by row. */
static inline void model_jacobian(int d, const double u[VARS], double jacobian[BLOCK]) {
  memcpy(jacobian, coupling[d], sizeof coupling[d]);
  for (int m = 0; m < VARS; ++m) jacobian[m * VARS + m] += STEEPENING * u[m];
}

/* du/dt without the forcing at one point; neighbours along dimension d lie stride[d] numbers apart. */
static inline void model_rate(const double *u, const size_t stride[DIMS], double h, double rate[VARS]) {
  memset(rate, 0, VARS * sizeof *rate);
  for (int d = 0; d < DIMS; ++d) {
    const double *low = u - stride[d], *high = u + stride[d], *lower = low - stride[d], *higher = high + stride[d];
    for (int m = 0; m < VARS; ++m) {
      double flow = STEEPENING / 2 * (high[m] * high[m] - low[m] * low[m]);
      for (int k = 0; k < VARS; ++k) flow += coupling[d][m][k] * (high[k] - low[k]);
      rate[m] += -flow / (2 * h) + VISCOSITY * (low[m] - 2 * u[m] + high[m]) / (h * h) -
                 DISSIPATION * (lower[m] - 4 * low[m] + 6 * u[m] - 4 * high[m] + higher[m]) / h;
    }
  }
}

/* Solves block * y = right for the columns of `right` (VARS x columns) in place; the block is diagonally dominant,
 * so that no rows need to change places, and is destroyed. */
static inline void solve_block(double block[BLOCK], double *right, int columns) {
  for (int k = 0; k < VARS; ++k) {
    const double pivot = 1 / block[k * VARS + k];
    for (int j = k + 1; j < VARS; ++j) block[k * VARS + j] *= pivot;
    for (int j = 0; j < columns; ++j) right[k * columns + j] *= pivot;
    for (int i = 0; i < VARS; ++i) {
      const double factor = block[i * VARS + k];
      if (i == k) continue;
      for (int j = k + 1; j < VARS; ++j) block[i * VARS + j] -= factor * block[k * VARS + j];
      for (int j = 0; j < columns; ++j) right[i * columns + j] -= factor * right[k * columns + j];
    }
  }
}

/* The root of the mean over all ranks' numbers, n^3 * VARS of them, whose squares add up to `sum` here. */
static inline double root_mean(double sum, int n) {
  double total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(total / (pow(n, DIMS) * VARS));
}

#endif
