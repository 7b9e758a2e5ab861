// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// -Dglibc=2.31 (glibc_2_31_posix.c), the start of a program. Before 2.34 a program brought the function that
// calls what runs before main. Start-up code of newer C libraries gives none and expects the C library to do
// it, which does it for programs of that version only.
#include <stddef.h>

typedef int main_function(int argc, char **argv, char **environment);
typedef void function(void);
extern void (*const __init_array_start[])(int, char **, char **)
    __attribute__((visibility("hidden"))); // made by the linker
extern void (*const __init_array_end[])(int, char **, char **) __attribute__((visibility("hidden")));
extern int old_start(main_function *run, int argc, char **argv, main_function *init, function *fini,
                     function *unload, void *stack_end);
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");

static int before_main(int argc, char **argv, char **environment)
{
    size_t n = (size_t)(__init_array_end - __init_array_start);
    for (size_t i = 0; i < n; i++) __init_array_start[i](argc, argv, environment);
    return 0;
}

__attribute__((visibility("hidden"))) int __wrap___libc_start_main(main_function *run, int argc, char **argv,
                                                                   main_function *init, function *fini,
                                                                   function *unload, void *stack_end);
int __wrap___libc_start_main(main_function *run, int argc, char **argv, main_function *init, function *fini,
                             function *unload, void *stack_end)
{
    return old_start(run, argc, argv, init ? init : before_main, fini, unload, stack_end);
}
