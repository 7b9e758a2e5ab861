// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The reference docs/cli.md. Tables have a line per flag; flags that many commands share have one table.
#include "tools/pages/pages.h"

#include <ctype.h>
#include <string.h>

enum { COLUMNS = 110 };

// An underscore between two letters is no mark.
static bool is_mark(const char *text, size_t i)
{
    bool inside = i > 0 && isalnum((unsigned char)text[i - 1]) && isalnum((unsigned char)text[i + 1]);
    return strchr("\\*<`", text[i]) || (text[i] == '_' && !inside);
}

// Text in which nothing is a mark of Markdown, for a cell of a table.
static void put_cell(FILE *out, const char *text)
{
    for (size_t i = 0; text[i]; i++) {
        if (text[i] == '|' || is_mark(text, i)) fputc('\\', out);
        fputc(text[i], out);
    }
}

// Code in a cell. A bar would end the cell even there.
static void put_code(FILE *out, const char *text)
{
    fputc('`', out);
    for (; *text; text++) fputs(*text == '|' ? "\\|" : (char[]){*text, 0}, out);
    fputc('`', out);
}

// A paragraph in lines of COLUMNS characters.
static void put_paragraph(FILE *out, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t n = strcspn(text, " \n"), wide = n;
        for (size_t i = 0; i < n; i++) wide += is_mark(text, i);
        if (column && column + 1 + wide > COLUMNS) {
            fputc('\n', out);
            column = 0;
        }
        if (column) fputc(' ', out), column++;
        for (size_t i = 0; i < n; i++) {
            // A dash alone would begin a list where it is the first of a line.
            if (is_mark(text, i) || (n == 1 && *text == '-')) fputc('\\', out);
            fputc(text[i], out);
        }
        column += wide;
        text += n;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

// Where a shared flag is missing: " (not bench)".
static void put_exceptions(FILE *out, const opt_row *row, page_group group)
{
    int32_t all = group == GROUP_MODEL ? C_SESSION : row->commands;
    const char *before = " (not ";
    for (int i = 0; i < CMD_COUNT; i++) {
        if (!(all & ~row->commands & (1 << i))) continue;
        fprintf(out, "%s%s", before, cmd_name((cmd_id)i));
        before = ", ";
    }
    if (*before == ',') fputc(')', out);
}

static void put_option(FILE *out, const opt_row *row, page_group group)
{
    char name[64], text[PAGE_TEXT_SIZE];
    const char *before = "| ";
    for (const char *p = row->names; (p = page_next_name(p, name, sizeof name)) != NULL; before = " ") {
        fputs(before, out);
        put_code(out, name);
    }
    if (*row->value) {
        fputc(' ', out);
        put_cell(out, row->value);
    }
    fputs(" | ", out);
    page_option_text(row, text, sizeof text);
    put_cell(out, text);
    put_exceptions(out, row, group);
    fputs(" |\n", out);
}

static void put_options(FILE *out, cmd_id cmd, page_group group)
{
    bool headed = false;
    for (int i = 0; i < OPT_COUNT; i++) {
        const opt_row *row = &opt_rows[i];
        bool of_command = cmd == CMD_COUNT || row->commands & (1 << cmd);
        if (!of_command || page_group_of(row) != group) continue;
        if (!headed) fputs("\n| Flag | Meaning |\n|---|---|\n", out);
        headed = true;
        put_option(out, row, group);
    }
}

static void put_entries(FILE *out, const char *title, const char *head, const page_entry *entry)
{
    fprintf(out, "\n## %s\n| %s | Meaning |\n|---|---|\n", title, head);
    for (; entry->name; entry++) {
        fputs("| ", out);
        put_code(out, entry->name);
        fputs(" | ", out);
        put_cell(out, entry->text);
        fputs(" |\n", out);
    }
}

static void put_command(FILE *out, cmd_id cmd)
{
    static const char *const groups[] = {"[all commands](#flags-of-all-commands)",
                                         "[commands that use a device](#flags-of-commands-that-use-a-device)",
                                         "[commands that run a model](#flags-of-commands-that-run-a-model)"};
    const char *gap = *cmd_args(cmd) ? " " : "";
    fprintf(out, "\n## tenon %s\n`tenon %s%s%s [FLAGS]`\n\n", cmd_name(cmd), cmd_name(cmd), gap,
            cmd_args(cmd));
    put_paragraph(out, cmd_help(cmd));
    if (*cmd_notes(cmd)) {
        fputc('\n', out);
        put_paragraph(out, cmd_notes(cmd));
    }
    put_options(out, cmd, GROUP_OWN);
    fputs("\nAlso the flags of:\n", out);
    for (int i = GROUP_OWN - 1; i >= 0; i--)
        if (page_has_group(cmd, (page_group)i)) fprintf(out, "- %s\n", groups[i]);
}

void page_markdown(FILE *out)
{
    fputs(
        "# The command line\n\n"
        "This page is made by `tenon help --format markdown` from the tables of commands and options; a test "
        "fails\nwhen it differs. `tenon help COMMAND` and `man tenon-COMMAND` say the same.\n\n",
        out);
    put_paragraph(out, page_about);
    fputs("\n| Command | Does |\n|---|---|\n", out);
    for (int i = 0; i < CMD_COUNT; i++) {
        fprintf(out, "| [%s](#tenon-%s)%s", cmd_name((cmd_id)i), cmd_name((cmd_id)i),
                *cmd_args((cmd_id)i) ? " " : "");
        put_cell(out, cmd_args((cmd_id)i));
        fputs(" | ", out);
        put_cell(out, cmd_help((cmd_id)i));
        fputs(" |\n", out);
    }
    fputs("\n## Flags of all commands\n", out);
    put_options(out, CMD_COUNT, GROUP_EVERY);
    fputs("\n## Flags of commands that use a device\n", out);
    put_options(out, CMD_COUNT, GROUP_COMPUTE);
    fputs("\n## Flags of commands that run a model\n", out);
    put_options(out, CMD_COUNT, GROUP_MODEL);
    for (int i = 0; i < CMD_COUNT; i++) put_command(out, (cmd_id)i);
    put_entries(out, "Environment", "Variable", page_environment);
    put_entries(out, "Files", "Path", page_paths);
    put_entries(out, "Exit codes", "Code", page_exits);
}
