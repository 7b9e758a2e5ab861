// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/pages/pages.h"

#include "tools/common.h"

#include <string.h>

const char page_about[] =
    "tenon runs language models from GGUF files on the processor, on NVIDIA devices and on devices with "
    "Vulkan. Results go to standard output, everything else to standard error.";

const page_entry page_environment[] = {
    {"TENON_SOME_FLAG", "the value of --some-flag, for every long flag but --model and --help"},
    {"TENON_MODELS", "folders with models that can be named, separated by colons"},
    {"HF_HOME, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, OLLAMA_MODELS",
     "where other programs keep models, which can be named too"},
    {"XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME, XDG_STATE_HOME",
     "where the files below are; without them ~/.config, ~/.local/share, ~/.cache and ~/.local/state"},
    {"NO_COLOR", "if set, no colour unless --color says so"},
    {NULL, NULL},
};

const page_entry page_paths[] = {
    {"$XDG_CONFIG_HOME/tenon/config", "values of flags, a line \"some-flag = value\" each"},
    {"$XDG_DATA_HOME/tenon/models", "models that can be named"},
    {"$XDG_CACHE_HOME/tenon", "what was compiled and measured for the devices of this machine"},
    {"$XDG_STATE_HOME/tenon/history", "lines of chats"},
    {NULL, NULL},
};

const page_entry page_exits[] = {
    {"0", "done"},
    {"1", "failed"},
    {"2", "bad usage"},
    {"3", "bad model file"},
    {"4", "out of memory"},
    {"5", "device missing or failed"},
    {"6", "input does not fit the context"},
    {"130", "interrupted"},
    {NULL, NULL},
};

const page_entry page_examples[] = {
    {"tenon run model.gguf \"Why is the sky blue?\"", "a question, in the chat template of the file"},
    {"tenon run model.gguf", "a chat, on a terminal"},
    {"cat report.txt | tenon run model.gguf \"Sum this up:\"", "what is piped in is appended"},
    {"tenon run model.gguf -p \"A person:\" --json-schema-file person.json", "an answer of a given form"},
    {"tenon batch model.gguf -f prompts.txt --chat -o answers.jsonl", "many prompts, several at a time"},
    {"tenon serve model.gguf", "the interfaces of OpenAI and Ollama over HTTP"},
    {NULL, NULL},
};

page_group page_group_of(const opt_row *row)
{
    int32_t run_model = C_SESSION & ~C_BENCH; // some flags of llama-cli mean something else to bench
    if ((row->commands & C_EVERY) == C_EVERY) return GROUP_EVERY;
    if ((row->commands & C_ALL) == C_ALL) return GROUP_COMPUTE;
    return (row->commands & run_model) == run_model ? GROUP_MODEL : GROUP_OWN;
}

bool page_has_group(cmd_id cmd, page_group group)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if ((opt_rows[i].commands & (1 << cmd)) && page_group_of(&opt_rows[i]) == group) return true;
    return false;
}

bool page_is_offered(opt_id id)
{
    return id < OPT_COMPAT || id > OPT_COMPAT_REFUSED; // neighbours in the table
}

const char *page_next_name(const char *names, char *buf, size_t size)
{
    if (!names || !*names) return NULL;
    size_t n = strcspn(names, ",");
    snprintf(buf, size, "%.*s", (int)n, names);
    return names + n + (names[n] == ',');
}

void page_option_text(const opt_row *row, char *buf, size_t size)
{
    char limits[160];
    opt_limits(row, limits, sizeof limits);
    snprintf(buf, size, *limits ? "%s (%s)" : "%s", row->help, limits);
}

page_values page_values_of(const opt_row *row, char *buf, size_t size)
{
    const char *words = row->value;
    buf[0] = 0;
    if (row->kind == KIND_FLAG) return VALUES_NONE;
    if (strstr(words, "FILE"))
        return row->commands & C_MODEL && strstr(row->names, "--model") ? VALUES_MODELS : VALUES_FILES;
    bool choice = row->kind == KIND_CHOICE || row->kind == KIND_SWITCH;
    if (row->kind == KIND_INT) words = strchr(words, '|'); // "N|auto|all": words besides numbers
    if (!words || (!choice && row->kind != KIND_INT)) return VALUES_NONE;
    snprintf(buf, size, "%s", choice ? words : words + 1);
    for (char *p = buf; *p; p++)
        if (*p == '|') *p = ' ';
    return VALUES_WORDS;
}

page_values page_arguments_of(cmd_id cmd)
{
    const char *args = cmd_args(cmd);
    if (strstr(args, "MODEL") || strstr(args, "NAME")) return VALUES_MODELS;
    return strstr(args, "FILE") || strstr(args, "IN") ? VALUES_FILES : VALUES_NONE;
}

int cmd_pages(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(FILE *out);
    } formats[] = {{"bash", page_bash}, {"zsh", page_zsh}, {"fish", page_fish}, {"markdown", page_markdown}};
    static const char usage[] = "tenon help --format man|bash|zsh|fish|markdown; man takes a COMMAND";
    if (argc < 1) return fail(EXIT_USAGE, "--format needs a value: %s", usage);
    if (strcmp(argv[0], "man") == 0 && argc <= 2) {
        cmd_id cmd = argc > 1 ? cmd_by_name(argv[1]) : CMD_COUNT;
        if (argc > 1 && cmd == CMD_COUNT) return fail(EXIT_USAGE, "unknown command '%s'", argv[1]);
        page_man(stdout, cmd);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats && argc == 1; i++)
        if (strcmp(argv[0], formats[i].name) == 0) {
            formats[i].print(stdout);
            return EXIT_DONE;
        }
    return fail(EXIT_USAGE, "--format %s: %s", argv[0], usage);
}
