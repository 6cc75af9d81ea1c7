/*
 * Calls that the Rust standard library does not make, for the shim's tests.
 *
 * Runs in the watched directory given as its argument, which must be empty;
 * exits non-zero at the first call with an unexpected result. The test compares
 * the directory with the replayed trace.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(int line, long got, long expected)
{
    if (got == expected)
        return;
    printf("line %d: got %ld, expected %ld, errno %d %s\n", line, got, expected,
           errno, strerror(errno));
    exit(1);
}

#define OK(call) expect(__LINE__, (call), 0)
#define GIVES(value, call) expect(__LINE__, (call), (value))
#define FAILS(error, call)                                                     \
    do {                                                                       \
        errno = 0;                                                             \
        expect(__LINE__, (long)(call), -1);                                    \
        expect(__LINE__, errno, (error));                                      \
    } while (0)

static int make(const char *path, int flags)
{
    int fd = open(path, O_CREAT | O_RDWR | flags, 0644);
    expect(__LINE__, fd >= 0, 1);
    return fd;
}

static void vectors(void)
{
    struct iovec iov[3] = {{"one", 3}, {"", 0}, {"three", 5}};
    int fd = make("vectors", 0);
    GIVES(8, writev(fd, iov, 3));
    GIVES(8, pwritev(fd, iov, 3, 100));
    GIVES(8, pwritev2(fd, iov, 3, -1, 0));
    GIVES(8, pwritev2(fd, iov, 3, 0, RWF_APPEND));
    struct iovec many[200];
    for (int i = 0; i < 200; i++)
        many[i] = (struct iovec){"abc", (size_t)(1 + i % 3)};
    GIVES(399, writev(fd, many, 200));
    FAILS(EINVAL, writev(fd, many, 100000));
    close(fd);

    fd = make("appended", O_APPEND);
    GIVES(5, write(fd, "first", 5));
    GIVES(6, pwrite(fd, "second", 6, 0));
    lseek(fd, 0, SEEK_SET);
    GIVES(5, write(fd, "third", 5));
    int copy = dup(fd);
    close(fd);
    GIVES(6, write(copy, "fourth", 6));
    close(copy);

    fd = make("durable", O_DSYNC);
    GIVES(7, write(fd, "durable", 7));
    close(fd);
}

static void sizes(void)
{
    int fd = make("sized", 0);
    OK(posix_fallocate(fd, 0, 10000));
    OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 20000));
    FAILS(EOPNOTSUPP, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                0, 4096));
    GIVES(4, pwrite(fd, "data", 4, 9998));
    close(fd);
    OK(truncate("sized", 10001));
    fd = creat("sized by creat", 0644);
    GIVES(4, write(fd, "data", 4));
    close(fd);
    fd = creat("sized by creat", 0644);
    GIVES(2, write(fd, "da", 2));
    close(fd);
}

static void copies(void)
{
    int from = open("vectors", O_RDONLY);
    int to = make("copied", 0);
    int pipes[2];
    FAILS(EXDEV, copy_file_range(from, NULL, to, NULL, 8, 0));
    FAILS(EINVAL, sendfile(to, from, NULL, 8));
    OK(pipe(pipes));
    GIVES(4, write(pipes[1], "pipe", 4));
    FAILS(EINVAL, splice(pipes[0], NULL, to, NULL, 4, 0));
    FAILS(EOPNOTSUPP, ioctl(to, FICLONE, from));
    OK(ftruncate(to, 4096));
    FAILS(ENODEV, (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, to,
                             0));
    char *private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, to, 0);
    private[0] = 'x';
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[0] = 'x';
    close(from);
    close(to);
}

static void names(void)
{
    OK(mkdir("dir", 0755));
    OK(mkdir("dir/inner", 0755));
    int dir = open("dir", O_RDONLY | O_DIRECTORY);
    int fd = openat(dir, "inner/../below", O_CREAT | O_WRONLY, 0644);
    GIVES(5, write(fd, "below", 5));
    OK(rename("dir", "moved"));
    GIVES(5, write(fd, "after", 5));
    close(fd);
    struct open_how how = {.flags = O_CREAT | O_WRONLY, .mode = 0644};
    fd = (int)syscall(SYS_openat2, dir, "how", &how, sizeof how);
    GIVES(3, syscall(SYS_write, fd, "how", 3));
    close(fd);
    OK(linkat(dir, "how", AT_FDCWD, "linked", 0));
    OK(rename("linked", "moved/how")); /* two names of one file: no effect */
    OK(access("linked", F_OK));
    FAILS(EEXIST, renameat2(dir, "how", AT_FDCWD, "sized", RENAME_NOREPLACE));
    OK(renameat2(dir, "how", AT_FDCWD, "free", RENAME_NOREPLACE));
    FAILS(EINVAL, renameat2(dir, "below", AT_FDCWD, "free", RENAME_EXCHANGE));
    FAILS(EXDEV, rename("free", "../outside"));
    FAILS(EPERM, symlink("free", "symlink"));
    FAILS(EPERM, mkfifo("fifo", 0644));
    FAILS(EOPNOTSUPP, open(".", O_TMPFILE | O_WRONLY, 0644));
    FAILS(ENOENT, unlink("missing"));
    FAILS(ENOTEMPTY, rmdir("moved"));
    OK(unlinkat(dir, "inner/", AT_REMOVEDIR));
    close(dir);
}

/* Most file systems reuse a freed inode number at once. */
static void numbers(void)
{
    for (int i = 0; i < 20; i++) {
        int fd = make("reused", 0);
        GIVES(1, write(fd, "x", 1));
        OK(unlink("reused"));
        GIVES(1, write(fd, "y", 1));
        close(fd);
        fd = make("../elsewhere", O_TRUNC);
        GIVES(9, write(fd, "elsewhere", 9));
        close(fd);
        OK(unlink("../elsewhere"));
    }
    int fd = make("reused", 0);
    GIVES(4, write(fd, "last", 4));
    OK(fsync(fd));
    close(fd);
}

static void streams(void)
{
    FILE *file = fopen("stream", "w");
    fprintf(file, "by stdio\n");
    OK(fclose(file));
    pid_t child = fork();
    if (child == 0) {
        printf("from a forked child\n");
        fflush(stdout);
        _exit(0);
    }
    int status;
    GIVES(child, waitpid(child, &status, 0));
    OK(status);
    FAILS(ENOSYS, syscall(SYS_io_uring_setup, 1, NULL));
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    vectors();
    sizes();
    copies();
    names();
    numbers();
    streams();
    return 0;
}
