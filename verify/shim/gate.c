/*
 * The gate: one system call instruction at a known address, which the shim uses
 * for its own system calls, and the basic functions that depend on it.
 */
#include "shim.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
__asm__(".text\n"
        ".hidden shim_gate\n"
        ".globl shim_gate\n"
        ".type shim_gate, @function\n"
        "shim_gate:\n"
        "    movq %rdi, %rax\n"
        "    movq %rsi, %rdi\n"
        "    movq %rdx, %rsi\n"
        "    movq %rcx, %rdx\n"
        "    movq %r8, %r10\n"
        "    movq %r9, %r8\n"
        "    movq 8(%rsp), %r9\n"
        "    syscall\n"
        ".hidden shim_gate_return\n"
        ".globl shim_gate_return\n"
        "shim_gate_return:\n"
        "    ret\n"
        ".size shim_gate, . - shim_gate\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".hidden shim_gate\n"
        ".globl shim_gate\n"
        ".type shim_gate, %function\n"
        "shim_gate:\n"
        "    mov x8, x0\n"
        "    mov x0, x1\n"
        "    mov x1, x2\n"
        "    mov x2, x3\n"
        "    mov x3, x4\n"
        "    mov x4, x5\n"
        "    mov x5, x6\n"
        "    svc #0\n"
        ".hidden shim_gate_return\n"
        ".globl shim_gate_return\n"
        "shim_gate_return:\n"
        "    ret\n"
        ".size shim_gate, . - shim_gate\n");
#else
#error "the shim supports only x86_64 and aarch64"
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void shim_lock(void) { pthread_mutex_lock(&lock); }

void shim_unlock(void) { pthread_mutex_unlock(&lock); }

static void print(const char *text) { sys(SYS_write, 2, text, strlen(text)); }

void shim_die(const char *what, const char *detail)
{
    print("floe-shim: ");
    print(what);
    if (detail) {
        print(": ");
        print(detail);
    }
    print("\n");
    for (;;)
        sys(SYS_exit_group, SHIM_EXIT);
}
