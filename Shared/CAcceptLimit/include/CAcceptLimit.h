#ifndef SAFELIGHT_CACCEPTLIMIT_H
#define SAFELIGHT_CACCEPTLIMIT_H

// Limits how many descriptors the connections of this process may use.
//
// libzmq 4.3.4 accepts connections without a limit, and aborts the process if accept4 on a unix socket fails with
// EMFILE. It has no option for either, and counting the connections that it reports is too slow for a flood. So this
// target defines accept4 itself: the linker resolves libzmq's call to it. It accepts, and closes the connection at once
// if its descriptor is above a bound. The kernel assigns the lowest free number, so the number is a lower bound for the
// open descriptors, and nothing has to be counted.

#include <stdint.h>

/// The bounds in force, and the connections refused since the start.
typedef struct safelight_accept_figures {
    int max_tcp;            // TCP connections use descriptors below this number
    int max_local;          // connections over unix sockets use descriptors below this number
    int tcp;                // open TCP connections of all endpoints
    int local;
    int64_t refused_tcp;    // connections closed as soon as they were accepted
    int64_t refused_local;
} safelight_accept_figures;

/// Sets the bounds; before this call connections are not limited.
///
/// TCP connections may use half of the soft limit of open files, but at most `max_tcp`; unix sockets seven eighths,
/// but at most twice `max_tcp`. At least 64 descriptors are left for everything else.
void safelight_limit_accepts(int max_tcp);

/// Returns the bounds, the number of open connections and the refusals; examines every descriptor.
safelight_accept_figures safelight_accept_limit_figures(void);

/// Returns 1 if libzmq's calls are resolved to this accept4, otherwise 0.
int safelight_accept_limit_is_in_force(void);

#endif
