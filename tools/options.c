// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/options.h"

#include "tools/common.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const opt_row opt_rows[OPT_COUNT] = {
#define OPT(id, kind, names, value, min, max, def, commands, help)                                           \
    {KIND_##kind,   names,         value, (int64_t)(min), (int64_t)(max),                                    \
     (double)(min), (double)(max), def,   commands,       help},
#include "tools/options.def"
};

static const char *const cmd_names[CMD_COUNT] = {
#define CMD(id, name, args, help) #name,
#include "tools/commands.def"
};

enum { NAME_SIZE = 64, DISTANCE_MAX = 48 };

const char *cmd_name(cmd_id cmd)
{
    return cmd_names[cmd];
}

cmd_id cmd_by_name(const char *name)
{
    int i = 0;
    while (i < CMD_COUNT && strcmp(cmd_names[i], name) != 0) i++;
    return (cmd_id)i;
}

int edit_distance(const char *a, const char *b)
{
    int row[DISTANCE_MAX + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > DISTANCE_MAX || m > DISTANCE_MAX) return DISTANCE_MAX;
    for (size_t j = 0; j <= m; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

// A guess helps only if most of the word is right.
static bool is_near(const char *word, int distance)
{
    return distance <= 1 || (size_t)distance * 3 <= strlen(word);
}

const char *cmd_nearest(const char *name)
{
    int best = DISTANCE_MAX, at = -1;
    for (int i = 0; i < CMD_COUNT; i++) {
        int d = edit_distance(name, cmd_names[i]);
        if (d >= best) continue;
        best = d;
        at = i;
    }
    return at >= 0 && is_near(name, best) ? cmd_names[at] : NULL;
}

// --- words separated by commas or bars ---------------------------------------------------------------

// Copies the next word to buf; returns what follows, NULL at the end of the list.
static const char *next_word(const char *list, char separator, char *buf, size_t size)
{
    if (!list || !*list) return NULL;
    const char *end = strchr(list, separator);
    size_t n = end ? (size_t)(end - list) : strlen(list);
    snprintf(buf, size, "%.*s", (int)n, list);
    return end ? end + 1 : list + n;
}

const char *opt_name(opt_id id, char *buf, size_t size)
{
    for (const char *p = opt_rows[id].names; (p = next_word(p, ',', buf, size)) != NULL;)
        if (strncmp(buf, "--", 2) == 0) return buf;
    return buf;
}

static int word_index(const char *words, const char *word)
{
    char buf[NAME_SIZE];
    int i = 0;
    for (const char *p = words; (p = next_word(p, '|', buf, sizeof buf)) != NULL; i++)
        if (strcmp(buf, word) == 0) return i;
    return -1;
}

const char *opt_word(const options *o, opt_id id, char *buf, size_t size)
{
    const char *p = opt_rows[id].value;
    for (int64_t i = 0; i <= o->values[id].i && p; i++) p = next_word(p, '|', buf, size);
    return buf;
}

// --- values --------------------------------------------------------------------------------------------

// Where a value came from, for messages: "-n" or "TENON_PREDICT".
typedef struct source {
    options *o;
    opt_id id;
    const char *name;
} source;

static int bad_number(const source *s, const char *text, const char *reason)
{
    const opt_row *row = &opt_rows[s->id];
    const char *whole = row->kind == KIND_FLOAT ? "a number" : "a whole number";
    if (row->kind == KIND_FLOAT)
        return fail(EXIT_USAGE, "%s: '%s' %s; it takes %s from %g to %g", s->name, text, reason, whole,
                    row->min, row->max);
    return fail(EXIT_USAGE, "%s: '%s' %s; it takes %s from %lld to %lld", s->name, text, reason, whole,
                (long long)row->min_int, (long long)row->max_int);
}

// text[0 .. n) as an integer in the range of the row.
static int read_int(const source *s, const char *text, size_t n, int64_t *out)
{
    char buf[32];
    const opt_row *row = &opt_rows[s->id];
    char shown[NAME_SIZE];
    snprintf(shown, sizeof shown, "%.*s", (int)(n < 48 ? n : 48), text);
    if (n == 0) return bad_number(s, shown, "is no number");
    if (n >= sizeof buf) return bad_number(s, shown, "is out of range");
    memcpy(buf, text, n);
    buf[n] = 0;
    char *end;
    errno = 0;
    long long v = strtoll(buf, &end, 10);
    if (end == buf || *end || strchr(" \t\n\v\f\r", buf[0]))
        return bad_number(s, shown, "is no whole number");
    if (errno == ERANGE || v < row->min_int || v > row->max_int)
        return bad_number(s, shown, "is out of range");
    *out = v;
    return 0;
}

static int read_float(const source *s, const char *text, double *out)
{
    const opt_row *row = &opt_rows[s->id];
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || strchr(" \t\n\v\f\r", text[0])) return bad_number(s, text, "is no number");
    if (!isfinite(v) || v < row->min || v > row->max) return bad_number(s, text, "is out of range");
    *out = v;
    return 0;
}

static int read_nums(const source *s, const char *text)
{
    for (const char *p = text;;) {
        size_t n = strcspn(p, ",");
        int64_t v;
        int code = read_int(s, p, n, &v);
        if (code || !p[n]) return code;
        p += n + 1;
    }
}

static int read_choice(const source *s, const char *text, int64_t *out)
{
    *out = word_index(opt_rows[s->id].value, text);
    if (*out >= 0) return 0;
    return fail(EXIT_USAGE, "%s: '%s' is unknown; it takes %s", s->name, text, opt_rows[s->id].value);
}

// Flags in the environment: TENON_STATS=1.
static int read_flag(const source *s, const char *text, int64_t *out)
{
    int yes = word_index("1|on|true|yes", text), no = word_index("0|off|false|no", text);
    if (yes < 0 && no < 0 && *text)
        return fail(EXIT_USAGE, "%s: '%s' is unknown; it takes 1 or 0", s->name, text);
    *out = yes >= 0;
    return 0;
}

static int set_value(const source *s, const char *text)
{
    opt_value *v = &s->o->values[s->id];
    const opt_row *row = &opt_rows[s->id];
    int code = 0;
    switch (row->kind) {
    case KIND_FLAG:
        code = read_flag(s, text, &v->i);
        break;
    case KIND_INT:
        if (word_index(row->value, text) > 0)
            v->i = -1;
        else
            code = read_int(s, text, strlen(text), &v->i);
        break;
    case KIND_FLOAT:
        code = read_float(s, text, &v->f);
        break;
    case KIND_NUMS:
        code = read_nums(s, text);
        break;
    case KIND_CHOICE:
    case KIND_SWITCH:
        code = read_choice(s, text, &v->i);
        break;
    case KIND_TEXT:
        if (!*text && strcmp(row->value, "FILE") == 0)
            code = fail(EXIT_USAGE, "%s: the name is empty; give a file", s->name);
        break;
    case KIND_LIST:
        snprintf(s->o->items[s->o->n_items].name, sizeof s->o->items->name, "%.31s", s->name);
        s->o->items[s->o->n_items].id = s->id;
        s->o->items[s->o->n_items++].text = text;
        break;
    }
    if (code) return code;
    v->text = text;
    v->set = true;
    return 0;
}

// --- defaults and environment ----------------------------------------------------------------------------

static void set_defaults(options *o)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        opt_value *v = &o->values[i];
        const opt_row *row = &opt_rows[i];
        v->text = *row->text ? row->text : NULL;
        if (row->kind == KIND_INT && v->text) v->i = strtoll(v->text, NULL, 10);
        if (row->kind == KIND_FLOAT && v->text) v->f = strtod(v->text, NULL);
        if (row->kind == KIND_CHOICE || row->kind == KIND_SWITCH) v->i = word_index(row->value, row->text);
    }
}

// "--ctx-size" -> "TENON_CTX_SIZE"
void opt_environment_name(opt_id id, char *buf, size_t size)
{
    char name[NAME_SIZE];
    opt_name(id, name, sizeof name);
    snprintf(buf, size, "TENON_%s", name + 2);
    for (char *p = buf; *p; p++) {
        if (*p == '-')
            *p = '_';
        else if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    }
}

static int read_environment(options *o)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!(opt_rows[i].commands & (1 << o->cmd)) || o->values[i].set) continue;
        if (i == OPT_HELP || i == OPT_MODEL) continue; // --model decides what the first argument means
        char name[NAME_SIZE + 8];
        opt_environment_name((opt_id)i, name, sizeof name);
        const char *text = sys_env(name);
        if (!text || !*text) continue; // set to nothing is not set
        source s = {o, (opt_id)i, name};
        int code = set_value(&s, text);
        if (code) return code;
    }
    return 0;
}

// --- arguments -------------------------------------------------------------------------------------------

static bool has_name(const opt_row *row, const char *name, size_t n)
{
    char buf[NAME_SIZE];
    for (const char *p = row->names; (p = next_word(p, ',', buf, sizeof buf)) != NULL;)
        if (strlen(buf) == n && memcmp(buf, name, n) == 0) return true;
    return false;
}

static int find_option(int32_t commands, const char *name, size_t n)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if ((opt_rows[i].commands & commands) && has_name(&opt_rows[i], name, n)) return i;
    return -1;
}

static int unknown_option(cmd_id cmd, const char *arg, size_t n)
{
    char name[NAME_SIZE], buf[NAME_SIZE], nearest[NAME_SIZE] = "";
    snprintf(name, sizeof name, "%.*s", (int)(n < NAME_SIZE ? n : NAME_SIZE - 1), arg);
    int best = DISTANCE_MAX;
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!(opt_rows[i].commands & (1 << cmd))) continue;
        for (const char *p = opt_rows[i].names; (p = next_word(p, ',', buf, sizeof buf)) != NULL;) {
            int d = edit_distance(name, buf);
            if (d >= best) continue;
            best = d;
            memcpy(nearest, buf, sizeof nearest);
        }
    }
    int other = find_option(C_EVERY, arg, n);
    for (int c = 0; other >= 0 && c < CMD_COUNT; c++)
        if (opt_rows[other].commands & (1 << c))
            return fail(EXIT_USAGE, "%s is a flag of 'tenon %s', not of 'tenon %s'; see 'tenon help %s'",
                        name, cmd_names[c], cmd_names[cmd], cmd_names[cmd]);
    if (is_near(name, best))
        return fail(EXIT_USAGE, "unknown flag %s, did you mean %s? 'tenon help %s' lists all", name, nearest,
                    cmd_names[cmd]);
    return fail(EXIT_USAGE, "unknown flag %s; 'tenon help %s' lists all, -- ends the flags", name,
                cmd_names[cmd]);
}

// Scripts for other tools write --top_k for --top-k.
static int find_dashed(cmd_id cmd, const char *arg, size_t n)
{
    char name[NAME_SIZE];
    if (n >= sizeof name || strncmp(arg, "--", 2) != 0) return -1;
    for (size_t i = 0; i < n; i++) name[i] = arg[i] == '_' ? '-' : arg[i];
    return find_option(1 << cmd, name, n);
}

// A number directly behind a flag of one dash, as in "-t1" or "-n-1": the length of the flag, 0 if it is
// none.
static size_t attached_number(cmd_id cmd, const char *arg)
{
    size_t n = 1 + strspn(arg + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const char *number = arg + n + (arg[n] == '-');
    if (n < 2 || *number < '0' || *number > '9') return 0;
    int id = find_option(1 << cmd, arg, n);
    bool numeric = id >= 0 && (opt_rows[id].kind == KIND_INT || opt_rows[id].kind == KIND_FLOAT ||
                               opt_rows[id].kind == KIND_NUMS);
    return numeric ? n : 0;
}

// Two prompts are a mistake; of other options the last one counts.
static int check_repeated(const options *o, opt_id id, const char *name)
{
    bool prompt = id == OPT_PROMPT || id == OPT_FILE || id == OPT_TOKENS;
    if (!prompt || !o->values[id].set) return 0;
    return fail(EXIT_USAGE, "%s is given twice; give one prompt", name);
}

// One flag at argv[0], its value behind '=' or in argv[1]. *used: arguments taken.
static int parse_flag(options *o, int argc, char **argv, int *used)
{
    const char *arg = argv[0];
    size_t n = strcspn(arg, "="), attached = 0;
    int id = find_option(1 << o->cmd, arg, n);
    if (id < 0) id = find_dashed(o->cmd, arg, n);
    if (id < 0 && (attached = attached_number(o->cmd, arg)) > 0)
        id = find_option(1 << o->cmd, arg, n = attached);
    if (id < 0) return unknown_option(o->cmd, arg, n);
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)n, arg);
    source s = {o, (opt_id)id, name};
    opt_kind kind = opt_rows[id].kind;
    *used = 1;
    int code = check_repeated(o, s.id, name);
    if (code) return code;
    if (attached) return set_value(&s, arg + n);
    if (arg[n] == '=') return set_value(&s, arg + n + 1);
    if (kind == KIND_FLAG) return set_value(&s, "1");
    bool has_next = argc > 1;
    if (kind == KIND_SWITCH && !(has_next && word_index(opt_rows[id].value, argv[1]) >= 0)) {
        o->values[id] = (opt_value){.set = true, .i = 0};
        return 0;
    }
    if (!has_next) return fail(EXIT_USAGE, "%s needs a value (%s)", name, opt_rows[id].value);
    *used = 2;
    code = set_value(&s, argv[1]);
    // The scale may be a word of its own: it becomes a second item.
    bool scale = id == OPT_LORA_SCALED && !code && argc > 2 && !strrchr(argv[1], ':');
    if (!scale || !adapter_is_number(argv[2])) return code;
    *used = 3;
    return set_value(&s, argv[2]);
}

// --- the configuration file --------------------------------------------------------------------------------

bool options_config_path(char *path, size_t size)
{
    static const char own[] = "/tenon/config";
    if (size < sizeof own || !sys_place_get(SYS_CONFIG, path, size - sizeof own)) return false;
    memcpy(path + strlen(path), own, sizeof own);
    return true;
}

// Cuts blanks at both ends, in place.
static char *trimmed(char *text)
{
    text += strspn(text, " \t\r");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1])) text[--n] = 0;
    return text;
}

// One line, "ctx-size = 8192": its key and value, NULL for a comment or an empty line.
static char *split_line(char *line, char **value)
{
    char *key = trimmed(line), *equals = strchr(key, '=');
    if (!*key || *key == '#') return NULL;
    *value = equals ? equals + 1 : key + strlen(key);
    if (equals) *equals = 0;
    *value = trimmed(*value);
    return trimmed(key);
}

static int take_line(options *o, const char *path, int number, char *line)
{
    char *value, name[NAME_SIZE + 2], where[NAME_SIZE + 16];
    char *key = split_line(line, &value);
    if (!key) return 0;
    snprintf(name, sizeof name, "--%.*s", NAME_SIZE - 1, key);
    if (find_option(C_EVERY, name, strlen(name)) < 0 || strcmp(name, "--help") == 0 ||
        strcmp(name, "--model") == 0)
        return fail(EXIT_USAGE, "%s, line %d: there is no flag --%.60s", path, number, key);
    int id = find_option(1 << o->cmd, name, strlen(name));
    if (id < 0 || o->values[id].set) return 0;
    snprintf(where, sizeof where, "%.*s in the configuration file", NAME_SIZE - 20, key);
    source s = {o, (opt_id)id, where};
    return set_value(&s, value);
}

// Lines "key = value" with the long names of flags; those of other commands are skipped.
static int read_config(options *o)
{
    char path[1024];
    size_t n;
    if (!options_config_path(path, sizeof path) || !sys_is_readable(path)) return 0;
    int code = read_input(path, &o->config, &n), number = 1;
    for (char *line = o->config; !code && line; number++) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        code = take_line(o, path, number, line);
        line = end ? end + 1 : NULL;
    }
    return code;
}

const char *opt_setting(const options *o, opt_id id, const char **origin)
{
    char name[NAME_SIZE + 8];
    opt_environment_name(id, name, sizeof name);
    const char *text = sys_env(name);
    *origin = "environment";
    if (text && *text) return text;
    *origin = "file";
    if (o->values[id].set) return o->values[id].text;
    *origin = "default";
    return *opt_rows[id].text ? opt_rows[id].text : NULL;
}

int options_parse(options *o, cmd_id cmd, int argc, char **argv)
{
    memset(o, 0, sizeof *o);
    o->cmd = cmd;
    o->args = calloc((size_t)argc + 1, sizeof *o->args);
    o->items = calloc((size_t)argc + 2 * OPT_COUNT, sizeof *o->items);
    if (!o->args || !o->items) return fail(EXIT_MEMORY, "out of memory while reading the command line");
    set_defaults(o);
    int code = 0;
    bool flags = true;
    for (int i = 0; i < argc && !code;) {
        int used = 1;
        if (flags && strcmp(argv[i], "--") == 0)
            flags = false;
        else if (flags && argv[i][0] == '-' && argv[i][1])
            code = parse_flag(o, argc - i, argv + i, &used);
        else
            o->args[o->n_args++] = argv[i];
        i += used;
    }
    if (!code) code = read_environment(o); // it only sets options without a flag
    return code ? code : read_config(o);
}

int opt_by_name(cmd_id cmd, const char *name)
{
    return find_option(1 << cmd, name, strlen(name));
}

int options_set(options *o, opt_id id, const char *text)
{
    char name[NAME_SIZE];
    source s = {o, id, opt_name(id, name, sizeof name)};
    int code = set_value(&s, text);
    if (!code) o->values[id].text = opt_rows[id].text; // the text of the caller may be freed
    return code;
}

void options_fini(options *o)
{
    free(o->args);
    free(o->items);
    free(o->config);
    o->config = NULL;
    o->args = NULL;
    o->items = NULL;
}

// --- access ----------------------------------------------------------------------------------------------

bool opt_flag(const options *o, opt_id id)
{
    return o->values[id].i != 0;
}

bool opt_is_set(const options *o, opt_id id)
{
    return o->values[id].set;
}

int64_t opt_int(const options *o, opt_id id)
{
    return o->values[id].i;
}

double opt_float(const options *o, opt_id id)
{
    return o->values[id].f;
}

const char *opt_text(const options *o, opt_id id)
{
    return o->values[id].text;
}

int opt_nums(const options *o, opt_id id, int64_t *out, int max)
{
    int n = 0;
    for (const char *p = o->values[id].text; p && *p && n < max; n++) {
        char *end;
        out[n] = strtoll(p, &end, 10);
        p = *end == ',' ? end + 1 : NULL;
    }
    return n;
}

static const opt_item *find_item(const options *o, opt_id id, int k)
{
    for (int i = 0; i < o->n_items; i++)
        if (o->items[i].id == id && k-- == 0) return &o->items[i];
    return NULL;
}

const char *opt_item_get(const options *o, opt_id id, int k)
{
    const opt_item *item = find_item(o, id, k);
    return item ? item->text : NULL;
}

const char *opt_item_name(const options *o, opt_id id, int k)
{
    const opt_item *item = find_item(o, id, k);
    return item ? item->name : NULL;
}
