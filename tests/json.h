// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A small JSON reader for test data that we trust: no escapes but \n, \t, \", \\, \/ and \uXXXX below 0x80.
#ifndef TESTS_JSON_H
#define TESTS_JSON_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct json {
    enum { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } kind;
    double number;
    char *text;             // string
    char **keys;            // object
    struct json *items;     // array and object
    size_t count;
} json;

static const char *json_skip(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r' || *p == ',' || *p == ':') p++;
    return p;
}

static const char *json_string(const char *p, char **out)
{
    const char *end = p + 1;
    while (*end && *end != '"') end += *end == '\\' ? 2 : 1;
    char *s = malloc((size_t)(end - p) + 1), *w = s;
    for (p++; p < end; p++) {
        if (*p != '\\') {
            *w++ = *p;
            continue;
        }
        p++;
        if (*p == 'n') *w++ = '\n';
        else if (*p == 't') *w++ = '\t';
        else if (*p == 'u') {
            char hex[5] = {p[1], p[2], p[3], p[4], 0};
            *w++ = (char)strtol(hex, NULL, 16);
            p += 4;
        } else *w++ = *p;
    }
    *w = 0;
    *out = s;
    return end + 1;
}

static const char *json_parse(const char *p, json *out)
{
    *out = (json){.kind = JSON_NULL};
    p = json_skip(p);
    if (*p == '"') {
        out->kind = JSON_STRING;
        return json_string(p, &out->text);
    }
    if (*p == '[' || *p == '{') {
        bool object = *p == '{';
        out->kind = object ? JSON_OBJECT : JSON_ARRAY;
        size_t capacity = 0;
        for (p = json_skip(p + 1); *p && *p != ']' && *p != '}'; p = json_skip(p)) {
            if (out->count == capacity) {
                capacity = capacity ? capacity * 2 : 8;
                out->items = realloc(out->items, capacity * sizeof *out->items);
                out->keys = realloc(out->keys, capacity * sizeof *out->keys);
            }
            out->keys[out->count] = NULL;
            if (object) p = json_skip(json_string(p, &out->keys[out->count]));
            p = json_parse(p, &out->items[out->count]);
            out->count++;
        }
        return *p ? p + 1 : p;
    }
    if (*p == 't' || *p == 'f') {
        out->kind = JSON_BOOL;
        out->number = *p == 't';
        return p + (*p == 't' ? 4 : 5);
    }
    if (*p == 'n') return p + 4;
    char *end;
    out->kind = JSON_NUMBER;
    out->number = strtod(p, &end);
    return end > p ? end : p + 1;
}

static const json *json_get(const json *o, const char *key)
{
    for (size_t i = 0; o && o->kind == JSON_OBJECT && i < o->count; i++)
        if (strcmp(o->keys[i], key) == 0) return &o->items[i];
    return NULL;
}

static void json_free(json *j)
{
    for (size_t i = 0; i < j->count; i++) {
        json_free(&j->items[i]);
        free(j->keys[i]);
    }
    free(j->items);
    free(j->keys);
    free(j->text);
}

// Whole file, terminated; NULL if it cannot be read.
static char *json_read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *p = malloc((size_t)n + 1);
    size_t got = fread(p, 1, (size_t)n, f);
    fclose(f);
    p[got] = 0;
    if (size) *size = got;
    return p;
}

#endif
