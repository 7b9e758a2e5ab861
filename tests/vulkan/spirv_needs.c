// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a SPIR-V module needs of a workgroup: the driver behind the library between grants more shared memory
// than many devices have, and accepts workgroups that they do not. Follows the SPIR-V specification 1.6,
// section 3.49: types, constants and specialisation constants, which are evaluated.
#include "tests/vulkan/profile.h"

#include <stdlib.h>
#include <string.h>

enum {
    OP_EXECUTION_MODE = 16,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT,
    OP_TYPE_FLOAT,
    OP_TYPE_VECTOR,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT_TRUE = 41,
    OP_CONSTANT_FALSE,
    OP_CONSTANT,
    OP_CONSTANT_COMPOSITE,
    OP_SPEC_CONSTANT_TRUE = 48,
    OP_SPEC_CONSTANT_FALSE,
    OP_SPEC_CONSTANT,
    OP_SPEC_CONSTANT_COMPOSITE,
    OP_SPEC_CONSTANT_OP,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    FIRST_GROUP_OP = 333,
    LAST_GROUP_OP = 366,
    TYPE_COOPMAT_KHR = 4456,
    TYPE_COOPMAT_NV = 5358
};
enum { DECORATION_SPEC_ID = 1, DECORATION_BUILTIN = 11, BUILTIN_WORKGROUP_SIZE = 25 };
enum { MODE_LOCAL_SIZE = 17, STORAGE_WORKGROUP = 4, FIRST_WORD = 5 };

// What is known of a result.
typedef struct result {
    uint64_t size; // bytes, of a type
    uint64_t value;
    const uint32_t *parts; // ids, of a constant vector
    uint32_t spec_id;
    bool is_spec, is_workgroup_size;
} result;

typedef struct module {
    const uint32_t *code;
    result *of;
    uint32_t n_ids;
    const VkSpecializationInfo *constants;
} module;

static uint64_t value_of(const module *m, uint32_t id)
{
    return id < m->n_ids ? m->of[id].value : 0;
}

// The value that the pipeline gives the constant, or its own.
static uint64_t special(const module *m, uint32_t id, uint64_t own)
{
    const VkSpecializationInfo *c = m->constants;
    for (uint32_t i = 0; m->of[id].is_spec && c && i < c->mapEntryCount; i++) {
        int32_t v;
        if (c->pMapEntries[i].constantID != m->of[id].spec_id) continue;
        memcpy(&v, (const char *)c->pData + c->pMapEntries[i].offset, sizeof v);
        return (uint32_t)v;
    }
    return own;
}

// OpSpecConstantOp on 32 bits; false: an operation that is not known.
static bool evaluate(const module *m, const uint32_t *w, uint32_t n, uint64_t *out)
{
    uint32_t a = n > 4 ? (uint32_t)value_of(m, w[4]) : 0, b = n > 5 ? (uint32_t)value_of(m, w[5]) : 0;
    int32_t sa = (int32_t)a, sb = (int32_t)b;
    // clang-format off
    switch (w[3]) {
    case 81: // a part of a vector
        if (w[4] >= m->n_ids || !m->of[w[4]].parts) return false;
        *out = value_of(m, m->of[w[4]].parts[w[5]]);
        return true;
    case 113: case 114: case 124: *out = a; return true; // conversions
    case 126: *out = (uint32_t)-sa; return true;
    case 128: *out = a + b; return true;
    case 130: *out = a - b; return true;
    case 132: *out = a * b; return true;
    case 134: *out = b ? a / b : 0; return true;
    case 135: *out = b ? (uint32_t)(sa / sb) : 0; return true;
    case 137: *out = b ? a % b : 0; return true;
    case 138: case 139: *out = b ? (uint32_t)(sa % sb) : 0; return true;
    case 164: case 170: *out = a == b; return true;
    case 165: case 171: *out = a != b; return true;
    case 166: *out = a || b; return true;
    case 167: *out = a && b; return true;
    case 168: *out = !a; return true;
    case 169: *out = a ? b : value_of(m, w[6]); return true;
    case 172: *out = a > b; return true;
    case 173: *out = sa > sb; return true;
    case 174: *out = a >= b; return true;
    case 175: *out = sa >= sb; return true;
    case 176: *out = a < b; return true;
    case 177: *out = sa < sb; return true;
    case 178: *out = a <= b; return true;
    case 179: *out = sa <= sb; return true;
    case 194: *out = a >> b % 32; return true;
    case 195: *out = (uint32_t)(sa >> b % 32); return true;
    case 196: *out = a << b % 32; return true;
    case 197: *out = a | b; return true;
    case 198: *out = a ^ b; return true;
    case 199: *out = a & b; return true;
    case 200: *out = ~a; return true;
    default: return false;
    }
    // clang-format on
}

static void decorate(module *m, const uint32_t *w)
{
    if (w[1] >= m->n_ids) return;
    if (w[2] == DECORATION_SPEC_ID) m->of[w[1]].spec_id = w[3], m->of[w[1]].is_spec = true;
    if (w[2] == DECORATION_BUILTIN && w[3] == BUILTIN_WORKGROUP_SIZE) m->of[w[1]].is_workgroup_size = true;
}

static void define_type(module *m, const uint32_t *w, uint32_t n, uint32_t op)
{
    result *r = &m->of[w[1]];
    if (op == OP_TYPE_BOOL) r->size = 4;
    if (op == OP_TYPE_INT || op == OP_TYPE_FLOAT) r->size = w[2] / 8;
    if (op == OP_TYPE_VECTOR) r->size = m->of[w[2]].size * w[3];
    if (op == OP_TYPE_ARRAY) r->size = m->of[w[2]].size * value_of(m, w[3]);
    if (op == OP_TYPE_POINTER) r->size = m->of[w[3]].size;
    for (uint32_t i = 2; op == OP_TYPE_STRUCT && i < n; i++) r->size += m->of[w[i]].size;
}

static bool step(module *m, const uint32_t *w, uint32_t n, spirv_needs *out)
{
    uint32_t op = w[0] & 0xffff;
    bool known = true;
    switch (op) {
    case OP_DECORATE:
        decorate(m, w);
        break;
    case OP_EXECUTION_MODE:
        if (w[2] == MODE_LOCAL_SIZE) memcpy(out->size, w + 3, sizeof out->size);
        break;
    case OP_CONSTANT_TRUE:
        m->of[w[2]].value = 1;
        break;
    case OP_SPEC_CONSTANT_TRUE:
        m->of[w[2]].value = special(m, w[2], 1);
        break;
    case OP_SPEC_CONSTANT_FALSE:
        m->of[w[2]].value = special(m, w[2], 0);
        break;
    case OP_CONSTANT:
        m->of[w[2]].value = w[3];
        break;
    case OP_SPEC_CONSTANT:
        m->of[w[2]].value = special(m, w[2], w[3]);
        break;
    case OP_SPEC_CONSTANT_OP:
        known = evaluate(m, w, n, &m->of[w[2]].value);
        break;
    case OP_CONSTANT_COMPOSITE:
    case OP_SPEC_CONSTANT_COMPOSITE:
        m->of[w[2]].parts = w + 3;
        for (uint32_t i = 0; m->of[w[2]].is_workgroup_size && i < 3; i++)
            out->size[i] = (uint32_t)value_of(m, w[3 + i]);
        break;
    case OP_VARIABLE:
        if (w[3] == STORAGE_WORKGROUP) out->shared += m->of[w[1]].size;
        break;
    case TYPE_COOPMAT_KHR:
    case TYPE_COOPMAT_NV:
        out->has_matrices = true;
        break;
    default:
        if (op >= OP_TYPE_BOOL && op <= OP_TYPE_POINTER) define_type(m, w, n, op);
        // Electing is possible with any size.
        if (op > FIRST_GROUP_OP && op <= LAST_GROUP_OP) out->has_subgroups = true;
    }
    return known;
}

bool spirv_needs_of(const uint32_t *code, size_t size, const VkSpecializationInfo *constants,
                    spirv_needs *out)
{
    uint32_t n_words = (uint32_t)(size / sizeof *code);
    module m = {.code = code, .n_ids = code[3], .constants = constants};
    *out = (spirv_needs){.size = {1, 1, 1}};
    m.of = calloc(m.n_ids, sizeof *m.of);
    bool known = m.of != NULL;
    for (uint32_t at = FIRST_WORD; known && at < n_words;) {
        uint32_t n = code[at] >> 16;
        known = n > 0 && at + n <= n_words && step(&m, code + at, n, out);
        at += n;
    }
    free(m.of);
    return known;
}
