// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of attention share: which keys a token sees, how keys are split over workgroups, ALiBi
// slopes and sinks. Sources: q [T, H, D] F32, k and v in the paged cache, q_start and kv_len of each
// sequence, block table, sinks [H] F32 (SRC_attention_*).
#define LOWEST uintBitsToFloat(0xff800000u) // -inf

struct Span {
    int seq, from, to, position; // keys from .. to - 1
    bool none;                   // the token belongs to no sequence
};

void set_keys(inout Span s, int kv_len, int position)
{
    int causal = args.params[1], window = args.params[2], chunk = args.params[3];
    s.position = position;
    s.from = 0;
    s.to = causal != 0 ? min(kv_len, s.position + 1) : kv_len;
    if (window > 0) s.from = max(s.from, s.position - window + 1);
    if (chunk > 0) s.from = max(s.from, s.position / chunk * chunk);
    s.to = max(s.to, s.from);
}

// alone: each token is the only one of its sequence.
Span span_of(int token, bool alone)
{
    View starts = args.src[3], lens = args.src[4];
    Span s;
    if (alone) {
        s.seq = token;
        int n = load_i32(lens.data + int64_t(token) * lens.nb[3]);
        set_keys(s, n, n - 1);
        s.none = n <= 0;
        return s;
    }
    s.seq = min(token, lens.ne[3] - 1); // so it is where each sequence has one token
    int first = load_i32(starts.data + int64_t(s.seq) * starts.nb[3]),
        last = load_i32(starts.data + int64_t(s.seq + 1) * starts.nb[3]),
        kv_len = load_i32(lens.data + int64_t(s.seq) * lens.nb[3]);
    if (token < first || token >= last) { // the first sequence that ends behind the token, or the last one
        int high = lens.ne[3] - 1;
        for (s.seq = 0; s.seq < high;) {
            int middle = (s.seq + high) / 2;
            if (load_i32(starts.data + int64_t(middle + 1) * starts.nb[3]) <= token) s.seq = middle + 1;
            else high = middle;
        }
        first = load_i32(starts.data + int64_t(s.seq) * starts.nb[3]);
        last = load_i32(starts.data + int64_t(s.seq + 1) * starts.nb[3]);
        kv_len = load_i32(lens.data + int64_t(s.seq) * lens.nb[3]);
    }
    s.none = token < first || token >= last;
    set_keys(s, kv_len, kv_len - (last - token));
    return s;
}

// Keys of each of at most `splits` splits; the last ones may have none. A split has whole rounds of
// 2^round_log2 loads, and no more of them than needed, so that no workgroup waits long.
uint keys_per_split(Span s, uint splits, uint round_log2)
{
    uint n = uint(s.to - s.from), more = (1u << round_log2) - 1;
    if (splits == 1) return max(n, 1u);
    uint used = clamp((n + more) >> round_log2, 1u, splits);
    return max(1u, (n + used - 1) / used + more) >> round_log2 << round_log2;
}

float alibi_slope(float bias, uint heads, uint h)
{
    uint n2 = 1u << findMSB(heads);
    if (h < n2) return exp2(-bias / float(n2) * float(h + 1));
    return exp2(-bias / (2.0 * float(n2)) * float(2 * (h - n2) + 1));
}

// The sink of a head; LOWEST: it has none.
float sink_of(uint h) { return has_src(6) ? load_f32(args.src[6].data + 4 * int64_t(h)) : LOWEST; }

// Adds a sink to the largest score and the sum.
void add_sink(float sink, inout float top, inout float sum)
{
    if (sink == LOWEST) return;
    float now = max(top, sink);
    sum = (top == now ? sum : sum * exp(top - now)) + exp(sink - now);
    top = now;
}
