// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of sampling, from the command line to tn_sampling.
#include "tools/chat/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// "15043-1.5": token and value; only minus infinity may be infinite.
static int parse_bias(run_state *r, const char *text)
{
    char *end;
    long long id = strtoll(text, &end, 10);
    if (end == text || text[0] < '0' || text[0] > '9' || (*end != '+' && *end != '-'))
        return fail(EXIT_USAGE, "--logit-bias: '%s' is not ID+X or ID-X, as in 15043-1.5", text);
    if (id >= r->info.n_vocab)
        return fail(EXIT_USAGE, "--logit-bias: token id %lld is out of range; this vocabulary has 0 to %d",
                    id, r->info.n_vocab - 1);
    char *last;
    double value = strtod(end, &last);
    if (last == end || *last || isnan(value) || value > 1e6 || (value < -1e6 && isfinite(value)))
        return fail(EXIT_USAGE, "--logit-bias: '%s' is no bias; it takes -1000000 to 1000000, or -inf", end);
    r->bias_tokens[r->n_bias] = (int32_t)id;
    r->bias_values[r->n_bias++] = (float)value;
    return 0;
}

// Shells pass "\\n" as a backslash and an n: \n, \t, \r, \", \' and \\ are replaced by their characters.
static char *unescaped(const char *text)
{
    static const char letters[] = "ntr\"'\\", plain[] = "\n\t\r\"'\\";
    char *out = malloc(strlen(text) + 1), *w = out;
    for (; out && *text; text++) {
        const char *at = *text == '\\' && text[1] ? strchr(letters, text[1]) : NULL;
        *w++ = at ? plain[at - letters] : *text;
        text += at != NULL;
    }
    if (out) *w = 0;
    return out;
}

// The first breaker given replaces the default ones; "none" leaves none.
static int read_breakers(run_state *r)
{
    const options *o = r->t.opt;
    const char *text;
    r->n_breakers = -1;
    for (int k = 0; (text = opt_item_get(o, OPT_DRY_BREAKER, k)) != NULL; k++) {
        if (k == 0) r->n_breakers = 0;
        if (strcmp(text, "none") == 0) continue;
        r->breakers[r->n_breakers] = unescaped(text);
        if (!r->breakers[r->n_breakers++]) return fail(EXIT_MEMORY, "out of memory for the options");
    }
    return 0;
}

// "kpt": one letter for each sampler.
static int read_sequence(run_state *r)
{
    static const char letters[] = "edskypmxt";
    static const char *const names[] = {"penalties", "dry",   "top_n_sigma", "top_k",      "typ_p",
                                        "top_p",     "min_p", "xtc",         "temperature"};
    const char *text = opt_text(r->t.opt, OPT_SAMPLING_SEQ);
    if (!text) return 0;
    if (opt_is_set(r->t.opt, OPT_SAMPLERS))
        return fail(EXIT_USAGE, "--samplers and --sampling-seq both give the order; give one of them");
    size_t used = 0;
    for (const char *p = text; *p; p++) {
        const char *at = strchr(letters, *p);
        if (!at)
            return fail(EXIT_USAGE, "--sampling-seq: '%c' is unknown; it takes letters of %s", *p, letters);
        used += (size_t)snprintf(r->samplers + used, sizeof r->samplers - used, "%s;", names[at - letters]);
        if (used >= sizeof r->samplers) return fail(EXIT_USAGE, "--sampling-seq: '%s' is too long", text);
    }
    return 0;
}

// Text of a flag or of a file; NULL if neither was given.
static int read_text(const options *o, opt_id text, opt_id file, char **out)
{
    char name[64], file_name[64];
    size_t n = 0;
    if (opt_is_set(o, text) && opt_is_set(o, file))
        return fail(EXIT_USAGE, "%s and %s exclude each other; give one of them",
                    opt_name(text, name, sizeof name), opt_name(file, file_name, sizeof file_name));
    if (opt_is_set(o, file)) {
        int code = read_input(opt_text(o, file), out, &n);
        if (!code && strlen(*out) != n)
            code = fail(EXIT_FAILED, "%s: a zero byte after %zu bytes; it is no text", opt_text(o, file),
                        strlen(*out));
        return code;
    }
    if (!opt_is_set(o, text)) return 0;
    *out = malloc(strlen(opt_text(o, text)) + 1);
    if (!*out) return fail(EXIT_MEMORY, "out of memory for the options");
    strcpy(*out, opt_text(o, text));
    return 0;
}

int sampling_options(run_state *r)
{
    const options *o = r->t.opt;
    size_t n = (size_t)o->n_items + 1;
    const char *text;
    r->bias_tokens = calloc(n, sizeof *r->bias_tokens);
    r->bias_values = calloc(n, sizeof *r->bias_values);
    r->breakers = calloc(n, sizeof *r->breakers);
    if (!r->bias_tokens || !r->bias_values || !r->breakers)
        return fail(EXIT_MEMORY, "out of memory for the options");
    int code = read_text(o, OPT_GRAMMAR, OPT_GRAMMAR_FILE, &r->grammar);
    if (!code) code = read_text(o, OPT_SCHEMA, OPT_SCHEMA_FILE, &r->schema);
    if (!code && (r->grammar != NULL) + (r->schema != NULL) + opt_flag(o, OPT_JSON_OBJECT) > 1)
        code = fail(EXIT_USAGE,
                    "--grammar, --json-schema and --json-object exclude each other; give one of them");
    if (!code) code = read_breakers(r);
    if (!code) code = read_sequence(r);
    for (int k = 0; !code && (text = opt_item_get(o, OPT_BIAS, k)) != NULL; k++) code = parse_bias(r, text);
    return code;
}

void sampling_fini(run_state *r)
{
    for (int32_t i = 0; r->breakers && i < r->n_breakers; i++) free(r->breakers[i]);
    free(r->breakers);
    free(r->grammar);
    free(r->schema);
    free(r->bias_tokens);
    free(r->bias_values);
}

void sampling_fill(const run_state *r, uint64_t seed, tn_sampling *s)
{
    const options *o = r->t.opt;
    s->temperature = (float)opt_float(o, OPT_TEMP);
    s->top_k = (int32_t)opt_int(o, OPT_TOP_K);
    s->top_p = (float)opt_float(o, OPT_TOP_P);
    s->min_p = (float)opt_float(o, OPT_MIN_P);
    s->typical_p = (float)opt_float(o, OPT_TYPICAL);
    s->top_n_sigma = (float)opt_float(o, OPT_TOP_N_SIGMA);
    s->xtc_probability = (float)opt_float(o, OPT_XTC);
    s->xtc_threshold = (float)opt_float(o, OPT_XTC_THRESHOLD);
    s->dynatemp_range = (float)opt_float(o, OPT_DYNATEMP);
    s->dynatemp_exponent = (float)opt_float(o, OPT_DYNATEMP_EXP);
    s->repeat_penalty = (float)opt_float(o, OPT_REPEAT);
    s->presence_penalty = (float)opt_float(o, OPT_PRESENCE);
    s->frequency_penalty = (float)opt_float(o, OPT_FREQUENCY);
    s->penalty_last_n = (int32_t)opt_int(o, OPT_LAST_N);
    s->dry_multiplier = (float)opt_float(o, OPT_DRY);
    s->dry_base = (float)opt_float(o, OPT_DRY_BASE);
    s->dry_allowed_length = (int32_t)opt_int(o, OPT_DRY_ALLOWED);
    s->dry_penalty_last_n = (int32_t)opt_int(o, OPT_DRY_LAST_N);
    s->dry_breakers = (const char *const *)r->breakers;
    s->n_dry_breakers = r->n_breakers;
    s->mirostat = opt_int(o, OPT_MIROSTAT) ? 2 : 0;
    s->mirostat_tau = (float)opt_float(o, OPT_MIROSTAT_TAU);
    s->mirostat_eta = (float)opt_float(o, OPT_MIROSTAT_ETA);
    s->samplers = opt_is_set(o, OPT_SAMPLING_SEQ) ? r->samplers : opt_text(o, OPT_SAMPLERS);
    s->n_logprobs = (int32_t)opt_int(o, OPT_LOGPROBS);
    s->seed = seed;
    s->bias_tokens = r->bias_tokens;
    s->bias_values = r->bias_values;
    s->n_bias = r->n_bias;
}
