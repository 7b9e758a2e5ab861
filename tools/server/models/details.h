// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the keys of a model's file say, for the routes of Ollama.
#ifndef TENON_TOOLS_SERVER_DETAILS_H
#define TENON_TOOLS_SERVER_DETAILS_H

#include "tools/common.h"
#include "tools/json/json.h"

#include <tenon/file.h>

// The name of the type of most weights, "Q4_K_M", by the key general.file_type; "unknown" without it.
void details_quant(tn_context *ctx, const char *path, char *out, size_t size);
// The chat template of a file, from malloc; "" if it has none. NULL: out of memory.
char *details_template(tn_context *ctx, const tn_file *file);
// The keys of the file as members of an object. Lists are null: that of the tokens has megabytes.
void details_put_keys(tn_context *ctx, const tn_file *file, json *j);

#endif
