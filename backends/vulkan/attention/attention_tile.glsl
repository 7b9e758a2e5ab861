// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels of attention share that multiply a tile of queries by tiles of keys. Sources: attention.glsl.

float soft_cap(float s, float cap) // as UNARY_SOFTCAP, in less code
{
    float u = s / cap, x = exp(-2.0 * abs(u));
    return cap * (abs(u) < 0.04 ? u * (1.0 - u * u * (1.0 / 3.0 - u * u * (2.0 / 15.0)))
                                : sign(u) * (1.0 - x) / (1.0 + x));
}

// Which keys of a sequence one token sees (from .. to - 1), and which the `rows` tokens of the workgroup from
// t0 on see (begin .. end - 1).
struct Seen {
    int from, to, position, begin, end;
    bool inside, none;
};

Seen seen_of(int seq, int token, int t0, int rows)
{
    View starts = args.src[3], lens = args.src[4];
    int first = load_i32(starts.data + int64_t(seq) * starts.nb[3]),
        last = load_i32(starts.data + int64_t(seq + 1) * starts.nb[3]);
    int kv_len = load_i32(lens.data + int64_t(seq) * lens.nb[3]), causal = args.params[1],
        window = args.params[2], chunk = args.params[3];
    int lowest = kv_len - (last - max(first, t0)),
        behind = kv_len - (last - min(last, t0 + rows)); // positions
    Seen s;
    s.none = last <= t0 || first >= t0 + rows;
    s.inside = token >= first && token < last;
    s.position = kv_len - (last - token);
    s.from = s.begin = 0;
    s.to = causal != 0 ? min(kv_len, s.position + 1) : kv_len;
    s.end = causal != 0 ? min(kv_len, behind) : kv_len;
    if (window > 0)
        s.from = max(s.from, s.position - window + 1), s.begin = max(s.begin, lowest - window + 1);
    if (chunk > 0)
        s.from = max(s.from, s.position / chunk * chunk), s.begin = max(s.begin, lowest / chunk * chunk);
    if (!s.inside) s.to = 0;
    return s;
}
