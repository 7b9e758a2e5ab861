// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What `tenon help --format` prints, all of it from the tables of commands and options: manual pages, a
// reference in Markdown, and completions for shells.
#ifndef TENON_TOOLS_PAGES_H
#define TENON_TOOLS_PAGES_H

#include "tools/options.h"

enum { PAGE_TEXT_SIZE = 1024 };

// Flags are described once for all commands that share them, each in the first group that it fits.
typedef enum page_group {
    GROUP_EVERY,   // flags of all commands
    GROUP_COMPUTE, // of all that use a device
    GROUP_MODEL,   // of all that run a model
    GROUP_OWN,     // of some commands only
    GROUP_COUNT
} page_group;
page_group page_group_of(const opt_row *row);
bool page_has_group(cmd_id cmd, page_group group);

// Copies the next name of "-f,--file" to buf; returns what follows, NULL behind the last one.
const char *page_next_name(const char *names, char *buf, size_t size);
// The help of a row with its limits: a sentence.
void page_option_text(const opt_row *row, char *buf, size_t size);

// Flags that only exist so that lines written for another program run are not offered by completions.
bool page_is_offered(opt_id id);

// What a shell offers as the value of a flag, or as an argument of a command.
typedef enum page_values { VALUES_NONE, VALUES_WORDS, VALUES_FILES, VALUES_MODELS } page_values;
// For WORDS, buf receives them, separated by blanks.
page_values page_values_of(const opt_row *row, char *buf, size_t size);
page_values page_arguments_of(cmd_id cmd);

// The words of the environment and the places of files that manual and reference describe.
typedef struct page_entry {
    const char *name, *text;
} page_entry;
extern const page_entry page_environment[], page_paths[], page_exits[], page_examples[]; // end: a NULL name
extern const char page_about[];

// The page of one command, or with CMD_COUNT that of the program.
void page_man(FILE *out, cmd_id cmd);
void page_markdown(FILE *out);
void page_bash(FILE *out);
void page_zsh(FILE *out);
void page_fish(FILE *out);

// tenon help --format FORMAT [COMMAND]; returns the exit code.
int cmd_pages(int argc, char **argv);

#endif
