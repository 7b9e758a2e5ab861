// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tool needs of the system, in pairs of files: *_posix.c and *_win32.c. Texts and paths are UTF-8,
// and paths have "/" between folders on every system ("\" is understood where the system does). Functions
// that return bool leave the reason of a failure in errno.
#ifndef TENON_TOOLS_SYSTEM_H
#define TENON_TOOLS_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

// --- process (process_*.c) ---------------------------------------------------------------------------------

// First of all: the arguments as the system has them, and standard streams that hold bytes. A standard stream
// that the caller closed is replaced by one that fails in the same way: else the next opened file would get
// its number, and messages would be written into that file.
void sys_start(int *argc, char ***argv);
const char *sys_env(const char *name);                // NULL: not set; valid until the program ends
bool sys_env_name(size_t i, char *name, size_t size); // of the i-th variable; false: there are no more
uint64_t now_ns(void);                                // monotonic
uint64_t peak_rss(void);                              // bytes; 0: not known
uint64_t sys_process_id(void);
void sys_lower_priority(void); // of the calling thread, as of threads in the background
bool sys_local_time(struct tm *out);

typedef struct sys_machine {
    char system[128]; // name, release, kind of processor; "": not known
    long n_cores;
    uint64_t memory; // bytes
} sys_machine;
void sys_machine_get(sys_machine *out);

// --- files (files_*.c) -------------------------------------------------------------------------------------

typedef enum sys_kind { SYS_FILE, SYS_FOLDER, SYS_PIPE, SYS_DEVICE } sys_kind;
typedef struct sys_status {
    sys_kind kind;
    uint64_t size;
    bool is_link; // only from sys_link_status
} sys_status;
bool sys_file_status(const char *path, sys_status *out);
bool sys_link_status(const char *path, sys_status *out); // of the link itself
bool sys_stream_status(FILE *f, sys_status *out);
bool sys_is_readable(const char *path);

FILE *sys_open(const char *path, const char *mode);
// Creates a file beside others, whose name begins with `start`, and gives its name (to be freed). It has the
// rights that a new file has.
FILE *sys_open_new(const char *start, char **path);
bool sys_sync(FILE *f);                            // what was flushed is durable
bool sys_rename(const char *from, const char *to); // replaces `to`
bool sys_remove(const char *path);
bool sys_truncate(const char *path, uint64_t size);
char *sys_real_path(const char *path); // links followed, to be freed; NULL: it does not exist

bool sys_make_folder(const char *path, bool shared); // not shared: for the user only. True if it is there
bool sys_remove_folder(const char *path);
bool sys_free_space(const char *folder, uint64_t *bytes);
typedef struct sys_folder sys_folder;
sys_folder *sys_folder_open(const char *path);
const char *sys_folder_next(sys_folder *f); // a name, valid until the next call; NULL: the end
void sys_folder_close(sys_folder *f);

// Whether a path is absolute; whether a word means a path and no name of a model.
bool sys_is_absolute(const char *path);
bool sys_looks_like_path(const char *text);
char sys_list_separator(void); // between the paths in a variable
const char *sys_home(void);    // of the user; NULL: not known
// Where programs keep what; false: not known, or it does not fit.
typedef enum sys_place { SYS_CONFIG, SYS_CACHE, SYS_DATA } sys_place;
bool sys_place_get(sys_place place, char *path, size_t size);

// --- terminal (terminal_*.c) -------------------------------------------------------------------------------

bool is_terminal(FILE *f);
bool sys_terminal_moves(void); // whether terminals of this process know control sequences
// Standard input, beside stdio.
enum { SYS_INTERRUPTED = -1, SYS_FAILED = -2 };
// 1: something can be read, or it is at its end; 0: not within wait_ms (-1: no limit); SYS_INTERRUPTED.
int sys_input_wait(int wait_ms);
// Bytes read, 0: the end; SYS_INTERRUPTED; SYS_FAILED, with the reason in errno.
long sys_input_read(char *to, size_t n);
bool sys_output_is_lost(void); // nobody reads what is written to standard output

// --- signals (signals_*.c) ---------------------------------------------------------------------------------

// interrupt: Ctrl-C. end: the process is to end; true: the command does that, else it ends at once. Both may
// be called at any time, on any thread.
void sys_signals_install(void (*interrupt)(void), bool (*end)(int number));
void sys_terminal_keep(void); // ending by a signal restores the terminal as it is now
void sys_terminal_restore(void);
void sys_error_write(const char *text, size_t n); // to standard error, from such calls
_Noreturn void sys_leave(int code);

// --- threads (threads_*.c) ---------------------------------------------------------------------------------

typedef struct sys_thread sys_thread;
sys_thread *sys_thread_start(void (*run)(void *arg), void *arg); // NULL: it cannot be started
void sys_thread_join(sys_thread *t);
void sys_lock(void); // one lock of the whole program, for what its threads print
void sys_unlock(void);
typedef struct sys_barrier sys_barrier;
sys_barrier *sys_barrier_create(int32_t n_threads); // NULL without memory
void sys_barrier_wait(sys_barrier *b);              // until n_threads wait
void sys_barrier_destroy(sys_barrier *b);

// --- patterns (pattern_*.c) --------------------------------------------------------------------------------

// POSIX extended regular expressions.
typedef struct sys_pattern sys_pattern;
sys_pattern *sys_pattern_create(const char *text, char *why,
                                size_t why_size);                 // NULL: `why` says what is wrong
bool sys_pattern_matches(const sys_pattern *p, const char *text); // anywhere in the text
void sys_pattern_destroy(sys_pattern *p);

// --- limits of the process (sandbox_*.c) ------------------------------------------------------------------

// --sandbox: limits that the kernel keeps, for models from strangers. They cannot be taken back.
typedef enum sys_sandbox_stage {
    SANDBOX_LOADING, // no network, no other programs, no files that are written, moved or removed
    SANDBOX_LOADED   // and no files that are opened
} sys_sandbox_stage;
// 0 or an exit code after a message.
int sys_sandbox_enter(sys_sandbox_stage stage);

#endif
