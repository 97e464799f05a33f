#define _GNU_SOURCE
#include "CProcess.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

// MARK: - Landlock

// Defined here because the headers of Debian 12 lack access rights that newer kernels have.
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define RULESET_VERSION (1u << 0)
#define RULE_PATH_BENEATH 1
#define RIGHT_READ_FILE (1ull << 2)
#define RIGHT_READ_FOLDER (1ull << 3)

struct ruleset {
    uint64_t files;
    uint64_t network;
    uint64_t scopes;
};

struct path_rule {
    uint64_t rights;
    int32_t folder;
} __attribute__((packed));

int safelight_landlock_version(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

// Libraries load data when they first need it: coders, character tables, time zones. None of these paths contains user
// data.
static const char *const readable[] = {
    "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share",
    "/etc/ImageMagick-6", "/etc/ImageMagick-7", "/etc/ld.so.cache", "/etc/localtime",
    "/sys/devices/system/cpu", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
};

static int restrict_files(int version) {
    // Rights by ABI version: 13 in version 1, then moving (2), truncating (3) and ioctl on devices (5).
    uint64_t rights = (1ull << 13) - 1;
    if (version >= 2) rights |= 1ull << 13;
    if (version >= 3) rights |= 1ull << 14;
    if (version >= 5) rights |= 1ull << 15;
    struct ruleset handled = {
        .files = rights,
        .network = version >= 4 ? 3 : 0, // bind and connect of TCP
        .scopes = version >= 6 ? 3 : 0,  // abstract sockets, signals
    };
    size_t size = version >= 6 ? sizeof handled : version >= 4 ? 16 : 8;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
    if (rules < 0) return -1;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        int path = open(readable[i], O_PATH | O_CLOEXEC);
        if (path < 0) continue;
        struct stat status;
        int is_folder = fstat(path, &status) == 0 && S_ISDIR(status.st_mode);
        struct path_rule rule = {
            .rights = RIGHT_READ_FILE | (is_folder ? RIGHT_READ_FOLDER : 0), .folder = path};
        long added = syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0);
        int saved_errno = errno;
        close(path);
        if (added != 0) {
            close(rules);
            errno = saved_errno;
            return -1;
        }
    }
    long restricted = syscall(SYS_landlock_restrict_self, rules, 0);
    int saved_errno = errno;
    close(rules);
    errno = saved_errno;
    return restricted == 0 ? 0 : -1;
}

// MARK: - Seccomp

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define LOW(argument) (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (argument))
#define LOAD_LOW(argument) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(argument))
#define LOAD_HIGH(argument) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(argument) + 4)
#define IF(test, value, then, otherwise) BPF_JUMP(BPF_JMP | (test) | BPF_K, (uint32_t)(value), then, otherwise)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define CALL(name) IF(BPF_JEQ, SYS_##name, 0, 1), ALLOW
// Allows a call if an argument has the value.
#define CALL_WITH(name, argument, value) \
    IF(BPF_JEQ, SYS_##name, 0, 4), LOAD_LOW(argument), IF(BPF_JEQ, value, 0, 1), ALLOW, REFUSE(EPERM)
// Allows a call if none of the bits are set in an argument.
#define CALL_WITHOUT(name, argument, bits) \
    IF(BPF_JEQ, SYS_##name, 0, 4), LOAD_LOW(argument), IF(BPF_JSET, bits, 1, 0), ALLOW, REFUSE(EPERM)

// Calls from this number on return ENOSYS, so that libraries fall back to older ones: their arguments are in memory,
// which a filter cannot read (clone3, openat2), or they belong to io_uring.
#define FIRST_NEW_CALL 425
#define NEW_PROCESS (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

static int filter_calls(void) {
    const uint32_t self = (uint32_t)getpid();
    struct sock_filter program[] = {
        LOAD(arch),
        IF(BPF_JEQ, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),

        // The job's files, the socket for jobs, and the log.
        CALL(read), CALL(readv), CALL(pread64), CALL(preadv), CALL(write), CALL(writev), CALL(close), CALL(lseek),
        CALL(fstat), CALL(newfstatat), CALL(statx), CALL(fadvise64), CALL(getdents64), CALL(dup), CALL(dup3),
        CALL(pipe2), CALL(eventfd2), CALL(ppoll), CALL(pselect6), CALL(epoll_create1), CALL(epoll_ctl),
        CALL(epoll_pwait), CALL(timerfd_create), CALL(timerfd_settime), CALL(readlinkat), CALL(faccessat),
        CALL(getcwd),
        CALL_WITH(recvmsg, 0, 0), CALL_WITH(sendmsg, 0, 0),
        CALL_WITHOUT(openat, 2, WRITING),
        // All commands but those by which a descriptor sends signals to a process of the user.
        IF(BPF_JEQ, SYS_fcntl, 0, 6), LOAD_LOW(1), IF(BPF_JEQ, F_SETOWN, 2, 0), IF(BPF_JEQ, F_SETSIG, 1, 0),
        IF(BPF_JEQ, F_SETOWN_EX, 0, 1), REFUSE(EPERM), ALLOW,
#ifdef __x86_64__
        CALL(stat), CALL(lstat), CALL(access), CALL(readlink), CALL(poll), CALL(select), CALL(dup2), CALL(pipe),
        CALL(epoll_wait), CALL(time), CALL(getrlimit), CALL(arch_prctl),
        CALL_WITHOUT(open, 1, WRITING),
#endif
        // Memory.
        CALL(brk), CALL(mmap), CALL(munmap), CALL(mremap), CALL(mprotect), CALL(madvise), CALL(mincore),
        // Threads, but no processes.
        CALL(futex), CALL(set_robust_list), CALL(get_robust_list), CALL(rseq), CALL(set_tid_address), CALL(gettid),
        CALL(sched_yield), CALL(sched_getaffinity), CALL(sched_getparam), CALL(sched_getscheduler),
        CALL(sched_get_priority_max), CALL(getcpu), CALL(sched_get_priority_min), CALL(membarrier), CALL(exit), CALL(exit_group),
        CALL(getpriority), CALL(restart_syscall),
        // The priority of the calling thread only, which nice() lowers.
        IF(BPF_JEQ, SYS_setpriority, 0, 6), LOAD_LOW(0), IF(BPF_JEQ, PRIO_PROCESS, 0, 3), LOAD_LOW(1),
        IF(BPF_JEQ, 0, 0, 1), ALLOW, REFUSE(EPERM),
        IF(BPF_JEQ, SYS_clone, 0, 5), LOAD_LOW(0), IF(BPF_JSET, NEW_PROCESS, 2, 0), IF(BPF_JSET, CLONE_THREAD, 0, 1),
        ALLOW, REFUSE(EPERM),
        // Signals to the process itself, which abort() sends.
        CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigsuspend), CALL(sigaltstack),
        CALL_WITH(tgkill, 0, self),
        // Time, process and user ids, system information.
        CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday),
        CALL(times), CALL(getrusage), CALL(getrandom), CALL(uname), CALL(sysinfo), CALL(getpid), CALL(getppid),
        CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid),
        CALL_WITH(prctl, 0, PR_SET_NAME),
        // Reading limits only: the pointer to new limits is null.
        IF(BPF_JEQ, SYS_prlimit64, 0, 6), LOAD_LOW(2), IF(BPF_JEQ, 0, 0, 3), LOAD_HIGH(2), IF(BPF_JEQ, 0, 0, 1), ALLOW,
        REFUSE(EPERM),
        // The ioctls that test for a terminal and return the number of readable bytes.
        IF(BPF_JEQ, SYS_ioctl, 0, 5), LOAD_LOW(1), IF(BPF_JEQ, TCGETS, 1, 0), IF(BPF_JEQ, FIONREAD, 0, 1), ALLOW,
        REFUSE(ENOTTY),

        IF(BPF_JGE, FIRST_NEW_CALL, 0, 1), REFUSE(ENOSYS),
        REFUSE(EPERM),
    };
    struct sock_fprog filter = {.len = sizeof program / sizeof *program, .filter = program};
    // TSYNC applies the filter to all threads, in case there is more than one.
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0 ? 1 : -1;
}

#else
static int filter_calls(void) { return 0; }
#endif

// MARK: - Confining

// Root has all capabilities. Without any, uid 0 is an ordinary user, who can still read root's files.
static int drop_capabilities(void) {
    for (int capability = 0; capability < 64; capability++) {
        // Dropping from the bounding set fails without CAP_SETPCAP; no_new_privs makes the set useless then.
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno == EINVAL) break;
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) return -1;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return (int)syscall(SYS_capset, &header, none);
}

// Landlock restricts the calling thread and threads that it starts later, so there must be no other.
static int is_single_threaded(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return 0;
    int count = 0;
    for (struct dirent *task; (task = readdir(tasks));) count += task->d_name[0] != '.';
    closedir(tasks);
    return count == 1;
}

int safelight_confine(safelight_confinement *confinement) {
    *confinement = (safelight_confinement){0};
    // Sanitizers have their own threads, read /proc and open their log late.
    if (safelight_is_sanitized()) return 0;
    if (!is_single_threaded()) {
        errno = EBUSY;
        return -1;
    }
    if (drop_capabilities() != 0 || safelight_no_new_privileges() != 0) return -1;
    struct rlimit nothing = {0};
    if (setrlimit(RLIMIT_FSIZE, &nothing) != 0) return -1;
    confinement->landlock = safelight_landlock_version();
    if (confinement->landlock > 0 && restrict_files(confinement->landlock) != 0) return -1;
    int filtered = filter_calls();
    // A kernel built without seccomp returns these errors.
    if (filtered < 0 && errno != ENOSYS && errno != EINVAL) return -1;
    confinement->seccomp = filtered > 0;
    return 0;
}

// MARK: - Attempts

// Closes a descriptor, if a call has returned one, and returns the result of the call.
static long close_result(long descriptor) {
    if (descriptor >= 0) close((int)descriptor);
    return descriptor;
}

static long try_read(const char *path) { return close_result(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); }
static long try_list(const char *path) { return close_result(open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)); }
static long try_write(const char *path) { return close_result(open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK)); }

// The attempts leave their objects unchanged if they succeed.
static long try_mode(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return -1;
    return chmod(path, status.st_mode & 07777);
}

static long try_create(const char *path) {
    char name[4096];
    if (snprintf(name, sizeof name, "%s.attempt", path) >= (int)sizeof name) return 0;
    long file = close_result(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file >= 0) unlink(name);
    return file;
}

static long try_connect(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (file < 0) return -1;
    long connected = connect(file, (struct sockaddr *)&address, sizeof address);
    int saved_errno = errno;
    close(file);
    errno = saved_errno;
    return connected;
}

static long try_socket(const char *path) {
    (void)path;
    return close_result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static long try_datagram(const char *path) {
    (void)path;
    return close_result(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static long try_program(const char *path) {
    (void)path;
    char *const arguments[] = {"true", NULL};
    return execve("/bin/true", arguments, NULL);
}

static long try_process(const char *path) {
    (void)path;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
    return child;
}

static long try_trace(const char *path) {
    (void)path;
    long traced = ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
    if (traced == 0) ptrace(PTRACE_DETACH, getppid(), NULL, NULL);
    return traced;
}

static long try_memory(const char *path) {
    (void)path;
    char byte;
    struct iovec mine = {&byte, 1}, theirs = {(void *)(uintptr_t)try_memory, 1};
    return process_vm_readv(getppid(), &mine, 1, &theirs, 1, 0);
}

static long try_signal(const char *path) {
    (void)path;
    return kill(getppid(), 0);
}

// Without O_ASYNC, no event of the pipe sends the signal.
static long try_descriptor_signal(const char *path) {
    (void)path;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    long owned = fcntl(ends[0], F_SETOWN, getppid());
    int saved_errno = errno;
    close(ends[0]);
    close(ends[1]);
    errno = saved_errno;
    return owned;
}

static long try_priority(const char *path) {
    (void)path;
    return setpriority(PRIO_PROCESS, (id_t)getppid(), getpriority(PRIO_PROCESS, (id_t)getppid()));
}

static long try_namespace(const char *path) {
    (void)path;
    return unshare(CLONE_NEWUSER);
}

static long try_mount(const char *path) {
    (void)path;
    // The path does not exist: with the right to mount, the error is different.
    return mount("none", "/safelight-attempt", "tmpfs", 0, NULL);
}

static long try_ring(const char *path) {
    (void)path;
    char parameters[256] = {0};
    return close_result(syscall(SYS_io_uring_setup, 1, parameters));
}

static long try_bpf(const char *path) {
    (void)path;
    char attributes[128] = {0};
    return close_result(syscall(SYS_bpf, 0, attributes, sizeof attributes));
}

static long try_faults(const char *path) {
    (void)path;
    return close_result(syscall(SYS_userfaultfd, 0));
}

static long try_keyring(const char *path) {
    (void)path;
    return syscall(SYS_keyctl, 0, -3, 1);
}

static long try_memory_file(const char *path) {
    (void)path;
    return close_result(memfd_create("attempt", MFD_CLOEXEC));
}

static long try_capability(const char *path) {
    (void)path;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3] = {{1, 1, 1}, {0}};
    return syscall(SYS_capset, &header, all);
}

// A decoder that leaves a part of its buffer unwritten would return freed memory.
static long try_freed_memory(const char *path) {
    (void)path;
    const size_t count = 64 << 10;
    volatile unsigned char *block = malloc(count);
    if (!block) return -1;
    for (size_t i = 0; i < count; i++) block[i] = 0xA5;
    free((void *)block);
    block = malloc(count);
    if (!block) return -1;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += block[i] == 0xA5;
    free((void *)block);
    return found > 0 ? 0 : -1;
}

static const safelight_attempt attempts[] = {
    {"read a file", 1, try_read},
    {"list a folder", 1, try_list},
    {"write to a file", 1, try_write},
    {"create a file", 1, try_create},
    {"change a file's mode", 1, try_mode},
    {"connect to a socket file", 1, try_connect},
    {"open a TCP socket", 0, try_socket},
    {"open a datagram socket", 0, try_datagram},
    {"run a program", 0, try_program},
    {"start a process", 0, try_process},
    {"trace a process", 0, try_trace},
    {"read another process's memory", 0, try_memory},
    {"send a signal", 0, try_signal},
    {"send a signal by a descriptor", 0, try_descriptor_signal},
    {"slow another process", 0, try_priority},
    {"make a namespace", 0, try_namespace},
    {"mount", 0, try_mount},
    {"use io_uring", 0, try_ring},
    {"use bpf", 0, try_bpf},
    {"use userfaultfd", 0, try_faults},
    {"use a keyring", 0, try_keyring},
    {"create a memory file", 0, try_memory_file},
    {"gain a capability", 0, try_capability},
    {"read freed memory", 0, try_freed_memory},
};

const safelight_attempt *safelight_attempts(size_t *count) {
    *count = sizeof attempts / sizeof *attempts;
    return attempts;
}

int safelight_try(const safelight_attempt *attempt, const char *path) {
    errno = 0;
    if (attempt->run(path) >= 0) return 0;
    return errno == 0 ? EPERM : errno;
}
