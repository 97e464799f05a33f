#include "CAcceptLimit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// 0: no bounds.
static atomic_int configured_tcp;
static atomic_llong refused_tcp;
static atomic_llong refused_local;
// A reserved descriptor, so that a connection can be refused even if no other descriptor is left.
static atomic_int spare = -1;

static int smaller(int left, int right) { return left < right ? left : right; }

static int descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1 << 20) return 1 << 20;
    return (int)limit.rlim_cur;
}

static int max_tcp_descriptors(void) { return smaller(descriptors() / 2, atomic_load(&configured_tcp)); }

static int max_local_descriptors(void) {
    int files = descriptors();
    int reserved = files / 8 > 64 ? files / 8 : 64;
    int available = files > 2 * reserved ? files - reserved : files / 2;
    return smaller(available, 2 * atomic_load(&configured_tcp));
}

static int is_local(int listener) {
    int domain = 0;
    socklen_t length = sizeof domain;
    return getsockopt(listener, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

static int accept_now(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    return (int)syscall(SYS_accept4, listener, address, length, flags);
}

static void reserve_descriptor(void) {
    int none = -1;
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0 && !atomic_compare_exchange_strong(&spare, &none, descriptor)) close(descriptor);
}

// Accepts and closes a connection with the reserved descriptor. A connection that stays in the queue would wake the
// caller repeatedly.
static void refuse_with_spare(int listener) {
    int descriptor = atomic_exchange(&spare, -1);
    if (descriptor < 0) return;
    close(descriptor);
    int connection = accept_now(listener, 0, 0, SOCK_CLOEXEC);
    if (connection >= 0) close(connection);
    reserve_descriptor();
}

// Replaces the C library's function. A refused connection is reported as one that its peer aborted (ECONNABORTED),
// which every caller has to expect.
int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    int connection = accept_now(listener, address, length, flags);
    if (atomic_load(&configured_tcp) == 0) return connection;
    if (connection < 0) {
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return -1;
        atomic_fetch_add(is_local(listener) ? &refused_local : &refused_tcp, 1);
        refuse_with_spare(listener);
        errno = ECONNABORTED;
        return -1;
    }
    // Another thread may use the number of the reserved descriptor since it was closed to refuse a connection.
    if (atomic_load(&spare) < 0) reserve_descriptor();
    // Most descriptors are below both bounds, so that the type of the socket need not be requested.
    if (connection < max_tcp_descriptors()) return connection;
    int local = is_local(listener);
    if (local && connection < max_local_descriptors()) return connection;
    close(connection);
    atomic_fetch_add(local ? &refused_local : &refused_tcp, 1);
    errno = ECONNABORTED;
    return -1;
}

void safelight_limit_accepts(int max_tcp) {
    if (atomic_load(&spare) < 0) reserve_descriptor();
    atomic_store(&configured_tcp, max_tcp);
}

// Counts connected sockets. Unix sockets without a path are excluded: the socket pairs between a service and its
// workers, and connections to other services.
static void count_connections(int *tcp, int *local) {
    int end = descriptors();
    int accepted = max_local_descriptors() > max_tcp_descriptors() ? max_local_descriptors() : max_tcp_descriptors();
    if (accepted > 0 && accepted < end) end = accepted;
    for (int descriptor = 0; descriptor < end; descriptor++) {
        struct sockaddr_storage address;
        socklen_t length = sizeof address;
        if (getsockname(descriptor, (struct sockaddr *)&address, &length) != 0) continue;
        int is_listening = 0;
        socklen_t size = sizeof is_listening;
        if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening) continue;
        if (address.ss_family == AF_INET || address.ss_family == AF_INET6) *tcp += 1;
        if (address.ss_family == AF_UNIX && length > sizeof address.ss_family) *local += 1;
    }
}

safelight_accept_figures safelight_accept_limit_figures(void) {
    int tcp = 0;
    int local = 0;
    count_connections(&tcp, &local);
    return (safelight_accept_figures){
        .tcp = tcp,
        .local = local,
        .max_tcp = max_tcp_descriptors(),
        .max_local = max_local_descriptors(),
        .refused_tcp = atomic_load(&refused_tcp),
        .refused_local = atomic_load(&refused_local),
    };
}

int safelight_accept_limit_is_in_force(void) { return dlsym(0, "accept4") == (void *)accept4; }
