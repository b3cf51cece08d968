"""Fallow: makes MPI programs use less energy without changing them."""

__version__ = "0.1.0"
