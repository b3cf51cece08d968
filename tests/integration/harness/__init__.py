"""What the integration and fault tests share: MPI families, compiling, running, reading what was recorded."""
