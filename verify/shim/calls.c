/*
 * The rules: the effect of each intercepted call on the watched directory.
 *
 * A call on any other file passes to the kernel unchanged and without the lock.
 * A watched call holds the lock from the decision to the record, so that the
 * trace is a total order consistent with the actual calls. Calls that the trace
 * format cannot express are refused before they take effect, with the errno on
 * which callers fall back to plain reads and writes, if they have a fallback.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <unistd.h>

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static long serving_pid;

void calls_serve_process(long pid) { serving_pid = pid; }

static long pass(const struct call *call)
{
    const unsigned long *arg = call->arg;
    return sys(call->nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static long refuse(const char *what, int error)
{
    trace_text(OP_REFUSED, what);
    shim_unlock();
    return -error;
}

/* Takes the lock and returns the id of the watched file of a descriptor, or
 * returns 0 without the lock. */
static uint64_t lock_file(int fd, struct stat *st)
{
    if (sys(SYS_fstat, fd, st) != 0)
        return 0;
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
        return 0;
    shim_lock();
    uint64_t id = file_id(st);
    if (!id)
        shim_unlock();
    return id;
}

static int stat_entry(int dirfd, const char *path, struct stat *st)
{
    return sys(SYS_newfstatat, dirfd, path, st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Every file below the directory existed at the start or was traced. */
static uint64_t known_id(const struct stat *st, const char *name)
{
    uint64_t id = file_id(st);
    if (!id)
        shim_die("another process created a file below FLOE_SHIM_DIR", name);
    return id;
}

/* ---- names -------------------------------------------------------------- */

static long open_elsewhere(const struct call *call, int flags)
{
    struct stat st;
    long fd = pass(call);
    if (fd < 0 || sys(SYS_fstat, fd, &st) != 0 || !S_ISREG(st.st_mode))
        return fd;
    shim_lock();
    file_forget_orphan(&st);
    /* The path may have been a symbolic link into the directory. */
    uint64_t id = file_id(&st);
    if (id && (flags & O_TRUNC))
        trace_file(OP_TRUNCATE, id, 0);
    shim_unlock();
    return fd;
}

static long on_open(const struct call *call, int dirfd, const char *path,
                    int flags)
{
    struct location location;
    struct stat before, after;
    shim_lock();
    /* Such a file has no name; the path is that of its directory. */
    if ((flags & O_TMPFILE) == O_TMPFILE &&
        sys(SYS_newfstatat, dirfd, path, &before, 0) == 0 && file_id(&before))
        return refuse("O_TMPFILE", EOPNOTSUPP);
    if (!locate(dirfd, path, &location)) {
        shim_unlock();
        return open_elsewhere(call, flags);
    }
    int existed = stat_entry(dirfd, path, &before);
    int fault = fault_next(CLASS_OPEN, existed ? file_id(&before) : 0, 0);
    long fd = fault ? -fault : pass(call);
    if (fd >= 0 && sys(SYS_fstat, fd, &after) == 0 && S_ISREG(after.st_mode)) {
        if (!existed)
            trace_entry(OP_CREATE, &location, file_add(&after));
        else if (known_id(&after, location.name) && (flags & O_TRUNC))
            trace_file(OP_TRUNCATE, file_id(&after), 0);
    }
    shim_unlock();
    return fd;
}

static long on_mkdir(const struct call *call, int dirfd, const char *path)
{
    struct location location;
    struct stat st;
    shim_lock();
    if (!locate(dirfd, path, &location)) {
        shim_unlock();
        return pass(call);
    }
    int fault = fault_next(CLASS_MKDIR, 0, 0);
    long result = fault ? -fault : pass(call);
    if (result == 0 && stat_entry(dirfd, path, &st))
        trace_entry(OP_MKDIR, &location, file_add(&st));
    shim_unlock();
    return result;
}

static void orphan_if_last(const struct stat *before)
{
    if (S_ISDIR(before->st_mode) || before->st_nlink == 1)
        file_orphan(before);
}

static long on_unlink(const struct call *call, int dirfd, const char *path)
{
    struct location location;
    struct stat before;
    shim_lock();
    if (!locate(dirfd, path, &location) || !stat_entry(dirfd, path, &before)) {
        shim_unlock();
        return pass(call);
    }
    uint64_t id = known_id(&before, location.name);
    int fault = fault_next(CLASS_UNLINK, id, 0);
    long result = fault ? -fault : pass(call);
    if (result == 0) {
        trace_entry(OP_UNLINK, &location, id);
        orphan_if_last(&before);
    }
    shim_unlock();
    return result;
}

static long rename_watched(const struct call *call, const struct location *from,
                           const struct location *to, const struct stat *source,
                           const struct stat *target)
{
    uint64_t id = known_id(source, from->name);
    int fault = fault_next(CLASS_RENAME, id, 0);
    long result = fault ? -fault : pass(call);
    /* A rename between two names of one file has no effect. */
    if (result == 0 && !(target && file_id(target) == id)) {
        trace_rename(from, to, id);
        if (target)
            orphan_if_last(target);
    }
    shim_unlock();
    return result;
}

static long on_rename(const struct call *call, int from_fd, const char *from,
                      int to_fd, const char *to, unsigned flags)
{
    struct location from_location, to_location;
    struct stat source, target;
    shim_lock();
    int leaves = locate(from_fd, from, &from_location);
    int arrives = locate(to_fd, to, &to_location);
    if ((!leaves && !arrives) || !stat_entry(from_fd, from, &source)) {
        shim_unlock();
        return pass(call);
    }
    if (!leaves || !arrives)
        return refuse("rename across the border of FLOE_SHIM_DIR", EXDEV);
    if (flags & ~(unsigned)RENAME_NOREPLACE)
        return refuse("renameat2 with exchange or whiteout", EINVAL);
    int replaces = stat_entry(to_fd, to, &target);
    return rename_watched(call, &from_location, &to_location, &source,
                          replaces ? &target : NULL);
}

static long on_link(const struct call *call, int from_fd, const char *from,
                    int to_fd, const char *to, int flags)
{
    struct location location;
    struct stat st;
    long follow = flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW;
    shim_lock();
    int arrives = locate(to_fd, to, &location);
    if (sys(SYS_newfstatat, from_fd, from, &st,
            follow | (flags & AT_EMPTY_PATH)) != 0 ||
        (!arrives && !file_id(&st))) {
        shim_unlock();
        return pass(call);
    }
    if (!arrives || !file_id(&st))
        return refuse("link across the border of FLOE_SHIM_DIR", EXDEV);
    long result = pass(call);
    if (result == 0)
        trace_entry(OP_LINK, &location, file_id(&st));
    shim_unlock();
    return result;
}

/* The disk model has no symbolic links or devices. */
static long on_special(const struct call *call, int dirfd, const char *path)
{
    struct location location;
    shim_lock();
    if (locate(dirfd, path, &location))
        return refuse("symlink or mknod", EPERM);
    shim_unlock();
    return pass(call);
}

/* ---- content ------------------------------------------------------------ */

/* A write of any kind. */
struct write {
    struct call call;
    const struct iovec *iov;
    struct iovec single;
    int count;
    size_t bytes;
    int64_t offset; /* -1 for the position of the descriptor */
    int flags;      /* RWF_... */
};

/* Parses the arguments; returns 0 if only the kernel can validate them. */
static int write_parse(const struct call *call, struct write *write)
{
    const unsigned long *arg = call->arg;
    *write = (struct write){.call = *call, .offset = -1};
    if (call->nr == SYS_write || call->nr == SYS_pwrite64) {
        write->single = (struct iovec){(void *)arg[1], arg[2]};
        write->iov = &write->single;
        write->count = 1;
    } else {
        write->iov = (const struct iovec *)arg[1];
        if (arg[2] > IOV_MAX || !write->iov)
            return 0;
        write->count = (int)arg[2];
    }
    if (call->nr != SYS_write && call->nr != SYS_writev)
        write->offset = (int64_t)arg[3];
    if (call->nr == SYS_pwritev2)
        write->flags = (int)arg[5];
    for (int i = 0; i < write->count; i++)
        write->bytes += write->iov[i].iov_len;
    return 1;
}

/* Shortens the write to its first half. Needs the lock. */
static void write_halve(struct write *write)
{
    static struct iovec half[IOV_MAX];
    size_t left = write->bytes / 2;
    int count = 0;
    while (left > 0) {
        size_t len = write->iov[count].iov_len;
        half[count].iov_base = write->iov[count].iov_base;
        half[count].iov_len = len < left ? len : left;
        left -= half[count].iov_len;
        count++;
    }
    if (write->iov == &write->single) {
        write->call.arg[2] = half[0].iov_len;
    } else {
        write->call.arg[1] = (unsigned long)half;
        write->call.arg[2] = (unsigned long)count;
    }
}

/* Returns the offset at which `wrote` bytes were written. Needs the lock. */
static uint64_t write_offset(const struct write *write, int open_flags,
                             long wrote)
{
    long fd = (long)write->call.arg[0];
    struct stat st;
    if (write->offset < 0)
        return (uint64_t)(sys(SYS_lseek, fd, 0, SEEK_CUR) - wrote);
    /* On such descriptors, Linux appends and ignores the offset. */
    if ((open_flags & O_APPEND) || (write->flags & RWF_APPEND)) {
        sys(SYS_fstat, fd, &st);
        return (uint64_t)(st.st_size - wrote);
    }
    return (uint64_t)write->offset;
}

static long write_watched(struct write *write, uint64_t id)
{
    int fault = fault_next(CLASS_WRITE, id, write->bytes);
    if (fault > 0)
        return -fault;
    if (fault == FAULT_SHORT)
        write_halve(write);
    long wrote = pass(&write->call);
    if (wrote <= 0)
        return wrote;
    int open_flags = (int)sys(SYS_fcntl, write->call.arg[0], F_GETFL);
    trace_data(OP_WRITE, id, write_offset(write, open_flags, wrote),
               write->iov, write->count, (uint64_t)wrote);
    if ((open_flags & O_DSYNC) || (write->flags & (RWF_DSYNC | RWF_SYNC)))
        trace_file(OP_SYNC_DATA, id, 0);
    return wrote;
}

static long on_write(const struct call *call)
{
    struct write write;
    struct stat st;
    if (sys(SYS_fstat, call->arg[0], &st) != 0 || !S_ISREG(st.st_mode) ||
        !write_parse(call, &write))
        return pass(call);
    shim_lock();
    uint64_t id = file_id(&st);
    long result;
    if (is_marks(&st)) {
        result = pass(call);
        if (result > 0)
            trace_data(OP_MARK, 0, 0, write.iov, write.count,
                       (uint64_t)result);
    } else if (id) {
        result = write_watched(&write, id);
    } else {
        shim_unlock();
        return pass(call);
    }
    shim_unlock();
    return result;
}

static long on_ftruncate(const struct call *call)
{
    struct stat st;
    uint64_t id = lock_file((int)call->arg[0], &st);
    if (!id)
        return pass(call);
    int fault = fault_next(CLASS_TRUNCATE, id, 0);
    long result = fault ? -fault : pass(call);
    if (result == 0)
        trace_file(OP_TRUNCATE, id, call->arg[1]);
    shim_unlock();
    return result;
}

static long on_truncate(const struct call *call)
{
    struct stat st;
    shim_lock();
    uint64_t id = 0;
    if (sys(SYS_newfstatat, AT_FDCWD, call->arg[0], &st, 0) == 0)
        id = file_id(&st);
    if (!id) {
        shim_unlock();
        return pass(call);
    }
    int fault = fault_next(CLASS_TRUNCATE, id, 0);
    long result = fault ? -fault : pass(call);
    if (result == 0)
        trace_file(OP_TRUNCATE, id, call->arg[1]);
    shim_unlock();
    return result;
}

/* fallocate needs disk space, so it fails where writes fail. */
static long on_fallocate(const struct call *call)
{
    struct stat st;
    uint64_t id = lock_file((int)call->arg[0], &st);
    if (!id)
        return pass(call);
    if (call->arg[1] & ~(unsigned long)FALLOC_FL_KEEP_SIZE)
        return refuse("fallocate that changes content", EOPNOTSUPP);
    int fault = fault_next(CLASS_WRITE, id, 0);
    long result = fault ? -fault : pass(call);
    if (result == 0 && sys(SYS_fstat, call->arg[0], &st) == 0)
        trace_file(OP_TRUNCATE, id, (uint64_t)st.st_size);
    shim_unlock();
    return result;
}

static long on_sync(const struct call *call)
{
    struct stat st;
    uint64_t id = lock_file((int)call->arg[0], &st);
    if (!id)
        return pass(call);
    int fault = fault_next(CLASS_SYNC, id, 0);
    long result = fault ? -fault : pass(call);
    if (result == 0)
        trace_file(call->nr == SYS_fsync ? OP_SYNC : OP_SYNC_DATA, id, 0);
    else if (!fault)
        trace_file(OP_FAULT, id, CLASS_SYNC);
    shim_unlock();
    return result;
}

static long on_sync_all(const struct call *call)
{
    shim_lock();
    long result = pass(call);
    if (result == 0)
        trace_file(OP_SYNC_ALL, ROOT_ID, 0);
    shim_unlock();
    return result;
}

/* Refuses copies inside the kernel, whose bytes the shim cannot see. */
static long on_copy(const struct call *call, int fd, const char *what,
                    int error)
{
    struct stat st;
    return lock_file(fd, &st) ? refuse(what, error) : pass(call);
}

/* ---- dispatch ----------------------------------------------------------- */

#define FD(i) ((int)arg[i])
#define PATH(i) ((const char *)arg[i])

static long dispatch_names(const struct call *call)
{
    const unsigned long *arg = call->arg;
    switch (call->nr) {
#ifdef SYS_open
    case SYS_open:
        return on_open(call, AT_FDCWD, PATH(0), (int)arg[1]);
    case SYS_creat:
        return on_open(call, AT_FDCWD, PATH(0), O_CREAT | O_WRONLY | O_TRUNC);
    case SYS_rename:
        return on_rename(call, AT_FDCWD, PATH(0), AT_FDCWD, PATH(1), 0);
    case SYS_unlink:
    case SYS_rmdir:
        return on_unlink(call, AT_FDCWD, PATH(0));
    case SYS_mkdir:
        return on_mkdir(call, AT_FDCWD, PATH(0));
    case SYS_link:
        return on_link(call, AT_FDCWD, PATH(0), AT_FDCWD, PATH(1), 0);
    case SYS_symlink:
        return on_special(call, AT_FDCWD, PATH(1));
    case SYS_mknod:
        return on_special(call, AT_FDCWD, PATH(0));
#endif
#ifdef SYS_renameat
    case SYS_renameat:
        return on_rename(call, FD(0), PATH(1), FD(2), PATH(3), 0);
#endif
    case SYS_openat:
        return on_open(call, FD(0), PATH(1), (int)arg[2]);
    case SYS_openat2:
        return on_open(call, FD(0), PATH(1),
                       (int)((const struct open_how *)arg[2])->flags);
    case SYS_renameat2:
        return on_rename(call, FD(0), PATH(1), FD(2), PATH(3),
                         (unsigned)arg[4]);
    case SYS_unlinkat:
        return on_unlink(call, FD(0), PATH(1));
    case SYS_mkdirat:
        return on_mkdir(call, FD(0), PATH(1));
    case SYS_linkat:
        return on_link(call, FD(0), PATH(1), FD(2), PATH(3), (int)arg[4]);
    case SYS_symlinkat:
        return on_special(call, FD(1), PATH(2));
    case SYS_mknodat:
        return on_special(call, FD(0), PATH(1));
    default:
        return pass(call);
    }
}

long calls_dispatch(const struct call *call)
{
    const unsigned long *arg = call->arg;
    if (sys(SYS_getpid) != serving_pid)
        return pass(call);
    switch (call->nr) {
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
        return on_write(call);
    case SYS_ftruncate:
        return on_ftruncate(call);
    case SYS_truncate:
        return on_truncate(call);
    case SYS_fallocate:
        return on_fallocate(call);
    case SYS_fsync:
    case SYS_fdatasync:
        return on_sync(call);
    case SYS_sync:
    case SYS_syncfs:
        return on_sync_all(call);
    case SYS_copy_file_range:
        return on_copy(call, FD(2), "copy_file_range", EXDEV);
    case SYS_sendfile:
        return on_copy(call, FD(0), "sendfile", EINVAL);
    case SYS_splice:
        return on_copy(call, FD(2), "splice", EINVAL);
    case SYS_ioctl:
        return on_copy(call, FD(0), "ioctl clone", EOPNOTSUPP);
    case SYS_mmap:
        return on_copy(call, FD(4), "mmap shared and writable", ENODEV);
    default:
        return dispatch_names(call);
    }
}
