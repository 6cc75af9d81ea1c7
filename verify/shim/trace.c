/*
 * The trace: a binary record of everything that changed the watched directory.
 *
 * The file has eight magic bytes, followed by records: each a header of 48
 * bytes in the machine's (little-endian) order, followed by the name, the second
 * name and the data, whose lengths are in the header. verify/src/disk/trace.rs
 * reads it. If the process is killed during a record, that record is incomplete.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define IOV_BATCH 64

struct record {
    uint8_t op;
    uint8_t reserved[3];
    uint32_t name_len;
    uint32_t to_name_len;
    uint32_t data_len;
    uint64_t file;
    uint64_t dir;
    uint64_t to_dir;
    uint64_t value; /* offset, length, or class of a fault */
};

_Static_assert(sizeof(struct record) == 48, "the reader relies on 48 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian only");

static int trace_fd = -1;
static struct stat marks;

/* Writes all of `iov`, and modifies it. */
static void append(struct iovec *iov, int count)
{
    while (count > 0) {
        long wrote = sys(SYS_writev, trace_fd, iov, count);
        if (wrote == -EINTR)
            continue;
        if (wrote < 0)
            shim_die("cannot write the trace", NULL);
        while (count > 0 && (size_t)wrote >= iov->iov_len) {
            wrote -= (long)iov->iov_len;
            iov++;
            count--;
        }
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + wrote;
            iov->iov_len -= (size_t)wrote;
        }
    }
}

static void emit(const struct record *record, const char *name,
                 const char *to_name)
{
    struct iovec iov[3] = {
        {(void *)record, sizeof *record},
        {(void *)name, record->name_len},
        {(void *)to_name, record->to_name_len},
    };
    if (trace_fd >= 0)
        append(iov, 3);
}

void trace_entry(enum op op, const struct location *location, uint64_t file)
{
    struct record record = {.op = (uint8_t)op,
                            .name_len = location->name_len,
                            .file = file,
                            .dir = location->dir};
    emit(&record, location->name, NULL);
}

void trace_rename(const struct location *from, const struct location *to,
                  uint64_t file)
{
    struct record record = {.op = OP_RENAME,
                            .name_len = from->name_len,
                            .to_name_len = to->name_len,
                            .file = file,
                            .dir = from->dir,
                            .to_dir = to->dir};
    emit(&record, from->name, to->name);
}

void trace_file(enum op op, uint64_t file, uint64_t value)
{
    struct record record = {.op = (uint8_t)op, .file = file, .value = value};
    emit(&record, NULL, NULL);
}

void trace_data(enum op op, uint64_t file, uint64_t offset,
                const struct iovec *iov, int count, uint64_t bytes)
{
    struct record record = {.op = (uint8_t)op,
                            .data_len = (uint32_t)bytes,
                            .file = file,
                            .value = offset};
    struct iovec batch[IOV_BATCH] = {{&record, sizeof record}};
    int used = 1;
    if (trace_fd < 0)
        return;
    for (int i = 0; i < count && bytes > 0; i++) {
        size_t len = iov[i].iov_len < bytes ? iov[i].iov_len : bytes;
        if (used == IOV_BATCH) {
            append(batch, used);
            used = 0;
        }
        batch[used++] = (struct iovec){iov[i].iov_base, len};
        bytes -= len;
    }
    append(batch, used);
}

void trace_text(enum op op, const char *text)
{
    struct iovec iov = {(void *)text, strlen(text)};
    trace_data(op, 0, 0, &iov, 1, iov.iov_len);
}

void trace_open(const char *path)
{
    struct iovec magic = {"FLOETRC1", 8};
    int fd = (int)sys(SYS_openat, AT_FDCWD, path,
                      O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
                      0644);
    if (fd < 0)
        shim_die("cannot create FLOE_SHIM_TRACE", path);
    trace_fd = fd;
    append(&magic, 1);
}

void marks_open(const char *path)
{
    int fd = (int)sys(SYS_openat, AT_FDCWD, path,
                      O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || sys(SYS_fstat, fd, &marks) != 0)
        shim_die("cannot create FLOE_SHIM_MARKS", path);
    sys(SYS_close, fd);
}

int is_marks(const struct stat *st)
{
    return marks.st_ino != 0 && st->st_ino == marks.st_ino &&
           st->st_dev == marks.st_dev;
}
