#ifndef SAFELIGHT_CPROCESS_H
#define SAFELIGHT_CPROCESS_H

// Linux functions that Swift cannot call, or cannot call safely: passing descriptors over a socket, starting a child
// with limits that apply before its first instruction, and calls that glibc's headers hide from Swift.
//
// Unless stated otherwise, functions return -1 and set errno on failure.

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

#include "Confinement.h"

/// The maximum number of descriptors in one message.
#define SAFELIGHT_MAX_DESCRIPTORS 16

/// Makes a connected pair of unix stream sockets with close-on-exec.
int safelight_socket_pair(int sockets[2]);

/// Makes a pipe with close-on-exec: `ends[0]` is for reading, `ends[1]` for writing.
int safelight_pipe(int ends[2]);

/// Sends bytes with descriptors (SCM_RIGHTS); `count` may be 0. Returns the number of bytes sent; never raises SIGPIPE.
ssize_t safelight_send(int socket, const void *bytes, size_t length, const int *descriptors, size_t count);

/// Receives bytes, and the descriptors sent with them, with close-on-exec. `descriptors` has space for
/// SAFELIGHT_MAX_DESCRIPTORS; `count` is set to the number received. If the peer sent more, all are closed and errno is
/// EPROTO.
ssize_t safelight_receive(int socket, void *bytes, size_t length, int *descriptors, size_t *count);

/// Returns the process, user and group of the peer of a connected unix socket, at the time it connected.
int safelight_peer_credentials(int socket, int32_t *process, uint32_t *user, uint32_t *group);

/// Limits of a process. 0 keeps the parent's limit, except for `file_size_bytes` and `core_bytes`, which always apply.
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

/// Sets the soft RLIMIT_CPU of a child, in seconds since its start.
int safelight_limit_cpu(pid_t process, uint64_t seconds);

/// Returns the CPU time used by a process, in nanoseconds.
int64_t safelight_cpu_nanoseconds(pid_t process);

/// Prevents the calling process and its descendants from gaining privileges by exec (PR_SET_NO_NEW_PRIVS).
int safelight_no_new_privileges(void);

/// Makes the kernel send SIGKILL to the calling process when the thread that started it ends (PR_SET_PDEATHSIG).
int safelight_die_with_parent(void);

/// Starts `path` with the given standard input; `standard_output` becomes its output and errors. All other descriptors
/// are closed. The limits, no_new_privs and the death signal of the calling *thread* apply before the program's first
/// instruction. Signal dispositions are reset, except that SIGPIPE and SIGXFSZ are ignored. Returns the process id.
pid_t safelight_spawn(
    const char *path, char *const arguments[], char *const environment[], int standard_input, int standard_output,
    const safelight_limits *limits);

/// Waits until a child has ended and reaps it; `signal` is 0 if it exited with `code`.
int safelight_wait(pid_t process, int *code, int *signal);

/// Waits at most `milliseconds` until a child has ended, without reaping it. Returns 1 if it has ended, 0 if it has not
/// or if the system cannot report it.
int safelight_await_end(pid_t process, int milliseconds);

/// Acquires an exclusive advisory lock on the file at `path` (created 0600), without waiting. Returns the open
/// descriptor, which holds the lock. If another process holds it, errno is EWOULDBLOCK and `holder` its process id, or
/// 0 if unknown.
int safelight_lock(const char *path, int32_t *holder);

/// Renames without replacing; errno is EEXIST if the target exists.
int safelight_rename_exclusively(const char *from, const char *to);

/// Calls malloc_trim(3): returns the freed memory of this process to the system.
void safelight_return_freed_memory(void);

/// Makes malloc fill blocks with zeros from now on, and free overwrite them; some blocks of at most 1 KiB are left out.
void safelight_clear_blocks(void);

/// Calls syncfs(2), which Swift's Glibc does not have.
int safelight_sync_filesystem(int file);

/// Returns the identity of a file, which differs from that of any other file with the same path: its inode, its birth
/// time in nanoseconds since 1970 (0 if the filesystem has none), its device, and on Btrfs the subvolume, because
/// snapshots repeat inodes and birth times (0 on other filesystems).
int safelight_file_birth(const char *path, uint64_t *inode, int64_t *birth, uint64_t *device, uint64_t *volume);

/// Opens a path below a folder without leaving it through links or `..` (openat2, RESOLVE_BENEATH |
/// RESOLVE_NO_MAGICLINKS).
int safelight_open_beneath(int folder, const char *path, int flags);

/// Starts a detached thread named `name` (at most 15 bytes) with a stack of 1 MiB.
int safelight_thread(const char *name, void (*body)(void *), void *context);

/// Returns 1 in a build with the address or thread sanitizer, otherwise 0.
int safelight_is_sanitized(void);

#endif
