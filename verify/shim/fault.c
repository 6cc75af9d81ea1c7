/*
 * Faults: the call that fails, and the counts of calls of each class.
 *
 * FLOE_SHIM_FAIL=<kind>:<n>[:sticky] fails the n-th call of a class, counted
 * over the process from 1; `sticky` also fails all later ones. The counters are
 * in a mapped file, so that they survive a kill at any moment.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct counts {
    char magic[8];
    uint64_t calls[CLASSES];
    uint64_t injected;
};

static const struct kind {
    const char *name;
    enum class class;
    int error;
} kinds[] = {
    {"write-eio", CLASS_WRITE, EIO},
    {"write-enospc", CLASS_WRITE, ENOSPC},
    {"write-short", CLASS_SHORT, FAULT_SHORT},
    {"sync-eio", CLASS_SYNC, EIO},
    {"open-eio", CLASS_OPEN, EIO},
    {"rename-eio", CLASS_RENAME, EIO},
    {"truncate-eio", CLASS_TRUNCATE, EIO},
    {"unlink-eio", CLASS_UNLINK, EIO},
    {"mkdir-eio", CLASS_MKDIR, EIO},
};

static struct counts private_counts;
static struct counts *counts = &private_counts;
static const struct kind *armed;
static uint64_t armed_nth;
static int armed_sticky;

void fault_parse(const char *spec)
{
    size_t len = strcspn(spec, ":");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == len && !memcmp(kinds[i].name, spec, len))
            armed = &kinds[i];
    if (!armed || spec[len] != ':')
        shim_die("FLOE_SHIM_FAIL is not kind:n[:sticky]", spec);
    char *end;
    armed_nth = strtoull(spec + len + 1, &end, 10);
    armed_sticky = strcmp(end, ":sticky") == 0;
    if (armed_nth == 0 || (*end && !armed_sticky))
        shim_die("FLOE_SHIM_FAIL is not kind:n[:sticky]", spec);
}

void counts_open(const char *path)
{
    int fd = (int)sys(SYS_openat, AT_FDCWD, path,
                      O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || sys(SYS_ftruncate, fd, sizeof *counts) != 0)
        shim_die("cannot create FLOE_SHIM_COUNT", path);
    long memory = sys(SYS_mmap, 0, sizeof *counts, PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
    if (memory < 0 && memory > -4096)
        shim_die("cannot map FLOE_SHIM_COUNT", path);
    sys(SYS_close, fd);
    counts = (struct counts *)memory;
    memcpy(counts->magic, "FLOECNT1", 8);
}

/* Whether the armed fault applies to the call just counted. */
static int strikes(enum class class)
{
    return armed && armed->class == class &&
           (counts->calls[class] == armed_nth ||
            (armed_sticky && counts->calls[class] > armed_nth));
}

static int decide(enum class class, size_t bytes)
{
    counts->calls[class]++;
    if (class != CLASS_WRITE)
        return strikes(class) ? armed->error : 0;
    /* After a sticky short write, the disk is full. */
    if (armed && armed->class == CLASS_SHORT && armed_sticky &&
        counts->calls[CLASS_SHORT] >= armed_nth)
        return ENOSPC;
    /* A single byte cannot be halved, so it is not counted. */
    if (bytes >= 2) {
        counts->calls[CLASS_SHORT]++;
        if (strikes(CLASS_SHORT))
            return FAULT_SHORT;
    }
    return strikes(class) ? armed->error : 0;
}

int fault_next(enum class class, uint64_t file, size_t bytes)
{
    int fault = decide(class, bytes);
    if (fault) {
        counts->injected++;
        trace_file(OP_FAULT, file,
                   fault == FAULT_SHORT ? CLASS_SHORT : (uint64_t)class);
    }
    return fault;
}
