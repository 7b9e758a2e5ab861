// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/http/addresses.h"

#include "tools/server/http/listen.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

bool addresses_open(addresses *p, int n)
{
    *p = (addresses){.of = calloc((size_t)n, sizeof *p->of), .n = n};
    return p->of != NULL;
}

void addresses_close(addresses *p)
{
    free(p->of);
    *p = (addresses){.of = NULL};
}

// Of the other side; not known: on this machine, or not connected.
static address_key key_of(int fd)
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    address_key key = {.known = false};
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    if (peer_is_loopback(fd) || getpeername(fd, (struct sockaddr *)&a, &size) != 0) return key;
    if (a.ss_family == AF_INET6) {
        memcpy(key.bytes, &((struct sockaddr_in6 *)&a)->sin6_addr, sizeof key.bytes);
    } else if (a.ss_family == AF_INET) {
        memcpy(key.bytes, mapped, sizeof mapped);
        memcpy(key.bytes + sizeof mapped, &((struct sockaddr_in *)&a)->sin_addr, 4);
    } else {
        return key;
    }
    key.known = true;
    return key;
}

static bool same_key(const address_key *a, const address_key *b)
{
    return a->known && b->known && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

// `ask`: forget those that were closed, or belong to somebody else by now.
static int count(addresses *p, const address_key *key, bool ask)
{
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        if (!same_key(&p->of[i], key)) continue;
        if (ask) p->of[i] = key_of(i);
        n += same_key(&p->of[i], key);
    }
    return n;
}

bool addresses_add(addresses *p, int fd)
{
    if (fd >= p->n) return true;
    p->of[fd].known = false;
    address_key key = key_of(fd);
    if (!key.known) return true;
    if (count(p, &key, false) >= ADDRESS_CONNECTIONS && count(p, &key, true) >= ADDRESS_CONNECTIONS)
        return false;
    p->of[fd] = key;
    return true;
}
