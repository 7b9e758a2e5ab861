// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// sample: one token from each row of x [rows, n] F32, each with its own parameters; ops/softmax/sample.c says
// which one. A dispatch with EDIT 1 writes rows with edits or a mask into the scratch memory, a workgroup for
// each part of a row. The other dispatch has a workgroup for each row.
//
// 1. A pass finds the largest logits, another one adds up the weights for the log probability.
// 2. If top-k or top-p cuts off tokens, a pass counts tokens, and their weights, by the distance from the
//    largest logit, in 1024 bins of 1/32.
// 3. The bin in which the filter ends is found by a scan. If the tokens down to its end are 1024 at most, a
//    pass lists them, and the rest is done in shared memory: sorting, top-k, top-p, min-p, the draw. Else the
//    bin is divided by the bits of the logits, in a pass each time, until the last token that stays is found.
//    Then the draw is a pass over the row and one over the run of it in which the token is.
//
// Sums are of integers, so that neither the order of additions nor the size of workgroups changes them.
//
// Bytes: 4 n for each pass, four in most cases, from the cache where the rows fit into it. Limit: the loads
// and the exponentials of one multiprocessor.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/softmax/sample.glsl"

layout(local_size_x_id = 4) in;
layout(constant_id = 0) const int EDIT = 0;
layout(constant_id = 4) const uint THREADS = 128;

const int BEST = 1, DRAW = 2; // of ops/sample.h
const uint TOP = 20, BINS = 1024, LIST = 1024;
const uint LANES = 32; // neighbours that visit a run of the row together

layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Row {
    int kind;
    uint filter_temperature, temperature; // bits
    int top_k;
    float top_p, min_p;
    uint repeat_penalty, presence_penalty, frequency_penalty; // bits
    int first_edit, n_edits, mask;
    uint random_low, random_high;
    int n_top, unused;
};
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Edit {
    int token, count;
    uint bias; // bits
    int unused;
};
layout(buffer_reference, scalar, buffer_reference_align = 4) writeonly buffer Result {
    int token;
    uint logit, max; // bits
    uint sum_low, sum_high;
    int n_top, unused[2];
    uint top[2 * TOP]; // token and logit
};
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Edited { uint v; };

// Three words for each bin: how many tokens, and the sum of their weights. Or the list, two words for each
// token: first ~key and id, then, for the draw, id and key.
shared uint space[3 * BINS];
shared uint64_t scan_space[THREADS];
shared uint found, found_inside, n_listed;
shared uint64_t found_before, found_count;

// --- the row that is visited ---------------------------------------------------------------------------

uint64_t logits;                              // address
uint n, top_key;                              // the largest key
float top;                                    // the same as a float
uint range_low = 0, range_high = 0xffffffffu; // keys of the tokens that are visited
// Tokens are left down to this one, in falling order of logits and, among equals, rising order of ids.
uint cut_key = 0, cut_token = 0xffffffffu;
// Whether the first n_left of the list are what is left.
bool listed = false;
uint n_left = 0;
// Parameters of the row. Temperatures are bits.
uint filter_temperature, temperature;
float min_p;

void visit(uint low, uint high) { range_low = low, range_high = high; }

bool visited(uint j, uint key)
{
    return key > NEVER && key >= range_low && key <= range_high &&
           (key > cut_key || (key == cut_key && j <= cut_token));
}

// The keys of four tokens; that of -inf from `end` on.
uvec4 keys_at(uint j, uint by, uint end)
{
    uvec4 keys = uvec4(NEVER);
    for (uint i = 0; i < 4; i++)
        if (j + i * by < end) keys[i] = key_of(load_u32(logits + 4 * int64_t(j + i * by)));
    return keys;
}

// What is added up: ones, weights at the temperature of the filters, at temperature 1, or those of the draw,
// which are 0 where min-p drops the token.
const int ONES = 0, FILTERED = 1, PLAIN = 2, DRAWN = 3;

uint64_t measure(int what, uint key)
{
    if (what == ONES) return 1;
    if (what == DRAWN && min_p > 0.0 && weight_at(key, top, filter_temperature) < min_p) return 0;
    return weight_fixed(
        weight_at(key, top, what == PLAIN ? ONE : what == DRAWN ? temperature : filter_temperature));
}

// --- sums ----------------------------------------------------------------------------------------------

// Leaves the sums of x over the invocations up to each one in scan_space. Returns that over all.
uint64_t scan(uint64_t x)
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    scan_space[t] = x;
    barrier();
    for (uint by = 1; by < THREADS; by <<= 1) {
        uint64_t y = t >= by ? scan_space[t - by] : 0;
        barrier();
        scan_space[t] += y;
        barrier();
    }
    return scan_space[THREADS - 1];
}

// The largest logit of the row, then the lowest id: key and ~id. 0: all are -inf.
uint64_t find_best()
{
    uint t = gl_LocalInvocationID.x;
    uint64_t best = 0;
    for (uint j = t; j < n; j += 4 * THREADS) {
        uvec4 keys = keys_at(j, THREADS, n);
        for (uint i = 0; i < 4; i++) {
            uint64_t here = uint64_t(keys[i]) << 32 | ~(j + i * THREADS);
            if (keys[i] > NEVER && here > best) best = here;
        }
    }
    barrier();
    scan_space[t] = best;
    for (uint by = THREADS / 2; by > 0; by >>= 1) {
        barrier();
        if (t < by && scan_space[t + by] > scan_space[t]) scan_space[t] = scan_space[t + by];
    }
    barrier();
    return scan_space[0];
}

// Tokens in the run of a row that neighbours visit.
uint run_of(uint size)
{
    const uint RUNS = THREADS / LANES;
    return ((size + RUNS - 1) / RUNS + LANES - 1) / LANES * LANES;
}

// The sum over tokens from .. to - 1. scan_space then has the sums up to the end of each run.
uint64_t sum_runs(int what, uint from, uint to)
{
    uint t = gl_LocalInvocationID.x, run = run_of(to - from), first = from + t / LANES * run,
         end = min(first + run, to);
    uint64_t sum = 0;
    for (uint j = first + t % LANES; j < end; j += 4 * LANES) {
        uvec4 keys = keys_at(j, LANES, end);
        for (uint i = 0; i < 4; i++)
            if (visited(j + i * LANES, keys[i])) sum += measure(what, keys[i]);
    }
    return scan(sum);
}

// The first token, in the order of the ids, up to which the sum exceeds `at`, which is less than that of all.
// sum_runs was called for the row.
uint find_token(int what, uint64_t at)
{
    uint t = gl_LocalInvocationID.x, from = 0, to = n;
    for (;;) {
        uint run = run_of(to - from), lanes = run > LANES ? LANES : 1;
        uint64_t before = t >= lanes ? scan_space[t - lanes] : 0;
        bool ends = t % lanes == lanes - 1;
        if (ends && before <= at && scan_space[t] > at) found = t / lanes, found_before = before;
        barrier();
        uint place = found;
        at -= found_before;
        if (run == LANES) return from + place;
        from += place * run;
        to = min(to, from + run);
        sum_runs(what, from, to);
    }
}

// --- bins ----------------------------------------------------------------------------------------------

const uint OWN_BINS = BINS / THREADS;
// Of the bins: sums before those of this invocation, and of all.
uint64_t count_before, sum_before, count_all, sum_all;

uint bin_by_distance(uint key)
{
    precise float d = (top - value_of(key)) * 32.0;
    return uint(min(d, float(BINS - 1)));
}

// The smallest key in the bins up to b.
uint end_of_bin(uint b)
{
    uint low = NEVER + 1, high = top_key;
    while (low < high) {
        uint middle = low + (high - low) / 2;
        if (bin_by_distance(middle) <= b) high = middle;
        else low = middle + 1;
    }
    return low;
}

uint64_t sum_of_bin(uint b) { return uint64_t(space[2 * BINS + b]) << 32 | space[BINS + b]; }

void add_to_bin(uint b, uint64_t x)
{
    uint low = uint(x), high = uint(x >> 32);
    atomicAdd(space[b], 1);
    if (low != 0 && atomicAdd(space[BINS + b], low) > ~low) high++;
    if (high != 0) atomicAdd(space[2 * BINS + b], high);
}

// Sorts what is visited into bins of falling logits: by the distance from the largest one, or, if shift >= 0,
// by the bits of the keys below range_high. `what`: ONES, or FILTERED.
void fill_bins(int what, int shift)
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    for (uint i = t; i < 3 * BINS; i += THREADS) space[i] = 0;
    barrier();
    for (uint j = t; j < n; j += 4 * THREADS) {
        uvec4 keys = keys_at(j, THREADS, n);
        for (uint i = 0; i < 4; i++) {
            if (!visited(j + i * THREADS, keys[i])) continue;
            uint b = shift < 0 ? bin_by_distance(keys[i]) : (range_high - keys[i]) >> shift;
            add_to_bin(min(b, BINS - 1), what == ONES ? 0 : measure(what, keys[i]));
        }
    }
    barrier();
    uint64_t count = 0, sum = 0;
    for (uint i = 0; i < OWN_BINS; i++) {
        count += space[t * OWN_BINS + i];
        sum += sum_of_bin(t * OWN_BINS + i);
    }
    count_all = scan(count);
    count_before = scan_space[t] - count;
    if (what == ONES) return;
    sum_all = scan(sum);
    sum_before = scan_space[t] - sum;
}

// What lies before the bin in which a filter ends, and how many tokens are in it.
struct Place {
    uint64_t sum, count;
    uint inside;
};

// The bin with which the sum reaches the target.
uint find_bin(int what, uint64_t target, inout Place at)
{
    uint t = gl_LocalInvocationID.x;
    uint64_t count = at.count + count_before, sum = at.sum + (what == ONES ? count_before : sum_before);
    barrier();
    for (uint i = 0; i < OWN_BINS; i++) {
        uint b = t * OWN_BINS + i, inside = space[b];
        uint64_t x = what == ONES ? uint64_t(inside) : sum_of_bin(b);
        if (sum < target && sum + x >= target)
            found = b, found_before = sum, found_count = count, found_inside = inside;
        sum += x;
        count += inside;
    }
    barrier();
    at = Place(found_before, found_count, found_inside);
    return found;
}

// --- the list ------------------------------------------------------------------------------------------

const uint OWN_PLACES = LIST / THREADS;

uint64_t list_get(uint i) { return uint64_t(space[2 * i]) << 32 | space[2 * i + 1]; }

void list_set(uint i, uint64_t x)
{
    space[2 * i] = uint(x >> 32);
    space[2 * i + 1] = uint(x);
}

// The first `count` entries ascending (K. E. Batcher, Sorting networks and their applications, 1968).
void list_sort(uint count)
{
    uint t = gl_LocalInvocationID.x, size = 2;
    while (size < count) size *= 2;
    for (uint i = count + t; i < size; i += THREADS) list_set(i, ~uint64_t(0));
    barrier();
    for (uint run = 2; run <= size; run *= 2) {
        for (uint by = run / 2; by > 0; by /= 2) {
            for (uint k = t; k < size / 2; k += THREADS) {
                uint i = 2 * k - (k & (by - 1));
                uint64_t a = list_get(i), b = list_get(i + by);
                if ((a > b) == ((i & run) == 0)) {
                    list_set(i, b);
                    list_set(i + by, a);
                }
            }
            barrier();
        }
    }
}

// Lists what is visited, in falling order of logits and, among equals, rising order of ids.
void list_visited()
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    if (t == 0) n_listed = 0;
    barrier();
    for (uint j = t; j < n; j += 4 * THREADS) {
        uvec4 keys = keys_at(j, THREADS, n);
        for (uint i = 0; i < 4; i++) {
            if (!visited(j + i * THREADS, keys[i])) continue;
            uint at = atomicAdd(n_listed, 1);
            if (at < LIST) list_set(at, uint64_t(~keys[i]) << 32 | (j + i * THREADS));
        }
    }
    barrier();
    list_sort(min(n_listed, LIST));
}

uint64_t measure_entry(int what, uint64_t entry)
{
    return measure(what, what == DRAWN ? uint(entry) : ~uint(entry >> 32));
}

// The sum over the first `count` entries.
uint64_t list_sum(int what, uint count)
{
    uint t = gl_LocalInvocationID.x;
    uint64_t sum = 0;
    for (uint i = t * OWN_PLACES; i < min((t + 1) * OWN_PLACES, count); i++)
        sum += measure_entry(what, list_get(i));
    return scan(sum);
}

// The first place with which the sum, of `before` and the entries, reaches the target. list_sum was called.
uint list_find(int what, uint count, uint64_t before, uint64_t target)
{
    uint t = gl_LocalInvocationID.x;
    uint64_t sum = before + (t > 0 ? scan_space[t - 1] : 0);
    for (uint i = t * OWN_PLACES; i < min((t + 1) * OWN_PLACES, count); i++) {
        uint64_t x = measure_entry(what, list_get(i));
        if (sum < target && sum + x >= target) found = i;
        sum += x;
    }
    barrier();
    return found;
}

// --- filters and the draw ------------------------------------------------------------------------------

// The filter ends among more equal logits than the list takes.
void cut_equal(int what, uint64_t target, uint key, Place at)
{
    uint64_t each = measure(what, key), wanted = (target - at.sum + each - 1) / each;
    visit(key, key);
    sum_runs(ONES, 0, n);
    cut_token = find_token(ONES, wanted - 1);
    cut_key = key;
    listed = false;
}

// Cuts off what follows the token with which the sum reaches the target. fill_bins(what, -1) was called.
void cut_at(int what, uint64_t target)
{
    Place at = Place(uint64_t(0), uint64_t(0), 0u);
    uint b = find_bin(what, target, at), low = end_of_bin(b), high = b > 0 ? end_of_bin(b - 1) - 1 : top_key;
    while (at.inside > LIST && low < high) {
        int shift = max(findMSB(high - low) - 9, 0);
        visit(low, high);
        fill_bins(what, shift);
        high -= find_bin(what, target, at) << shift;
        low = max(low, high - min(high, (1u << shift) - 1));
    }
    if (at.inside > LIST) {
        cut_equal(what, target, low, at);
    } else {
        listed = at.count + at.inside <= LIST;
        visit(low, listed ? 0xffffffffu : high);
        list_visited();
        list_sum(what, n_listed);
        uint last = list_find(what, n_listed, listed ? 0 : at.sum, target);
        cut_key = ~uint(list_get(last) >> 32);
        cut_token = uint(list_get(last));
        n_left = last + 1;
    }
    visit(0, 0xffffffffu);
}

void apply_filters(int top_k, float top_p)
{
    uint64_t sum;
    if (top_k > 0) {
        fill_bins(ONES, -1);
        if (top_k < count_all) cut_at(ONES, top_k);
    }
    if (!(top_p < 1.0)) return;
    if (listed) {
        sum = list_sum(FILTERED, n_left);
        n_left = list_find(FILTERED, n_left, 0, share_of(sum, top_p)) + 1;
    } else {
        fill_bins(FILTERED, -1);
        cut_at(FILTERED, share_of(sum_all, top_p));
    }
}

// -1: no token has a weight.
int draw(uint64_t random)
{
    uint t = gl_LocalInvocationID.x;
    if (!listed) {
        uint64_t sum = sum_runs(DRAWN, 0, n);
        return sum > 0 ? int(find_token(DRAWN, multiply_high(random, sum))) : -1;
    }
    barrier();
    for (uint i = t; i < n_left; i += THREADS) list_set(i, list_get(i) << 32 | ~uint(list_get(i) >> 32));
    barrier();
    list_sort(n_left);
    uint64_t sum = list_sum(DRAWN, n_left);
    if (sum == 0) return -1;
    return int(list_get(list_find(DRAWN, n_left, 0, multiply_high(random, sum) + 1)) >> 32);
}

// Lists the most probable tokens of the row. Returns how many there are.
uint list_top(uint wanted)
{
    cut_key = 0, cut_token = 0xffffffffu;
    fill_bins(ONES, -1);
    uint n_top = uint(min(uint64_t(wanted), count_all));
    cut_at(ONES, n_top);
    if (!listed) {
        visit(cut_key, 0xffffffffu);
        list_visited();
    }
    return n_top;
}

// --- edits ---------------------------------------------------------------------------------------------

// Address of the mask of a row; 0: all tokens are allowed.
uint64_t mask_of(Row p)
{
    View masks = args.src[SRC_sample_masks];
    if (!has_src(SRC_sample_masks) || p.mask < 0 || p.mask >= masks.ne[2]) return 0;
    return masks.data + int64_t(p.mask) * masks.nb[2];
}

int edits_of(Row p)
{
    if (!has_src(SRC_sample_edits) || p.first_edit < 0) return 0;
    return max(min(p.n_edits, args.src[SRC_sample_edits].ne[2] - p.first_edit), 0);
}

uint64_t edited_row(uint r) { return args.scratch + 4 * (int64_t(r) * args.src[SRC_sample_x].ne[3]); }

// The key of a logit with the mask.
uint masked_key(uint64_t x, uint64_t mask, uint j)
{
    if (mask != 0 && (load_u32(mask + 4 * (j / 32)) >> (j % 32) & 1u) == 0) return NEVER;
    return key_of(load_u32(x + 4 * int64_t(j)));
}

uint edited_key(Row p, Edit e, uint key)
{
    if (key > NEVER) {
        if ((e.bias & 0x7fffffffu) >= INFINITE) key = key_of(e.bias);
        else key = key_of(add(double_of(bits_of(key)), double_of(e.bias)));
    }
    if (e.count == 0 || key == NEVER) return key;
    Double v = double_of(bits_of(key)), repeat = double_of(p.repeat_penalty);
    v = v.minus || v.m == 0 ? multiply(v, repeat) : divide(v, repeat);
    Double count = round_double(e.count < 0, 0, uint64_t(abs(e.count)));
    Double less = add(double_of(p.presence_penalty), multiply(count, double_of(p.frequency_penalty)));
    less.minus = !less.minus;
    return key_of(add(v, less));
}

// A part of a row with its edits.
void edit_part(Row p, uint r, uint from, uint to)
{
    uint64_t x = row_of(args.src[SRC_sample_x], r), y = edited_row(r), mask = mask_of(p);
    View edits = args.src[SRC_sample_edits];
    int n_edits = edits_of(p);
    if ((p.kind != BEST && p.kind != DRAW) || (mask == 0 && n_edits == 0)) return;
    for (uint j = from + gl_LocalInvocationID.x; j < to; j += THREADS)
        Edited(y + 4 * int64_t(j)).v = bits_of(masked_key(x, mask, j));
    memoryBarrierBuffer();
    barrier();
    for (int i = int(gl_LocalInvocationID.x); i < n_edits; i += int(THREADS)) {
        Edit e = Edit(edits.data + int64_t(p.first_edit + i) * edits.nb[2]);
        uint j = uint(e.token);
        if (j >= from && j < to)
            Edited(y + 4 * int64_t(j)).v = bits_of(edited_key(p, e, masked_key(x, mask, j)));
    }
}

// --- the row -------------------------------------------------------------------------------------------

void set_row(uint64_t at, uint64_t best)
{
    logits = at;
    top_key = best > 0 ? uint(best >> 32) : NEVER;
    top = value_of(top_key);
}

int choose(Row p, uint64_t best)
{
    if (best == 0) return -1;
    if (p.kind == BEST) return int(~uint(best));
    filter_temperature = p.filter_temperature;
    temperature = p.temperature;
    min_p = p.min_p;
    apply_filters(p.top_k, p.top_p);
    return draw(uint64_t(p.random_high) << 32 | p.random_low);
}

void sample_row(Row p, uint r)
{
    uint t = gl_LocalInvocationID.x, n_top = 0;
    uint64_t raw = row_of(args.src[SRC_sample_x], r), best = 0, raw_best = 0, sum = 0;
    int token = -1;
    bool runs = p.kind == BEST || p.kind == DRAW, edited = mask_of(p) != 0 || edits_of(p) > 0;
    n = uint(args.src[SRC_sample_x].ne[3]);
    if (runs) {
        logits = raw;
        raw_best = best = find_best();
        set_row(raw, raw_best);
        sum = sum_runs(PLAIN, 0, n);
        if (edited) {
            logits = edited_row(r);
            best = find_best();
            set_row(logits, best);
        }
        token = choose(p, best);
        set_row(raw, raw_best);
        if (p.n_top > 0 && raw_best > 0) n_top = list_top(min(uint(p.n_top), TOP));
    }
    Result y = Result(row_of(args.dst[0], r));
    for (uint i = t; i < 2 * TOP; i += THREADS) {
        uint64_t entry = i / 2 < n_top ? list_get(i / 2) : 0;
        y.top[i] = i / 2 >= n_top ? 0 : i % 2 == 0 ? uint(entry) : bits_of(~uint(entry >> 32));
    }
    if (t > 0) return;
    y.token = token;
    y.logit = token >= 0 ? bits_of(key_of(load_u32(raw + 4 * int64_t(token)))) : 0;
    y.max = runs ? bits_of(top_key) : 0;
    y.sum_low = uint(sum);
    y.sum_high = uint(sum >> 32);
    y.n_top = int(n_top);
    y.unused[0] = y.unused[1] = 0;
}

void main()
{
    uint parts = EDIT != 0 ? uint(args.n[N_SAMPLE_PARTS]) : 1, g = group_index(), r = g / parts,
         size = uint(args.src[SRC_sample_x].ne[3]), each = (size + parts - 1) / parts,
         from = min(size, g % parts * each);
    if (r >= n_rows(args.src[SRC_sample_x])) return;
    View rows = args.src[SRC_sample_rows];
    Row p = Row(rows.data + int64_t(r) * rows.nb[2]);
    if (EDIT != 0) edit_part(p, r, from, min(size, from + each));
    else sample_row(p, r);
}
