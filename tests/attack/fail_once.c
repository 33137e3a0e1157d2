// Makes one system call of a program fail, once: LD_PRELOAD=fail_once.so UNSHUFFLE_FAIL=write:3 PROGRAM ...
//
// Calls are counted by kind (open, write, rename, fsync, mmap, malloc) from the beginning of main(). Those of libraries
// that would end the process by themselves (OpenMP, OpenBLAS, libc) are left alone, and so are files of the system.
// UNSHUFFLE_FAIL_COUNTS names a file for the counts, which is written at the end; UNSHUFFLE_FAIL_MOVED one for the number
// of bytes that realloc() was given to enlarge.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { OPEN, WRITE, RENAME, FSYNC, MMAP, MALLOC, KINDS };
static const char* const names[KINDS] = {"open", "write", "rename", "fsync", "mmap", "malloc"};
static atomic_long counts[KINDS];
static atomic_long moved;
static int started = 0, chosen = -1;
static long wanted = 0;

struct range {
  uintptr_t begin, end;
};
static struct range spared[256];
static int spared_count = 0;

static int note_library(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size, (void)unused;
  const char* const kept[] = {"libgomp", "openblas", "libc.so", "ld-linux", "fail_once", "libm.so", "libpthread", "vdso"};
  int spare = 0;
  for (size_t k = 0; k < sizeof kept / sizeof *kept; ++k) spare |= strstr(info->dlpi_name, kept[k]) != NULL;
  for (int k = 0; spare && k < info->dlpi_phnum && spared_count < 256; ++k) {
    if (info->dlpi_phdr[k].p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;
    spared[spared_count++] = (struct range){begin, begin + info->dlpi_phdr[k].p_memsz};
  }
  return 0;
}

static int fails(enum kind kind, const void* caller) {
  if (!started) return 0;
  const uintptr_t at = (uintptr_t)caller;
  for (int k = 0; k < spared_count; ++k)
    if (at >= spared[k].begin && at < spared[k].end) return 0;
  return atomic_fetch_add(&counts[kind], 1) + 1 == wanted && (int)kind == chosen;
}

static int of_the_system(const char* path) {
  const char* const folders[] = {"/proc", "/sys", "/dev", "/etc", "/usr", "/lib"};
  for (size_t k = 0; k < sizeof folders / sizeof *folders; ++k)
    if (strncmp(path, folders[k], strlen(folders[k])) == 0 && strncmp(path, "/dev/shm", 8) != 0) return 1;
  return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define HERE __builtin_return_address(0)

static int fails_to_open(const char* path, const void* caller) {
  if (of_the_system(path) || !fails(OPEN, caller)) return 0;
  errno = EMFILE;
  return 1;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return fails_to_open(path, HERE) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return fails_to_open(path, HERE) ? -1 : REAL(open64)(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) { return fails_to_open(path, HERE) ? NULL : REAL(fopen)(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return fails_to_open(path, HERE) ? NULL : REAL(fopen64)(path, mode); }
int mkostemp(char* path, int flags) { return fails_to_open(path, HERE) ? -1 : REAL(mkostemp)(path, flags); }
int mkostemp64(char* path, int flags) { return fails_to_open(path, HERE) ? -1 : REAL(mkostemp64)(path, flags); }

#define FAIL(kind, error, result)      \
  if (fails(kind, HERE)) {             \
    errno = error;                     \
    return result;                     \
  }

ssize_t write(int file, const void* bytes, size_t size) {
  if (file > STDERR_FILENO) FAIL(WRITE, ENOSPC, -1)
  return REAL(write)(file, bytes, size);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  FAIL(WRITE, ENOSPC, -1)
  return REAL(pwrite)(file, bytes, size, at);
}
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  FAIL(WRITE, ENOSPC, -1)
  return REAL(pwrite64)(file, bytes, size, at);
}
int rename(const char* from, const char* to) {
  FAIL(RENAME, EACCES, -1)
  return REAL(rename)(from, to);
}
int fsync(int file) {
  FAIL(FSYNC, EIO, -1)
  return REAL(fsync)(file);
}
void* mmap(void* place, size_t size, int protection, int flags, int file, off_t at) {
  FAIL(MMAP, ENOMEM, MAP_FAILED)
  return REAL(mmap)(place, size, protection, flags, file, at);
}

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) {
  FAIL(MALLOC, ENOMEM, NULL)
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  FAIL(MALLOC, ENOMEM, NULL)
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  FAIL(MALLOC, ENOMEM, NULL)
  if (old != NULL) atomic_fetch_add(&moved, (long)malloc_usable_size(old));
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  FAIL(MALLOC, ENOMEM, NULL)
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** made, size_t alignment, size_t size) {
  if (fails(MALLOC, HERE)) return ENOMEM;
  *made = __libc_memalign(alignment, size);
  return *made == NULL ? ENOMEM : 0;
}

static FILE* file_named_by(const char* variable) {
  const char* path = getenv(variable);
  return path == NULL ? NULL : REAL(fopen)(path, "w");
}

static void write_counts(void) {
  started = 0;
  FILE* file = file_named_by("UNSHUFFLE_FAIL_COUNTS");
  for (int k = 0; file != NULL && k < KINDS; ++k) fprintf(file, "%s %ld\n", names[k], (long)counts[k]);
  if (file != NULL) fclose(file);
  file = file_named_by("UNSHUFFLE_FAIL_MOVED");
  if (file != NULL) fprintf(file, "%ld\n", (long)moved);
  if (file != NULL) fclose(file);
}

static int (*real_main)(int, char**, char**);
static int main_with_faults(int argc, char** argv, char** environment) {
  dl_iterate_phdr(note_library, NULL);
  const char* fault = getenv("UNSHUFFLE_FAIL");
  for (int k = 0; fault != NULL && k < KINDS; ++k) {
    const size_t length = strlen(names[k]);
    if (strncmp(fault, names[k], length) != 0 || fault[length] != ':') continue;
    chosen = k;
    wanted = atol(fault + length + 1);
  }
  atexit(write_counts);
  started = 1;
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv, void (*before)(void), void (*after)(void),
                      void (*linker)(void), void* stack) {
  real_main = program;
  __typeof__(&__libc_start_main) start = dlsym(RTLD_NEXT, "__libc_start_main");
  return start(main_with_faults, argc, argv, before, after, linker, stack);
}
