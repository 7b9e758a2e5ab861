// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"
#include "tools/system/wide_win32.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <psapi.h> // needs the one above

enum { STDOUT_BUFFER = 65536, STDERR_BUFFER = 4096 };

// --- texts -------------------------------------------------------------------------------------------------

wchar_t *wide_of(const char *text)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = n > 0 ? malloc((size_t)n * sizeof *wide) : NULL;
    if (wide)
        MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, n);
    else
        errno = n > 0 ? ENOMEM : EILSEQ;
    return wide;
}

char *utf8_of(const wchar_t *text)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *utf8 = n > 0 ? malloc((size_t)n) : NULL;
    if (utf8) WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8, n, NULL, NULL);
    return utf8;
}

char *utf8_path_of(const wchar_t *text)
{
    char *path = utf8_of(text);
    for (char *p = path; p && *p; p++)
        if (*p == '\\') *p = '/';
    return path;
}

size_t utf8_into(const wchar_t *text, char *to, size_t size)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, to, (int)size, NULL, NULL);
    return n > 0 ? (size_t)n - 1 : 0;
}

// --- start -------------------------------------------------------------------------------------------------

// Of the C runtime, which splits the command line as programs for Windows expect it.
typedef struct start_info {
    int new_mode;
} start_info;
int __cdecl __wgetmainargs(int *argc, wchar_t ***argv, wchar_t ***env, int expand_wildcards,
                           start_info *info);

static void take_arguments(int *argc, char ***argv)
{
    int n = 0;
    wchar_t **wide = NULL, **env = NULL;
    start_info info = {0};
    if (__wgetmainargs(&n, &wide, &env, 0, &info) != 0 || n < 1) return;
    char **utf8 = calloc((size_t)n + 1, sizeof *utf8);
    for (int i = 0; utf8 && i < n; i++) {
        utf8[i] = utf8_of(wide[i]);
        if (!utf8[i]) return;
    }
    if (!utf8) return;
    *argc = n;
    *argv = utf8;
}

// Consoles take UTF-8 and control sequences, and are what they were when the program ends.
static UINT old_page;
static DWORD old_modes[2];
static const DWORD outputs[2] = {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};

static void restore_consoles(void)
{
    for (int i = 1; i >= 0; i--)
        if (old_modes[i]) SetConsoleMode(GetStdHandle(outputs[i]), old_modes[i]);
    if (old_page) SetConsoleOutputCP(old_page);
}

static void set_up_consoles(void)
{
    for (int i = 0; i < 2; i++) {
        DWORD mode;
        HANDLE h = GetStdHandle(outputs[i]);
        if (!GetConsoleMode(h, &mode)) continue;
        if (!old_page) {
            old_page = GetConsoleOutputCP();
            SetConsoleOutputCP(CP_UTF8);
        }
        if (SetConsoleMode(h, mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING))
            old_modes[i] = mode;
    }
    if (old_page) atexit(restore_consoles);
}

// Libraries of the CUDA Toolkit, which the installer does not put into the folder of the system. Since
// version 13 they are in bin/x64.
static void add_cuda_folders(void)
{
    static const wchar_t *const folders[] = {L"\\bin\\x64", L"\\bin"};
    wchar_t path[MAX_PATH];
    for (int i = 0; i < 2; i++) {
        DWORD n = GetEnvironmentVariableW(L"CUDA_PATH", path, MAX_PATH);
        if (n == 0 || n + 10 > MAX_PATH) return;
        wcscat(path, folders[i]);
        if (GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES) AddDllDirectory(path);
    }
}

void sys_start(int *argc, char ***argv)
{
    for (int fd = 0; fd <= 2; fd++)
        if (_get_osfhandle(fd) < 0 && _wopen(L"NUL", fd == 0 ? _O_WRONLY : _O_RDONLY) != fd) break;
    _fmode = _O_BINARY;
    for (int fd = 0; fd <= 2; fd++) _setmode(fd, _O_BINARY);
    // The functions of mingw-w64 print byte by byte, each of which would else be a call of the system.
    setvbuf(stdout, NULL, _IOFBF, STDOUT_BUFFER);
    setvbuf(stderr, NULL, _IOFBF, STDERR_BUFFER);
    take_arguments(argc, argv);
    set_up_consoles();
    add_cuda_folders();
}

// --- environment -------------------------------------------------------------------------------------------

typedef struct variable {
    struct variable *next;
    char *value;
    char name[];
} variable;

static variable *variables; // those that were asked for

static bool is_path(const char *name)
{
    static const char *const ends[] = {"PATH", "HOME", "CACHE", "MODELS", "DATA", "PROFILE"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        if (n >= k && strcmp(name + n - k, ends[i]) == 0) return true;
    }
    return false;
}

const char *sys_env(const char *name)
{
    sys_lock();
    variable *v = variables;
    while (v && strcmp(v->name, name) != 0) v = v->next;
    wchar_t *wide = v ? NULL : wide_of(name);
    const wchar_t *value = wide ? _wgetenv(wide) : NULL;
    free(wide);
    if (value && (v = malloc(sizeof *v + strlen(name) + 1)) != NULL) {
        strcpy(v->name, name);
        v->value = is_path(name) ? utf8_path_of(value) : utf8_of(value);
        v->next = variables;
        variables = v;
    }
    sys_unlock();
    return v ? v->value : NULL;
}

bool sys_env_name(size_t i, char *name, size_t size)
{
    wchar_t *block = GetEnvironmentStringsW(), *p = block;
    while (p && *p && i-- > 0) p += wcslen(p) + 1;
    bool found = p && *p;
    char *text = found ? utf8_of(p) : NULL;
    if (text) snprintf(name, size, "%.*s", (int)strcspn(text, "="), text);
    free(text);
    if (block) FreeEnvironmentStringsW(block);
    return found;
}

// --- clock, machine ----------------------------------------------------------------------------------------

uint64_t now_ns(void)
{
    LARGE_INTEGER ticks, per_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&per_second);
    uint64_t t = (uint64_t)ticks.QuadPart, f = (uint64_t)per_second.QuadPart;
    return t / f * 1000000000u + t % f * 1000000000u / f; // the product of the rest fits
}

uint64_t peak_rss(void)
{
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory)) return 0;
    return memory.PeakWorkingSetSize;
}

uint64_t sys_process_id(void)
{
    return GetCurrentProcessId();
}

void sys_lower_priority(void)
{
    (void)SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST);
}

bool sys_local_time(struct tm *out)
{
    SYSTEMTIME now;
    GetLocalTime(&now);
    *out = (struct tm){.tm_year = now.wYear - 1900,
                       .tm_mon = now.wMonth - 1,
                       .tm_mday = now.wDay,
                       .tm_hour = now.wHour,
                       .tm_min = now.wMinute,
                       .tm_sec = now.wSecond};
    return true;
}

// GetVersionEx lies to programs whose manifest does not name the version.
static void put_version(char *text, size_t size)
{
    typedef LONG(WINAPI * get_version)(OSVERSIONINFOW *);
    OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof version};
    HMODULE ntdll = GetModuleHandleW(L"ntdll");
    FARPROC address = ntdll ? GetProcAddress(ntdll, "RtlGetVersion") : NULL;
    get_version get;
    memcpy(&get, &address, sizeof get);
    if (get && get(&version) == 0)
        snprintf(text, size, "Windows %lu.%lu build %lu, x86-64", version.dwMajorVersion,
                 version.dwMinorVersion, version.dwBuildNumber);
}

void sys_machine_get(sys_machine *out)
{
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    *out = (sys_machine){.n_cores = (long)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)};
    put_version(out->system, sizeof out->system);
    if (GlobalMemoryStatusEx(&memory)) out->memory = memory.ullTotalPhys;
}
