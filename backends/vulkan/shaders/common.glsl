// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What all shaders share: the record of runtime/args.h, loads and stores of each type by address, views,
// and the functions of unary and glu. Memory is reached by buffer device addresses only: there are no
// descriptors, and no limit of a binding's range.
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require

#include "backends/vulkan/constants.glsl" // made from the tables of core and ops

const int MAX_SRC = 10, MAX_DST = 3; // TN_MAX_SRC, TN_MAX_DST

struct View {
    uint64_t data;
    int64_t nb[4];
    int ne[4];
    int dtype, pad;
};
struct Weight {
    uint64_t plane[MAX_PLANES];
    int64_t row_size[MAX_PLANES];
};
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Args {
    View src[MAX_SRC];
    View dst[MAX_DST];
    Weight weight[MAX_WEIGHTS];
    uint64_t tables;
    uint64_t scratch;
    uint64_t staged, staged_norm;
    uint64_t counters;
    int params[PARAMS];
    int n[NUMBERS];
};
layout(push_constant, scalar) uniform Push {
    Args args;
    // Of a product, as in the record: so its weights need not wait for the record (tn_vk_push).
    uint64_t given_scratch, given_plane[MAX_WEIGHTS][MAX_PLANES];
    uint given_size[MAX_PLANES]; // of the rows of both weights
    uint64_t given_result, given_residual; // 0: there is none
    int given_n[2], given_k, given_ids;
};

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer PF32 { float v; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer PU32 { uint v; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer PU16 { uint16_t v; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer PU8 { uint8_t v; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer PU128 { uvec4 v; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer PF128 { vec4 v; };

float load_f32(uint64_t a) { return PF32(a).v; }
uint load_u32(uint64_t a) { return PU32(a).v; }
int load_i32(uint64_t a) { return int(PU32(a).v); }
uint load_u16(uint64_t a) { return uint(PU16(a).v); }
uint load_u8(uint64_t a) { return uint(PU8(a).v); }
uvec4 load_u128(uint64_t a) { return PU128(a).v; }
void store_f32(uint64_t a, float v) { PF32(a).v = v; }
void store_u32(uint64_t a, uint v) { PU32(a).v = v; }
void store_u16(uint64_t a, uint v) { PU16(a).v = uint16_t(v); }
void store_u8(uint64_t a, uint v) { PU8(a).v = uint8_t(v); }

float half_bits(uint h) { return unpackHalf2x16(h & 0xffffu).x; }
uint to_half(float v) { return packHalf2x16(vec2(v, 0.0)) & 0xffffu; }
uint to_bf16(float v)
{
    uint u = floatBitsToUint(v);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (u >> 16) | 0x40u; // NaN stays NaN
    return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16; // to nearest even
}

// Bytes of a record.
const uint RECORD_SIZE = 64 * (MAX_SRC + MAX_DST + 2) + 5 * 8 + 4 * (PARAMS + NUMBERS);

// Loads the whole record at once, a part by each of the first invocations: otherwise a kernel would wait for
// memory each time it reads another part. The first workgroup also touches the records of the next two
// dispatches, so that these find them in the device's cache (TN_VK_NEXT_RECORDS bytes behind the last one
// make that safe). Returns 0, which the caller adds to its last result, so that nothing waits for these loads
// earlier.
float touch_record(Args record, uint lane)
{
    const uint PART = 128;
    uint last = (gl_WorkGroupID.x == 0 ? 3 * RECORD_SIZE : RECORD_SIZE) - 4;
    return float(load_i32(uint64_t(record) + min(PART * lane, last)) & record.src[0].pad);
}
float touch_record(uint lane) { return touch_record(args, lane); }

float param_f(int i) { return intBitsToFloat(args.params[i]); }
float scale_or_1(float s) { return s != 0.0 ? s : 1.0; }

// Workgroups are counted over x, then y: a device may allow only 65535 in one dimension.
uint group_index() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

// Address of outer row r of a view.
uint64_t row_of(View v, uint r)
{
    uint n2 = uint(v.ne[2]), n1 = uint(v.ne[1]), q = r / n2;
    return v.data + int64_t(q / n1) * v.nb[0] + int64_t(q % n1) * v.nb[1] + int64_t(r % n2) * v.nb[2];
}
uint n_rows(View v) { return uint(v.ne[0]) * uint(v.ne[1]) * uint(v.ne[2]); }
bool has_src(int i) { return args.src[i].ne[3] > 0; }

// A double as a float, rounded to nearest even, from its two words, because few devices have doubles. What is
// too small for a normal float becomes 0.
float from_double(uint low, uint high)
{
    int e = int(high >> 20 & 2047u) - 896;
    uint sign = high & 0x80000000u, m = (high & 0xfffffu) << 3 | low >> 29, rest = low & 0x1fffffffu;
    if (e >= 255)
        return uintBitsToFloat(sign | 0x7f800000u | (e == 1151 && (m | rest) != 0u ? 0x400000u : 0u));
    if (e <= 0) return uintBitsToFloat(sign);
    uint bits = uint(e) << 23 | m;
    bits += uint(rest > 0x10000000u || (rest == 0x10000000u && (m & 1u) != 0u));
    return uintBitsToFloat(sign | bits);
}

// Element k of a row of a number type.
float load_plain(int dtype, uint64_t row, int64_t k)
{
    switch (dtype) {
    case TYPE_F32: return load_f32(row + 4 * k);
    case TYPE_F16: return half_bits(load_u16(row + 2 * k));
    case TYPE_BF16: return uintBitsToFloat(load_u16(row + 2 * k) << 16);
    case TYPE_I8: return float(bitfieldExtract(int(load_u8(row + k)), 0, 8));
    case TYPE_I16: return float(bitfieldExtract(int(load_u16(row + 2 * k)), 0, 16));
    case TYPE_I32: return float(load_i32(row + 4 * k));
    case TYPE_I64:
        return float(int64_t(uint64_t(load_u32(row + 8 * k)) | uint64_t(load_u32(row + 8 * k + 4)) << 32));
    default: return from_double(load_u32(row + 8 * k), load_u32(row + 8 * k + 4));
    }
}

float unary(int kind, float x, float a, float b)
{
    switch (kind) {
    case UNARY_AFFINE: return a * x + b;
    case UNARY_SILU: return x / (1.0 + exp(-x));
    case UNARY_GELU: return x / (1.0 + exp(-1.59576912160573071176 * (x + 0.044715 * x * x * x)));
    case UNARY_GELU_ERF: {
        // erfc by the rational approximation of Abramowitz and Stegun 7.1.26 is too coarse: a continued form
        // with a relative error of 1.2e-7 (Numerical Recipes, erfcc).
        float z = abs(x) * 0.70710678118654752440, t = 1.0 / (1.0 + 0.5 * z);
        float p =
            t *
            exp(-z * z - 1.26551223 +
                t * (1.00002368 +
                     t * (0.37409196 +
                          t * (0.09678418 +
                               t * (-0.18628806 +
                                    t * (0.27886807 +
                                         t * (-1.13520398 +
                                              t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)))))))));
        return 0.5 * x * (x > 0.0 ? 2.0 - p : p);
    }
    case UNARY_RELU: return x > 0.0 || isnan(x) ? x : 0.0;
    case UNARY_TANH: {
        // Around 0 the quotient would cancel; far out it would be inf / inf.
        float e = exp(-2.0 * abs(x)), y = abs(x) < 0.04
                                              ? x * (1.0 - x * x * (1.0 / 3.0 - x * x * (2.0 / 15.0)))
                                              : sign(x) * (1.0 - e) / (1.0 + e);
        return y;
    }
    case UNARY_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case UNARY_EXP: return exp(x);
    case UNARY_LOG: return log(x);
    case UNARY_SQRT: return sqrt(x);
    case UNARY_SQUARE: return x * x;
    case UNARY_ABS: return abs(x);
    case UNARY_SOFTCAP: {
        float u = x / a, e = exp(-2.0 * abs(u));
        return a * (abs(u) < 0.04 ? u * (1.0 - u * u * (1.0 / 3.0 - u * u * (2.0 / 15.0)))
                                  : sign(u) * (1.0 - e) / (1.0 + e));
    }
    case UNARY_SOFTPLUS: return x > 30.0 ? x : (x < -15.0 ? exp(x) : log(1.0 + exp(x)));
    case UNARY_CLAMP: return x < a ? a : (x > b ? b : x);
    default: return x;
    }
}

struct Glu {
    int act;
    float limit, alpha;
};
// Parameters that start at args.params[at].
Glu glu_params(int at) { return Glu(args.params[at], param_f(at + 1), param_f(at + 2)); }
float glu_of(Glu p, float gate, float up)
{
    if (p.limit > 0.0) {
        gate = gate > p.limit ? p.limit : gate;
        up = up > p.limit ? p.limit : (up < -p.limit ? -p.limit : up);
    }
    if (p.alpha > 0.0) return gate / (1.0 + exp(-p.alpha * gate)) * (up + 1.0);
    return unary(p.act, gate, 0.0, 0.0) * up;
}
float glu(int at, float gate, float up) { return glu_of(glu_params(at), gate, up); }
