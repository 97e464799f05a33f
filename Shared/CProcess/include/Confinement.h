#ifndef SAFELIGHT_CONFINEMENT_H
#define SAFELIGHT_CONFINEMENT_H

#include <stddef.h>

// The confinement of a worker process before it opens untrusted bytes.

/// The protections that are in force.
typedef struct safelight_confinement {
    int landlock; // the Landlock ABI version; 0 if the kernel does not have or allow it
    int seccomp;  // 1 if the system call filter is installed
} safelight_confinement;

/// Returns the Landlock ABI version of the kernel; 0 for none.
int safelight_landlock_version(void);

/// Confines the calling process permanently: no capabilities, no files except those already open and the system's
/// libraries and their data, no new sockets, no exec, no new processes, no access to other processes.
///
/// The process must be single-threaded; errno is EBUSY otherwise. Returns -1 if a protection failed that the kernel
/// offers. In builds with a sanitizer nothing is confined.
int safelight_confine(safelight_confinement *confinement);

/// An operation that must fail in a confined process, for tests; `path` is its object if it needs one. An operation
/// that succeeds leaves no permanent change.
typedef struct safelight_attempt {
    const char *name;
    int needs_path;
    long (*run)(const char *path);
} safelight_attempt;

/// Returns all attempts, `count` of them.
const safelight_attempt *safelight_attempts(size_t *count);

/// Runs an attempt; returns 0 if it succeeded, otherwise its errno.
int safelight_try(const safelight_attempt *attempt, const char *path);

#endif
