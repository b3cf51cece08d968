/* Fallow: hints from applications. Optional: a program needs none of this, and one that uses it links nothing.
 * The functions are weak; without Fallow they are null and the inline forms below do nothing.
 *
 * Thread safety: every function may be called from any thread at any time. Signal safety: yes. */
#ifndef FALLOW_FALLOW_H
#define FALLOW_FALLOW_H

#ifdef __cplusplus
extern "C" {
#endif

/* 1 while Fallow is at work in this process, whatever its wait mode: from the start of MPI to its end; else 0. */
extern int fallow_active(void) __attribute__((weak));

/* While more begins than ends were given, waits of the whole process spin as without Fallow. */
extern void fallow_latency_critical_begin(void) __attribute__((weak));
extern void fallow_latency_critical_end(void) __attribute__((weak));

static __inline__ int fallow_is_active(void) { return fallow_active ? fallow_active() : 0; }

static __inline__ void fallow_begin_latency_critical(void) {
  if (fallow_latency_critical_begin) fallow_latency_critical_begin();
}

static __inline__ void fallow_end_latency_critical(void) {
  if (fallow_latency_critical_end) fallow_latency_critical_end();
}

#ifdef __cplusplus
}
#endif
#endif
