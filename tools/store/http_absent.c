// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// In place of http.c where the headers of libcurl were not there to build it.
#include "tools/common.h"
#include "tools/store/http.h"

int http_open(http **out)
{
    *out = NULL;
    return fail(EXIT_FAILED,
                "this tenon was built without libcurl, which downloads; install libcurl4-openssl-dev and "
                "build it with -Dpull=enabled, or get the file with another program");
}

void http_close(http **h)
{
    *h = NULL;
}

http_result http_get(http *h, const http_request *r, http_head *head, char why[HTTP_WHY])
{
    (void)h, (void)r, (void)head;
    why[0] = 0;
    return HTTP_REFUSED;
}

bool http_origin(http *h, const char *url, char origin[HTTP_ORIGIN], char *host, size_t host_size)
{
    (void)h, (void)url, (void)host, (void)host_size;
    origin[0] = 0;
    return false;
}
