/*
 * Interception: a seccomp filter that turns file-changing system calls into
 * SIGSYS unless they come from the gate, and the handler that executes them.
 *
 * Calls are matched by number, wherever they are made, because libc's own calls
 * do not all use replaceable symbols, and some crates (rustix, and through it
 * tempfile's persist) make system calls without libc. Calls that could change
 * files unseen by the filter, such as io_uring, fail with ENOSYS.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* A test of an argument that must hold for the rule to apply. */
struct test {
    uint16_t jump; /* BPF_JSET, BPF_JGT, BPF_JEQ; 0 for no test */
    uint16_t arg;
    uint32_t value;
};

struct rule {
    int nr;
    uint32_t action; /* 0 to trap */
    struct test tests[2];
};

/* A read-only open changes nothing; files are identified by their inodes. */
#define CHANGING_OPEN (O_ACCMODE | O_CREAT | O_TRUNC)
/* Standard streams are outside the watched directory. */
#define BEYOND_STDIO {BPF_JGT, 0, 2}
#define REFUSE (SECCOMP_RET_ERRNO | ENOSYS)

static const struct rule rules[] = {
#ifdef SYS_open
    {SYS_open, 0, {{BPF_JSET, 1, CHANGING_OPEN}}},
    {SYS_creat, 0, {{0}}},
    {SYS_rename, 0, {{0}}},
    {SYS_unlink, 0, {{0}}},
    {SYS_mkdir, 0, {{0}}},
    {SYS_rmdir, 0, {{0}}},
    {SYS_link, 0, {{0}}},
    {SYS_symlink, 0, {{0}}},
    {SYS_mknod, 0, {{0}}},
#endif
#ifdef SYS_renameat
    {SYS_renameat, 0, {{0}}},
#endif
    {SYS_openat, 0, {{BPF_JSET, 2, CHANGING_OPEN}}},
    {SYS_openat2, 0, {{0}}},
    {SYS_renameat2, 0, {{0}}},
    {SYS_unlinkat, 0, {{0}}},
    {SYS_mkdirat, 0, {{0}}},
    {SYS_linkat, 0, {{0}}},
    {SYS_symlinkat, 0, {{0}}},
    {SYS_mknodat, 0, {{0}}},
    {SYS_write, 0, {BEYOND_STDIO}},
    {SYS_writev, 0, {BEYOND_STDIO}},
    {SYS_pwrite64, 0, {{0}}},
    {SYS_pwritev, 0, {{0}}},
    {SYS_pwritev2, 0, {{0}}},
    {SYS_truncate, 0, {{0}}},
    {SYS_ftruncate, 0, {{0}}},
    {SYS_fallocate, 0, {{0}}},
    {SYS_fsync, 0, {{0}}},
    {SYS_fdatasync, 0, {{0}}},
    {SYS_sync, 0, {{0}}},
    {SYS_syncfs, 0, {{0}}},
    {SYS_copy_file_range, 0, {{0}}},
    {SYS_sendfile, 0, {{0}}},
    {SYS_splice, 0, {{0}}},
    {SYS_ioctl, 0, {{BPF_JEQ, 1, (uint32_t)FICLONE}}},
    {SYS_ioctl, 0, {{BPF_JEQ, 1, (uint32_t)FICLONERANGE}}},
    {SYS_mmap, 0, {{BPF_JSET, 2, PROT_WRITE}, {BPF_JSET, 3, MAP_SHARED}}},
    {SYS_io_uring_setup, REFUSE, {{0}}},
    {SYS_io_setup, REFUSE, {{0}}},
    {SYS_open_by_handle_at, REFUSE, {{0}}},
};

#define RULES (sizeof rules / sizeof *rules)
/* Per rule: two for the number, two per test, six for the action. */
#define PROGRAM_MAX (4 + RULES * 12 + 1)

static struct sock_filter program[PROGRAM_MAX];
static unsigned short program_len;
static volatile sig_atomic_t handled;

static void put(uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    program[program_len++] = (struct sock_filter){code, yes, no, k};
}

static void load(size_t offset)
{
    put(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_action(uint32_t action)
{
    uint64_t gate = (uint64_t)(uintptr_t)shim_gate_return;
    size_t ip = offsetof(struct seccomp_data, instruction_pointer);
    load(ip);
    put(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)gate, 0, 2);
    load(ip + 4);
    put(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(gate >> 32), 1, 0);
    put(BPF_RET | BPF_K, action ? action : SECCOMP_RET_TRAP, 0, 0);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static void put_rule(const struct rule *rule)
{
    unsigned tests = 0;
    while (tests < 2 && rule->tests[tests].jump)
        tests++;
    /* A failed test leaves an argument in the accumulator: reload the number. */
    load(offsetof(struct seccomp_data, nr));
    put(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->nr, 0,
        (uint8_t)(2 * tests + 6));
    for (unsigned i = 0; i < tests; i++) {
        const struct test *test = &rule->tests[i];
        load(offsetof(struct seccomp_data, args) + 8 * test->arg);
        put(BPF_JMP | test->jump | BPF_K, test->value, 0,
            (uint8_t)(2 * (tests - 1 - i) + 6));
    }
    put_action(rule->action);
}

static void put_program(void)
{
    load(offsetof(struct seccomp_data, arch));
    put(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    for (size_t i = 0; i < RULES; i++)
        put_rule(&rules[i]);
    put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/*
 * Runs at the trapped instruction as if called from there: the thread does not
 * hold the shim's lock, and other signals are blocked until the call returns.
 */
static void on_sigsys(int signal, siginfo_t *info, void *context)
{
    ucontext_t *user = context;
    int saved = errno;
    (void)signal;
    handled = 1;
#if defined(__x86_64__)
    greg_t *reg = user->uc_mcontext.gregs;
    struct call call = {
        info->si_syscall,
        {(unsigned long)reg[REG_RDI], (unsigned long)reg[REG_RSI],
         (unsigned long)reg[REG_RDX], (unsigned long)reg[REG_R10],
         (unsigned long)reg[REG_R8], (unsigned long)reg[REG_R9]},
    };
    reg[REG_RAX] = calls_dispatch(&call);
#else
    unsigned long long *reg = user->uc_mcontext.regs;
    struct call call = {info->si_syscall,
                        {reg[0], reg[1], reg[2], reg[3], reg[4], reg[5]}};
    reg[0] = (unsigned long long)calls_dispatch(&call);
#endif
    errno = saved;
}

/* In a sandbox that ignores filters, every check would pass without effect. */
static void self_test(void)
{
    if (sys(SYS_ftruncate, -1, 0) != -EBADF || handled)
        shim_die("the shim's own calls are intercepted", NULL);
    if (ftruncate(-1, 0) != -1 || errno != EBADF || !handled)
        shim_die("system calls cannot be intercepted here", NULL);
}

void filter_install(void)
{
    struct sigaction action;
    struct sock_fprog fprog = {.filter = program};
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_sigsys;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    if (sigaction(SIGSYS, &action, NULL) != 0)
        shim_die("cannot handle SIGSYS", NULL);
    put_program();
    fprog.len = program_len;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog) != 0)
        shim_die("cannot install a seccomp filter here", strerror(errno));
    self_test();
}
