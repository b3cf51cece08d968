// Runs probe.c as a library: linked, or with a second argument opened at run time, by an executable that knows no MPI.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef LINKED
int probe(int argc, char **argv);
#else
#define probe(argc, argv) 2
#endif

int main(int argc, char **argv) {
  if (argc < 3) return probe(argc, argv);
  if (dlsym(RTLD_DEFAULT, "MPI_Init")) return printf("MPI_Init is there before any MPI is\n"), 1;
  void *plugin = dlopen(argv[2], RTLD_NOW | (strcmp(argv[3], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!plugin) return printf("%s\n", dlerror()), 1;
  int (*run)(int, char **) = (int (*)(int, char **))dlsym(plugin, "probe");
  return run(argc, argv);
}
