// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon doctor: one page about the program, the machine and what it finds. It has no names of users, no
// values of variables and no paths below the home folder, so that it can be shown to anybody.
#include "tools/common.h"
#include "tools/store/store.h"
#include "tools/terminal/progress.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/version.h>

static const char *yes(bool there)
{
    return there ? "yes" : "no";
}

// A path below a folder of the user's begins with the name of the folder: "~/.local", "$XDG_DATA_HOME/tenon".
static const char *hide_home(const char *path, char *buf, size_t size)
{
    static const char *const folders[] = {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"};
    snprintf(buf, size, "(elsewhere)");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *folder = i == 2 ? sys_home() : sys_env(folders[i]);
        size_t n = folder ? strlen(folder) : 0;
        if (n < 2 || strncmp(path, folder, n) != 0 || path[n] != '/') continue;
        if (snprintf(buf, size, "%s%s%s", i == 2 ? "" : "$", i == 2 ? "~" : folders[i], path + n) < (int)size)
            break;
    }
    clean_text(buf);
    return buf;
}

static void print_system(void)
{
    sys_machine machine;
    char size[32];
    printf("tenon %s\n", tn_version());
    sys_machine_get(&machine);
    if (*machine.system) printf("%-14s %s\n", "system", machine.system);
    printf("%-14s %ld cores, %s\n", "machine", machine.n_cores, size_text(machine.memory, size, sizeof size));
    printf("%-14s line editing %s, server %s, pull %s\n", "built with", yes(TN_HAVE_LIBEDIT),
           yes(TN_HAVE_SERVER), yes(TN_HAVE_PULL));
    const char *term = sys_env("TERM");
    printf("%-14s input %s, output %s, errors %s, TERM=%s\n", "terminal", yes(is_terminal(stdin)),
           yes(is_terminal(stdout)), yes(is_terminal(stderr)), term && strlen(term) < 40 ? term : "");
}

static void print_devices(const tool *t)
{
    char absent[2048], text[256], total[32], available[32];
    for (int32_t i = 0; i < tn_context_n_devices(t->ctx); i++) {
        tn_device_info info = {.struct_size = sizeof info};
        tn_device_info_get(tn_context_device_get(t->ctx, i), &info);
        if (strcmp(info.backend, "null") == 0) continue;
        printf("%-14s %s; memory %s, free %s\n", info.name, shown(info.description, text, sizeof text),
               size_text(info.memory_total, total, sizeof total),
               size_text(info.memory_free, available, sizeof available));
    }
    tn_context_absent_backends(t->ctx, absent, sizeof absent);
    for (char *line = strtok(absent, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');
        if (colon) *colon = 0;
        printf("%-14s absent: %s\n", line, colon ? colon + 1 + (colon[1] == ' ') : "");
    }
}

static int print_models(void)
{
    store_list list;
    char path[4096], text[4096], size[32];
    uint64_t free_bytes;
    int code = store_list_all(&list);
    if (code) return code;
    for (int origin = 0; origin <= STORE_LM_STUDIO; origin++) {
        size_t n = 0;
        uint64_t bytes = 0;
        for (size_t i = 0; i < list.n; i++) {
            if ((int)list.items[i].origin != origin) continue;
            n++;
            bytes += list.items[i].size;
        }
        printf("%-14s %zu models, %s\n", store_origin_name((store_origin)origin), n,
               size_text(bytes, size, sizeof size));
    }
    store_list_fini(&list);
    if (store_own_folder(path, sizeof path)) {
        printf("%-14s %s", "own folder", hide_home(path, text, sizeof text));
        for (char *slash;
             !sys_free_space(path, &free_bytes) && (slash = strrchr(path, '/')) != NULL && slash > path;)
            *slash = 0;
        if (sys_free_space(path, &free_bytes)) printf(", free %s", size_text(free_bytes, size, sizeof size));
        printf("\n");
    }
    if (options_config_path(path, sizeof path))
        printf("%-14s %s%s\n", "configuration", hide_home(path, text, sizeof text),
               sys_is_readable(path) ? "" : " (not there)");
    return 0;
}

// Names only: values may be secrets.
static void print_variables(void)
{
    static const char *const starts[] = {"TENON_", "CUDA_", "VK_", "NO_COLOR", "HF_", "OLLAMA_"};
    printf("%-14s", "variables");
    char name[64];
    for (size_t k = 0; sys_env_name(k, name, sizeof name); k++)
        for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
            if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
                clean_text(name);
                printf(" %s", name);
            }
    printf("\n");
}

int cmd_doctor(const options *o)
{
    tool t;
    if (o->n_args > 0)
        return fail(EXIT_USAGE, "unexpected argument '%s'; tenon doctor takes flags only", o->args[0]);
    int code = tool_open(&t, o);
    if (!code) {
        print_system();
        print_devices(&t);
        code = print_models();
        print_variables();
    }
    tool_close(&t);
    return code;
}
