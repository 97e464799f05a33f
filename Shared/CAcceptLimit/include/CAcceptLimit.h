#ifndef SAFELIGHT_CACCEPTLIMIT_H
#define SAFELIGHT_CACCEPTLIMIT_H

// Limits how many descriptors the connections of this process may take.
//
// libzmq 4.3.4 accepts connections without a limit and aborts the process where accept4 on a unix socket fails with
// EMFILE. It has no option for either, and a count of the connections that it reports comes too late for a flood. So
// this target defines accept4 itself: the linker resolves libzmq's call to it. It accepts, and closes the connection at
// once where its descriptor is above a bound. The kernel gives the lowest free number, so the number says how many
// descriptors are open at least; nothing has to be counted.

#include <stdint.h>

/// The bounds in force and what was refused by them since the start.
typedef struct safelight_accept_figures {
    int most_tcp;           // connections over TCP take descriptors below this number
    int most_local;         // and those over unix sockets below this one
    int tcp;                // connections that there are, of all endpoints
    int local;
    int64_t refused_tcp;    // connections closed as soon as they were accepted
    int64_t refused_local;
    int is_in_force;        // 0 where libzmq's calls do not come here
} safelight_accept_figures;

/// Sets the bounds; before it is called, connections are accepted without any.
///
/// Of the soft limit of open files, TCP gets half, but at most `most_tcp`, and unix sockets seven eighths, but at most
/// twice as many as `most_tcp`; at least 64 descriptors are left for everything else.
void safelight_limit_accepts(int most_tcp);

/// What is in force, and how many connections there are; looks at every descriptor.
safelight_accept_figures safelight_accept_limit_figures(void);

#endif
