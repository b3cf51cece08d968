/* The preloaded library is loaded into every program of a run, also into those of a container whose glibc is older than the one it
 * was built with. A reference to a version that such a glibc lacks would end each of them at its start. So functions that came into
 * libc with 2.34 are asked for by their first versions, which all have. Where those are in libraries of their own, libdl and
 * libpthread, and the program has not got them, they are null, and the program runs without Fallow. */
#ifndef FALLOW_FIRST_VERSIONS_H
#define FALLOW_FIRST_VERSIONS_H

#include <dlfcn.h>
#include <pthread.h>

#if __GLIBC_PREREQ(2, 34)

#define FALLOW_FIRST_VERSION(name, version) \
  _Pragma(FALLOW_TEXT(weak name)) __asm__(".symver " #name "," #name "@GLIBC_" version)
#define FALLOW_TEXT(...) #__VA_ARGS__

FALLOW_FIRST_VERSION(dladdr, "2.2.5");
FALLOW_FIRST_VERSION(dlclose, "2.2.5");
FALLOW_FIRST_VERSION(dlerror, "2.2.5");
FALLOW_FIRST_VERSION(dlinfo, "2.3.3");
FALLOW_FIRST_VERSION(dlopen, "2.2.5");
FALLOW_FIRST_VERSION(dlvsym, "2.2.5");
FALLOW_FIRST_VERSION(pthread_once, "2.2.5");
#define FALLOW_IS_THERE(function) ((function) != NULL)

#else
#define FALLOW_IS_THERE(function) 1
#endif

#endif
