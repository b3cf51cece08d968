/* The program must see those MPI functions that its MPI library has, and no others: programs probe for functions by
 * weak references and by dlsym, and use what they find. This library's own symbol table is therefore put right in
 * memory, before the program's references are bound:
 *   - The MPI is loaded already: the C functions that it lacks are taken out (a symbol without a value does not match).
 *   - It may yet be loaded (Python): each name becomes an indirect function, whose address the dynamic linker asks for
 *     when somebody looks the name up. The answer is null unless another object of the process defines it by then.
 * Fortran names lie in libraries of their own, which may come later, and are always of the second kind.
 * Libraries that are linked before this one, as the dynamic linker goes from the last to the first, have their weak
 * references taken back one by one (unbind).
 * No function here may lock, allocate or call the dynamic linker's dlsym: the dynamic linker is in the middle of its work.
 * Nor may it call what ThreadSanitizer's library has put in the place of libc's functions, and which cannot work yet. */
#define _GNU_SOURCE
#include "names.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"
#include "symbols.h"

/* Generated: the entries, C functions and hooks first, and what the dynamic linker calls to learn an entry's address. */
extern const char fallow_entries[] HIDDEN, fallow_fortran_entries[] HIDDEN, fallow_shows[] HIDDEN;
extern const ElfW(Ehdr) __ehdr_start HIDDEN;

enum { kEntryBytes = 8, kFortranEntryBytes = 64, kShowBytes = 16 };

static const struct fallow_mpi mpis[] = {
    {"libmpi_abi.so", "", "libfallow-rt-mpiabi.so"},
    {"libmpich.so.12", "", "libfallow-rt-mpich.so"},
    {"libmpi.so.12", "", "libfallow-rt-mpich.so"},
    {"libmpi_", ".so.12", "libfallow-rt-mpich.so"}, /* HPE's are named after compilers: libmpi_gnu_123.so.12 */
    {"libmpi.so.40", "", "libfallow-rt-openmpi.so"},
};

/* ---- in place of libc's functions ------------------------------------------------------------------------- */

static int same(const char* a, const char* b) {
  for (; *a && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

/* The rest of `text` behind `beginning`, or null. */
static const char* behind(const char* text, const char* beginning) {
  for (; *beginning; ++text, ++beginning) {
    if (*text != *beginning) return NULL;
  }
  return text;
}

static int contains(const char* text, const char* part) {
  for (; *text; ++text) {
    if (behind(text, part)) return 1;
  }
  return *part == 0;
}

static const char* base_name(const char* path) {
  const char* name = path;
  for (; *path; ++path) {
    if (*path == '/') name = path + 1;
  }
  return name;
}

static void copy(const char* from, char* to, unsigned size) {
  for (; *from && size > 1; --size) *to++ = *from++;
  if (size) *to = 0;
}

static int protect(uintptr_t start, size_t bytes, int protection) { return (int)syscall(SYS_mprotect, start, bytes, protection); }

typedef int (*iterate_fn)(int (*visit)(struct dl_phdr_info*, size_t, void*), void* data);
static iterate_fn libcs_iterate(void);

/* dl_iterate_phdr of libc itself. */
static void each_object(int (*visit)(struct dl_phdr_info*, size_t, void*), void* data) {
  static iterate_fn iterate;
  iterate_fn known = __atomic_load_n(&iterate, __ATOMIC_RELAXED);
  if (!known) {
    known = libcs_iterate();
    __atomic_store_n(&iterate, known, __ATOMIC_RELAXED);
  }
  known(visit, data);
}

/* ---- what is loaded ------------------------------------------------------------------------------------- */

struct loaded {
  const struct fallow_mpi* mpi;
  char* path;
  unsigned size;
};

static const struct fallow_mpi* mpi_of(const char* path) {
  const char* name = base_name(path);
  for (size_t i = 0; i < sizeof mpis / sizeof mpis[0]; ++i) {
    if (behind(name, mpis[i].prefix) && contains(name, mpis[i].version)) return &mpis[i];
  }
  return NULL;
}

static int match_mpi(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct loaded* l = data;
  l->mpi = info->dlpi_name ? mpi_of(info->dlpi_name) : NULL;
  if (l->mpi && l->path) copy(info->dlpi_name, l->path, l->size);
  return l->mpi != NULL;
}

int fallow_is_mpi(const char* path) { return mpi_of(path) != NULL; }

const struct fallow_mpi* fallow_loaded_mpi(char* path, unsigned size) {
  struct loaded l = {NULL, path, size};
  each_object(match_mpi, &l);
  return l.mpi;
}

/* ---- who defines a name --------------------------------------------------------------------------------- */

struct tables {
  const ElfW(Sym)* symbols;
  const char* strings;
  const uint32_t* gnu_hash;
  const uint32_t* sysv_hash;
  const ElfW(Rela)* relocations[2]; /* of data and of calls */
  size_t relocation_bytes[2];
};

static struct tables tables_of(const ElfW(Dyn)* dynamic, uintptr_t base) {
  struct tables t = {0};
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    uintptr_t at = dynamic->d_un.d_ptr;
    if (at < base) at += base; /* the dynamic linker turns offsets into addresses where it can write them */
    if (dynamic->d_tag == DT_SYMTAB) t.symbols = (const void*)at;
    if (dynamic->d_tag == DT_STRTAB) t.strings = (const void*)at;
    if (dynamic->d_tag == DT_GNU_HASH) t.gnu_hash = (const void*)at;
    if (dynamic->d_tag == DT_HASH) t.sysv_hash = (const void*)at;
    if (dynamic->d_tag == DT_RELA) t.relocations[0] = (const void*)at;
    if (dynamic->d_tag == DT_JMPREL) t.relocations[1] = (const void*)at;
    if (dynamic->d_tag == DT_RELASZ) t.relocation_bytes[0] = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_PLTRELSZ) t.relocation_bytes[1] = dynamic->d_un.d_val;
  }
  return t;
}

static const ElfW(Phdr)* segment_of(const struct dl_phdr_info* info, uint32_t type) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == type) return &info->dlpi_phdr[i];
  }
  return NULL;
}

/* Empty for this library itself and for objects that have no symbols. */
static struct tables tables_of_other(const struct dl_phdr_info* info) {
  const ElfW(Phdr)* dynamic = segment_of(info, PT_DYNAMIC);
  const int ours = info->dlpi_addr == (uintptr_t)&__ehdr_start;
  if (!dynamic || ours) return (struct tables){0};
  return tables_of((const void*)(info->dlpi_addr + dynamic->p_vaddr), info->dlpi_addr);
}

static int is_definition(const struct tables* t, uint32_t i, const char* name) {
  const ElfW(Sym)* s = &t->symbols[i];
  return s->st_shndx != SHN_UNDEF && s->st_value != 0 && same(t->strings + s->st_name, name);
}

unsigned fallow_hash_of(const char* name) {
  uint32_t h = 5381;
  for (; *name; ++name) h = h * 33 + (unsigned char)*name;
  return h;
}

/* The hash table of "ELF: symbol hash table, GNU style": buckets, Bloom filter of one word a line, chains. */
static const ElfW(Sym)* gnu_find(const struct tables* t, const char* name) {
  const uint32_t hash = fallow_hash_of(name);
  const uint32_t buckets = t->gnu_hash[0], first = t->gnu_hash[1], words = t->gnu_hash[2], shift = t->gnu_hash[3];
  enum { kBits = sizeof(ElfW(Addr)) * CHAR_BIT };
  const ElfW(Addr)* filter = (const ElfW(Addr)*)(t->gnu_hash + 4);
  const uint32_t* bucket = (const uint32_t*)(filter + words);
  const uint32_t* chain = bucket + buckets;
  if (buckets == 0 || words == 0) return NULL;
  const ElfW(Addr) line = filter[(hash / kBits) % words];
  if (!((line >> (hash % kBits)) & (line >> ((hash >> shift) % kBits)) & 1)) return NULL;
  uint32_t i = bucket[hash % buckets];
  if (i < first) return NULL;
  for (;; ++i) {
    const uint32_t other = chain[i - first];
    if ((other | 1) == (hash | 1) && is_definition(t, i, name)) return &t->symbols[i];
    if (other & 1) return NULL;
  }
}

/* The hash table of the System V ABI, for objects that have no other. */
static const ElfW(Sym)* sysv_find(const struct tables* t, const char* name) {
  uint32_t h = 0;
  for (const char* c = name; *c; ++c) {
    h = (h << 4) + (unsigned char)*c;
    h = (h ^ ((h & 0xf0000000u) >> 24)) & 0x0fffffffu;
  }
  const uint32_t buckets = t->sysv_hash[0];
  const uint32_t* chain = t->sysv_hash + 2 + buckets;
  for (uint32_t i = buckets ? t->sysv_hash[2 + h % buckets] : 0; i != 0; i = chain[i]) {
    if (is_definition(t, i, name)) return &t->symbols[i];
  }
  return NULL;
}

struct question {
  const char* name;
  const ElfW(Sym)* definition;
  uintptr_t base;
};

static int ask_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct question* q = data;
  const struct tables t = tables_of_other(info);
  if (!t.symbols || !t.strings) return 0;
  if (t.gnu_hash) q->definition = gnu_find(&t, q->name);
  else if (t.sysv_hash) q->definition = sysv_find(&t, q->name);
  q->base = info->dlpi_addr;
  return q->definition != NULL;
}

/* By the list of what is loaded that debuggers read: nobody changes it while the process is linked, when this is called first. */
static iterate_fn libcs_iterate(void) {
  for (const struct link_map* m = _r_debug.r_map; m; m = m->l_next) {
    if (!m->l_name || !same(base_name(m->l_name), "libc.so.6")) continue;
    const struct tables t = tables_of(m->l_ld, m->l_addr);
    const ElfW(Sym)* found = t.symbols && t.strings && t.gnu_hash ? gnu_find(&t, "dl_iterate_phdr") : NULL;
    if (found && ELF64_ST_TYPE(found->st_info) == STT_FUNC) return (iterate_fn)(m->l_addr + found->st_value);
  }
  return dl_iterate_phdr;
}

/* Whether another object of the process defines the name. */
static int is_defined(unsigned index) {
  static unsigned char defined[FALLOW_SYMBOLS]; /* 1: known; what is not defined yet may come */
  if (__atomic_load_n(&defined[index], __ATOMIC_RELAXED)) return 1;
  struct question q = {fallow_names[index], NULL, 0};
  each_object(ask_object, &q);
  if (q.definition) __atomic_store_n(&defined[index], 1, __ATOMIC_RELAXED);
  return q.definition != NULL;
}

void* fallow_find_in_tables(void* handle, const char* name) {
  (void)handle;
  struct question q = {name, NULL, 0};
  each_object(ask_object, &q);
  return q.definition && ELF64_ST_TYPE(q.definition->st_info) == STT_FUNC ? (void*)(q.base + q.definition->st_value) : NULL;
}

/* ---- our own symbol table ------------------------------------------------------------------------------- */

static const char* entry_of(unsigned index) {
  if (index < FALLOW_FIRST_FORTRAN) return fallow_entries + (size_t)index * kEntryBytes;
  return fallow_fortran_entries + (size_t)(index - FALLOW_FIRST_FORTRAN) * kFortranEntryBytes;
}

/* Where look-ups of C functions lead, see fallow_lead(). */
static void* const* led;

void* fallow_destination(unsigned index) {
  void* const* targets = __atomic_load_n(&led, __ATOMIC_ACQUIRE);
  void* target = targets && index < FALLOW_FIRST_HOOK ? targets[index] : NULL;
  return target ? target : (void*)(uintptr_t)entry_of(index);
}

/* Number of the entry at an address, or FALLOW_SYMBOLS. */
static unsigned index_at(uintptr_t at) {
  if (at >= (uintptr_t)fallow_entries && at < (uintptr_t)entry_of(FALLOW_FIRST_FORTRAN - 1) + kEntryBytes) {
    return (unsigned)((at - (uintptr_t)fallow_entries) / kEntryBytes);
  }
  if (at >= (uintptr_t)fallow_fortran_entries && at < (uintptr_t)entry_of(FALLOW_SYMBOLS)) {
    return FALLOW_FIRST_FORTRAN + (unsigned)((at - (uintptr_t)fallow_fortran_entries) / kFortranEntryBytes);
  }
  return FALLOW_SYMBOLS;
}

/* Number of the entry that a symbol of ours stands for, or FALLOW_SYMBOLS. */
static unsigned index_of(const ElfW(Sym)* symbol) {
  const uintptr_t at = (uintptr_t)&__ehdr_start + symbol->st_value;
  const int shown_lazily = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
  return shown_lazily ? (unsigned)((at - (uintptr_t)fallow_shows) / kShowBytes) : index_at(at);
}

static void show_lazily(ElfW(Sym)* symbol, unsigned index) {
  symbol->st_info = ELF64_ST_INFO(ELF64_ST_BIND(symbol->st_info), STT_GNU_IFUNC);
  symbol->st_value = (uintptr_t)fallow_shows + (size_t)index * kShowBytes - (uintptr_t)&__ehdr_start;
}

static int protect_symbols(const struct tables* own, int protection) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = (uintptr_t)own->symbols & ~(page - 1);
  const uintptr_t end = ((uintptr_t)(own->symbols + own->sysv_hash[1]) + page - 1) & ~(page - 1);
  return protect(begin, end - begin, protection);
}

/* Between begin_writing() and end_writing() one thread writes to the symbol table. False if that cannot be. */
static char being_written;
static int begin_writing(const struct tables* own) {
  while (__atomic_exchange_n(&being_written, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
  if (protect_symbols(own, PROT_READ | PROT_WRITE) == 0) return 1;
  __atomic_store_n(&being_written, 0, __ATOMIC_RELEASE);
  return 0;
}
static void end_writing(const struct tables* own) {
  protect_symbols(own, PROT_READ);
  __atomic_store_n(&being_written, 0, __ATOMIC_RELEASE);
}

/* `mpi_loaded`: C functions can be decided about. `linking`: nobody but us looks at the table yet. */
static void put_right(int mpi_loaded, int linking) {
  const struct tables own = tables_of(_DYNAMIC, (uintptr_t)&__ehdr_start);
  if (!own.symbols || !own.sysv_hash) return;
  const uint32_t count = own.sysv_hash[1];
  if (!begin_writing(&own)) return; /* then every name stays in sight */
  ElfW(Sym)* symbols = (ElfW(Sym)*)(uintptr_t)own.symbols;
  for (uint32_t i = 1; i < count; ++i) {
    const unsigned index = symbols[i].st_value != 0 ? index_of(&symbols[i]) : FALLOW_SYMBOLS;
    if (index >= FALLOW_SYMBOLS || index == FALLOW_FIRST_HOOK + FALLOW_HOOK_SCHED_YIELD) continue;
    if (mpi_loaded && index < FALLOW_FIRST_HOOK) {
      if (!is_defined(index)) __atomic_store_n(&symbols[i].st_value, 0, __ATOMIC_RELAXED);
    } else if (linking) {
      show_lazily(&symbols[i], index);
    }
  }
  end_writing(&own);
}

void fallow_lead(void* const* targets) {
  const struct tables own = tables_of(_DYNAMIC, (uintptr_t)&__ehdr_start);
  if (!own.symbols || !own.sysv_hash || !begin_writing(&own)) return;
  __atomic_store_n(&led, targets, __ATOMIC_RELEASE);
  ElfW(Sym)* symbols = (ElfW(Sym)*)(uintptr_t)own.symbols;
  for (uint32_t i = 1; i < own.sysv_hash[1]; ++i) {
    if (symbols[i].st_value == 0 || ELF64_ST_TYPE(symbols[i].st_info) == STT_GNU_IFUNC) continue; /* fallow_show() leads those */
    const unsigned index = index_of(&symbols[i]);
    if (index >= FALLOW_FIRST_HOOK || !targets[index]) continue;
    __atomic_store_n(&symbols[i].st_value, (uintptr_t)targets[index] - (uintptr_t)&__ehdr_start, __ATOMIC_RELAXED);
  }
  end_writing(&own);
}

/* ---- references that were bound before ------------------------------------------------------------------- */

static int is_writable(const struct dl_phdr_info* info, uintptr_t offset) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* p = &info->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && offset >= p->p_vaddr && offset < p->p_vaddr + p->p_memsz) return 1;
  }
  return 0;
}

/* Writes null to a reference, also where the dynamic linker has made it read-only. */
static void clear(const struct dl_phdr_info* info, uintptr_t offset) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t at = info->dlpi_addr + offset;
  const ElfW(Phdr)* relro = segment_of(info, PT_GNU_RELRO);
  const int protected = relro && offset >= relro->p_vaddr && offset < relro->p_vaddr + relro->p_memsz;
  const uintptr_t start = at & ~(page - 1);
  if (!is_writable(info, offset) || (protected && protect(start, page, PROT_READ | PROT_WRITE) != 0)) return;
  *(uintptr_t*)at = 0;
  const uintptr_t end = protected ? info->dlpi_addr + relro->p_vaddr + relro->p_memsz : 0;
  if (start + page <= end) protect(start, page, PROT_READ);
}

static int unbind(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  (void)data;
  const struct tables t = tables_of_other(info);
  for (int table = 0; t.symbols && table < 2; ++table) {
    const ElfW(Rela)* end = t.relocations[table] + t.relocation_bytes[table] / sizeof(ElfW(Rela));
    for (const ElfW(Rela)* r = t.relocations[table]; r && r < end; ++r) {
      const ElfW(Sym)* symbol = &t.symbols[ELF64_R_SYM(r->r_info)];
      if (ELF64_R_SYM(r->r_info) == 0 || ELF64_ST_BIND(symbol->st_info) != STB_WEAK || symbol->st_shndx != SHN_UNDEF) continue;
      const uint32_t type = ELF64_R_TYPE(r->r_info);
      if (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT && type != R_X86_64_64) continue;
      const unsigned index = index_at(*(const uintptr_t*)(info->dlpi_addr + r->r_offset));
      if (index < FALLOW_SYMBOLS && !is_defined(index)) clear(info, r->r_offset);
    }
  }
  return 0;
}

void fallow_hide_names(void) {
  put_right(fallow_loaded_mpi(NULL, 0) != NULL, 1);
  each_object(unbind, NULL);
}

/* The dynamic linker asks for the address of an entry. */
HIDDEN const void* fallow_show(unsigned index);
const void* fallow_show(unsigned index) {
  static int decided;
  if (index < FALLOW_FIRST_HOOK && fallow_loaded_mpi(NULL, 0) && !__atomic_exchange_n(&decided, 1, __ATOMIC_RELAXED)) {
    put_right(1, 0); /* so that later questions for a missing function get the usual answer: there is no such symbol */
  }
  return is_defined(index) ? fallow_destination(index) : NULL;
}
