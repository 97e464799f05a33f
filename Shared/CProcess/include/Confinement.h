#ifndef SAFELIGHT_CONFINEMENT_H
#define SAFELIGHT_CONFINEMENT_H

#include <stddef.h>

// What a process gives up before it opens bytes that nobody trusts.

/// What is in force.
typedef struct safelight_confinement {
    int landlock; // the version of Landlock's interface; 0 where the kernel has none or does not allow it
    int seccomp;  // 1 where the filter of system calls is on
} safelight_confinement;

/// The version of Landlock's interface that the kernel offers; 0 for none.
int safelight_landlock_version(void);

/// Confines the calling process for the rest of its life: no capabilities, no files but those that are open and those
/// of the system that programs are made of, no new sockets, no programs, no processes, nothing of other processes.
///
/// The process must have one thread; errno is EBUSY otherwise. Returns -1 where something failed that the kernel offers.
/// In builds with a sanitizer nothing is confined.
int safelight_confine(safelight_confinement *confinement);

/// Something that a confined process must not be able to do; `path` is what it is tried on, for those that need one.
/// Where it can be done, nothing is changed by it for good.
typedef struct safelight_attempt {
    const char *name;
    int needs_path;
    long (*run)(const char *path);
} safelight_attempt;

/// The attempts, `count` of them.
const safelight_attempt *safelight_attempts(size_t *count);

/// Tries it; returns 0 where it could be done, the error number where it was refused.
int safelight_try(const safelight_attempt *attempt, const char *path);

#endif
