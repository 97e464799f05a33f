#ifndef SAFELIGHT_CZEROMQ_H
#define SAFELIGHT_CZEROMQ_H
#include <sys/prctl.h>
#include <zmq.h>

/* Sets the name of the calling thread. prctl is variadic and therefore not imported by Swift. */
static inline void safelight_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
#endif
