// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// sample: one token from each row of x [rows, n] f32, each with its own parameters; ops/softmax/sample.c says
// which one. A block has a row. Every warp visits a run of it, lanes side by side with four floats each.
//
// 1. A pass finds the maxima, and writes the row to the scratch memory if it has edits or a mask.
// 2. A pass adds up the weights for the log probability. If tokens are filtered by top-k or top-p, it also
//    counts tokens, and their weights, by the distance from the largest logit, in 2048 bins of 1/64.
// 3. The bin in which the filter ends is found by a scan. If the tokens down to its end are 2048 at most, a
//    pass lists them, and the rest is done in shared memory: sorting, top-k, top-p, min-p, the draw. Else the
//    bin is divided by the bits of the logits, in a pass each time, until the last token that stays is found,
//    and the draw is two passes over the row, of which the second visits the run of one warp.
//
// Sums are of integers, so that neither the order of additions nor other rows change them.
//
// Bytes moved: 4 n for each pass, three in most cases, from L2 where the rows fit into it; 40 KiB of shared
// memory. Limit: the loads of one multiprocessor, 64 bytes per clock, and the arithmetic of the exponential.
#include "backends/cuda/softmax/sample.cuh"

// Tokens are left down to this one, in falling order of logits and, among equals, rising order of ids.
struct sample_cut {
    uint32_t key;
    int token;
};

// What the filters have left. `listed`: it is the first `count` of m->list, in that order, each as
// ~key << 32 | id.
struct sample_left {
    sample_cut cut;
    uint64_t count;
    bool listed;
};

static __device__ __forceinline__ bool stays(const sample_cut &c, int j, uint32_t key)
{
    return key > c.key || (key == c.key && j <= c.token);
}

// --- edits ---------------------------------------------------------------------------------------------

static __device__ float edit_logit(const tn_cuda_sample_row &p, const tn_cuda_sample_edit &e, float v)
{
    if (v > -INFINITY) v = sample_sum(__dadd_rn((double)v, (double)e.bias));
    if (e.count == 0) return v;
    double d = (double)v, repeat = (double)p.repeat_penalty;
    d = d > 0.0 ? __ddiv_rn(d, repeat) : __dmul_rn(d, repeat);
    double frequency = __dmul_rn((double)e.count, (double)p.frequency_penalty);
    return sample_sum(__dadd_rn(d, -__dadd_rn((double)p.presence_penalty, frequency)));
}

// Whether the mask allows token j; without a mask it does.
static __device__ __forceinline__ bool allowed(const uint32_t *mask, int j)
{
    return !mask || (mask[j / 32] >> (j % 32) & 1);
}

// Finds the largest logit of the row. With edits or a mask it writes the row that the filters read. Returns
// the best token of that row: its key, then ~id.
static __device__ uint64_t edit_row(const tn_cuda_sample_args &a, const tn_cuda_sample_row &p,
                                    sample_logits *raw, sample_logits *l, sample_memory *m)
{
    bool masked = p.mask >= 0 && p.mask < a.n_masks;
    const uint32_t *mask = masked ? a.masks + (int64_t)p.mask * a.mask_words : NULL;
    int n_edits = p.first_edit >= 0 ? min(p.n_edits, a.n_edits - p.first_edit) : 0;
    bool edited = a.edited && (mask || n_edits > 0);
    float *out = edited ? a.edited + (int64_t)blockIdx.x * a.edited_row : NULL;
    uint64_t best = 0;
    for (int j = threadIdx.x; edited && j < raw->n; j += TN_CUDA_SAMPLE_THREADS)
        out[j] = allowed(mask, j) ? sample_tidy(((const float *)raw->v)[j]) : -INFINITY;
    sample_each(*raw, [&](int j, float v) {
        uint64_t here = (uint64_t)sample_key(v) << 32 | ~(uint32_t)j;
        best = here > best ? here : best;
    });
    best = sample_block_max(best, m);
    raw->max = best ? sample_value((uint32_t)(best >> 32)) : -INFINITY;
    *l = *raw;
    if (!edited) return best;
    for (int i = threadIdx.x; i < n_edits; i += TN_CUDA_SAMPLE_THREADS) {
        tn_cuda_sample_edit e = a.edits[p.first_edit + i];
        if (e.token >= 0 && e.token < raw->n) out[e.token] = edit_logit(p, e, out[e.token]);
    }
    __syncthreads();
    *l = {(const char *)out, raw->n, true, 0.0f};
    best = 0;
    sample_each(*l, [&](int j, float v) {
        uint64_t here = (uint64_t)sample_key(v) << 32 | ~(uint32_t)j;
        best = here > best ? here : best;
    });
    best = sample_block_max(best, m);
    l->max = best ? sample_value((uint32_t)(best >> 32)) : -INFINITY;
    return best;
}

// --- where a filter ends -------------------------------------------------------------------------------

// Bins of falling logits.
static __device__ __forceinline__ int bin_of(float max, float v)
{
    return (int)fminf(__fmul_rn(__fsub_rn(max, v), 64.0f), (float)(SAMPLE_BINS - 1));
}

// The smallest key in the bins up to b.
static __device__ uint32_t bin_end(float max, int b)
{
    uint32_t low = sample_key(-SAMPLE_FLT_MAX), high = sample_key(max);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (bin_of(max, sample_value(middle)) <= b) high = middle;
        else low = middle + 1;
    }
    return low;
}

static __device__ __forceinline__ void clear_bins(sample_memory *m)
{
    __syncthreads();
    for (int i = threadIdx.x; i < SAMPLE_BINS; i += TN_CUDA_SAMPLE_THREADS)
        m->count[i] = m->low[i] = m->high[i] = 0;
    __syncthreads();
}

static __device__ __forceinline__ void add_to_bin(sample_memory *m, int bin, uint64_t weight)
{
    atomicAdd(&m->count[bin], 1u);
    if (weight == 0) return;
    uint32_t low = (uint32_t)weight, before = atomicAdd(&m->low[bin], low);
    uint32_t high = (uint32_t)(weight >> 32) + (before + low < before ? 1 : 0);
    if (high > 0) atomicAdd(&m->high[bin], high);
}

// The search for the token with which a sum over the largest reaches a target. Tokens with keys from `low` to
// `high` are undecided; those above stay.
struct search {
    uint64_t target;
    uint64_t above, above_count; // sum and number of the tokens above
    uint64_t inside_count;       // of undecided ones
    uint32_t low, high;
    bool ones; // the sum is of ones, else of weights
};

// Finds the bin in which the sum reaches the target.
static __device__ int locate(search *s, sample_memory *m)
{
    uint64_t counts[2], sums[2], all;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int bin = 2 * threadIdx.x + i;
        counts[i] = m->count[bin];
        sums[i] = s->ones ? counts[i] : (uint64_t)m->high[bin] << 32 | m->low[bin];
    }
    uint64_t count = s->above_count + sample_scan(counts[0] + counts[1], m, &all);
    uint64_t sum = s->above + sample_scan(sums[0] + sums[1], m, &all);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (sum < s->target && sum + sums[i] >= s->target) {
            m->found = 2 * threadIdx.x + i;
            m->above = sum;
            m->above_count = count;
            m->inside_count = counts[i];
        }
        sum += sums[i];
        count += counts[i];
    }
    __syncthreads();
    s->above = m->above;
    s->above_count = m->above_count;
    s->inside_count = m->inside_count;
    return m->found;
}

// Lists what stays of the tokens with keys from `low` to `high`, and sorts it.
static __device__ void list_tokens(const sample_logits &l, const sample_cut &c, uint32_t low, uint32_t high,
                                   sample_memory *m)
{
    __syncthreads();
    if (threadIdx.x == 0) m->n_list = 0;
    __syncthreads();
    sample_each(l, [&](int j, float v) {
        uint32_t key = sample_key(v);
        if (key < low || key > high || !stays(c, j, key)) return;
        m->list[atomicAdd(&m->n_list, 1u)] = (uint64_t)~key << 32 | (uint32_t)j;
    });
    __syncthreads();
    sample_sort(m, m->n_list);
}

// The first place of the sorted list, of n tokens, up to which the sum reaches the target.
template <typename F>
static __device__ uint32_t list_find(sample_memory *m, uint32_t n, uint64_t above, uint64_t target, F measure)
{
    uint64_t parts[2], all;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t at = 2 * threadIdx.x + i;
        parts[i] = at < n ? measure(m->list[at]) : 0;
    }
    uint64_t sum = above + sample_scan(parts[0] + parts[1], m, &all);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (sum < target && sum + parts[i] >= target) m->found = 2 * threadIdx.x + i;
        sum += parts[i];
    }
    __syncthreads();
    return (uint32_t)m->found;
}

static __device__ __forceinline__ float listed_value(uint64_t entry)
{
    return sample_value(~(uint32_t)(entry >> 32));
}

// Divides the undecided keys until they fit into the list, or are a single one.
static __device__ void narrow(const sample_logits &l, float temperature, const sample_cut &c, search *s,
                              sample_memory *m)
{
    while (s->inside_count > SAMPLE_LIST && s->low < s->high) {
        int shift = max(21 - __clz((int)(s->high - s->low)), 0);
        uint32_t low = s->low, high = s->high;
        bool ones = s->ones;
        clear_bins(m);
        sample_each(l, [&](int j, float v) {
            uint32_t key = sample_key(v);
            if (key < low || key > high || !stays(c, j, key)) return;
            uint64_t w = ones ? 0 : sample_fixed(sample_weight(v, l.max, temperature));
            add_to_bin(m, (int)((high - key) >> shift), w);
        });
        uint32_t bin = (uint32_t)locate(s, m), width = (1u << shift) - 1;
        s->high = high - (bin << shift);
        s->low = s->high - low < width ? low : s->high - width;
    }
}

// Finds the token with which the sum reaches the target. The bins hold what stays by c.
static __device__ sample_left finish(const sample_logits &l, float temperature, const sample_cut &c,
                                     search *s, sample_memory *m)
{
    int bin = locate(s, m);
    s->low = bin_end(l.max, bin);
    s->high = bin > 0 ? bin_end(l.max, bin - 1) - 1 : sample_key(l.max);
    narrow(l, temperature, c, s, m);
    bool ones = s->ones;
    auto measure = [=](uint64_t entry) {
        return ones ? 1 : sample_fixed(sample_weight(listed_value(entry), l.max, temperature));
    };
    sample_left left;
    if (s->inside_count > SAMPLE_LIST) { // equal logits
        uint64_t w = ones ? 1 : sample_fixed(sample_weight(sample_value(s->low), l.max, temperature));
        uint64_t n = (s->target - s->above + w - 1) / w;
        uint32_t tie = s->low;
        auto is_tie = [=](int j, float v) {
            return (uint64_t)(sample_key(v) == tie && stays(c, j, tie) ? 1 : 0);
        };
        sample_total(l, m, is_tie);
        left.cut = {tie, sample_find(l, m, n - 1, is_tie)};
        left.count = s->above_count + n;
        left.listed = false;
        return left;
    }
    left.listed = s->above_count + s->inside_count <= SAMPLE_LIST;
    list_tokens(l, c, s->low, left.listed ? 0xffffffffu : s->high, m);
    uint32_t at = list_find(m, m->n_list, left.listed ? 0 : s->above, s->target, measure);
    uint64_t last = m->list[at];
    left.cut = {~(uint32_t)(last >> 32), (int)(uint32_t)last};
    left.count = left.listed ? at + 1 : s->above_count + at + 1;
    return left;
}

// Fills the bins with what stays by c. Returns the number of tokens, *sum that of their weights. *plain: adds
// the weights at temperature 1 to it, if it is not NULL.
static __device__ uint64_t fill_bins(const sample_logits &l, float temperature, const sample_cut &c,
                                     bool ones, uint64_t *sum, uint64_t *plain, sample_memory *m)
{
    uint64_t count = 0, weights = 0, plains = 0;
    bool same = temperature == 1.0f;
    clear_bins(m);
    sample_each(l, [&](int j, float v) {
        if (!stays(c, j, sample_key(v))) return;
        uint64_t one = plain || (same && !ones) ? sample_fixed(sample_weight(v, l.max, 1.0f)) : 0;
        uint64_t w = ones ? 0 : same ? one : sample_fixed(sample_weight(v, l.max, temperature));
        add_to_bin(m, bin_of(l.max, v), w);
        count++;
        weights += w;
        plains += one;
    });
    uint64_t total;
    (void)sample_scan(weights, m, sum);
    (void)sample_scan(plains, m, &total);
    if (plain) *plain = total;
    (void)sample_scan(count, m, &total);
    return total;
}

// --- filters and the draw ------------------------------------------------------------------------------

// top-k, then top-p. *plain: the sum of the weights at temperature 1, if the row has no edits.
static __device__ sample_left filter(const sample_logits &l, const tn_cuda_sample_row &p, uint64_t *plain,
                                     sample_memory *m)
{
    sample_left left = {{0, 0x7fffffff}, 0, false};
    float t = p.filter_temperature;
    bool by_count = p.top_k > 0, by_weight = p.top_p < 1.0f;
    uint64_t sum, n = fill_bins(l, t, left.cut, by_count, &sum, plain, m);
    left.count = n;
    if (by_count && (uint64_t)p.top_k < n) {
        search s = {(uint64_t)p.top_k, 0, 0, 0, 0, 0, true};
        left = finish(l, t, left.cut, &s, m);
    }
    if (!by_weight) return left;
    if (left.listed) {
        auto measure = [=](uint64_t entry) {
            return sample_fixed(sample_weight(listed_value(entry), l.max, t));
        };
        uint64_t mine = 0;
        for (uint32_t i = threadIdx.x; i < left.count; i += TN_CUDA_SAMPLE_THREADS)
            mine += measure(m->list[i]);
        (void)sample_scan(mine, m, &sum);
    } else if (by_count) {
        (void)fill_bins(l, t, left.cut, false, &sum, NULL, m);
    }
    uint64_t target = __double2ull_rz(__dmul_rn((double)p.top_p, __ull2double_rn(sum)));
    if (target == 0) target = 1;
    if (left.listed) {
        auto measure = [=](uint64_t entry) {
            return sample_fixed(sample_weight(listed_value(entry), l.max, t));
        };
        left.count = list_find(m, (uint32_t)left.count, 0, target, measure) + 1;
        return left;
    }
    search s = {target, 0, 0, 0, 0, 0, false};
    return finish(l, t, left.cut, &s, m);
}

// The weight of a token in the draw; 0: min-p drops it.
static __device__ __forceinline__ uint64_t draw_weight(const tn_cuda_sample_row &p, float max, float v)
{
    if (p.min_p > 0.0f && sample_weight(v, max, p.filter_temperature) < p.min_p) return 0;
    return sample_fixed(sample_weight(v, max, p.temperature));
}

static __device__ int draw(const sample_logits &l, const tn_cuda_sample_row &p, const sample_left &left,
                           sample_memory *m)
{
    uint64_t random = (uint64_t)p.random_high << 32 | p.random_low, sum = 0;
    float max = l.max;
    if (!left.listed) {
        sample_cut c = left.cut;
        auto weight = [=](int j, float v) {
            return stays(c, j, sample_key(v)) ? draw_weight(p, max, v) : 0;
        };
        sum = sample_total(l, m, weight);
        return sample_find(l, m, __umul64hi(random, sum), weight);
    }
    // The list in the order of the ids: each as id << 32 | key.
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < left.count; i += TN_CUDA_SAMPLE_THREADS)
        m->list[i] = m->list[i] << 32 | ~(uint32_t)(m->list[i] >> 32);
    sample_sort(m, (uint32_t)left.count);
    auto weight = [=](uint64_t entry) { return draw_weight(p, max, sample_value((uint32_t)entry)); };
    uint64_t mine = 0;
    for (uint32_t i = threadIdx.x; i < left.count; i += TN_CUDA_SAMPLE_THREADS) mine += weight(m->list[i]);
    (void)sample_scan(mine, m, &sum);
    uint32_t at = list_find(m, (uint32_t)left.count, 0, __umul64hi(random, sum) + 1, weight);
    return (int)(m->list[at] >> 32);
}

// --- the row -------------------------------------------------------------------------------------------

// The most probable tokens of the model.
static __device__ void store_top(const sample_logits &raw, int n_top, tn_cuda_sample_result *y,
                                 sample_memory *m)
{
    sample_cut all = {0, 0x7fffffff};
    uint64_t sum, n = fill_bins(raw, 1.0f, all, true, &sum, NULL, m);
    search s = {n < (uint64_t)n_top ? n : (uint64_t)n_top, 0, 0, 0, 0, 0, true};
    sample_left left = finish(raw, 1.0f, all, &s, m);
    if (!left.listed) list_tokens(raw, left.cut, left.cut.key, 0xffffffffu, m);
    if (threadIdx.x == 0) y->n_top = (int)left.count;
    if (threadIdx.x >= left.count) return;
    y->top[threadIdx.x].token = (int)(uint32_t)m->list[threadIdx.x];
    y->top[threadIdx.x].logit = listed_value(m->list[threadIdx.x]);
}

static __device__ void store(const sample_logits &raw, int token, uint64_t sum, tn_cuda_sample_result *y)
{
    if (threadIdx.x != 0) return;
    y->token = token;
    y->logit = token >= 0 ? sample_tidy(((const float *)raw.v)[token]) : 0.0f;
    y->max = raw.max;
    y->sum_low = (uint32_t)sum;
    y->sum_high = (uint32_t)(sum >> 32);
}

TN_ENTRY __launch_bounds__(TN_CUDA_SAMPLE_THREADS) tn_sample(const __grid_constant__ tn_cuda_sample_args a)
{
    __shared__ sample_memory memory;
    sample_memory *m = &memory;
    tn_pdl_trigger();
    tn_pdl_wait();
    tn_cuda_sample_row p = a.rows[blockIdx.x];
    tn_cuda_sample_result *y = a.y + blockIdx.x;
    sample_logits raw = {tn_row32(a.x, blockIdx.x), (int)a.x.ne[3], a.aligned != 0, 0.0f}, l;
    if (threadIdx.x < sizeof *y / 4) ((int *)y)[threadIdx.x] = threadIdx.x == 0 ? -1 : 0;
    if (p.kind != TN_CUDA_SAMPLE_BEST && p.kind != TN_CUDA_SAMPLE_DRAW) return;
    uint64_t best = edit_row(a, p, &raw, &l, m), sum = 0;
    bool filters = p.kind == TN_CUDA_SAMPLE_DRAW && best != 0 && (p.top_k > 0 || p.top_p < 1.0f);
    bool summed = filters && l.v == raw.v;
    float raw_max = raw.max;
    if (!summed)
        sum = sample_total(raw, m,
                           [=](int, float v) { return sample_fixed(sample_weight(v, raw_max, 1.0f)); });
    int token = best ? (int)~(uint32_t)best : -1;
    if (p.kind == TN_CUDA_SAMPLE_DRAW && best) {
        sample_left left = {{0, 0x7fffffff}, 0, false};
        if (filters) left = filter(l, p, summed ? &sum : NULL, m);
        token = draw(l, p, left, m);
    }
    store(raw, token, sum, y);
    if (p.n_top > 0 && raw.max > -INFINITY) store_top(raw, min(p.n_top, (int)TN_CUDA_SAMPLE_TOP), y, m);
}
