// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Completions for fish.
#include "tools/pages/pages.h"

#include <string.h>

static const char head[] =
    "# Completions of tenon for fish, made by: tenon help --format fish\n"
    "function __tenon_models\n"
    "    tenon ls 2>/dev/null | sed 's/  .*//'\n"
    "end\n"
    "\n"
    "# Whether the command is one of these; without names: whether it is still to be given.\n"
    "function __tenon_command\n"
    "    set -l words (commandline -opc)\n"
    "    if test (count $argv) -eq 0\n"
    "        test (count $words) -eq 1\n"
    "    else\n"
    "        test (count $words) -gt 1; and contains -- $words[2] $argv\n"
    "    end\n"
    "end\n"
    "\n"
    "complete -c tenon -f\n";

static void put_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void put_condition(FILE *out, int32_t commands)
{
    fputs("complete -c tenon -n '__tenon_command", out);
    for (int i = 0; i < CMD_COUNT; i++)
        if (commands & (1 << i)) fprintf(out, " %s", cmd_name((cmd_id)i));
    fputc('\'', out);
}

static void put_option(FILE *out, const opt_row *row)
{
    static const char *const values_flags[] = {" -x", " -x", " -r -F", " -r -F -a '(__tenon_models)'"};
    char name[64], words[256];
    page_values values = page_values_of(row, words, sizeof words);
    put_condition(out, row->commands);
    for (const char *p = row->names; (p = page_next_name(p, name, sizeof name)) != NULL;) {
        bool is_long = name[1] == '-';
        fprintf(out, " -%c %s", is_long ? 'l' : name[2] ? 'o' : 's', name + 1 + is_long);
    }
    if (row->kind == KIND_SWITCH)
        fprintf(out, " -f -a '%s'", words); // the value may be absent
    else if (row->kind != KIND_FLAG)
        fputs(values_flags[values], out);
    if (row->kind != KIND_SWITCH && values == VALUES_WORDS) fprintf(out, " -a '%s'", words);
    fputs(" -d ", out);
    put_quoted(out, row->help);
    fputc('\n', out);
}

void page_fish(FILE *out)
{
    fputs(head, out);
    for (int i = 0; i < CMD_COUNT; i++) {
        fprintf(out, "complete -c tenon -n __tenon_command -a %s -d ", cmd_name((cmd_id)i));
        put_quoted(out, cmd_help((cmd_id)i));
        fputc('\n', out);
    }
    fputs("complete -c tenon -n __tenon_command -a help -d 'all commands, or the flags of one'\n"
          "complete -c tenon -n __tenon_command -a version -d 'the version of this program'\n"
          "complete -c tenon -n '__tenon_command help' -l format -x -a 'man bash zsh fish markdown' -d "
          "'the form of the text'\n",
          out);
    for (int i = 0; i < CMD_COUNT; i++) {
        fprintf(out, "complete -c tenon -n '__tenon_command help' -a %s\n", cmd_name((cmd_id)i));
        page_values values = page_arguments_of((cmd_id)i);
        if (values == VALUES_NONE) continue;
        put_condition(out, 1 << i);
        fputs(values == VALUES_MODELS ? " -F -a '(__tenon_models)'\n" : " -F\n", out);
    }
    for (int i = 0; i < OPT_COUNT; i++)
        if (page_is_offered((opt_id)i)) put_option(out, &opt_rows[i]);
}
