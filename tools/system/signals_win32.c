// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C comes on a thread of its own, so it may take locks; the commands are written for signals
// nevertheless.
#include "tools/system/system.h"

#include <signal.h>
#include <string.h>
#include <windows.h>

enum { CLOSE_WAIT_MS = 4500 }; // the system ends the process some 5 s after it closes the console

static void (*on_interrupt)(void); // set before the handlers are installed
static bool (*on_end)(int number);
static DWORD input_mode; // of the console, as it was; 0: none
static bool keeps_mode;

static BOOL WINAPI handle_event(DWORD event)
{
    if (event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT) {
        on_interrupt();
        return TRUE;
    }
    // The console is closed, the user logs off, or the machine shuts down: when this returns, the process
    // ends.
    if (on_end(SIGTERM)) Sleep(CLOSE_WAIT_MS);
    sys_terminal_restore();
    return FALSE;
}

// A page of a mapped file that cannot be read any more.
static LONG WINAPI handle_exception(EXCEPTION_POINTERS *e)
{
    static const char text[] =
        "tenon: a mapped file cannot be read any more; --no-mmap reads models into memory\n";
    if (e->ExceptionRecord->ExceptionCode != EXCEPTION_IN_PAGE_ERROR) return EXCEPTION_CONTINUE_SEARCH;
    sys_terminal_restore();
    sys_error_write(text, sizeof text - 1);
    sys_leave(1);
}

void sys_signals_install(void (*interrupt)(void), bool (*end)(int number))
{
    on_interrupt = interrupt;
    on_end = end;
    SetConsoleCtrlHandler(NULL, FALSE); // a parent may have switched Ctrl-C off
    SetConsoleCtrlHandler(handle_event, TRUE);
    SetUnhandledExceptionFilter(handle_exception);
}

void sys_terminal_keep(void)
{
    keeps_mode = GetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), &input_mode);
}

void sys_terminal_restore(void)
{
    if (keeps_mode) SetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), input_mode);
}

void sys_error_write(const char *text, size_t n)
{
    DWORD written;
    (void)WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)n, &written, NULL);
}

_Noreturn void sys_leave(int code)
{
    TerminateProcess(GetCurrentProcess(), (UINT)code);
    for (;;) Sleep(INFINITE);
}
