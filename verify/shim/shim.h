/*
 * Declarations shared by the parts of the shim.
 *
 * The shim is preloaded into a process and intercepts every system call that
 * changes files below one directory, whether made by libc or by a crate that
 * makes system calls itself. A seccomp filter turns such calls into SIGSYS
 * (filter.c); the signal handler applies the rules in calls.c. No libc symbol
 * is replaced.
 *
 * The shim works in one process. A forked child runs without it; a program that
 * the child executes inherits the filter without the handler and is killed by
 * its first write, so the watched process must not execute other programs.
 */
#ifndef FLOE_SHIM_H
#define FLOE_SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Exit status of a process in which the shim failed. */
#define SHIM_EXIT 97

/* gate.c: the only system calls that the filter allows. */

/* Returns the kernel's result, or a negated errno. */
long shim_gate(long nr, long a, long b, long c, long d, long e, long f);
/* The address after the gate's instruction; the filter allows calls from it. */
extern const char shim_gate_return[];

#define SHIM_GATE(nr, a, b, c, d, e, f, ...)                                   \
    shim_gate((long)(nr), (long)(a), (long)(b), (long)(c), (long)(d),          \
              (long)(e), (long)(f))
#define sys(...) SHIM_GATE(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* Ends the process with a message: the failure would invalidate a check. */
__attribute__((noreturn)) void shim_die(const char *what, const char *detail);

/* One lock orders all watched calls, their faults and their records. */
void shim_lock(void);
void shim_unlock(void);

/* filter.c */

struct call {
    long nr;
    unsigned long arg[6];
};

/* Installs filter and handler, and tests that they work. */
void filter_install(void);

/* calls.c */

/* Executes an intercepted call and returns the result that the caller sees. */
long calls_dispatch(const struct call *call);
/* Sets the watched process; calls of its forked children pass unchanged. */
void calls_serve_process(long pid);

/* files.c: the inodes below the watched directory. */

#define ROOT_ID 1

/* The location of a path: a watched directory and a name in it. */
struct location {
    uint64_t dir;
    uint32_t name_len;
    char name[256];
};

/* Records the initial content of the directory. */
void files_watch(const char *root);
/* Returns the id of a watched inode, or 0. */
uint64_t file_id(const struct stat *st);
/* Assigns an id to a new inode; its number may have been used before. */
uint64_t file_add(const struct stat *st);
/* Records that an inode has no name left: its number may be reused. */
void file_orphan(const struct stat *st);
/* An inode opened outside the directory is not the orphan with its number. */
void file_forget_orphan(const struct stat *st);
/* Fills `location` and returns 1 if the parent of `path` is watched. */
int locate(int dirfd, const char *path, struct location *location);

/* trace.c: the ordered record of changes. The numbers are part of the format. */

enum op {
    OP_BASE_DIR = 1,
    OP_BASE_FILE = 2,
    OP_BASE_DATA = 3,
    OP_START = 4,
    OP_CREATE = 5,
    OP_MKDIR = 6,
    OP_LINK = 7,
    OP_RENAME = 8,
    OP_UNLINK = 9,
    OP_WRITE = 10,
    OP_TRUNCATE = 11,
    OP_SYNC = 12,
    OP_SYNC_DATA = 13,
    OP_SYNC_ALL = 14,
    OP_MARK = 15,
    OP_FAULT = 16,
    OP_REFUSED = 17,
};

void trace_open(const char *path);
void marks_open(const char *path);
int is_marks(const struct stat *st);

void trace_entry(enum op op, const struct location *location, uint64_t file);
void trace_rename(const struct location *from, const struct location *to,
                  uint64_t file);
void trace_file(enum op op, uint64_t file, uint64_t value);
void trace_data(enum op op, uint64_t file, uint64_t offset,
                const struct iovec *iov, int count, uint64_t bytes);
void trace_text(enum op op, const char *text);

/* fault.c: injected failures. */

enum class {
    CLASS_WRITE = 0,
    CLASS_SHORT = 1,
    CLASS_SYNC = 2,
    CLASS_OPEN = 3,
    CLASS_RENAME = 4,
    CLASS_TRUNCATE = 5,
    CLASS_UNLINK = 6,
    CLASS_MKDIR = 7,
    CLASSES = 8,
};

#define FAULT_SHORT (-1)

void fault_parse(const char *spec);
void counts_open(const char *path);
/*
 * Counts a call and decides its outcome: 0 to execute it, an errno to fail with,
 * or FAULT_SHORT. `bytes` is the size of a write. Needs the lock.
 */
int fault_next(enum class class, uint64_t file, size_t bytes);

#endif
