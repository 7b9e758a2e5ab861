// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line: one table (options.def) from which parsing, range checks, TENON_* variables and help
// come. Precedence: flag, then TENON_<LONG_NAME> in the environment, then a line of the user's configuration
// file, then the default of the table.
#ifndef TENON_TOOLS_OPTIONS_H
#define TENON_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cmd_id {
#define CMD(id, name, args, help) CMD_##id,
#include "tools/commands.def"
    CMD_COUNT
} cmd_id;

// Sets of commands, for the table.
enum {
#define CMD(id, name, args, help) C_##id = 1 << CMD_##id,
#include "tools/commands.def"
    C_EVERY = (1 << CMD_COUNT) - 1,
    C_STORE = C_LS | C_SHOW | C_PULL | C_RM | C_CONFIG, // they compute nothing
    C_ALL = C_EVERY & ~C_STORE,
    C_MODEL = C_ALL & ~(C_QUANTIZE | C_DEVICES | C_DOCTOR),
    C_MEASURE = C_BENCH | C_ROOFLINE,
    C_SESSION = C_RUN | C_BATCH | C_SERVE | C_MEASURE | C_INSPECT | C_LOGITS | C_EMBED | C_CLASSIFY | C_PLAN |
                C_PERPLEXITY,
    C_GENERATE = C_RUN | C_BATCH, // text
    C_SAMPLE = C_GENERATE | C_SERVE,
};

typedef enum opt_id {
#define OPT(id, kind, names, value, min, max, def, commands, help) OPT_##id,
#include "tools/options.def"
    OPT_COUNT
} opt_id;

typedef enum opt_kind {
    KIND_FLAG,
    KIND_INT,
    KIND_FLOAT,
    KIND_NUMS,
    KIND_TEXT,
    KIND_LIST,
    KIND_CHOICE,
    KIND_SWITCH,
} opt_kind;

typedef struct opt_row {
    opt_kind kind;
    const char *names, *value;
    int64_t min_int, max_int; // bounds as integers, exact for 64 bits
    double min, max;
    const char *text; // default, "" if none
    int32_t commands;
    const char *help;
} opt_row;

extern const opt_row opt_rows[OPT_COUNT];

typedef struct opt_value {
    bool set;         // given by flag or environment
    int64_t i;        // FLAG: 0 or 1; INT; CHOICE, SWITCH: index of the word
    double f;         // FLOAT
    const char *text; // as given; borrowed from argv or the environment
} opt_value;

typedef struct opt_item {
    opt_id id;
    const char *text;
    char name[32]; // as it was given: "-r"
} opt_item;

typedef struct options {
    cmd_id cmd;
    opt_value values[OPT_COUNT];
    const char **args; // arguments that are no flags
    int n_args;
    opt_item *items; // values of LIST options, in order
    int n_items;
    char *config; // text of the configuration file, at which values point
} options;

// Parses argv[0 .. argc). Returns 0, or 2 after a message.
int options_parse(options *o, cmd_id cmd, int argc, char **argv);
void options_fini(options *o);
// Where a value comes from if no flag gives it: its text and "environment", "file" or "default"; the text is
// NULL if there is none. `o` has the configuration file.
const char *opt_setting(const options *o, opt_id id, const char **origin);
// The path of the configuration file; false: neither XDG_CONFIG_HOME nor HOME is set.
bool options_config_path(char *path, size_t size);
// TENON_CTX_SIZE for --ctx-size.
void opt_environment_name(opt_id id, char *buf, size_t size);
// The option of a command with this name ("--temp"), -1 if there is none.
int opt_by_name(cmd_id cmd, const char *name);
// Changes a number or a word later on. Returns 0, or 2 after a message.
int options_set(options *o, opt_id id, const char *text);

bool opt_flag(const options *o, opt_id id);
bool opt_is_set(const options *o, opt_id id);
int64_t opt_int(const options *o, opt_id id);
double opt_float(const options *o, opt_id id);
// NULL if not given and without a default.
const char *opt_text(const options *o, opt_id id);
// The chosen word of a CHOICE or SWITCH, copied to buf.
const char *opt_word(const options *o, opt_id id, char *buf, size_t size);
// Numbers of a NUMS option; returns how many there are, at most max.
int opt_nums(const options *o, opt_id id, int64_t *out, int max);
// Item k (from 0) of a LIST option, NULL past the end.
const char *opt_item_get(const options *o, opt_id id, int k);
// The name by which that item was given, NULL past the end.
const char *opt_item_name(const options *o, opt_id id, int k);
// "--ctx-size": how messages name an option.
const char *opt_name(opt_id id, char *buf, size_t size);

const char *cmd_name(cmd_id cmd);
// Command by name, CMD_COUNT if there is none.
cmd_id cmd_by_name(const char *name);
// Name of the nearest command, NULL if nothing is near.
const char *cmd_nearest(const char *name);

// Number of single-character changes between two strings.
int edit_distance(const char *a, const char *b);

// pages/help.c
// What a row allows and has without a value: "1 to 10; default 5"; "" if that is nothing.
void opt_limits(const opt_row *row, char *buf, size_t size);
const char *cmd_args(cmd_id cmd);
const char *cmd_help(cmd_id cmd);
// Further text about a command, in lines; "" if there is none.
const char *cmd_notes(cmd_id cmd);
void help_all(FILE *out);
void help_command(FILE *out, cmd_id cmd);

#endif
