// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/http/listen.h"

#include "tools/common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS_KEPT = 32 };
enum { BACKLOG = 1024, FIRST_PASSED_FD = 3, ADDRESS_SIZE = 64, PORT_SIZE = 8 };

static void prepare(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void describe(listeners *l, int fd)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    char host[ADDRESS_SIZE] = "", port[PORT_SIZE] = "";
    if (l->address[0] || getsockname(fd, (struct sockaddr *)&a, &size) != 0) return;
    if (a.ss_family == AF_UNIX) {
        snprintf(l->address, sizeof l->address, "unix:%s", ((struct sockaddr_un *)&a)->sun_path);
        return;
    }
    if (getnameinfo((struct sockaddr *)&a, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    snprintf(l->address, sizeof l->address, a.ss_family == AF_INET6 ? "http://[%s]:%s" : "http://%s:%s", host,
             port);
}

static void add(listeners *l, int fd)
{
    prepare(fd);
    describe(l, fd);
    l->fds[l->n++] = fd;
}

// The protocol of systemd: descriptors from 3 on, their number in LISTEN_FDS, for the process LISTEN_PID.
static bool take_passed(listeners *l)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid()) return false;
    long n = strtol(count, NULL, 10);
    for (long i = 0; i < n && l->n < LISTEN_MAX; i++) add(l, FIRST_PASSED_FD + (int)i);
    return l->n > 0;
}

static int open_unix(listeners *l, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof a.sun_path)
        return fail(EXIT_USAGE, "--host %s: the path of a socket has at most %zu characters", path,
                    sizeof a.sun_path - 1);
    strcpy(a.sun_path, path);
    if (stat(path, &st) == 0 && S_ISSOCK(st.st_mode)) (void)unlink(path); // of a server that ended
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, BACKLOG) != 0) {
        int code = fail(EXIT_FAILED, "cannot listen on %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return code;
    }
    strcpy(l->unix_path, path);
    add(l, fd);
    return 0;
}

static int open_address(const struct addrinfo *a)
{
    int one = 1, fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
#ifdef IPV6_V6ONLY
    if (a->ai_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
#endif
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

// The second loopback address, at the port of the first one: "localhost" may be either. Not every machine has
// it.
static void open_loopback6(listeners *l)
{
    struct sockaddr_in first;
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t size = sizeof first;
    if (getsockname(l->fds[0], (struct sockaddr *)&first, &size) != 0) return;
    a.sin6_port = first.sin_port;
    const struct addrinfo info = {.ai_family = AF_INET6,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_addr = (struct sockaddr *)&a,
                                  .ai_addrlen = sizeof a};
    int fd = open_address(&info);
    if (fd >= 0) add(l, fd);
}

static int open_host(listeners *l, const char *host, int port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[PORT_SIZE];
    int error = 0;
    snprintf(service, sizeof service, "%d", port);
    int code = getaddrinfo(host, service, &hints, &found);
    if (code != 0) return fail(EXIT_USAGE, "--host %s: %s", host, gai_strerror(code));
    for (const struct addrinfo *a = found; a && l->n < LISTEN_MAX; a = a->ai_next) {
        if (port == 0 && l->n > 0) break; // a second address would get another port
        int fd = open_address(a);
        if (fd >= 0)
            add(l, fd);
        else if (!error)
            error = errno;
    }
    freeaddrinfo(found);
    if (l->n > 0) return 0;
    return fail(EXIT_FAILED, "cannot listen on %s port %d: %s%s", host, port, strerror(error),
                error == EADDRINUSE ? "; another program uses it, give another --port" : "");
}

int listen_open(listeners *l, const char *host, int port)
{
    *l = (listeners){.n = 0};
    if (take_passed(l)) return 0;
    if (host && host[0] == '/') return open_unix(l, host);
    int code = open_host(l, host ? host : "127.0.0.1", port);
    if (!code && !host) open_loopback6(l);
    return code;
}

void listen_close(listeners *l)
{
    for (int i = 0; i < l->n; i++) close(l->fds[i]);
    if (l->unix_path[0]) (void)unlink(l->unix_path);
    l->n = 0;
    l->unix_path[0] = 0;
}

int listen_connections(int wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
    if (limit.rlim_cur <= DESCRIPTORS_KEPT + 1) return 1;
    rlim_t most = limit.rlim_cur - DESCRIPTORS_KEPT;
    return most < (rlim_t)wanted ? (int)most : wanted;
}

int listen_accept(int fd, bool *full)
{
    int one = 1, got = accept(fd, NULL, NULL);
    *full = got < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS);
    if (got < 0) return -1;
    prepare(got);
    (void)setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); // tokens are small and go at once
    return got;
}

void listen_refuse(int fd)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n"
                               "connection: close\r\n\r\n";
    (void)send(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

bool peer_has_left(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

const char *http_date(char *buf, size_t size)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm t = {0};
    (void)gmtime_r(&now, &t);
    snprintf(buf, size, "%.3s, %02d %.3s %d %02d:%02d:%02d GMT", days + 3 * t.tm_wday, t.tm_mday,
             months + 3 * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
    return buf;
}

bool host_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    size_t n = strlen(host);
    if (host[0] == '/') return true; // a Unix socket
    if (inet_pton(AF_INET, host, &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
    static const char local[] = "localhost";
    size_t m = sizeof local - 1;
    if (n < m) return false;
    for (size_t i = 0; i < m; i++)
        if ((host[n - m + i] | 32) != local[i]) return false;
    return n == m || host[n - m - 1] == '.';
}

bool peer_is_loopback(int fd)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    if (getpeername(fd, (struct sockaddr *)&a, &size) != 0) return false;
    if (a.ss_family == AF_INET) return (ntohl(((struct sockaddr_in *)&a)->sin_addr.s_addr) >> 24) == 127;
    if (a.ss_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&a)->sin6_addr);
    return a.ss_family == AF_UNIX;
}
