// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a command says on standard error, and the exit code of each failure.
#include "tools/common.h"

#include "tools/terminal/progress.h"

#include <stdarg.h>
#include <string.h>

enum { TEXT_SIZE = 1200 };

void clean_text(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++)
        if (*p < 0x20 || *p == 0x7f) *p = '?';
}

const char *shown(const char *text, char *buf, size_t size)
{
    snprintf(buf, size, "%s", text ? text : "");
    clean_text(buf);
    return buf;
}

// The last error message, for outputs that contain it (--json).
static _Thread_local char failure[TEXT_SIZE];

const char *failure_text(void)
{
    return failure;
}

static void print_line(char *text)
{
    clean_text(text);
    progress_forget();
    fprintf(stderr, "tenon: %s\n", text);
    fflush(stderr); // buffered on some systems
}

int fail(int code, const char *fmt, ...)
{
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(failure, sizeof failure, "%s", text);
    print_line(text);
    return code;
}

void note(const char *fmt, ...)
{
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    print_line(text);
}

typedef struct status_row {
    tn_status status;
    int code;
    const char *advice;
} status_row;

static const status_row status_rows[] = {
    {TN_ERR_ARG, EXIT_USAGE, NULL},
    {TN_ERR_MEMORY, EXIT_MEMORY, "try a smaller context (-c), --cache-type-k q8_0 or fewer --gpu-layers"},
    {TN_ERR_FORMAT, EXIT_MODEL, NULL},
    {TN_ERR_MODEL, EXIT_MODEL, NULL},
    {TN_ERR_DEVICE, EXIT_DEVICE, "'tenon devices' lists what can be used"},
    {TN_ERR_CONTEXT_FULL, EXIT_CONTEXT, "try a larger context (-c)"},
    {TN_ERR_CANCELLED, EXIT_INTERRUPTED, NULL},
};

int tool_fail(const tool *t, tn_status status, const char *fmt, ...)
{
    char text[TEXT_SIZE], message[TEXT_SIZE / 2] = "";
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, TEXT_SIZE / 2, fmt, args);
    va_end(args);
    if (n >= TEXT_SIZE / 2) n = TEXT_SIZE / 2 - 1;
    int code = EXIT_FAILED;
    const char *advice = NULL;
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++) {
        if (status_rows[i].status != status) continue;
        code = status_rows[i].code;
        advice = status_rows[i].advice;
    }
    if (status == TN_ERR_CANCELLED) return fail(code, "%s: interrupted", text);
    tn_context_error(t->ctx, message, sizeof message);
    if (!*message) snprintf(message, sizeof message, "%s", tn_status_text(status));
    // Messages about files begin with the path already.
    bool doubled = n > 0 && strncmp(message, text, (size_t)n) == 0;
    if (doubled) n = 0;
    snprintf(text + n, sizeof text - (size_t)n, "%s%s%s%s", doubled ? "" : ": ", message, advice ? "; " : "",
             advice ? advice : "");
    snprintf(failure, sizeof failure, "%s", text);
    print_line(text);
    return code;
}

static void print_text(const char *fmt, va_list args)
{
    char text[TEXT_SIZE];
    vsnprintf(text, sizeof text, fmt, args);
    print_line(text);
}

void tool_info(const tool *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (t->log_level >= TN_LOG_INFO) print_text(fmt, args);
    va_end(args);
}

void tool_debug(const tool *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (t->log_level >= TN_LOG_DEBUG) print_text(fmt, args);
    va_end(args);
}
