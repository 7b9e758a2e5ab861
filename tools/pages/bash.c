// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Completions for bash. The script needs no other package.
#include "tools/pages/pages.h"

static const char head[] =
    "# Completions of tenon for bash, made by: tenon help --format bash\n"
    "_tenon_models()\n"
    "{\n"
    "    tenon ls 2>/dev/null | sed 's/  .*//'\n"
    "}\n"
    "\n"
    "_tenon()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words=() word previous command flags kind list\n"
    "    word=${line##*[[:space:]]}\n"
    "    read -ra words <<<\"$line\"\n"
    "    [ -z \"$word\" ] || unset 'words[${#words[@]}-1]'\n"
    "    previous=${words[${#words[@]}-1]} command=${words[1]-}\n"
    "    case $word in\n"
    "    -*=*) previous=${word%%=*} word=${word#*=} ;;\n"
    "    esac\n"
    "    kind=none list=\n"
    "    case $command in\n";

static const char tail[] =
    "    esac\n"
    "    case $word in\n"
    "    -*) kind=words list=$flags ;;\n"
    "    esac\n"
    "    COMPREPLY=()\n"
    "    case $kind in\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$word\") ;;\n"
    "    files | models)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
    "        ;;\n"
    "    esac\n"
    "    if [ $kind = models ]; then\n"
    "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \"$(_tenon_models)\" -- \"$word\")\n"
    "    fi\n"
    "    # Bash replaces what follows the last colon only, if it breaks words there.\n"
    "    case $COMP_WORDBREAKS:$word in\n"
    "    *:*:*)\n"
    "        local i begin=${word%\"${word##*:}\"}\n"
    "        for i in \"${!COMPREPLY[@]}\"; do COMPREPLY[i]=${COMPREPLY[i]#\"$begin\"}; done\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _tenon tenon\n";

static const char *kind_name(page_values values)
{
    static const char *const names[] = {"none", "words", "files", "models"};
    return names[values];
}

// The values of one flag: "-f | --file) kind=files ;;".
static void put_value(FILE *out, const opt_row *row)
{
    char name[64], words[256];
    page_values values = page_values_of(row, words, sizeof words);
    const char *before = "        ";
    for (const char *p = row->names; (p = page_next_name(p, name, sizeof name)) != NULL; before = " | ")
        fprintf(out, "%s%s", before, name);
    fprintf(out, ") kind=%s", kind_name(values));
    if (values == VALUES_WORDS) fprintf(out, " list=\"%s\"", words);
    fputs(" ;;\n", out);
}

static void put_command(FILE *out, cmd_id cmd)
{
    char name[64];
    fprintf(out, "    %s)\n        kind=%s\n        flags=\"", cmd_name(cmd),
            kind_name(page_arguments_of(cmd)));
    const char *before = "";
    for (int i = 0; i < OPT_COUNT; i++)
        for (const char *p =
                 page_is_offered((opt_id)i) && opt_rows[i].commands & (1 << cmd) ? opt_rows[i].names : NULL;
             (p = page_next_name(p, name, sizeof name)) != NULL; before = " ")
            fprintf(out, "%s%s", before, name);
    fputs("\"\n        case $previous in\n", out);
    for (int i = 0; i < OPT_COUNT; i++)
        if (opt_rows[i].commands & (1 << cmd) && opt_rows[i].kind != KIND_FLAG) put_value(out, &opt_rows[i]);
    fputs("        esac\n        ;;\n", out);
}

static void put_names(FILE *out)
{
    for (int i = 0; i < CMD_COUNT; i++) fprintf(out, "%s ", cmd_name((cmd_id)i));
}

void page_bash(FILE *out)
{
    fputs(head, out);
    fputs("    '') kind=words list=\"", out);
    put_names(out);
    fputs(
        "help version\" flags=\"--help --version\" ;;\n    help)\n        kind=words flags=--format list=\"",
        out);
    put_names(out);
    fputs("\"\n        [ \"$previous\" != --format ] || list=\"man bash zsh fish markdown\"\n"
          "        ;;\n",
          out);
    for (int i = 0; i < CMD_COUNT; i++) put_command(out, (cmd_id)i);
    fputs(tail, out);
}
