// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Completions for zsh: a file _tenon in a folder of $fpath, or one to be sourced.
#include "tools/pages/pages.h"

#include <string.h>

static const char head[] = "#compdef tenon\n"
                           "# Completions of tenon for zsh, made by: tenon help --format zsh\n"
                           "_tenon_models() {\n"
                           "  local -a names\n"
                           "  names=(${(f)\"$(tenon ls 2>/dev/null | sed 's/  .*//')\"})\n"
                           "  compadd -a names\n"
                           "  _files\n"
                           "}\n"
                           "\n"
                           "_tenon() {\n"
                           "  local command\n"
                           "  local -a commands\n"
                           "  commands=(\n";

static const char tail[] = "  esac\n"
                           "}\n"
                           "\n"
                           "if [ \"$funcstack[1]\" = _tenon ]; then\n"
                           "  _tenon \"$@\"\n"
                           "else\n"
                           "  compdef _tenon tenon\n"
                           "fi\n";

// Text inside of single quotes, with the marks of _arguments and _describe made plain.
static void put_quoted(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", out);
            continue;
        }
        if (strchr("[]:\\", *text)) fputc('\\', out);
        fputc(*text, out);
    }
}

static void put_action(FILE *out, page_values values, const char *words)
{
    static const char *const actions[] = {" ", "", "_files", "_tenon_models"};
    if (values == VALUES_WORDS)
        fprintf(out, "(%s)", words);
    else
        fputs(actions[values], out);
}

static void put_option(FILE *out, const opt_row *row)
{
    char name[64], words[256];
    page_values values = page_values_of(row, words, sizeof words);
    for (const char *p = row->names; (p = page_next_name(p, name, sizeof name)) != NULL;) {
        // Behind a long name, the value may also follow an equals sign.
        fprintf(out, "      '*%s%s[", name, row->kind != KIND_FLAG && name[1] == '-' ? "=" : "");
        put_quoted(out, row->help);
        fputc(']', out);
        if (row->kind != KIND_FLAG) {
            fputs(row->kind == KIND_SWITCH ? "::" : ":", out);
            put_quoted(out, row->value);
            fputc(':', out);
            put_action(out, values, words);
        }
        fputs("' \\\n", out);
    }
}

void page_zsh(FILE *out)
{
    fputs(head, out);
    for (int i = 0; i < CMD_COUNT; i++) {
        fprintf(out, "    '%s:", cmd_name((cmd_id)i));
        put_quoted(out, cmd_help((cmd_id)i));
        fputs("'\n", out);
    }
    fputs("    'help:all commands, or the flags of one'\n    'version:the version of this program'\n  )\n"
          "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
          "  command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n"
          "  help) _arguments '--format[the form of the text]:form:(man bash zsh fish markdown)' "
          "':command:(${commands%%:*})' ;;\n",
          out);
    for (int i = 0; i < CMD_COUNT; i++) {
        fprintf(out, "  %s)\n    _arguments \\\n", cmd_name((cmd_id)i));
        for (int k = 0; k < OPT_COUNT; k++)
            if (page_is_offered((opt_id)k) && opt_rows[k].commands & (1 << i)) put_option(out, &opt_rows[k]);
        fputs("      '*:argument:", out);
        put_action(out, page_arguments_of((cmd_id)i), "");
        fputs("'\n    ;;\n", out);
    }
    fputs(tail, out);
}
