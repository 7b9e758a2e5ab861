// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/http/head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char blanks[] = " \t";

void head_trim(char *value)
{
    size_t skip = strspn(value, blanks), n = strlen(value + skip);
    while (n > 0 && strchr(blanks, value[skip + n - 1])) n--;
    memmove(value, value + skip, n);
    value[n] = 0;
}

// The next member of a list "a, b": its bytes, and *n of them. NULL: there is none.
static const char *next_member(const char **at, size_t *n)
{
    const char *p = *at + strspn(*at, ", \t");
    *n = strcspn(p, ",");
    *at = p + *n;
    while (*n > 0 && strchr(blanks, p[*n - 1])) --*n;
    return *n > 0 ? p : NULL;
}

bool head_lists(const char *list, const char *token)
{
    const char *member;
    size_t n;
    while (list && (member = next_member(&list, &n)) != NULL)
        if (n == strlen(token) && strncasecmp(member, token, n) == 0) return true;
    return false;
}

bool head_lists_type(const char *list, const char *type)
{
    const char *member;
    size_t n;
    while (list && (member = next_member(&list, &n)) != NULL) {
        size_t name = strcspn(member, ";, \t");
        if (name == strlen(type) && strncasecmp(member, type, name) == 0) return true;
    }
    return false;
}

http_fault head_version(const char *version, bool *http10)
{
    *http10 = false;
    if (!version) return HTTP_BAD_VERSION;
    if (strcmp(version, "HTTP/1.1") == 0) return HTTP_FINE;
    *http10 = true; // whoever it is understands an answer of that version
    if (strcmp(version, "HTTP/1.0") == 0) return HTTP_FINE;
    static const char digits[] = "0123456789";
    bool formed = strncmp(version, "HTTP/", 5) == 0 && strspn(version + 5, digits) == 1 &&
                  version[6] == '.' && strspn(version + 7, digits) == 1 && !version[8];
    return formed && version[5] != '1' ? HTTP_OTHER_VERSION : HTTP_BAD_VERSION;
}

// RFC 9112, section 6.1: chunked comes last, and once.
static http_fault coding_fault(const char *coding)
{
    const char *member;
    size_t n, count = 0, chunked = 0;
    bool last = false;
    while ((member = next_member(&coding, &n)) != NULL) {
        last = n == 7 && strncasecmp(member, "chunked", n) == 0;
        chunked += last;
        count++;
    }
    if (chunked != 1 || !last) return HTTP_BAD_CODING;
    return count == 1 ? HTTP_CHUNKED : HTTP_OTHER_CODING;
}

http_fault head_length(const char *length, const char *coding, int64_t *announced)
{
    enum { DIGITS = 18 };
    *announced = -1;
    if (length) {
        size_t n = strlen(length);
        if (n == 0 || n > DIGITS || strspn(length, "0123456789") != n || coding) return HTTP_BAD_LENGTH;
        *announced = strtoll(length, NULL, 10);
    }
    return coding ? coding_fault(coding) : HTTP_FINE;
}
