/* Programs that open the MPI library and look its functions up in that handle (Python's ctypes, numba-mpi, Julia's MPI.jl) never ask
 * the names that this library stands before. So it stands before dlsym, too: where such a look-up finds a function of the MPI
 * that a jump of ours leads to, it gives the jump. Every other look-up is libc's, and what hangs on who asks (RTLD_NEXT,
 * RTLD_DEFAULT) is handed on by a jump, so that libc sees who did: jump_x86_64.S. */
#define _GNU_SOURCE
#include "handles.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

fallow_dlsym_fn fallow_libcs_dlsym(void) {
  static fallow_dlsym_fn found;
  fallow_dlsym_fn known = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (known) return known;
  /* The first version, in libc or libdl, is there in every one. */
  known = (fallow_dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
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

void* fallow_find_in_handle(void* handle, const char* name) {
  void* found = fallow_libcs_dlsym()(handle, name);
  if (!found) return NULL;
  const char* rest = *name == 'P' ? name + 1 : name;
  if (strncmp(rest, "MPI_", 4) != 0 || !is_of_mpi(found) || !is_in_sight(handle)) return found;
  void* entry = fallow_entry_of(name);
  if (!entry) return found;
  /* Where another tool has the name, it may ask for the library's function to call it from its own: the jump leads to that one. */
  const int leads_there = fallow_find_anywhere(name) == found;
  dlerror(); /* of looking elsewhere: this look-up has succeeded */
  return leads_there ? entry : found;
}
