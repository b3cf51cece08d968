/* Which of the preloaded library's names the program may see: see names.c. */
#ifndef FALLOW_NAMES_H
#define FALLOW_NAMES_H

/* What is called while this library is linked must be its own, whatever was preloaded before it. */
#define HIDDEN __attribute__((visibility("hidden")))

struct fallow_mpi {
  const char* prefix;  /* how the library's file name begins */
  const char* version; /* what it also contains */
  const char* runtime; /* the file name of the runtime built for it */
};

/* The MPI that this process has loaded, or null. `path`: where its file name goes, `size` bytes; may be null. */
HIDDEN const struct fallow_mpi* fallow_loaded_mpi(char* path, unsigned size);

/* Whether a library of this file name is an MPI that is known here. */
HIDDEN int fallow_is_mpi(const char* path);

/* The function of this name that another object of the process defines first, or null: for processes that have no dlsym. */
HIDDEN void* fallow_find_in_tables(void* handle, const char* name);

/* Of a name, as symbol tables in GNU's style have it. */
HIDDEN unsigned fallow_hash_of(const char* name);

/* Where who looks this function up is led: to this library's jump, or past it. */
HIDDEN void* fallow_destination(unsigned index);

/* Leaves only those names in sight that the MPI of this process has; called while this library is being linked. */
HIDDEN void fallow_hide_names(void);

/* From now on who looks a C function's name up is led straight to `targets[number]`, where that is not null: a jump of ours takes
 * two misses of the caches where the program has computed since. Who has looked it up before has the jump. `targets` stays. */
HIDDEN void fallow_lead(void* const* targets);

#endif
