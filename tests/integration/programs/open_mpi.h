// Opens the MPI library that the process has loaded, as programs do that look everything up in it. Needs _GNU_SOURCE.
#pragma once
#include <dlfcn.h>
#include <link.h>
#include <string.h>

static int open_mpi(struct dl_phdr_info *info, size_t size, void *handle) {
  const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
  (void)size;
  if (strncmp(name, "libmpi.so", 9) && strncmp(name, "libmpich.so", 11) && strncmp(name, "libmpi_abi.so", 13)) return 0;
  *(void **)handle = dlopen(info->dlpi_name, RTLD_NOW | RTLD_LOCAL);
  return 1;
}

static void *opened_mpi(void) {
  void *handle = NULL;
  dl_iterate_phdr(open_mpi, &handle);
  return handle;
}
