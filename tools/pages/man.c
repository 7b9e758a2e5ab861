// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Manual pages in the macros of man(7): tenon(1), and tenon-COMMAND(1) for each command.
#include "tools/pages/pages.h"

#include <ctype.h>
#include <string.h>
#include <tenon/version.h>

// Text in which nothing is a request or an escape of roff. Line ends are kept.
static void put_text(FILE *out, const char *text)
{
    bool first = true;
    for (; *text; text++) {
        if (first && (*text == '.' || *text == '\'')) fputs("\\&", out);
        first = *text == '\n';
        bool list = (*text == ';' || *text == '/' || *text == '|') && text[1] != ' '; // may be cut behind it
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        if (list) fputs("\\:", out);
    }
}

static void put_upper(FILE *out, const char *text)
{
    for (; *text; text++) fputc(toupper((unsigned char)*text), out);
}

static void put_line(FILE *out, const char *macro, const char *text)
{
    fprintf(out, "%s ", macro);
    put_text(out, text);
    fputc('\n', out);
}

static void put_entries(FILE *out, const char *title, const page_entry *entry)
{
    fprintf(out, ".SH %s\n", title);
    for (; entry->name; entry++) {
        fputs(".TP\n.B ", out);
        put_text(out, entry->name);
        fputc('\n', out);
        put_text(out, entry->text);
        fputc('\n', out);
    }
}

static void put_option(FILE *out, const opt_row *row)
{
    char name[64], text[PAGE_TEXT_SIZE];
    fputs(".TP\n", out);
    const char *before = "\\fB";
    for (const char *p = row->names; (p = page_next_name(p, name, sizeof name)) != NULL; before = ", \\fB") {
        fputs(before, out);
        put_text(out, name);
        fputs("\\fR", out);
    }
    if (*row->value) {
        fputs(" \\fI", out);
        put_text(out, row->value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    page_option_text(row, text, sizeof text);
    put_text(out, text);
    fputc('\n', out);
}

static void put_options(FILE *out, cmd_id cmd, page_group group, const char *title)
{
    bool titled = false;
    for (int i = 0; i < OPT_COUNT; i++) {
        const opt_row *row = &opt_rows[i];
        bool of_command = cmd == CMD_COUNT || row->commands & (1 << cmd);
        if (!of_command || page_group_of(row) != group) continue;
        if (!titled) fprintf(out, ".SH %s\n", title);
        titled = true;
        put_option(out, row);
    }
}

static void put_head(FILE *out, const char *dash, const char *name, const char *help)
{
    fprintf(out,
            ".\\\" Made by tenon help --format man from the tables of commands and options.\n.TH TENON%s",
            *dash ? "\\-" : "");
    put_upper(out, name);
    fprintf(out, " 1 \"\" \"tenon %s\" \"User Commands\"\n.nh\n.SH NAME\ntenon%s%s \\- ", TENON_VERSION,
            *dash ? "\\-" : "", name);
    put_text(out, help);
    fputc('\n', out);
}

static void put_command(FILE *out, cmd_id cmd)
{
    put_head(out, "-", cmd_name(cmd), cmd_help(cmd));
    fprintf(out, ".SH SYNOPSIS\n.B tenon %s\n", cmd_name(cmd));
    if (*cmd_args(cmd)) put_line(out, ".I", cmd_args(cmd));
    fputs("[\\fIFLAGS\\fR]\n", out);
    if (*cmd_notes(cmd)) {
        fputs(".SH DESCRIPTION\n", out);
        put_text(out, cmd_notes(cmd));
    }
    put_options(out, cmd, GROUP_OWN, "OPTIONS");
    put_options(out, cmd, GROUP_MODEL, "OPTIONS OF COMMANDS THAT RUN A MODEL");
    put_options(out, cmd, GROUP_COMPUTE, "OPTIONS OF COMMANDS THAT USE A DEVICE");
    put_options(out, cmd, GROUP_EVERY, "OPTIONS OF ALL COMMANDS");
    fputs(".SH SEE ALSO\n.BR tenon (1)\n", out);
}

static void put_program(FILE *out)
{
    put_head(out, "", "", "run language models on this machine");
    fputs(".SH SYNOPSIS\n.B tenon\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIFLAGS\\fR]\n.br\n"
          ".B tenon help\n[\\fICOMMAND\\fR]\n.br\n.B tenon \\-\\-version\n.SH DESCRIPTION\n",
          out);
    put_text(out, page_about);
    fputs("\n.SH COMMANDS\n", out);
    for (int i = 0; i < CMD_COUNT; i++) {
        fprintf(out, ".TP\n\\fBtenon\\-%s\\fR(1) \\fI", cmd_name((cmd_id)i));
        put_text(out, cmd_args((cmd_id)i));
        fputs("\\fR\n", out);
        put_text(out, cmd_help((cmd_id)i));
        fputc('\n', out);
    }
    put_options(out, CMD_COUNT, GROUP_EVERY, "OPTIONS OF ALL COMMANDS");
    put_entries(out, "ENVIRONMENT", page_environment);
    put_entries(out, "FILES", page_paths);
    put_entries(out, "EXIT STATUS", page_exits);
    put_entries(out, "EXAMPLES", page_examples);
    fputs(".SH SEE ALSO\n", out);
    for (int i = 0; i < CMD_COUNT; i++)
        fprintf(out, ".BR tenon\\-%s (1)%s\n", cmd_name((cmd_id)i), i + 1 < CMD_COUNT ? "," : "");
}

void page_man(FILE *out, cmd_id cmd)
{
    if (cmd == CMD_COUNT)
        put_program(out);
    else
        put_command(out, cmd);
}
