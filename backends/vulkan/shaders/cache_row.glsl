// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of the paged cache of keys and values, which are blocks as in files, not planes: reading of single
// elements and writing of whole rows. Types: F32, F16, BF16, Q8_0, Q4_0.

float load_cached(int type, uint64_t row, uint d)
{
    switch (type) {
    case TYPE_F32: return load_f32(row + 4 * d);
    case TYPE_F16: return half_bits(load_u16(row + 2 * d));
    case TYPE_BF16: return uintBitsToFloat(load_u16(row + 2 * d) << 16);
    case TYPE_Q8_0: {
        uint64_t block = row + 34 * (d / 32);
        return half_bits(load_u16(block)) * float(bitfieldExtract(int(load_u8(block + 2 + d % 32)), 0, 8));
    }
    default: { // Q4_0
        uint64_t block = row + 18 * (d / 32);
        uint q = load_u8(block + 2 + d % 16) >> 4 * (d % 32 / 16) & 15u;
        return half_bits(load_u16(block)) * float(int(q) - 8);
    }
    }
}

// Rounds half away from zero, as the reference does (ops/quant_*.c).
float round_away(float v) { return v < 0.0 ? -floor(0.5 - v) : floor(v + 0.5); }

// Quantises a block of 32 elements.
void store_block(int type, uint64_t at, const float v[32])
{
    float top = 0.0, most = 0.0;
    for (int i = 0; i < 32; i++)
        if (abs(v[i]) > most) most = abs(v[i]), top = v[i];
    if (type == TYPE_Q8_0) {
        float d = most / 127.0, inverse = d != 0.0 ? 1.0 / d : 0.0;
        store_u16(at, to_half(d));
        for (int i = 0; i < 32; i++) store_u8(at + 2 + i, uint(int(round_away(v[i] * inverse))) & 255u);
    } else {
        float d = top / -8.0, inverse = d != 0.0 ? 1.0 / d : 0.0;
        store_u16(at, to_half(d));
        for (int i = 0; i < 16; i++) {
            uint a = uint(min(15, int(v[i] * inverse + 8.5))),
                 b = uint(min(15, int(v[i + 16] * inverse + 8.5)));
            store_u8(at + 2 + i, a | b << 4);
        }
    }
}

void store_cached(int type, uint64_t row, uint d, float v)
{
    if (type == TYPE_F32) store_f32(row + 4 * d, v);
    else store_u16(row + 2 * d, type == TYPE_F16 ? to_half(v) : to_bf16(v));
}

// Address of the row of token t and head h; 0: the token has no slot.
uint64_t cache_slot(View cache, View slots, uint t, uint h)
{
    int slot = load_i32(slots.data + int64_t(t) * slots.nb[3]);
    if (slot < 0 || slot >= cache.ne[0] * cache.ne[2]) return 0;
    return cache.data + int64_t(slot / cache.ne[2]) * cache.nb[0] + int64_t(h) * cache.nb[1] +
           int64_t(slot % cache.ne[2]) * cache.nb[2];
}
