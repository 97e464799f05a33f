#ifndef SAFELIGHT_CPROCESS_H
#define SAFELIGHT_CPROCESS_H

// What the house needs of Linux and Swift cannot call or cannot call safely: descriptors that cross a
// socket, a child that is limited before its first instruction, and a few calls which glibc hides from Swift.
//
// Every function returns -1 and sets errno where it fails, unless it says otherwise.

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

#include "Confinement.h"

/// The most descriptors that one message carries.
#define SAFELIGHT_MAX_DESCRIPTORS 16

/// A connected pair of unix stream sockets, closed on exec.
int safelight_socket_pair(int sockets[2]);

/// A pipe, to read from and to write to, closed on exec.
int safelight_pipe(int ends[2]);

/// Sends bytes with descriptors (SCM_RIGHTS); `count` may be 0. Returns the number of bytes taken, never raises SIGPIPE.
ssize_t safelight_send(int socket, const void *bytes, size_t length, const int *descriptors, size_t count);

/// Receives bytes, and the descriptors that came with them, closed on exec. `descriptors` has room for
/// SAFELIGHT_MAX_DESCRIPTORS; `count` is how many were received. Where the peer sent more than fit, all are closed and
/// errno is EPROTO.
ssize_t safelight_receive(int socket, void *bytes, size_t length, int *descriptors, size_t *count);

/// The process, user and group at the other end of a connected unix socket, as they were when it connected.
int safelight_peer_credentials(int socket, int32_t *process, uint32_t *user, uint32_t *group);

/// Limits of a process; 0 means "as the parent", except for `file_size_bytes` and `core_bytes`, which are taken as they are.
typedef struct safelight_limits {
    uint64_t memory_bytes;     // address space (RLIMIT_AS); not applied in builds with a sanitizer
    uint64_t cpu_seconds;      // RLIMIT_CPU, soft
    uint64_t cpu_seconds_hard; // RLIMIT_CPU, hard
    uint64_t open_files;       // RLIMIT_NOFILE
    uint64_t file_size_bytes;  // RLIMIT_FSIZE; UINT64_MAX is no limit
    uint64_t core_bytes;       // RLIMIT_CORE
} safelight_limits;

/// Applies the limits to the calling process.
int safelight_apply_limits(const safelight_limits *limits);

/// Sets the soft RLIMIT_CPU of a child, in seconds of its whole life.
int safelight_limit_cpu(pid_t process, uint64_t seconds);

/// Processor time a process has used, in nanoseconds.
int64_t safelight_cpu_nanoseconds(pid_t process);

/// The calling process and its descendants can never gain privileges by exec.
int safelight_no_new_privileges(void);

/// The calling process gets SIGKILL when the thread that started it ends.
int safelight_die_with_parent(void);

/// Starts `path` with `standard_input`, and `standard_output` as its output and errors; every other descriptor is
/// closed. The limits, no_new_privs and death with the calling *thread* hold before the program's first
/// instruction. Signal dispositions are reset, except that SIGPIPE and SIGXFSZ are ignored. Returns the process id.
pid_t safelight_spawn(
    const char *path, char *const arguments[], char *const environment[], int standard_input, int standard_output,
    const safelight_limits *limits);

/// Waits until a child has ended and takes its status; `signal` is 0 where it exited with `code`.
int safelight_wait(pid_t process, int *code, int *signal);

/// Waits at most `milliseconds` until a child has ended, without taking its status. 1 where it has, 0 where it has not or
/// where the system cannot tell.
int safelight_await_end(pid_t process, int milliseconds);

/// Takes an exclusive advisory lock on the file at `path` (created 0600), without waiting. Returns the open descriptor,
/// which holds the lock. Where another process holds it: errno EWOULDBLOCK and `holder` its process id, 0 if unknown.
int safelight_lock(const char *path, int32_t *holder);

/// Renames without replacing; errno EEXIST where the target exists.
int safelight_rename_exclusively(const char *from, const char *to);

/// Tells a file from every other one that has had its path: its inode, its birth in nanoseconds since 1970 (0 where the
/// filesystem keeps none), its device, and on Btrfs the subvolume, whose snapshots repeat inodes and births (elsewhere 0).
int safelight_file_birth(const char *path, uint64_t *inode, int64_t *birth, uint64_t *device, uint64_t *volume);

/// Opens below a folder without following a link out of it (openat2, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS).
int safelight_open_beneath(int folder, const char *path, int flags);

/// A counter that poll can wait for; closed on exec, not blocking.
int safelight_event(void);

/// Starts a detached thread named `name` (at most 15 bytes) with 1 MiB of stack.
int safelight_thread(const char *name, void (*body)(void *), void *context);

/// 1 in a build with the address or thread sanitizer.
int safelight_is_sanitized(void);

#endif
