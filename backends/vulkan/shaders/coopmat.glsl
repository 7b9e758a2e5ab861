// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cooperative matrices of 16 x 16, which a subgroup of 32 holds together: SPV_KHR_cooperative_matrix by
// GL_EXT_spirv_intrinsics, because glslang 12 does not know it; coopmat_types.py completes the module. With
// ROWS_8 left operands and sums have 8 rows, and subgroups are of 16: so they are on Intel's Xe 2.
// Elements of operands have 16 bits (f16, or bf16 with BF16), sums are f32. All matrices come from the
// shared array `space`, and go there, in vectors of 16 bytes.
//
// NV: the same by SPV_NV_cooperative_matrix, which drivers of NVIDIA had before 2023; f16 only. Measured
// on an H200: prefill of 512 tokens of an 8B model in Q4_K_M 9540 and 9617 tokens/s, and 10422 and 10406
// with the other extension.
//
// EMULATED: the same in plain code, for tests on drivers without cooperative matrices. An invocation has a
// row of the left operand and 8 elements of the sums; the right operand stays in shared memory.
//
// llvmpipe ends all loops of an invocation after 65535 rounds together (LP_MAX_TGSI_LOOP_ITERATIONS of
// Mesa) without a message. Only emulated matrices come near: with tiles of 256 x 128 and k of 5120, or
// with most tiles and k of 17920, they leave a product before its end. The tiles that the shape chooses
// stay below. Attention of many sequences has a larger MULTIPLY_STEP, so that rounds are fewer.
#ifdef BF16
#define ELEMENT TYPE_BF16
#else
#define ELEMENT TYPE_F16
#endif
#ifdef ROWS_8
const uint MATRIX_ROWS = 8, LANES = 16;
#else
const uint MATRIX_ROWS = 16, LANES = 32;
#endif

uint pack2(float a, float b)
{
#ifdef BF16
    return to_bf16(a) | to_bf16(b) << 16;
#else
    return packHalf2x16(vec2(a, b));
#endif
}
vec2 unpack2(uint two)
{
#ifdef BF16
    return vec2(uintBitsToFloat(two << 16), uintBitsToFloat(two & 0xffff0000u));
#else
    return unpackHalf2x16(two);
#endif
}
uvec4 pack8(const float v[16], int at)
{
    return uvec4(pack2(v[at], v[at + 1]), pack2(v[at + 2], v[at + 3]), pack2(v[at + 4], v[at + 5]),
                 pack2(v[at + 6], v[at + 7]));
}

#ifdef HAS_CODES // dequant.glsl was included
// 8 of the numbers d * (code - less) + m. A code becomes the upper bits of the fraction of a float between
// 1 and 2, because conversions are slow on many devices. The subtraction is exact.
uvec4 pack_codes(Codes16 c, int at)
{
    float y[8], d = 256.0 * c.d, less = 1.0 + c.less / 256.0;
    [[unroll]] for (int i = 0; i < 8; i++) {
        uint four = c.v[at / 4 + i / 4];
        uint code = i % 4 == 0 ? four << 15 : i % 4 == 1 ? four << 7 : i % 4 == 2 ? four >> 1 : four >> 9;
        y[i] = d * (uintBitsToFloat((code & 0x7f8000u) | 0x3f800000u) - less) + c.m;
    }
    return uvec4(pack2(y[0], y[1]), pack2(y[2], y[3]), pack2(y[4], y[5]), pack2(y[6], y[7]));
}
#endif

#ifdef FRAGMENTS
// Operands from registers. Of each of the columns LANE / 4 and LANE / 4 + 8 of a right operand an invocation
// has the elements 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of 16, t = LANE % 4, as two words; of left operands and
// sums, the same of rows. So matrices lie on NVIDIA's devices.
#endif

#ifdef EMULATED
#define UNROLL [[dont_unroll]] // a processor compiles faster so, and runs loops well
struct MatrixA {
    uvec4 v[2]; // row lane / 2
};
struct MatrixB {
    uint at, stride;
    bool columns;
};
struct MatrixC {
    float v[8]; // row lane / 2, columns 8 * (lane % 2) ..
};
#define LANE (gl_LocalInvocationID.x % LANES)
float matrix_number(uvec4 eight, uint i)
{
    uint bits = eight[i / 2] >> 16 * (i % 2) & 0xffffu;
    return ELEMENT == TYPE_BF16 ? uintBitsToFloat(bits << 16) : half_bits(bits);
}
#define MATRIX_SPACE(size)                                                                                   \
    shared uvec4 space[size];                                                                                \
    float matrix_element(uint at, uint i) { return matrix_number(space[at + i / 8], i % 8); }                \
    MatrixC matrix_load(uint at, uint stride)                                                                \
    {                                                                                                        \
        MatrixC m;                                                                                           \
        at += LANE / 2 * stride;                                                                             \
        for (uint i = 0; i < 8; i++) m.v[i] = uintBitsToFloat(space[at + 2 * (LANE % 2) + i / 4][i % 4]);    \
        return m;                                                                                            \
    }                                                                                                        \
    void matrix_store(uint at, uint stride, MatrixC m)                                                       \
    {                                                                                                        \
        uint row = LANE / 2, column = 8 * (LANE % 2);                                                        \
        for (uint i = 0; i < 8; i++)                                                                         \
            space[at + row * stride + (column + i) / 4][(column + i) % 4] = floatBitsToUint(m.v[i]);         \
    }
#define matrix_a(m, where, step)                                                                             \
    m.v[0] = space[(where) + LANE / 2 * (step)], m.v[1] = space[(where) + LANE / 2 * (step) + 1]
#define matrix_b_columns(m, where, step) m = MatrixB(where, step, true)
#define matrix_b_rows(m, where, step)    m = MatrixB(where, step, false)
#define matrix_c(where, step, m)         matrix_store(where, step, m)
#define matrix_c_from(m, where, step)    m = matrix_load(where, step)
#define matrix_scale(m, factors)                                                                             \
    [[unroll]] for (uint e = 0; e < 8; e++) m.v[e] *= factors.v[e]
// See FRAGMENTS below. `where`: shared memory for a matrix, which only this form needs.
#define FRAGMENT_SPACE 32
#define matrix_b_fragment(m, where, w)                                                                \
    barrier();                                                                                               \
    [[dont_unroll]] for (uint word = 0; word < 4; word++)                                                    \
        space[(where) + 2 * (LANE / 4 + 8 * (word / 2)) + word % 2][LANE % 4] = w[word];                     \
    barrier();                                                                                               \
    m = MatrixB(where, 2, true)
// Rows of the sums that an invocation has elements of, and where they are.
#define LANE_ROWS 1
#define LANE_ROW(h)    (LANE / 2)
#define LANE_COLUMN(e) (8 * (LANE % 2) + (e))
#define matrix_elements(to, m) to = m.v
#define matrix_of_rows(m, rows)                                                                              \
    [[unroll]] for (uint e = 0; e < 8; e++) m.v[e] = rows[0]
// The elements of sums that an invocation has, as 16-bit numbers, are those of a left operand.
#define matrix_a_fragment(m, where, w)                                                                       \
    barrier();                                                                                               \
    space[(where) + LANE] = w;                                                                               \
    barrier();                                                                                               \
    m.v[0] = space[(where) + LANE / 2 * 2], m.v[1] = space[(where) + LANE / 2 * 2 + 1]
#ifdef FRAGMENTS
shared float exchanged[256];
// The sum, or the maximum, of the v of all invocations that have elements of the same row.
float over_row(float v, bool adds)
{
    barrier();
    exchanged[gl_LocalInvocationID.x] = v;
    barrier();
    float other = exchanged[gl_LocalInvocationID.x ^ 1];
    return adds ? v + other : max(v, other);
}
#endif
// Each round multiplies MULTIPLY_STEP of the 16 columns of a. More than one takes long to compile.
#ifndef MULTIPLY_STEP
#define MULTIPLY_STEP 1
#endif
#define matrix_multiply(a, b, c)                                                                             \
    [[dont_unroll]] for (uint step_k = 0; step_k < 16; step_k += MULTIPLY_STEP) {                            \
        [[unroll]] for (uint in_step = 0; in_step < MULTIPLY_STEP; in_step++) {                              \
            uint row_k = step_k + in_step;                                                                   \
            float left = matrix_number(a.v[row_k / 8], row_k % 8);                                           \
            [[unroll]] for (uint e = 0; e < 8; e++) {                                                        \
                uint column = 8 * (LANE % 2) + e;                                                            \
                c.v[e] += left * (b.columns ? matrix_element(b.at + column * b.stride, row_k)                \
                                            : matrix_element(b.at + row_k * b.stride, column));              \
            }                                                                                                \
        }                                                                                                    \
    }
#define matrix_zero(m) m = MatrixC(float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
#define matrix_sync()  barrier() // the driver's subgroups are smaller
#elif defined(NV)
#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define UNROLL  [[unroll]]
#define LANE    gl_SubgroupInvocationID
#define MatrixA fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>
#define MatrixB MatrixA
#define MatrixC fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>
#define MATRIX_SPACE(size)               shared uvec4 space[size];
#define matrix_a(m, where, step)         coopMatLoadNV(m, space, where, step, false)
#define matrix_b_columns(m, where, step) coopMatLoadNV(m, space, where, step, true)
#define matrix_b_rows(m, where, step)    coopMatLoadNV(m, space, where, step, false)
#define matrix_c(where, step, m)         coopMatStoreNV(m, space, where, step, false)
#define matrix_c_from(m, where, step)    coopMatLoadNV(m, space, where, step, false)
// This extension has no product of elements. Which elements an invocation has is the same for all matrices
// of a type.
#define matrix_scale(m, factors)                                                                             \
    [[unroll]] for (int e = 0; e < factors.length(); e++) m[e] *= factors[e]
#define matrix_multiply(a, b, c)         c = coopMatMulAddNV(a, b, c)
#define matrix_zero(m)                   m = MatrixC(0.0)
#define FRAGMENT_SPACE                   0
#define LANE_ROWS                        2
#define LANE_ROW(h)                      (LANE / 4 + 8 * (h))
#define LANE_COLUMN(e)                   (LANE % 4 * 2 + (e) % 2 + (e) / 2 % 2 * 8)
#define matrix_elements(to, m)           [[unroll]] for (int e = 0; e < 8; e++) to[e] = m[e]
#define matrix_b_fragment(m, where, w)                                                                \
    [[unroll]] for (int word = 0; word < 4; word++) {                                                        \
        f16vec2 two = unpackFloat2x16(w[word]);                                                              \
        m[2 * word] = two.x;                                                                                 \
        m[2 * word + 1] = two.y;                                                                             \
    }
#else
#extension GL_EXT_spirv_intrinsics : require
#define UNROLL [[unroll]]
#define LANE gl_SubgroupInvocationID
// GL_EXT_spirv_intrinsics takes only constants as operands of a type: an integer stands for the component
// type, and coopmat_types.py puts the type there.
const uint COMPONENT_F32 = 0xf32u, SUBGROUP = 3u, ROWS_A = MATRIX_ROWS, SIZE = 16u, USE_A = 0u, USE_B = 1u,
           USE_C = 2u,
           ROWS_FIRST = 0u, COLUMNS_FIRST = 1u;
#ifdef BF16
const uint COMPONENT = 0xbf16u;
#define MATRIX(component, rows, use)                                                                         \
    spirv_type(extensions = ["SPV_KHR_cooperative_matrix", "SPV_KHR_bfloat16"],                              \
               capabilities = [6022, 5116, 5118],                                                            \
               id = 4456, component, SUBGROUP, rows, SIZE, use)
#else
const uint COMPONENT = 0xf16u;
#define MATRIX(component, rows, use)                                                                         \
    spirv_type(extensions = ["SPV_KHR_cooperative_matrix"], capabilities = [6022, 9], id = 4456, component,  \
               SUBGROUP, rows, SIZE, use)
#endif
#define MatrixA MATRIX(COMPONENT, ROWS_A, USE_A)
#define MatrixB MATRIX(COMPONENT, SIZE, USE_B)
#define MatrixC MATRIX(COMPONENT_F32, ROWS_A, USE_C)
// Memory operands: a load sees what other invocations of the workgroup wrote (MakePointerVisible,
// NonPrivatePointer), and they see what a store wrote (MakePointerAvailable, NonPrivatePointer).
const uint WORKGROUP = 2u;
spirv_instruction(id = 4457) MatrixA matrix_load_a(spirv_by_reference uvec4 at, uint order, uint stride,
                                                   spirv_literal uint operands, uint scope);
spirv_instruction(id = 4457) MatrixB matrix_load_b(spirv_by_reference uvec4 at, uint order, uint stride,
                                                   spirv_literal uint operands, uint scope);
spirv_instruction(id = 4458) void matrix_store(spirv_by_reference uvec4 at, MatrixC m, uint order,
                                               uint stride, spirv_literal uint operands, uint scope);
spirv_instruction(id = 4457) MatrixC matrix_load_c(spirv_by_reference uvec4 at, uint order, uint stride,
                                                   spirv_literal uint operands, uint scope);
spirv_instruction(id = 133) MatrixC matrix_product(MatrixC a, MatrixC b); // of elements
spirv_instruction(id = 4459) MatrixC matrix_multiply_add(MatrixA a, MatrixB b, MatrixC c);
spirv_instruction(id = 80) MatrixC matrix_of(float v);
#define MATRIX_SPACE(size)               shared uvec4 space[size];
#define matrix_a(m, where, step)         m = matrix_load_a(space[where], ROWS_FIRST, step, 0x30u, WORKGROUP)
#define matrix_b_columns(m, where, step)                                                                     \
    m = matrix_load_b(space[where], COLUMNS_FIRST, step, 0x30u, WORKGROUP)
#define matrix_b_rows(m, where, step)    m = matrix_load_b(space[where], ROWS_FIRST, step, 0x30u, WORKGROUP)
#define matrix_c(where, step, m)         matrix_store(space[where], m, ROWS_FIRST, step, 0x28u, WORKGROUP)
#define matrix_c_from(m, where, step)    m = matrix_load_c(space[where], ROWS_FIRST, step, 0x30u, WORKGROUP)
#define matrix_scale(m, factors)         m = matrix_product(m, factors)
#define matrix_multiply(a, b, c)         c = matrix_multiply_add(a, b, c)
#define matrix_zero(m)                   m = matrix_of(0.0)
#ifdef FRAGMENTS
#define FRAGMENT_SPACE 0
#ifdef BF16
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#define Element        spirv_type(extensions = ["SPV_KHR_bfloat16"], capabilities = [5116], id = 22, 16, 0)
#define TwoElements    u16vec2
#define two_of(word)   unpackUint2x16(word)
spirv_instruction(id = 124) Element element_of(uint16_t bits);
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define Element        float16_t
#define TwoElements    f16vec2
#define two_of(word)   unpackFloat2x16(word)
#define element_of(v)  v
#endif
// OpCompositeInsert
spirv_instruction(id = 82) MatrixB matrix_with(Element v, MatrixB m, spirv_literal uint at);
spirv_instruction(id = 80) MatrixB matrix_b_of(Element v);
// `of` makes a matrix of one number, `with` puts one into it.
#define matrix_pair(with, m, at, word)                                                                       \
    {                                                                                                        \
        TwoElements two = two_of(word);                                                                      \
        m = with(element_of(two.x), m, 2 * at);                                                              \
        m = with(element_of(two.y), m, 2 * at + 1);                                                          \
    }
#define matrix_fragment(of, with, m, w)                                                                      \
    m = of(element_of(two_of(w[0]).x));                                                                      \
    matrix_pair(with, m, 0, w[0])                                                                            \
    matrix_pair(with, m, 1, w[1])                                                                            \
    matrix_pair(with, m, 2, w[2])                                                                            \
    matrix_pair(with, m, 3, w[3])
#define matrix_b_fragment(m, where, w) matrix_fragment(matrix_b_of, matrix_with, m, w)
// The same of left operands, and elements of sums (OpCompositeExtract, OpCompositeInsert).
#extension GL_KHR_shader_subgroup_shuffle : require
#define LANE_ROWS 2
#define LANE_ROW(h)    (LANE / 4 + 8 * (h))
#define LANE_COLUMN(e) (LANE % 4 * 2 + (e) % 2 + (e) / 2 % 2 * 8)
spirv_instruction(id = 82) MatrixA matrix_a_with(Element v, MatrixA m, spirv_literal uint at);
spirv_instruction(id = 80) MatrixA matrix_a_of(Element v);
spirv_instruction(id = 81) float matrix_element(MatrixC m, spirv_literal uint at);
spirv_instruction(id = 82) MatrixC matrix_c_with(float v, MatrixC m, spirv_literal uint at);
#define matrix_a_fragment(m, where, w) matrix_fragment(matrix_a_of, matrix_a_with, m, w)
#define matrix_elements(to, m)                                                                               \
    to[0] = matrix_element(m, 0), to[1] = matrix_element(m, 1), to[2] = matrix_element(m, 2),                \
    to[3] = matrix_element(m, 3), to[4] = matrix_element(m, 4), to[5] = matrix_element(m, 5),                \
    to[6] = matrix_element(m, 6), to[7] = matrix_element(m, 7)
#define matrix_of_rows(m, rows)                                                                              \
    m = matrix_of(rows[0]);                                                                                  \
    m = matrix_c_with(rows[1], m, 4), m = matrix_c_with(rows[1], m, 5);                                      \
    m = matrix_c_with(rows[1], m, 6), m = matrix_c_with(rows[1], m, 7)
float over_row(float v, bool adds)
{
    float other = subgroupShuffleXor(v, 1);
    v = adds ? v + other : max(v, other);
    other = subgroupShuffleXor(v, 2);
    return adds ? v + other : max(v, other);
}
#endif
#endif
#ifndef EMULATED
// What the subgroup wrote to `space` is there for all of it; emulated, all of the workgroup have to meet.
// OpControlBarrier with AcquireRelease, WorkgroupMemory, MakeAvailable, MakeVisible: subgroupBarrier()
// orders all kinds of memory, and so waits for loads of weights that are in flight.
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(id = 224) void control_barrier(uint scope, uint memory_scope, uint semantics);
#define matrix_sync() control_barrier(3u, 3u, 0x6108u)
#endif
