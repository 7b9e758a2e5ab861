// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Models by name: those of this program, and read-only those that other programs downloaded.
#ifndef TENON_TOOLS_STORE_H
#define TENON_TOOLS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum store_origin {
    STORE_ENVIRONMENT, // folders of $TENON_MODELS
    STORE_OWN,         // $XDG_DATA_HOME/tenon/models: what `tenon rm` removes
    STORE_HUGGING_FACE,
    STORE_OLLAMA,
    STORE_LM_STUDIO,
} store_origin;

typedef struct store_model {
    store_origin origin;
    char *name;    // "ORG/NAME", or "NAME" where there is no organisation
    char *quant;   // "Q4_K_M", a tag of Ollama, or ""
    char *path;    // the file; the first one of a split model
    uint64_t size; // bytes of all its files
} store_model;

typedef struct store_list {
    store_model *items;
    size_t n, capacity;
    bool failed; // out of memory: items are missing
} store_list;

// What the name of a file says of a model: "big-Q8_0-00001-of-00003.gguf".
typedef struct store_file_name {
    size_t stem, stem_with_quant; // bytes of "big", of "big-Q8_0"
    char quant[32];               // "Q8_0", or ""
    int part, n_parts;            // 1 and 1 for a model of one file
} store_file_name;

const char *store_origin_name(store_origin origin);
// The folder of STORE_OWN without a slash at its end; false: neither XDG_DATA_HOME nor HOME is set.
bool store_own_folder(char *path, size_t size);
// All models, sorted by name and type within each origin. 0 or an exit code after a message.
int store_list_all(store_list *list);
void store_list_fini(store_list *list);
// Models that `wanted` ("NAME", "ORG/NAME", either with ":QUANT") names: the indices of the first `max`.
size_t store_match(const store_list *list, const char *wanted, size_t *found, size_t max);
// The path of a model that the command line names, by a path, a folder with one model, or a name. *path is
// `wanted` itself, or a text that lives until the end of the program. 0 or an exit code after a message.
int store_resolve(const char *wanted, bool must_be_name, const char **path);
// False: no file of a model.
bool store_parse_file(const char *file, store_file_name *out);

// scan.c, for store.c: adds what lies below the folders of each program.
void store_scan_all(store_list *list);
// Adds the models of one folder: *.gguf in it and, down to `depth` levels, below it.
void store_scan_folder(store_list *list, store_origin origin, const char *folder, int depth);

#endif
