/* The preloaded library: see preload.h. Plain C and libc only, for it is loaded into shells and launchers too. */
#define _GNU_SOURCE
#include "first_versions.h"
#include "handles.h"
#include "names.h"
#include "preload.h"

#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols.h" /* generated: FALLOW_SYMBOLS, fallow_names, FALLOW_FIRST_HOOK, FALLOW_FIRST_FORTRAN */

__thread struct fallow_tls_block fallow_tls;
/* As the Fortran entries of the jump table know them, see jump_x86_64.S. */
_Static_assert(offsetof(struct fallow_tls_block, caller) == 24, "FALLOW_TLS_CALLER");
_Static_assert(offsetof(struct fallow_known_thread, block) == 8, "fallow_known");
_Static_assert(offsetof(struct fallow_tls_block, caller_at) == 72, "FALLOW_TLS_CALLER_AT");
HIDDEN struct fallow_known_thread fallow_known __attribute__((aligned(64)));
struct fallow_hints fallow_hints;

/* ---- hints, see fallow/fallow.h ------------------------------------------------------------------------ */

#define EXPORT __attribute__((visibility("default")))
EXPORT int fallow_active(void) { return __atomic_load_n(&fallow_hints.active, __ATOMIC_RELAXED); }
EXPORT void fallow_latency_critical_begin(void) { __atomic_fetch_add(&fallow_hints.latency_critical, 1, __ATOMIC_RELAXED); }
EXPORT void fallow_latency_critical_end(void) { __atomic_fetch_sub(&fallow_hints.latency_critical, 1, __ATOMIC_RELAXED); }

/* AddressSanitizer's runtime refuses to start where it is not the first library, which a preloaded one always is. It asks
 * the program for its options by this name; that of a program which has some of its own is found first. */
EXPORT const char* __asan_default_options(void);
EXPORT const char* __asan_default_options(void) { return "verify_asan_link_order=0"; }

extern void* fallow_slots[];               /* generated: one jump target per symbol */
extern void* const fallow_stubs[];         /* generated: the stub that resolves each symbol */
HIDDEN void* fallow_resolve(unsigned index); /* called by the stubs */

static struct fallow_runtime_api runtime_api;
static int runtime_active;
static int all_pass;
static void* mpi_handle;

static void say(const char* text, const char* detail) {
  char line[PATH_MAX + 256];
  const int n = snprintf(line, sizeof line, "fallow: %s%s\n", text, detail ? detail : "");
  if (n > 0 && write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0) { /* nobody listens */
  }
}

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* ---- symbols of other objects ------------------------------------------------------------------------ */

extern const char __ehdr_start[] HIDDEN, _end[] HIDDEN;
static int is_ours(void* address) { return (const char*)address >= __ehdr_start && (const char*)address < _end; }

static void* find_in(const char* path, const char* name) {
  void* handle = FALLOW_IS_THERE(dlopen) ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
  if (!handle) return NULL;
  void* address = fallow_libcs_dlsym()(handle, name);
  dlclose(handle); /* the object stays: NOLOAD only counted one more use of it */
  return address && !is_ours(address) ? address : NULL;
}

struct search {
  const char* name;
  void* address;
};

static int search_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* s = data;
  const int own = info->dlpi_addr == (ElfW(Addr))__ehdr_start; /* whose names may lead past the jumps, see fallow_lead() */
  if (own || !info->dlpi_name || !*info->dlpi_name || strstr(info->dlpi_name, "linux-vdso")) return 0;
  s->address = find_in(info->dlpi_name, s->name);
  return s->address != NULL;
}

/* The definition that would have been used without us: the next one in the global scope, else the one of any
 * object that is loaded (Python loads MPI into a scope of its own). */
void* fallow_find_anywhere(const char* name) {
  void* address = fallow_libcs_dlsym()(RTLD_NEXT, name);
  if (address && !is_ours(address)) return address;
  struct search s = {name, NULL};
  dl_iterate_phdr(search_object, &s);
  return s.address;
}

static void* find_in_mpi(const char* name) {
  void* address = mpi_handle ? fallow_libcs_dlsym()(mpi_handle, name) : NULL;
  return address && !is_ours(address) ? address : NULL;
}

/* ---- finding the MPI and loading its runtime ---------------------------------------------------------- */

static void set_hook(int hook, void* address) {
  const unsigned index = FALLOW_FIRST_HOOK + (unsigned)hook;
  __atomic_store_n(&fallow_slots[index], address ? address : fallow_stubs[index], __ATOMIC_RELEASE);
}

static void* original_hook(int hook) { return fallow_find_anywhere(fallow_names[FALLOW_FIRST_HOOK + (unsigned)hook]); }

static void pass_through(void) {
  all_pass = 1;
  for (unsigned i = 0; i < FALLOW_SYMBOLS; ++i) __atomic_store_n(&fallow_slots[i], fallow_stubs[i], __ATOMIC_RELEASE);
}

static const struct fallow_preload_api preload_api = {FALLOW_RUNTIME_ABI, find_in_mpi, set_hook, original_hook, pass_through, &fallow_known};

static void* load_runtime(const char* file) {
  Dl_info here;
  char path[PATH_MAX];
  if (!dladdr((void*)&fallow_resolve, &here) || !here.dli_fname) return NULL;
  const int folder = (int)(base_name(here.dli_fname) - here.dli_fname);
  snprintf(path, sizeof path, "%.*s%s", folder, here.dli_fname, file);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) say("the program runs without Fallow: ", dlerror());
  return handle;
}

/* What a jump of a C function leads to: our wrapper of the next definition, or that one. Null: there is none. */
static void* target_of(unsigned index) {
  const char* name = fallow_names[index];
  /* MPI_X may be another tool's; PMPI_X is always the library's own. */
  void* next = name[0] == 'P' ? find_in_mpi(name) : fallow_find_anywhere(name);
  if (!next) next = fallow_find_anywhere(name);
  void* wrapper = next && runtime_active && !all_pass ? runtime_api.wrap(name, next) : NULL;
  return wrapper ? wrapper : next;
}

/* Functions that programs call often: who links them from now on, as the program does that links a function at its first call, is
 * led past the jump. */
static void lead(void) {
  static void* targets[FALLOW_FIRST_HOOK];
  for (unsigned i = 0; i < FALLOW_FIRST_HOOK; ++i) {
    if (!fallow_often[i]) continue;
    targets[i] = target_of(i);
    if (targets[i]) __atomic_store_n(&fallow_slots[i], targets[i], __ATOMIC_RELEASE);
  }
  fallow_lead(targets);
}

static void activate(void) {
  char path[PATH_MAX] = "";
  const struct fallow_mpi* mpi = fallow_loaded_mpi(path, sizeof path);
  if (!mpi) {
    say("the program runs without Fallow: it uses none of the MPI libraries known here", NULL);
    return;
  }
  mpi_handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  if (!is_ours(fallow_libcs_dlsym()(RTLD_DEFAULT, "fallow_active"))) return; /* that of another installation is before this one, and does it */
  void* handle = load_runtime(mpi->runtime);
  if (!handle) return;
  fallow_runtime_attach_fn attach = (fallow_runtime_attach_fn)fallow_libcs_dlsym()(handle, "fallow_runtime_attach");
  runtime_active = attach && attach(&preload_api, &runtime_api) == 0 && runtime_api.abi == FALLOW_RUNTIME_ABI;
  if (runtime_active) lead();
}

static void activate_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static char said;
  if (FALLOW_IS_THERE(pthread_once) && FALLOW_IS_THERE(dlopen)) pthread_once(&once, activate);
  else if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) say("the program runs without Fallow, which was built with a newer libc", NULL);
}

/* ---- linking ------------------------------------------------------------------------------------------- */

/* The dynamic linker asks for this function's address as the last step of linking this library, and links the program
 * after it: the one moment at which what the program will see can be decided. */
static void linked(void) {}
__attribute__((used)) static void (*resolve_linked(void))(void) {
  fallow_hide_names();
  return linked;
}
static void fallow_linked(void) __attribute__((ifunc("resolve_linked")));
__attribute__((constructor)) static void use_linked(void) { fallow_linked(); }

/* ---- resolving ----------------------------------------------------------------------------------------- */

static void missing(const char* name) {
  say("the program calls a function that its MPI library does not have: ", name);
  _exit(127); /* as the dynamic linker does for an undefined symbol */
}

void* fallow_resolve(unsigned index) {
  const char* name = fallow_names[index];
  void* target = NULL;
  if (index == FALLOW_FIRST_HOOK + FALLOW_HOOK_FI_FABRIC && fallow_loaded_mpi(NULL, 0)) {
    activate_once(); /* MPI is starting, maybe by a call that no wrapper saw */
    void* hook = __atomic_load_n(&fallow_slots[index], __ATOMIC_ACQUIRE);
    if (hook != fallow_stubs[index]) return hook;
  }
  if (index >= FALLOW_FIRST_HOOK) {
    target = fallow_find_anywhere(name); /* hooks and Fortran names: the runtime sets hooks itself */
  } else {
    activate_once();
    target = target_of(index);
  }
  if (!target) missing(name);
  __atomic_store_n(&fallow_slots[index], target, __ATOMIC_RELEASE);
  return target;
}
