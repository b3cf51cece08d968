/* For tests: a libnvidia-ml.so.1 whose cards are files. Installed as ROOT/usr/lib/libnvidia-ml.so.1 it shows a card for each
   directory ROOT/sys/fake-nvml/cardN with the files energy (mJ), power (mW), uuid and name, which may change at any time.
   A file that is not there is a call that the card does not support; one that holds "error 15" is a call that fails with 15,
   and one that holds "hang" a call that never returns.
   The files init, count and cardN/handle make the calls of these names fail likewise. How often it is in use stands in
   ROOT/sys/fake-nvml/uses. FAKE_NVML_OLD leaves out what came with Volta, FAKE_NVML_ANCIENT what all cards need. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4, kUnknown = 999, kMostCards = 16 };

static int uses;
static int cards[kMostCards]; /* what handles point to */

static void path_of(const char* name, char* to, size_t size) {
  Dl_info me;
  char library[PATH_MAX];
  if (dladdr((void*)&uses, &me) == 0) abort();
  snprintf(library, sizeof library, "%s", me.dli_fname);
  for (int up = 0; up < 3; ++up) *strrchr(library, '/') = '\0'; /* .../usr/lib/libnvidia-ml.so.1 */
  snprintf(to, size, "%s/sys/fake-nvml/%s", library, name);
}

/* What a file holds: its text, or the code to fail with. */
static int text_of(const char* name, char* to, size_t size) {
  char path[2 * PATH_MAX];
  path_of(name, path, sizeof path);
  FILE* file = fopen(path, "r");
  if (file == NULL) return errno == EACCES ? kNoPermission : kNotSupported;
  size_t length = fread(to, 1, size - 1, file);
  fclose(file);
  to[length] = '\0';
  to[strcspn(to, "\n")] = '\0';
  while (strcmp(to, "hang") == 0) pause();
  return strncmp(to, "error ", 6) == 0 ? atoi(to + 6) : kSuccess;
}

static int fails(const char* name) {
  char text[64];
  int code = text_of(name, text, sizeof text);
  return code == kNotSupported ? kSuccess : code;
}

static int of_card(const void* device, const char* what, char* to, size_t size) {
  char name[64];
  if (uses == 0) return kUninitialized;
  snprintf(name, sizeof name, "card%d/%s", (int)((const int*)device - cards), what);
  return text_of(name, to, size);
}

static int number_of(const void* device, const char* what, unsigned long long* to) {
  char text[64], *end;
  int code = of_card(device, what, text, sizeof text);
  if (code != kSuccess) return code;
  errno = 0;
  *to = strtoull(text, &end, 10);
  return text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ? kUnknown : kSuccess;
}

static void write_uses(void) {
  char path[2 * PATH_MAX];
  path_of("uses", path, sizeof path);
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%d\n", uses);
  fclose(file);
}

#ifndef FAKE_NVML_ANCIENT
int nvmlInit_v2(void) {
  int code = fails("init");
  if (code != kSuccess) return code;
  ++uses;
  write_uses();
  return kSuccess;
}
#endif

int nvmlShutdown(void) {
  if (uses == 0) return kUninitialized;
  --uses;
  write_uses();
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  char path[2 * PATH_MAX], name[32];
  if (uses == 0) return kUninitialized;
  for (*count = 0; *count < kMostCards; ++*count) {
    snprintf(name, sizeof name, "card%u", *count);
    path_of(name, path, sizeof path);
    if (access(path, F_OK) != 0) break;
  }
  return fails("count");
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  char name[32];
  if (uses == 0) return kUninitialized;
  if (index >= kMostCards) return kInvalidArgument;
  *device = &cards[index];
  snprintf(name, sizeof name, "card%u/handle", index);
  return fails(name);
}

int nvmlDeviceGetUUID(void* device, char* to, unsigned size) { return of_card(device, "uuid", to, size); }
int nvmlDeviceGetName(void* device, char* to, unsigned size) { return of_card(device, "name", to, size); }

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* to) { return number_of(device, "energy", to); }
#endif

int nvmlDeviceGetPowerUsage(void* device, unsigned* to) {
  unsigned long long value = 0;
  int code = number_of(device, "power", &value);
  *to = (unsigned)value;
  return code == kSuccess && value > UINT_MAX ? kUnknown : code;
}

const char* nvmlErrorString(int code) { return code == kUnknown ? "Unknown Error" : "some other error"; }
