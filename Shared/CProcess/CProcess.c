#define _GNU_SOURCE
#include "CProcess.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/magic.h>
#include <linux/openat2.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

// MARK: - Sockets

int safelight_socket_pair(int sockets[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
}

int safelight_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

union control {
    char bytes[CMSG_SPACE(sizeof(int) * SAFELIGHT_MAX_DESCRIPTORS)];
    struct cmsghdr align;
};

ssize_t safelight_send(int socket, const void *bytes, size_t length, const int *descriptors, size_t count) {
    if (count > SAFELIGHT_MAX_DESCRIPTORS) {
        errno = E2BIG;
        return -1;
    }
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control control;
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
    }
    ssize_t sent;
    do { sent = sendmsg(socket, &message, MSG_NOSIGNAL); } while (sent < 0 && errno == EINTR);
    return sent;
}

ssize_t safelight_receive(int socket, void *bytes, size_t length, int *descriptors, size_t *count) {
    struct iovec part = {.iov_base = bytes, .iov_len = length};
    union control control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    *count = 0;
    ssize_t received;
    do { received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC); } while (received < 0 && errno == EINTR);
    if (received < 0) return -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t arrived = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < arrived; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
            if (*count < SAFELIGHT_MAX_DESCRIPTORS) descriptors[(*count)++] = descriptor;
            else close(descriptor);
        }
    }
    if (message.msg_flags & MSG_CTRUNC) {
        for (size_t i = 0; i < *count; i++) close(descriptors[i]);
        *count = 0;
        errno = EPROTO;
        return -1;
    }
    return received;
}

int safelight_peer_credentials(int socket, int32_t *process, uint32_t *user, uint32_t *group) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
    *process = peer.pid;
    *user = peer.uid;
    *group = peer.gid;
    return 0;
}

// MARK: - Limits

int safelight_is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 1;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return 1;
#else
    return 0;
#endif
#else
    return 0;
#endif
}

// Never exceeds the current hard limit: an unprivileged process may only lower it.
static int lower(int resource, uint64_t soft, uint64_t hard) {
    struct rlimit now;
    if (getrlimit(resource, &now) != 0) return -1;
    struct rlimit limit = {.rlim_cur = (rlim_t)soft, .rlim_max = (rlim_t)hard};
    if (limit.rlim_max > now.rlim_max) limit.rlim_max = now.rlim_max;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    return setrlimit(resource, &limit);
}

int safelight_apply_limits(const safelight_limits *limits) {
    // Sanitizers reserve terabytes of address space for shadow memory.
    if (limits->memory_bytes && !safelight_is_sanitized()
        && lower(RLIMIT_AS, limits->memory_bytes, limits->memory_bytes) != 0) return -1;
    if (limits->cpu_seconds && lower(RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds_hard) != 0) return -1;
    if (limits->open_files && lower(RLIMIT_NOFILE, limits->open_files, limits->open_files) != 0) return -1;
    if (lower(RLIMIT_FSIZE, limits->file_size_bytes, limits->file_size_bytes) != 0) return -1;
    return lower(RLIMIT_CORE, limits->core_bytes, limits->core_bytes);
}

int safelight_limit_cpu(pid_t process, uint64_t seconds) {
    struct rlimit now;
    if (prlimit(process, RLIMIT_CPU, NULL, &now) != 0) return -1;
    now.rlim_cur = (rlim_t)seconds < now.rlim_max ? (rlim_t)seconds : now.rlim_max;
    return prlimit(process, RLIMIT_CPU, &now, NULL);
}

int64_t safelight_cpu_nanoseconds(pid_t process) {
    clockid_t clock;
    struct timespec used;
    int problem = clock_getcpuclockid(process, &clock);
    if (problem != 0) {
        errno = problem;
        return -1;
    }
    if (clock_gettime(clock, &used) != 0) return -1;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

int safelight_no_new_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

int safelight_die_with_parent(void) { return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

// MARK: - Children

// Runs between fork and exec: async-signal-safe calls only.
static void exec_program(
    const char *path, char *const arguments[], char *const environment[], int input, int output,
    const safelight_limits *limits, pid_t parent, int report) {
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigset_t none;
    for (int number = 1; number < NSIG; number++) sigaction(number, &by_default, NULL);
    sigaction(SIGPIPE, &ignored, NULL);
    // A write beyond RLIMIT_FSIZE must fail with an error instead of ending the worker.
    sigaction(SIGXFSZ, &ignored, NULL);
    sigemptyset(&none);

    if (safelight_die_with_parent() != 0 || safelight_no_new_privileges() != 0) goto failed;
    // The parent may have ended before the death signal was set.
    if (getppid() != parent) _exit(127);
    // Move the three descriptors above 2 first, in case one of them is 0, 1 or 2.
    if ((input = fcntl(input, F_DUPFD, 3)) < 0 || (output = fcntl(output, F_DUPFD, 3)) < 0
        || (report = fcntl(report, F_DUPFD, 3)) < 0) goto failed;
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || dup2(report, 3) < 0) goto failed;
    report = 3;
    fcntl(report, F_SETFD, FD_CLOEXEC);
    if (syscall(SYS_close_range, 4u, ~0u, 0u) != 0) {
        struct rlimit open_files;
        int last = getrlimit(RLIMIT_NOFILE, &open_files) == 0 && open_files.rlim_cur < 65536
            ? (int)open_files.rlim_cur : 65536;
        for (int descriptor = 4; descriptor < last; descriptor++) close(descriptor);
    }
    setsid();
    if (safelight_apply_limits(limits) != 0) goto failed;
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(path, arguments, environment);
failed:;
    int problem = errno;
    ssize_t ignored_count = write(report, &problem, sizeof problem);
    (void)ignored_count;
    _exit(127);
}

pid_t safelight_spawn(
    const char *path, char *const arguments[], char *const environment[], int standard_input, int standard_output,
    const safelight_limits *limits) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) return -1;
    sigset_t all, before;
    sigfillset(&all);
    // Blocks all signals, so that no handler of the parent runs in the child before its dispositions are reset.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0)
        exec_program(path, arguments, environment, standard_input, standard_output, limits, parent, report[1]);
    int problem = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (child < 0) {
        close(report[0]);
        errno = problem;
        return -1;
    }
    // The write end is closed on exec: end of file means that the program runs.
    ssize_t count;
    do { count = read(report[0], &problem, sizeof problem); } while (count < 0 && errno == EINTR);
    close(report[0]);
    if (count == (ssize_t)sizeof problem) {
        int code, signal;
        safelight_wait(child, &code, &signal);
        errno = problem;
        return -1;
    }
    return child;
}

int safelight_wait(pid_t process, int *code, int *signal) {
    int status;
    pid_t ended;
    do { ended = waitpid(process, &status, 0); } while (ended < 0 && errno == EINTR);
    if (ended < 0) return -1;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return 0;
}

int safelight_await_end(pid_t process, int milliseconds) {
    int file = (int)syscall(SYS_pidfd_open, process, 0u);
    if (file < 0) return 0;
    struct pollfd polled = {.fd = file, .events = POLLIN};
    int ready = poll(&polled, 1, milliseconds);
    close(file);
    return ready > 0;
}

// MARK: - Files

int safelight_lock(const char *path, int32_t *holder) {
    *holder = 0;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return -1;
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        int problem = errno;
        char text[16] = {0};
        if (pread(file, text, sizeof text - 1, 0) > 0) *holder = (int32_t)strtol(text, NULL, 10);
        close(file);
        errno = problem;
        return -1;
    }
    char text[16];
    int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    // The process id is for error messages; the lock works without it, for example on a full disk.
    if (ftruncate(file, 0) == 0 && pwrite(file, text, (size_t)length, 0) < 0) errno = 0;
    return file;
}

int safelight_rename_exclusively(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    // The filesystem does not support the flag; link does not replace a file either.
    if (link(from, to) != 0) return -1;
    return unlink(from);
}

void safelight_return_freed_memory(void) { malloc_trim(0); }

// Freed blocks are filled with the byte, and allocated ones with its complement.
void safelight_clear_blocks(void) { mallopt(M_PERTURB, 0xFF); }

int safelight_sync_filesystem(int file) { return syncfs(file); }

int safelight_file_birth(const char *path, uint64_t *inode, int64_t *birth, uint64_t *device, uint64_t *volume) {
    struct statx status;
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &status) != 0) return -1;
    *inode = status.stx_ino;
    *birth = 0;
    if (status.stx_mask & STATX_BTIME)
        *birth = (int64_t)((uint64_t)status.stx_btime.tv_sec * 1000000000u + status.stx_btime.tv_nsec);
    *device = makedev(status.stx_dev_major, status.stx_dev_minor);
    *volume = 0;
    struct statfs filesystem;
    if (statfs(path, &filesystem) == 0 && filesystem.f_type == BTRFS_SUPER_MAGIC)
        memcpy(volume, &filesystem.f_fsid, sizeof *volume);
    return 0;
}

int safelight_open_beneath(int folder, const char *path, int flags) {
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int file;
    do { file = (int)syscall(SYS_openat2, folder, path, &how, sizeof how); } while (file < 0 && errno == EINTR);
    return file;
}

// MARK: - Threads

struct thread_start {
    void (*body)(void *);
    void *context;
    char name[16];
};

static void *thread_main(void *argument) {
    struct thread_start start = *(struct thread_start *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), start.name);
    start.body(start.context);
    return NULL;
}

int safelight_thread(const char *name, void (*body)(void *), void *context) {
    struct thread_start *start = calloc(1, sizeof *start);
    if (!start) return -1;
    start->body = body;
    start->context = context;
    strncpy(start->name, name, sizeof start->name - 1);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    int problem = pthread_create(&thread, &attributes, thread_main, start);
    pthread_attr_destroy(&attributes);
    if (problem != 0) {
        free(start);
        errno = problem;
        return -1;
    }
    return 0;
}
