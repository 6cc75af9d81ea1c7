/*
 * Tracks the inodes below the watched directory, and resolves paths.
 *
 * Files are identified by device and inode number, never by descriptor or path,
 * so duplicated descriptors, renamed directories and symbolic links need no
 * special handling. Inode numbers are reused after their file is gone; ids are
 * not.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Slots are filled and never freed, one per inode number seen. */
#define SLOTS (1u << 20)
#define SLOTS_USED_MAX (SLOTS / 4 * 3)
#define DEPTH_MAX 64

struct slot {
    uint64_t dev;
    uint64_t ino;
    uint64_t id;
    uint64_t orphan;
};

static struct slot *slots;
static unsigned slots_used;
static uint64_t last_id;

static struct slot *slot_of(const struct stat *st)
{
    uint64_t hash = (st->st_ino ^ (st->st_dev << 32)) * 0x9e3779b97f4a7c15ull;
    unsigned at = (unsigned)(hash >> 44);
    while (slots[at].ino != 0) {
        if (slots[at].ino == st->st_ino && slots[at].dev == st->st_dev)
            return &slots[at];
        at = (at + 1) % SLOTS;
    }
    return &slots[at];
}

uint64_t file_id(const struct stat *st) { return slot_of(st)->id; }

uint64_t file_add(const struct stat *st)
{
    struct slot *slot = slot_of(st);
    if (slot->ino == 0 && ++slots_used > SLOTS_USED_MAX)
        shim_die("too many files below FLOE_SHIM_DIR", NULL);
    slot->dev = st->st_dev;
    slot->ino = st->st_ino;
    slot->id = ++last_id;
    slot->orphan = 0;
    return slot->id;
}

void file_orphan(const struct stat *st) { slot_of(st)->orphan = 1; }

void file_forget_orphan(const struct stat *st)
{
    struct slot *slot = slot_of(st);
    if (slot->orphan)
        slot->id = 0;
}

/* Splits `path` into the path of its parent and its last component. */
static int split(const char *path, char parent[PATH_MAX],
                 struct location *location)
{
    size_t end = strnlen(path, PATH_MAX);
    if (end == PATH_MAX)
        return 0;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t len = end - start;
    if (len == 0 || len >= sizeof location->name)
        return 0;
    memcpy(location->name, path + start, len);
    location->name[len] = 0;
    location->name_len = (uint32_t)len;
    if (start == 0) {
        strcpy(parent, ".");
    } else {
        memcpy(parent, path, start);
        parent[start] = 0;
    }
    return strcmp(location->name, ".") != 0 &&
           strcmp(location->name, "..") != 0;
}

int locate(int dirfd, const char *path, struct location *location)
{
    char parent[PATH_MAX];
    struct stat st;
    location->dir = 0;
    if (!path || !split(path, parent, location))
        return 0;
    if (sys(SYS_newfstatat, dirfd, parent, &st, 0) != 0)
        return 0;
    location->dir = file_id(&st);
    return location->dir != 0;
}

static void base_content(int fd, uint64_t id, off_t size)
{
    static char buffer[1 << 16];
    trace_file(OP_TRUNCATE, id, (uint64_t)size);
    off_t at = 0;
    for (;;) {
        /* Holes of preallocated files are skipped, not copied as zeros. */
        long data = sys(SYS_lseek, fd, at, SEEK_DATA);
        if (data == -ENXIO)
            return;
        if (data < 0)
            shim_die("cannot read a file below FLOE_SHIM_DIR", NULL);
        at = data;
        long got = sys(SYS_pread64, fd, buffer, sizeof buffer, at);
        if (got < 0)
            shim_die("cannot read a file below FLOE_SHIM_DIR", NULL);
        if (got == 0)
            return;
        struct iovec iov = {buffer, (size_t)got};
        trace_data(OP_BASE_DATA, id, (uint64_t)at, &iov, 1, (uint64_t)got);
        at += got;
    }
}

struct entry {
    uint64_t ino;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static void base_directory(int fd, uint64_t id, int depth);

static void base_entry(int dirfd, uint64_t dir, const char *name, int depth)
{
    struct location location = {.dir = dir, .name_len = (uint32_t)strlen(name)};
    struct stat st;
    memcpy(location.name, name, location.name_len + 1);
    int fd = (int)sys(SYS_openat, dirfd, name,
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || sys(SYS_fstat, fd, &st) != 0)
        shim_die("cannot open a file below FLOE_SHIM_DIR", name);
    uint64_t id = file_id(&st);
    if (S_ISDIR(st.st_mode)) {
        id = file_add(&st);
        trace_entry(OP_BASE_DIR, &location, id);
        base_directory(fd, id, depth + 1);
    } else if (!S_ISREG(st.st_mode)) {
        shim_die("neither a file nor a directory below FLOE_SHIM_DIR", name);
    } else if (id != 0) { /* another name of a recorded file */
        trace_entry(OP_BASE_FILE, &location, id);
    } else {
        id = file_add(&st);
        trace_entry(OP_BASE_FILE, &location, id);
        base_content(fd, id, st.st_size);
    }
    sys(SYS_close, fd);
}

static void base_directory(int fd, uint64_t id, int depth)
{
    _Alignas(struct entry) char buffer[8192];
    if (depth > DEPTH_MAX)
        shim_die("directories below FLOE_SHIM_DIR are too deep", NULL);
    for (;;) {
        long got = sys(SYS_getdents64, fd, buffer, sizeof buffer);
        if (got < 0)
            shim_die("cannot list a directory below FLOE_SHIM_DIR", NULL);
        if (got == 0)
            return;
        for (long at = 0; at < got;) {
            struct entry *entry = (struct entry *)(buffer + at);
            at += entry->length;
            if (strcmp(entry->name, ".") && strcmp(entry->name, ".."))
                base_entry(fd, id, entry->name, depth);
        }
    }
}

void files_watch(const char *root)
{
    struct stat st;
    long memory = sys(SYS_mmap, 0, SLOTS * sizeof *slots,
                      PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0 && memory > -4096)
        shim_die("no memory for the table of files", NULL);
    slots = (struct slot *)memory;
    int fd = (int)sys(SYS_openat, AT_FDCWD, root,
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || sys(SYS_fstat, fd, &st) != 0)
        shim_die("FLOE_SHIM_DIR is not a directory", root);
    file_add(&st);
    base_directory(fd, ROOT_ID, 0);
    sys(SYS_close, fd);
    trace_file(OP_START, ROOT_ID, 0);
}
