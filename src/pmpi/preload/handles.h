/* Functions that are looked up in an opened library: see handles.c. */
#ifndef FALLOW_HANDLES_H
#define FALLOW_HANDLES_H

#include "names.h"

/* libc's dlsym, which this library's own stands before. */
typedef void* (*fallow_dlsym_fn)(void* handle, const char* name);
HIDDEN fallow_dlsym_fn fallow_libcs_dlsym(void);

/* The definition of a name that would have been used without this library, or null. */
HIDDEN void* fallow_find_anywhere(const char* name);

/* Of dlsym in jump_x86_64.S: what a handle of a library has for a name, or the jump of that name where it leads there. */
HIDDEN void* fallow_find_in_handle(void* handle, const char* name);

#endif
