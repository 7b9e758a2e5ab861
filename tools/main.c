// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon COMMAND ...: finds the command and turns its result into an exit code.
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/output.h"
#include "tools/pages/pages.h"

#include <string.h>
#include <tenon/version.h>

typedef int (*cmd_fn)(const options *o);

static const cmd_fn commands[CMD_COUNT] = {
#define CMD(id, name, args, help) cmd_##name,
#include "tools/commands.def"
};

static int unknown_command(const char *name)
{
    if (name[0] == '-')
        return fail(EXIT_USAGE, "a command comes first: tenon COMMAND ... %s; 'tenon help' lists them", name);
    const char *nearest = cmd_nearest(name);
    if (nearest) return fail(EXIT_USAGE, "unknown command '%s', did you mean '%s'?", name, nearest);
    return fail(EXIT_USAGE, "unknown command '%s'; 'tenon help' lists all", name);
}

static int help(int argc, char **argv)
{
    if (argc == 0) {
        help_all(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[0], "--format") == 0) return cmd_pages(argc - 1, argv + 1);
    cmd_id cmd = cmd_by_name(argv[0]);
    if (cmd == CMD_COUNT) return unknown_command(argv[0]);
    help_command(stdout, cmd);
    return EXIT_DONE;
}

// With --json a failure is an object too, unless results were begun. A command line that asks for two forms
// of output gets neither.
static void put_failure(const options *o, int argc, char **argv, int code)
{
    static const char *const others[] = {"--jsonl", "--ids", "--dot", "--svg", "--csv"};
    bool wanted = opt_rows[OPT_JSON].commands >> o->cmd & 1 && opt_flag(o, OPT_JSON);
    for (int i = 0; i < argc; i++) {
        wanted = wanted || (strcmp(argv[i], "--json") == 0 && (opt_rows[OPT_JSON].commands >> o->cmd & 1));
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (strcmp(argv[i], others[k]) == 0) return;
    }
    if (!wanted || code == EXIT_DONE || json_on_stdout()) return;
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_object(&j, "error");
    json_int(&j, "code", code);
    json_text(&j, "message", code == EXIT_INTERRUPTED ? "interrupted" : failure_text());
    json_end_object(&j);
    json_end_object(&j);
}

static int run_command(cmd_id cmd, int argc, char **argv)
{
    options o;
    int code = options_parse(&o, cmd, argc, argv);
    if (!code && opt_flag(&o, OPT_HELP)) {
        help_command(stdout, cmd);
    } else if (!code) {
        interrupt_install();
        code = interrupt_code(commands[cmd](&o));
    }
    put_failure(&o, argc, argv, code);
    options_fini(&o);
    return code;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 || strcmp(name, "version") == 0) {
        printf("tenon %s\n", tn_version());
        return EXIT_DONE;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 2, argv + 2);
    cmd_id cmd = cmd_by_name(name);
    return cmd == CMD_COUNT ? unknown_command(name) : run_command(cmd, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    sys_start(&argc, &argv);
    return out_close(dispatch(argc, argv));
}
