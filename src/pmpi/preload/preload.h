/* What the preloaded library and a runtime share. The preloaded library is loaded into every process of the
 * job, MPI or not; it defines the MPI functions as jumps through a table and does nothing else until the first
 * of them is called. Then it finds out which MPI the process uses and loads the runtime built for it. */
#ifndef FALLOW_PRELOAD_H
#define FALLOW_PRELOAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FALLOW_RUNTIME_ABI 5

/* Per-thread state in the initial-exec TLS block of the preloaded library: one instruction away. */
struct fallow_tls_block {
  void* direct;        /* `thread`, or null while its calls are looked at before they are recorded */
  void* waiting;       /* the blocking call in progress that may sleep, or null */
  uint32_t depth;      /* 1 while an MPI call of the program is under way; 2: one that is counted only; 3: the same, as the last */
  uint32_t polls_left; /* idle polls until the runtime looks at the time */
  void* caller;        /* where the Fortran wrapper of the next call was called from, or null */
  void* frame;         /* stack frame of the call under way */
  void* return_address;/* where that call returns to, as its frame says */
  void* expected;      /* where the next call returns to if it is as the last one at its place, see `turn`; null: it is looked at */
  void* turn;          /* the place of `expected`, also while such a call is under way */
  void* thread;        /* the runtime's state of this thread, or null */
  void** caller_at;    /* where `caller` stands on the stack, as long as the Fortran wrapper has not returned */
  uint32_t counted;    /* 1 from when a call is counted only until it is made */
} __attribute__((aligned(64)));
extern __thread struct fallow_tls_block fallow_tls __attribute__((tls_model("initial-exec"), visibility("default")));

/* What the application asked for through fallow/fallow.h. */
struct fallow_hints {
  int latency_critical; /* begins less ends; above 0: waits spin */
  int active;           /* set by the runtime while it records */
};
extern struct fallow_hints fallow_hints __attribute__((visibility("default")));

/* Hooks: library functions that MPI libraries call while they wait, and the one through which they get the queues of
 * libfabric, which they poll by a pointer. */
enum fallow_hook {
  FALLOW_HOOK_OPAL_PROGRESS = 0,
  FALLOW_HOOK_UCP_WORKER_PROGRESS = 1,
  FALLOW_HOOK_SCHED_YIELD = 2,
  FALLOW_HOOK_FI_FABRIC = 3,
  FALLOW_HOOKS = 4
};

/* A thread whose block is not the one in its TLS. Not beside the block: all threads look at it, and that one writes to its block. */
struct fallow_known_thread {
  void* owner; /* its thread pointer (%fs:0); null: there is none */
  struct fallow_tls_block* block;
};

/* Given to the runtime when it is loaded. */
struct fallow_preload_api {
  uint32_t abi;                              /* FALLOW_RUNTIME_ABI */
  void* (*find)(const char* name);           /* address of a symbol of the MPI library, or null */
  void (*set_hook)(int hook, void* address); /* makes a hook jump to `address`; null: back to the original */
  void* (*original_hook)(int hook);          /* the library's own function, or null if it is not in the process */
  void (*pass_through)(void);                /* sends every function straight to the MPI library from now on */
  struct fallow_known_thread* known;         /* where to say so of one thread */
};

/* Entry point of a runtime, "fallow_runtime_attach". `next` is the function that the wrapper must call.
 * Returns 0, or nonzero if the program is to run without Fallow. */
struct fallow_runtime_api {
  uint32_t abi;
  /* Wrapper of function `name` ("MPI_Send" or "PMPI_Send"), which calls `next`; null: none, use `next`. */
  void* (*wrap)(const char* name, void* next);
};
typedef int (*fallow_runtime_attach_fn)(const struct fallow_preload_api* preload, struct fallow_runtime_api* runtime);

#ifdef __cplusplus
}
#endif
#endif
