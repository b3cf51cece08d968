/* Programs that open the MPI library and look its functions up in that handle (Python's ctypes, numba-mpi, Julia's MPI.jl) never ask
 * the names that this library stands before. So it stands before dlsym, too: where such a look-up finds a function of the MPI
 * that a jump of ours leads to, it gives the jump. Every other look-up is libc's, and what hangs on who asks (RTLD_NEXT,
 * RTLD_DEFAULT) is handed on by a jump, so that libc sees who did: jump_x86_64.S. */
#define _GNU_SOURCE
#include "first_versions.h"
#include "handles.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

#include "symbols.h"

fallow_dlsym_fn fallow_libcs_dlsym(void) {
  static fallow_dlsym_fn found;
  fallow_dlsym_fn known = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (known) return known;
  /* The first version, in libc or libdl, is there in every one. */
  known = FALLOW_IS_THERE(dlvsym) ? (fallow_dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5") : fallow_find_in_tables;
  __atomic_store_n(&found, known, __ATOMIC_RELAXED);
  return known;
}

/* Whether the handle is of a library in the process's first namespace, where the jumps are. */
static int is_in_sight(void* handle) {
  Lmid_t space = -1;
  return dlinfo(handle, RTLD_DI_LMID, &space) == 0 && space == LM_ID_BASE;
}

static int is_of_mpi(void* address) {
  Dl_info there;
  return dladdr(address, &there) && there.dli_fname && fallow_is_mpi(there.dli_fname);
}

/* ---- numbers of names ---------------------------------------------------------------------------------- */

enum { kPlaceBits = 12, kPlaces = 1 << kPlaceBits };
_Static_assert(2 * FALLOW_FIRST_HOOK <= kPlaces, "half of the places are free");
static unsigned short places[kPlaces]; /* 1 more than the number; 0: free */
static pthread_once_t placed = PTHREAD_ONCE_INIT;

static unsigned place_of(const char* name) {
  return fallow_hash_of(name) * 2654435761u >> (32 - kPlaceBits); /* names that begin alike are far apart */
}

static void place_names(void) {
  for (unsigned i = 0; i < FALLOW_FIRST_HOOK; ++i) {
    unsigned place = place_of(fallow_names[i]);
    while (places[place]) place = (place + 1) % kPlaces;
    places[place] = (unsigned short)(i + 1);
  }
}

/* Number of a C function's name, or FALLOW_SYMBOLS. */
static unsigned index_of(const char* name) {
  if (!FALLOW_IS_THERE(pthread_once)) return FALLOW_SYMBOLS;
  pthread_once(&placed, place_names);
  for (unsigned place = place_of(name); places[place]; place = (place + 1) % kPlaces) {
    if (strcmp(fallow_names[places[place] - 1], name) == 0) return places[place] - 1u;
  }
  return FALLOW_SYMBOLS;
}

/* ---- look-ups ------------------------------------------------------------------------------------------ */

/* Where another tool has the name, it may ask for the library's function to call it from its own: the jump leads to that one. */
static int leads_to(unsigned index, void* function) {
  const int leads = fallow_find_anywhere(fallow_names[index]) == function;
  dlerror(); /* of looking elsewhere: the look-up that asks has succeeded */
  return leads;
}

void* fallow_find_in_handle(void* handle, const char* name) {
  static void* leads[FALLOW_FIRST_HOOK]; /* by number, functions known to be what the jump leads to, and not to be: some programs look */
  static void* leads_not[FALLOW_FIRST_HOOK]; /* a function up before each call */
  void* found = fallow_libcs_dlsym()(handle, name);
  if (!found || strncmp(*name == 'P' ? name + 1 : name, "MPI_", 4) != 0) return found;
  const unsigned index = index_of(name);
  if (index == FALLOW_SYMBOLS || __atomic_load_n(&leads_not[index], __ATOMIC_RELAXED) == found) return found;
  if (__atomic_load_n(&leads[index], __ATOMIC_RELAXED) == found) return fallow_destination(index);
  const int ours = is_of_mpi(found) && is_in_sight(handle) && leads_to(index, found);
  __atomic_store_n(ours ? &leads[index] : &leads_not[index], found, __ATOMIC_RELAXED);
  return ours ? fallow_destination(index) : found;
}
