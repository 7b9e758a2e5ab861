// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How many connections an address of another machine has, so that one of them cannot take all.
#ifndef TENON_TOOLS_SERVER_ADDRESSES_H
#define TENON_TOOLS_SERVER_ADDRESSES_H

#include <stdbool.h>

enum { ADDRESS_CONNECTIONS = 256 };

typedef struct address_key {
    unsigned char bytes[16]; // an IPv6 address, or an IPv4 address as one (RFC 4291, section 2.5.5.2)
    bool known;
} address_key;

// By descriptor: the address that it was accepted from. Closing a connection changes nothing here: where it
// matters, descriptors are asked whom they belong to.
typedef struct addresses {
    address_key *of;
    int n;
} addresses;

// For descriptors below n. False: out of memory.
bool addresses_open(addresses *p, int n);
void addresses_close(addresses *p);
// A connection was accepted. False: its address has ADDRESS_CONNECTIONS already. Loopback and Unix sockets
// are not counted.
bool addresses_add(addresses *p, int fd);

#endif
