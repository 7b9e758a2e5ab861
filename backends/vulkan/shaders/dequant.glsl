// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of every type as numbers, from the planes of backends/planes.def. dequant16 gives the elements k
// .. k + 15 of a row; k is a multiple of 16, the longest run for which all formats have one scale. TYPE is
// a constant where it is called, so the driver keeps one branch. Formats: ops/quant_*.c.

const int iq4_values[16] = int[](-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
const int fp4_values[16] = int[](0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12); // E2M1 doubled
// Where the grids begin in args.tables, in words of 16 bits (runtime/tables.c).
const int GRID_IQ2XXS = 0, GRID_IQ2XS = 256, GRID_IQ2S = 768, GRID_IQ3XXS = 1792, GRID_IQ3S = 2048,
          GRID_IQ1 = 2560;

// Address of what plane p of a row has of a block; size: how many bytes of it.
uint64_t block_in_plane(Weight w, int p, int64_t row, int64_t block, int size)
{
    return w.plane[p] + row * w.row_size[p] + block * size;
}
uint byte_of(uvec4 v, int i) { return bitfieldExtract(v[i >> 2], 8 * (i & 3), 8); }
uint grid(int at, uint i) { return load_u16(args.tables + 2 * (at + int64_t(i))); }
// Sign bits of 8 elements from the 7 stored ones: bit 7 makes their number even.
uint signs8(uint s)
{
    s &= 127u;
    return s | (uint(bitCount(s)) & 1u) << 7;
}
float negate_if(uint bits, int i, float v) { return (bits >> i & 1u) != 0u ? -v : v; }

// 2^(e - 128)
float half_e8m0(uint e) { return uintBitsToFloat(e < 2 ? 0x00200000u << e : (e - 1) << 23); }
// Half of an unsigned E4M3 value; 0x7f reads as 0.
float half_ue4m3(uint s)
{
    uint e = s >> 3 & 15u, m = s & 7u;
    if ((s & 127u) == 127u) return 0.0;
    return e == 0 ? float(m) * 0.0009765625 : float(8 + m) * uintBitsToFloat((e + 127 - 11) << 23);
}

// The 16 two-bit codes of a run, as bytes: bits 2 * quarter of bytes 32 * half + l of the 64 bytes of a
// block, which is the layout of Q2_K, Q3_K, Q6_K and TQ2_0.
uvec4 pairs16(uint64_t unit, int run)
{
    return load_u128(unit + 32 * (run / 8) + 16 * (run % 2)) >> 2 * (run % 8 / 2) & 0x03030303u;
}

// Scale and minimum of group g of Q4_K and Q5_K from the 16 bytes d, dmin, 12 bytes of 6-bit pairs.
vec2 k4_scales(uvec4 head, int g)
{
    int at = 8 * (g & 3);
    uint a = head.y >> at & 255u, b = head.z >> at & 255u, c = head.w >> at & 255u;
    uint sc = g < 4 ? a & 63u : (c & 15u) | a >> 6 << 4, mn = g < 4 ? b & 63u : c >> 4 | b >> 6 << 4;
    return vec2(half_bits(head.x) * float(sc), half_bits(head.x >> 16) * float(mn));
}

// Runs of 16 elements of the types whose numbers are d * (code - less) + m with codes of at most 8 bits.
// Loading is apart from expanding, so that the caller can do other work while the loads are in flight.
struct Run16 {
    uvec4 v, h, s; // codes, their high bits, scales, as they are stored
};
struct Codes16 {
    uvec4 v; // bytes
    float less, d, m;
};
#define HAS_CODES(type) (type >= TYPE_Q4_0 && type <= TYPE_Q8_0 || type >= TYPE_Q2_K && type <= TYPE_Q6_K)

Run16 load_run(int type, Weight w, int64_t row, uint k)
{
    Run16 r;
    uint block = k / 256, run = k / 16 & 15u;
    r.h = r.s = uvec4(0);
    if (type < TYPE_Q2_K) {
        bool five = type == TYPE_Q5_0 || type == TYPE_Q5_1, has_min = type == TYPE_Q4_1 || type == TYPE_Q5_1;
        uint64_t at = block_in_plane(w, five ? 2 : 1, row, k / 32, has_min ? 4 : 2);
        r.v = load_u128(block_in_plane(w, 0, row, k / 32, type == TYPE_Q8_0 ? 32 : 16) +
                        (type == TYPE_Q8_0 ? k & 16u : 0u));
        if (five) r.h.x = load_u32(block_in_plane(w, 1, row, k / 32, 4));
        r.s.x = has_min ? load_u32(at) : load_u16(at);
    } else if (type == TYPE_Q2_K || type == TYPE_Q3_K) {
        r.v = load_u128(block_in_plane(w, 0, row, block, 64) + 32 * (run / 8) + 16 * (run % 2));
        if (type == TYPE_Q2_K) {
            r.s.x = load_u8(block_in_plane(w, 1, row, block, 16) + run);
            r.s.y = load_u32(block_in_plane(w, 2, row, block, 4));
        } else {
            uint64_t at = block_in_plane(w, 2, row, block, 12);
            r.h = load_u128(block_in_plane(w, 1, row, block, 32) + 16 * (run % 2));
            r.s.x = load_u8(at + run % 8);
            r.s.z = load_u8(at + 8 + run % 4);
            r.s.y = load_u16(block_in_plane(w, 3, row, block, 2));
        }
    } else if (type == TYPE_Q6_K) {
        r.v = load_u128(block_in_plane(w, 0, row, block, 128) + 64 * (run / 8) + 16 * (run % 4));
        r.h = load_u128(block_in_plane(w, 1, row, block, 64) + 32 * (run / 8) + 16 * (run % 2));
        r.s.x = load_u8(block_in_plane(w, 2, row, block, 16) + run);
        r.s.y = load_u16(block_in_plane(w, 3, row, block, 2));
    } else { // Q4_K, Q5_K
        r.v = load_u128(block_in_plane(w, 0, row, block, 128) + 32 * (run / 4) + 16 * (run % 2));
        if (type == TYPE_Q5_K) r.h = load_u128(block_in_plane(w, 1, row, block, 32) + 16 * (run % 2));
        r.s = load_u128(block_in_plane(w, type == TYPE_Q5_K ? 2 : 1, row, block, 16));
    }
    return r;
}

// The codes of the run that begins at element k.
Codes16 codes_of(int type, Run16 r, uint k)
{
    uint run = k / 16 & 15u, high = run % 2;
    Codes16 c = Codes16(r.v, 0.0, half_bits(r.s.x), 0.0);
    if (type == TYPE_Q8_0) {
        c.v ^= 0x80808080u;
        c.less = 128.0;
    } else if (type < TYPE_Q2_K) {
        c.v = c.v >> 4 * high & 0x0f0f0f0fu;
        if (type == TYPE_Q5_0 || type == TYPE_Q5_1) // four bits to four bytes
            c.v |= (uvec4(r.h.x) >> uvec4(0, 4, 8, 12) + 16 * high & 15u) * 0x00204081u << 4 & 0x10101010u;
        if (type == TYPE_Q4_1 || type == TYPE_Q5_1) c.m = half_bits(r.s.x >> 16);
        else c.less = type == TYPE_Q4_0 ? 8.0 : 16.0;
    } else if (type == TYPE_Q2_K) {
        c.v = c.v >> 2 * (run % 8 / 2) & 0x03030303u;
        c.d = half_bits(r.s.y) * float(r.s.x & 15u);
        c.m = -half_bits(r.s.y >> 16) * float(r.s.x >> 4);
    } else if (type == TYPE_Q3_K) {
        uint low = r.s.x >> 4 * (run / 8) & 15u, top = r.s.z >> 2 * (run / 4) & 3u;
        c.v = (c.v >> 2 * (run % 8 / 2) & 0x03030303u) | (r.h >> run / 2 & 0x01010101u) << 2;
        c.d = half_bits(r.s.y) * float(int(low | top << 4) - 32);
        c.less = 4.0;
    } else if (type == TYPE_Q6_K) {
        c.v = (c.v >> 4 * (run % 8 / 4) & 0x0f0f0f0fu) | (r.h >> 2 * (run % 8 / 2) & 0x03030303u) << 4;
        c.d = half_bits(r.s.y) * float(bitfieldExtract(int(r.s.x), 0, 8));
        c.less = 32.0;
    } else { // Q4_K, Q5_K
        vec2 dm = k4_scales(r.s, int(run / 2));
        c.v = c.v >> 4 * (run / 2 % 2) & 0x0f0f0f0fu;
        if (type == TYPE_Q5_K) c.v |= (r.h >> run / 2 & 0x01010101u) << 4;
        c.d = dm.x;
        c.m = -dm.y;
    }
    return c;
}

void numbers_of(Codes16 c, out float y[16])
{
    [[unroll]] for (int i = 0; i < 16; i++) y[i] = c.d * (float(byte_of(c.v, i)) - c.less) + c.m;
}

// IQ4_NL, IQ4_XS, MXFP4: tables of 16 values under nibbles in the order of Q4_0; NVFP4.
void table16(int type, Weight w, int64_t row, int64_t k, out float y[16])
{
    int64_t group = k / 32;
    int high = int(k / 16 & 1);
    float d;
    if (type == TYPE_NVFP4) {
        int s = int(k / 16 & 3);
        uint64_t at = block_in_plane(w, 0, row, k / 64, 32) + 8 * s;
        uvec2 v = uvec2(load_u32(at), load_u32(at + 4));
        d = half_ue4m3(load_u8(block_in_plane(w, 1, row, k / 64, 4) + s));
        [[unroll]] for (int i = 0; i < 16; i++)
            y[i] = d * float(fp4_values[v[i % 8 / 4] >> (8 * (i % 4) + 4 * (i / 8)) & 15u]);
        return;
    }
    uvec4 v = load_u128(block_in_plane(w, 0, row, group, 16));
    if (type == TYPE_MXFP4) d = half_e8m0(load_u8(block_in_plane(w, 1, row, group, 1)));
    else if (type == TYPE_IQ4_NL) d = half_bits(load_u16(block_in_plane(w, 1, row, group, 2)));
    else {
        uint64_t at = block_in_plane(w, 1, row, group / 8, 8);
        uint x = load_u32(at), h = load_u32(at + 4);
        int g = int(group % 8);
        d = half_bits(x) * float(int((h >> 4 * g & 15u) | (x >> (16 + 2 * g) & 3u) << 4) - 32);
    }
    [[unroll]] for (int i = 0; i < 16; i++) {
        uint c = byte_of(v, i) >> 4 * high & 15u;
        y[i] = d * float(type == TYPE_MXFP4 ? fp4_values[c] : iq4_values[c]);
    }
}

// TQ1_0, TQ2_0, Q1_0, Q2_0
void low_bit16(int type, Weight w, int64_t row, int64_t k, out float y[16])
{
    if (type == TYPE_TQ1_0) {
        int64_t block = k / 256;
        int run = int(k / 16 & 15);
        // Runs 0-9: bytes 0-31, digit run / 2. 10-14: bytes 32-47. 15: the four bytes apart, digit i in word
        // i.
        uint64_t at = block_in_plane(w, 0, row, block, 48);
        uvec4 v;
        if (run < 15) v = load_u128(at + (run < 10 ? 16 * (run % 2) : 32));
        else v = uvec4(load_u32(block_in_plane(w, 1, row, block, 4)));
        float d = half_bits(load_u16(block_in_plane(w, 2, row, block, 2)));
        const uint powers[5] = uint[](1u, 3u, 9u, 27u, 81u);
        [[unroll]] for (int i = 0; i < 16; i++) {
            uint b = byte_of(v, i) * powers[run < 10 ? run / 2 : run < 15 ? run - 10 : i / 4] & 255u;
            y[i] = d * float(int(b * 3u >> 8) - 1);
        }
        return;
    }
    int elems = type == TYPE_TQ2_0 ? 256 : type == TYPE_Q1_0 ? 128 : 64;
    int64_t block = k / elems;
    int run = int(k / 16 % (elems / 16));
    float d = half_bits(load_u16(block_in_plane(w, 1, row, block, 2)));
    if (type == TYPE_TQ2_0) {
        uvec4 v = pairs16(block_in_plane(w, 0, row, block, 64), run);
        [[unroll]] for (int i = 0; i < 16; i++) y[i] = d * float(int(byte_of(v, i)) - 1);
    } else if (type == TYPE_Q1_0) {
        uint bits = load_u16(block_in_plane(w, 0, row, block, 16) + 2 * run);
        [[unroll]] for (int i = 0; i < 16; i++) y[i] = d * float(int(bits >> i & 1u) * 2 - 1);
    } else {
        uint codes = load_u32(block_in_plane(w, 0, row, block, 16) + 4 * run);
        [[unroll]] for (int i = 0; i < 16; i++) y[i] = d * float(int(codes >> 2 * i & 3u) - 1);
    }
}

// 8 elements of a grid row of 2-bit codes for 8, 25, 43.
void iq2_row(uint codes, uint signs, float d, int at, inout float y[16])
{
    [[unroll]] for (int i = 0; i < 8; i++)
        y[at + i] = negate_if(signs, i, d * float(0x002b1908u >> 8 * (codes >> 2 * i & 3u) & 255u));
}

void iq2_16(int type, Weight w, int64_t row, int64_t block, int run, out float y[16])
{
    uint64_t unit = block_in_plane(w, 0, row, block, 64);
    uint s, a, b, sa, sb;
    if (type == TYPE_IQ2_XXS) {
        uint v = load_u32(unit + 8 * (run / 2)), h = load_u32(unit + 8 * (run / 2) + 4);
        int l = 2 * (run % 2);
        s = h >> 28;
        a = grid(GRID_IQ2XXS, v >> 8 * l & 255u), sa = signs8(h >> 7 * l);
        b = grid(GRID_IQ2XXS, v >> (8 * l + 8) & 255u), sb = signs8(h >> (7 * l + 7));
    } else if (type == TYPE_IQ2_XS) {
        uint v = load_u32(unit + 4 * run);
        s = load_u8(block_in_plane(w, 1, row, block, 8) + run / 2) >> 4 * (run % 2) & 15u;
        a = grid(GRID_IQ2XS, v & 511u), sa = signs8(v >> 9);
        b = grid(GRID_IQ2XS, v >> 16 & 511u), sb = signs8(v >> 25);
    } else {
        uint low = load_u16(unit + 2 * run), signs = load_u16(unit + 32 + 2 * run);
        uint64_t rest = block_in_plane(w, 1, row, block, 16);
        uint high = load_u8(rest + run / 2) >> 4 * (run % 2);
        s = load_u8(rest + 8 + run / 2) >> 4 * (run % 2) & 15u;
        a = grid(GRID_IQ2S, (low & 255u) | (high & 3u) << 8), sa = signs;
        b = grid(GRID_IQ2S, low >> 8 | (high & 12u) << 6), sb = signs >> 8;
    }
    float d = half_bits(load_u16(block_in_plane(w, type == TYPE_IQ2_XXS ? 1 : 2, row, block, 2))) *
              (0.5 + float(s)) * 0.25;
    iq2_row(a, sa, d, 0, y);
    iq2_row(b, sb, d, 8, y);
}

void iq3_16(int type, Weight w, int64_t row, int64_t block, int run, out float y[16])
{
    bool xxs = type == TYPE_IQ3_XXS;
    uint64_t unit = block_in_plane(w, 0, row, block, xxs ? 96 : 64);
    uint low = load_u32(unit + 4 * run), high = 0, signs;
    float d;
    if (xxs) {
        uint word = load_u32(unit + 64 + 4 * (run / 2));
        int l = 2 * (run % 2);
        signs = signs8(word >> 7 * l) | signs8(word >> (7 * l + 7)) << 8;
        d = half_bits(load_u16(block_in_plane(w, 1, row, block, 2))) * (0.5 + float(word >> 28)) * 0.5;
    } else {
        uint64_t rest = block_in_plane(w, 2, row, block, 12);
        signs = load_u16(block_in_plane(w, 1, row, block, 32) + 2 * run);
        high = load_u8(rest + run / 2) >> 4 * (run % 2);
        uint s = load_u8(rest + 8 + run / 4) >> 4 * (run / 2 % 2) & 15u;
        d = half_bits(load_u16(block_in_plane(w, 3, row, block, 2))) * float(1 + 2 * s);
    }
    const uint values[8] = uint[](4u, 12u, 20u, 28u, 36u, 44u, 52u, 62u);
    [[unroll]] for (int i = 0; i < 4; i++) {
        uint index = (low >> 8 * i & 255u) | (high >> i & 1u) << 8,
             codes = grid(xxs ? GRID_IQ3XXS : GRID_IQ3S, index);
        [[unroll]] for (int j = 0; j < 4; j++) {
            uint c = codes >> 3 * j & 7u;
            y[4 * i + j] = negate_if(signs, 4 * i + j, d * float(xxs ? values[c] : 2 * c + 1));
        }
    }
}

// Values are code - 1 plus or minus 1/8.
void iq1_16(int type, Weight w, int64_t row, int64_t block, int run, out float y[16])
{
    uint low = load_u16(block_in_plane(w, 0, row, block, 32) + 2 * run), first, second, scale;
    float d, delta[2];
    if (type == TYPE_IQ1_S) {
        uint h = load_u16(block_in_plane(w, 1, row, block, 16) + 2 * (run / 2));
        first = h >> 6 * (run % 2), second = first >> 3;
        delta[0] = delta[1] = (h >> 15) != 0u ? -0.125 : 0.125;
        scale = h >> 12 & 7u;
        d = half_bits(load_u16(block_in_plane(w, 2, row, block, 2)));
    } else {
        uint nibbles = load_u8(block_in_plane(w, 1, row, block, 16) + run);
        uint64_t at = block_in_plane(w, 2, row, block, 8);
        uint sx = load_u32(at), sy = load_u32(at + 4);
        first = nibbles, second = nibbles >> 4;
        delta[0] = (nibbles & 8u) != 0u ? -0.125 : 0.125;
        delta[1] = (nibbles & 128u) != 0u ? -0.125 : 0.125;
        scale = (run < 8 ? sx : sy) >> (16 * (run / 4 % 2) + 3 * (run % 4)) & 7u;
        d = half_bits((sx >> 12 & 15u) | (sx >> 28 << 4) | (sy >> 12 & 15u) << 8 | (sy >> 28 << 12));
    }
    d *= float(2 * scale + 1);
    uint a = grid(GRID_IQ1, (low & 255u) | (first & 7u) << 8),
         b = grid(GRID_IQ1, low >> 8 | (second & 7u) << 8);
    [[unroll]] for (int i = 0; i < 8; i++) {
        y[i] = d * (float(a >> 2 * i & 3u) - 1.0 + delta[0]);
        y[8 + i] = d * (float(b >> 2 * i & 3u) - 1.0 + delta[1]);
    }
}

// Q8_1 and Q8_K are stored as in files.
void raw16(int type, Weight w, int64_t row, int64_t k, out float y[16])
{
    int elems = type == TYPE_Q8_1 ? 32 : 256, size = type == TYPE_Q8_1 ? 36 : 292;
    uint64_t unit = block_in_plane(w, 0, row, k / elems, size);
    float d = type == TYPE_Q8_1 ? half_bits(load_u16(unit)) : load_f32(unit);
    [[unroll]] for (int i = 0; i < 4; i++) {
        int v = load_i32(unit + 4 + k % elems + 4 * i);
        [[unroll]] for (int j = 0; j < 4; j++) y[4 * i + j] = d * float(bitfieldExtract(v, 8 * j, 8));
    }
}

bool is_plain(int type) { return type <= TYPE_I64; }

// Elements k .. k + 15 of a row of a number type that starts at a multiple of 16 bytes.
void plain16(int type, uint64_t row, uint k, out float y[16])
{
    if (type == TYPE_F32) {
        [[unroll]] for (int i = 0; i < 4; i++) {
            vec4 v = PF128(row + 4 * int64_t(k) + 16 * i).v;
            [[unroll]] for (int j = 0; j < 4; j++) y[4 * i + j] = v[j];
        }
    } else if (type == TYPE_F16 || type == TYPE_BF16) {
        [[unroll]] for (int i = 0; i < 2; i++) {
            uvec4 v = load_u128(row + 2 * int64_t(k) + 16 * i);
            [[unroll]] for (int j = 0; j < 4; j++) {
                vec2 two = type == TYPE_F16
                               ? unpackHalf2x16(v[j])
                               : vec2(uintBitsToFloat(v[j] << 16), uintBitsToFloat(v[j] & 0xffff0000u));
                y[8 * i + 2 * j] = two.x;
                y[8 * i + 2 * j + 1] = two.y;
            }
        }
    } else
        [[unroll]] for (int i = 0; i < 16; i++) y[i] = load_plain(type, row, int64_t(k) + i);
}

void dequant16(int type, Weight w, int64_t row, int64_t k, out float y[16])
{
    int64_t block = k / 256;
    int run = int(k / 16 & 15);
    switch (type) {
    case TYPE_Q4_0: case TYPE_Q4_1: case TYPE_Q5_0: case TYPE_Q5_1: case TYPE_Q8_0:
    case TYPE_Q2_K: case TYPE_Q3_K: case TYPE_Q4_K: case TYPE_Q5_K: case TYPE_Q6_K:
        numbers_of(codes_of(type, load_run(type, w, row, uint(k)), uint(k)), y);
        break;
    case TYPE_IQ4_NL: case TYPE_IQ4_XS: case TYPE_MXFP4: case TYPE_NVFP4: table16(type, w, row, k, y); break;
    case TYPE_TQ1_0: case TYPE_TQ2_0: case TYPE_Q1_0: case TYPE_Q2_0: low_bit16(type, w, row, k, y); break;
    case TYPE_IQ2_XXS: case TYPE_IQ2_XS: case TYPE_IQ2_S: iq2_16(type, w, row, block, run, y); break;
    case TYPE_IQ3_XXS: case TYPE_IQ3_S: iq3_16(type, w, row, block, run, y); break;
    case TYPE_IQ1_S: case TYPE_IQ1_M: iq1_16(type, w, row, block, run, y); break;
    case TYPE_Q8_1: case TYPE_Q8_K: raw16(type, w, row, k, y); break;
    default: // number types
        [[unroll]] for (int i = 0; i < 16; i++)
            y[i] = load_plain(type, w.plane[0] + row * w.row_size[0], k + i);
    }
}

// The same of a row of n elements: k may be behind its end, and what is there is 0. aligned: rows of number
// types are whole runs of 8 and start at multiples of 16 bytes.
void expand_run(int type, Weight w, int64_t row, uint k, uint n, bool aligned, out float v[16])
{
    if (k >= n) {
        for (uint i = 0; i < 16; i++) v[i] = 0.0;
    } else if (is_plain(type)) {
        uint64_t at = w.plane[0] + row * w.row_size[0];
        if (aligned && k + 16 <= n) plain16(type, at, k, v);
        else for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_plain(type, at, k + i) : 0.0;
    } else dequant16(type, w, row, k, v);
}
