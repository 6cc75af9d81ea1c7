/*
 * What the parts of the shim share.
 *
 * The shim is preloaded into a process and sees every system call that changes
 * files below one directory, wherever in the process it comes from: libc, or a
 * crate that issues system calls itself. It does so with a seccomp filter that
 * turns such calls into SIGSYS (filter.c); the signal handler runs the call
 * through the rules in calls.c. No libc symbol is replaced.
 *
 * The shim serves one process. A forked child runs without it; a program that
 * the child executes inherits the filter without the handler and is killed by
 * its first write, so the watched process must not execute others.
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

/* Exit status of a process in which the shim could not do its work. */
#define SHIM_EXIT 97

/* gate.c: the only system calls that the filter lets pass. */

/* Returns what the kernel returns: a result, or an errno negated. */
long shim_gate(long nr, long a, long b, long c, long d, long e, long f);
/* The address behind the gate's instruction, by which the filter knows it. */
extern const char shim_gate_return[];

#define SHIM_GATE(nr, a, b, c, d, e, f, ...)                                   \
    shim_gate((long)(nr), (long)(a), (long)(b), (long)(c), (long)(d),          \
              (long)(e), (long)(f))
#define sys(...) SHIM_GATE(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* Ends the process with a message; for what a check must never run past. */
__attribute__((noreturn)) void shim_die(const char *what, const char *detail);

/* One lock orders all watched calls, their faults and their records. */
void shim_lock(void);
void shim_unlock(void);

/* filter.c */

struct call {
    long nr;
    unsigned long arg[6];
};

/* Installs filter and handler, and proves that they work. */
void filter_install(void);

/* calls.c */

/* Answers one intercepted call as the kernel would. */
long calls_dispatch(const struct call *call);
/* The watched process; calls of its forked children pass untouched. */
void calls_serve_process(long pid);

/* files.c: which inodes lie below the watched directory. */

#define ROOT_ID 1

/* Where a path points: a watched directory and a name in it. */
struct place {
    uint64_t dir;
    uint32_t name_len;
    char name[256];
};

/* Learns the directory's present content and records it as the base. */
void files_watch(const char *root);
/* The id of a watched inode, or 0. */
uint64_t file_id(const struct stat *st);
/* Gives a new inode its id; the number may be one that was freed before. */
uint64_t file_add(const struct stat *st);
/* The last name is gone: the number may come back as another file. */
void file_orphan(const struct stat *st);
/* An inode opened outside the directory is not the orphan of that number. */
void file_forget_orphan(const struct stat *st);
/* Fills `place` and returns 1 when the parent of `path` is watched. */
int place_of(int dirfd, const char *path, struct place *place);

/* trace.c: the record of what happened, in order. Numbers are the format. */

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

void trace_entry(enum op op, const struct place *place, uint64_t file);
void trace_rename(const struct place *from, const struct place *to,
                  uint64_t file);
void trace_file(enum op op, uint64_t file, uint64_t value);
void trace_data(enum op op, uint64_t file, uint64_t offset,
                const struct iovec *iov, int count, uint64_t bytes);
void trace_text(enum op op, const char *text);

/* fault.c: which call fails. */

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
 * Counts a call and says what becomes of it: 0 to go on, an errno to fail
 * with, or FAULT_SHORT. `bytes` is what a write would write. Needs the lock.
 */
int fault_next(enum class class, uint64_t file, size_t bytes);

#endif
