#ifndef SAFELIGHT_CZEROMQ_H
#define SAFELIGHT_CZEROMQ_H
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <zmq.h>

/* Sets the name of the calling thread. prctl is variadic and therefore not imported by Swift. */
static inline void safelight_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

/*
 * Returns the bytes that a TCP connection has received since it was made (tcp(7), TCP_INFO); -1 if the descriptor is
 * not that of a TCP connection. The member tcpi_bytes_received is in the kernel's struct tcp_info, not in glibc's,
 * which ends before it; linux/tcp.h cannot be included beside glibc's header.
 */
static inline int64_t safelight_bytes_received(int descriptor) {
    enum { offset = 128 };
    unsigned char info[256];
    socklen_t size = sizeof info;
    int64_t bytes;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, &size) != 0) return -1;
    if (size < offset + sizeof bytes) return -1;
    memcpy(&bytes, info + offset, sizeof bytes);
    return bytes;
}
#endif
