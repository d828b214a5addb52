/* Counts the durable steps of a process under one directory, and makes one of them go wrong.
 *
 * A durable step is a system call that changes what a later process finds on the disk, or that waits for the
 * disk. The kernel hands such calls to us as a signal (a seccomp filter that traps), rather than the linker
 * (LD_PRELOAD): it sees those that are made without the C library too, such as the rename of safetensors, and
 * those that the C library makes by itself. What is written through a memory map is not seen.
 *
 * Arm it in a fork of its own: the filter stays until the process ends, and a program that the process
 * starts would be ended by its first step. Linux on x86-64 and arm64.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum mode { COUNT, KILL, TEAR, FAIL, SHORT, FULL }; /* in the order of MODES in zygote.py */
enum verdict { GO, DONE, REFUSE, HALF };
enum need { NO_SPACE, SYNC, SPACE, CONTENT }; /* A full disk refuses SPACE and CONTENT. */

/* A call and which of its arguments says what; NONE where it has no such argument. */
enum { NONE = -1, FLAGS = -2, VECTOR = -3 };
static const struct call {
    long number;
    const char *name;
    enum need need;
    int fd, path, size, to_fd, to_path; /* Without a path, fd is the file; with one, where the path starts. */
} calls[] = {
    {SYS_write, "write", CONTENT, 0, NONE, 2, NONE, NONE},
    {SYS_pwrite64, "pwrite", CONTENT, 0, NONE, 2, NONE, NONE},
    {SYS_writev, "writev", CONTENT, 0, NONE, VECTOR, NONE, NONE},
    {SYS_pwritev, "writev", CONTENT, 0, NONE, VECTOR, NONE, NONE},
    {SYS_sendfile, "sendfile", CONTENT, 0, NONE, 3, NONE, NONE},
    {SYS_fallocate, "fallocate", SPACE, 0, NONE, 3, NONE, NONE},
    {SYS_ftruncate, "ftruncate", NO_SPACE, 0, NONE, 1, NONE, NONE},
    {SYS_fsync, "fsync", SYNC, 0, NONE, NONE, NONE, NONE},
    {SYS_fdatasync, "fdatasync", SYNC, 0, NONE, NONE, NONE, NONE},
    {SYS_openat, "open", NO_SPACE, 0, 1, FLAGS, NONE, NONE},
    {SYS_mkdirat, "mkdir", SPACE, 0, 1, NONE, NONE, NONE},
    {SYS_symlinkat, "symlink", SPACE, 1, 2, NONE, NONE, NONE},
    {SYS_unlinkat, "unlink", NO_SPACE, 0, 1, NONE, NONE, NONE},
    {SYS_truncate, "truncate", NO_SPACE, NONE, 0, 1, NONE, NONE},
    {SYS_linkat, "link", SPACE, 0, 1, NONE, 2, 3},
    {SYS_renameat2, "rename", NO_SPACE, 0, 1, NONE, 2, 3},
#ifdef SYS_renameat
    {SYS_renameat, "rename", NO_SPACE, 0, 1, NONE, 2, 3},
#endif
#ifdef SYS_open /* x86-64 has the calls of old too. */
    {SYS_open, "open", NO_SPACE, NONE, 0, FLAGS, NONE, NONE},
    {SYS_mkdir, "mkdir", SPACE, NONE, 0, NONE, NONE, NONE},
    {SYS_symlink, "symlink", SPACE, NONE, 1, NONE, NONE, NONE},
    {SYS_unlink, "unlink", NO_SPACE, NONE, 0, NONE, NONE, NONE},
    {SYS_rmdir, "unlink", NO_SPACE, NONE, 0, NONE, NONE, NONE},
    {SYS_link, "link", SPACE, NONE, 0, NONE, NONE, 1},
    {SYS_rename, "rename", NO_SPACE, NONE, 0, NONE, NONE, 1},
#endif
};
/* Answered as by an old kernel, so that one of the calls above is used instead. */
static const int unknown[] = {SYS_copy_file_range, SYS_pwritev2, SYS_openat2, SYS_splice, SYS_io_uring_setup};
enum { CALLS = sizeof calls / sizeof *calls, UNKNOWN = sizeof unknown / sizeof *unknown };

/* None of the calls has a sixth argument: with this one they are ours, and pass the filter. */
#define OURS 0x5afe0b57
#define PASS(number, a) syscall(number, (a)[0], (a)[1], (a)[2], (a)[3], (a)[4], OURS)

/* Shared with forks, so that the parent of a killed process can read how far it got. */
static struct {
    atomic_long count, used;
    char trace[1 << 20];
} *shared;

static atomic_int armed;
static char prefix[PATH_MAX];
static long prefix_length, nth;
static int mode, fault; /* an enum mode, an errno */

__attribute__((constructor)) static void start(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
}

static void die(void)
{
    for (;;) /* Nothing may happen until the signal arrives. */
        syscall(SYS_kill, getpid(), SIGKILL);
}

static const char *below(const char *path) /* NULL if `path` is not in the armed directory */
{
    const char *rest = path + prefix_length;
    return strncmp(path, prefix, prefix_length) ? NULL : *rest == '/' ? rest + 1 : *rest ? NULL : ".";
}

/* The path of what a call names, as it names it: the armed directory is one without links in its path. */
static void resolve(int fd, const char *name, char *path)
{
    char link[32] = "/proc/self/cwd";
    ssize_t length = 0;
    if (fd != AT_FDCWD)
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (!name || *name != '/')
        length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    if (name)
        snprintf(path + strlen(path), PATH_MAX - strlen(path), *name == '/' ? "%s" : "/%s", name);
}

/* Count a call that concerns `path`, and say how it is to go. `other`: a rename's or link's second path. */
static enum verdict step(const char *call, const char *path, const char *other, long bytes, enum need need)
{
    const char *here = below(path), *there = other ? below(other) : NULL;
    if (!here && !there)
        return GO;
    long number = atomic_fetch_add(&shared->count, 1) + 1;
    char line[2 * PATH_MAX + 64], size[32];
    snprintf(size, sizeof size, "%ld", bytes);
    const char *detail = !other ? size : there ? there : other;
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", call, here ? here : path, detail);
    long at = atomic_fetch_add(&shared->used, length);
    if (at + length < (long)sizeof shared->trace)
        memcpy(shared->trace + at, line, length);
    if (number == nth && mode == KILL)
        die();
    if (number == nth && need == CONTENT && (mode == TEAR || (mode >= SHORT && bytes > 1)))
        return HALF;
    if ((number == nth && mode == FAIL) || (number >= nth && mode == FULL && need >= SPACE))
        return REFUSE;
    return need == SYNC ? DONE : GO; /* What is written outlives a kill: no need to wait for the disk. */
}

static struct iovec *first_of(const struct iovec *parts, long count, size_t bytes, struct iovec *held)
{
    for (long part = 0; part < count && part < IOV_MAX; bytes -= held[part++].iov_len) {
        held[part] = parts[part];
        if (held[part].iov_len > bytes)
            held[part].iov_len = bytes;
    }
    return held;
}

/* Make the call with the arguments `a` as it is to go; its result, or -1 and errno. */
static long make(const struct call *call, long *a)
{
    char path[PATH_MAX], other[PATH_MAX];
    const char *name = call->name, *file = call->path == NONE ? NULL : (char *)a[call->path];
    int fd = call->fd == NONE ? AT_FDCWD : (int)a[call->fd];
    enum need need = call->need;
    long bytes = call->size >= 0 ? a[call->size] : 0;
    for (long part = 0; call->size == VECTOR && part < a[2]; part++)
        bytes += ((struct iovec *)a[1])[part].iov_len;
    if (call->size == FLAGS) { /* A full disk lets a file that is there be opened. */
        long flags = a[call->path + 1];
        if (!(flags & (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))))
            return PASS(call->number, a);
        if ((flags & O_TMPFILE) == O_TMPFILE || (flags & O_CREAT && faccessat(fd, file, F_OK, 0)))
            name = "create", need = SPACE;
        else if (flags & O_TRUNC)
            name = "open-truncate";
    }
    if (need == CONTENT && bytes == 0)
        need = NO_SPACE; /* No disk is too full for nothing. */
    resolve(fd, file, path);
    if (call->to_path != NONE)
        resolve(call->to_fd == NONE ? AT_FDCWD : (int)a[call->to_fd], (char *)a[call->to_path], other);
    enum verdict how = step(name, path, call->to_path == NONE ? NULL : other, bytes, need);
    if (how == DONE || how == REFUSE)
        return how == DONE ? 0 : (errno = fault, -1);
    if (how == HALF && call->size >= 0)
        a[call->size] /= 2;
    struct iovec held[IOV_MAX];
    if (how == HALF && call->size == VECTOR)
        a[1] = (long)first_of((void *)a[1], a[2], bytes / 2, held);
    long result = PASS(call->number, a);
    if (how == HALF && mode == TEAR)
        die();
    return result; /* After half of a write SHORT and FULL go on: the disk took a part, and says so. */
}

static void on_call(int signal, siginfo_t *info, void *context)
{
    int before = errno;
#ifdef __x86_64__
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs, *answer = &r[REG_RAX];
    long a[5] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8]};
#else
    unsigned long long *r = ((ucontext_t *)context)->uc_mcontext.regs, *answer = &r[0];
    long a[5] = {r[0], r[1], r[2], r[3], r[4]};
#endif
    const struct call *call = calls;
    while (call->number != info->si_syscall)
        call++;
    long result = atomic_load(&armed) ? make(call, a) : PASS(call->number, a);
    *answer = result == -1 ? -errno : result;
    errno = before;
    (void)signal;
}

static int filter(void)
{
    struct sock_filter program[8 + 2 * (CALLS + UNKNOWN)], *next = program;
#define SAY(...) *next++ = (struct sock_filter)__VA_ARGS__
    SAY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])));
    SAY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OURS, 0, 1));
    SAY(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    SAY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (int row = 0; row < UNKNOWN; row++) {
        SAY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unknown[row], 0, 1));
        SAY(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    }
    for (int row = 0; row < CALLS; row++) {
        SAY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[row].number, 0, 1));
        SAY(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    }
    SAY(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog whole = {next - program, program};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    return sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
           || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole);
}

void faults_disarm(void) { atomic_store(&armed, 0); }
long faults_count(void) { return atomic_load(&shared->count); }
/* One line a step: call, path below the directory, detail; NULL if it grew too long to be kept. */
const char *faults_trace(void) { return shared->used < (long)sizeof shared->trace ? shared->trace : NULL; }

/* From now on step number `number` under `directory` goes wrong; once a process. 0, or -1 and errno. */
int faults_arm(const char *directory, long number, int how, int error)
{
    if (!realpath(directory, prefix))
        return -1;
    prefix_length = strlen(prefix);
    nth = number, mode = how, fault = error;
    memset(shared, 0, sizeof *shared);
    atomic_store(&armed, 1);
    return filter() ? -1 : 0;
}
