// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <errno.h>
#include <io.h>
#include <string.h>
#include <windows.h>

enum { CHARACTERS = 4096, POLL_MS = 10, CTRL_Z = 26 };

static HANDLE handle_of(FILE *f)
{
    return (HANDLE)_get_osfhandle(_fileno(f));
}

// _isatty is true for every device, such as NUL.
bool is_terminal(FILE *f)
{
    DWORD mode;
    return GetConsoleMode(handle_of(f), &mode) != 0;
}

bool sys_terminal_moves(void)
{
    DWORD mode;
    return GetConsoleMode(GetStdHandle(STD_ERROR_HANDLE), &mode) &&
           (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

// Consoles, files and devices are waited for by reading. Only of pipes the system says whether they have
// bytes.
int sys_input_wait(int wait_ms)
{
    HANDLE h = GetStdHandle(STD_INPUT_HANDLE);
    fflush(stderr); // what asks for the input
    if (wait_ms < 0 || GetFileType(h) != FILE_TYPE_PIPE) return 1;
    uint64_t end = now_ns() + (uint64_t)wait_ms * 1000000u;
    for (;;) {
        DWORD n = 0;
        if (!PeekNamedPipe(h, NULL, 0, NULL, &n, NULL) || n > 0) return 1; // a closed one is at its end
        if (now_ns() >= end) return 0;
        Sleep(POLL_MS);
    }
}

// One line at most, as UTF-8. The two halves of a character beyond 16 bits may come in two reads.
static long read_console(HANDLE h, char *to, size_t n)
{
    static wchar_t first; // of a pair
    wchar_t wide[CHARACTERS + 1];
    DWORD got = 0;
    size_t most = n / 3 < CHARACTERS ? n / 3 : CHARACTERS, kept = first ? 1 : 0; // 3 bytes for each
    wide[0] = first;
    first = 0;
    if (most <= kept) return 0;
    SetLastError(0);
    if (!ReadConsoleW(h, wide + kept, (DWORD)(most - kept), &got, NULL)) {
        errno = EIO;
        return SYS_FAILED;
    }
    if (got == 0) return GetLastError() == ERROR_OPERATION_ABORTED ? SYS_INTERRUPTED : 0;
    if (kept == 0 && wide[0] == CTRL_Z) return 0;
    size_t count = got + kept;
    if (wide[count - 1] >= 0xd800 && wide[count - 1] < 0xdc00) first = wide[--count];
    if (count == 0) return read_console(h, to, n);
    return WideCharToMultiByte(CP_UTF8, 0, wide, (int)count, to, (int)n, NULL, NULL);
}

long sys_input_read(char *to, size_t n)
{
    HANDLE h = GetStdHandle(STD_INPUT_HANDLE);
    if (is_terminal(stdin)) return read_console(h, to, n);
    int got = _read(0, to, (unsigned)(n < 1 << 20 ? n : 1 << 20));
    return got >= 0 ? got : SYS_FAILED;
}

bool sys_output_is_lost(void)
{
    return GetFileType(handle_of(stdout)) == FILE_TYPE_PIPE;
}
