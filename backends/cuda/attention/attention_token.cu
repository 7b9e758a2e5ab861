// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for one token of one sequence, with the rope_cache step before it if there is one: latency is all. What a warp does with a tile of keys stands in
// attention_warp.cuh; here is the way there and the way out.
// Grid (splits, KV heads times parts of 8 query heads), in clusters of C splits (1 where there are none). Before the wait for the predecessor: lengths, table, angles and
// the keys and values of the first tiles of each warp, which earlier runs wrote. After it: the rows of this token, a warp each; q goes straight
// to where mma reads it, k and v are encoded into shared memory, from where the warp that has their place in the cache takes them.
// The results of all warps go into shared memory of the block of the cluster that finishes the row, one warp a row, with no step between;
// the rows of several clusters through memory, to the warp that arrives last (a counter per head, zero when the module is loaded, which
// that warp sets back). Sums are in the order of the splits: results are the same in every run.
// Short sequences take one cluster: then nothing goes through memory. Long ones on 9.0 and 10.0 (STAGES > 0) take clusters of one block, whose
// warps get their tiles by way of shared memory: H200, us that attention adds to a layer, 32000 keys of 8 heads of 128 in f16: 38.8,
// and 44.1 with tiles straight into registers; the copies alone take 35.1, memory at its full speed 29.7.
// Scratch: splits / C * H * (Dv + 2) floats. Bytes moved: the visible rows of both caches, once.
#include "backends/cuda/attention/attention_warp.cuh"
#include "backends/cuda/rope/rope_rows.cuh"
#include "backends/cuda/attention/wgmma_attention.cuh"

enum {
    MIN_TILES = 4, // of a split, where there are several clusters
    MAX_ROWS = 8,  // of a block: query heads of a KV head
    MAX_HEADS = 4096
};

static __device__ uint32_t arrived[MAX_HEADS];

// --- clusters: of one block before compute capability 9.0 ------------------------------------------------

static __device__ __forceinline__ uint32_t cluster_rank()
{
    uint32_t r = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
#endif
    return r;
}

static __device__ __forceinline__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// Address of the same place in the shared memory of block `rank`.
static __device__ __forceinline__ uint32_t cluster_address(const void *at, uint32_t rank)
{
    uint32_t to = tn_shared_address(at);
#if __CUDA_ARCH__ >= 900
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(to), "r"(rank));
#endif
    return to;
}

static __device__ __forceinline__ void cluster_store(uint32_t to, float4 x)
{
    uint32_t a = __float_as_uint(x.x), b = __float_as_uint(x.y), c = __float_as_uint(x.z), d = __float_as_uint(x.w);
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
#else
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
#endif
}

static __device__ __forceinline__ void cluster_store(uint32_t to, float x)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(to), "r"(__float_as_uint(x)) : "memory");
#else
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(__float_as_uint(x)) : "memory");
#endif
}

// --- what a block works on -------------------------------------------------------------------------------

struct share {
    int head;                       // of row 0
    int cluster, n_clusters, rank;  // of this block; in use; in its cluster
    int first, n_tiles, per;        // of all splits; of each, if they lie one behind the other
};

// INTERLEAVED: in clusters of one block the splits take turns, tile by tile, so that all are as long and read next to each other.
// No divisions there, nor where one cluster does it all: each takes as long as a read of shared memory, and the keys wait for them.
template <bool INTERLEAVED> static __device__ __forceinline__ bool find_share(const tn_cuda_attention_token_args &d, part &p, share &u)
{
    const tn_cuda_attention_args &a = d.a;
    p.first_token = a.q_start[0];
    int n = a.q_start[1] - p.first_token, lo, hi, row = 0;
    p.kv_len = a.kv_len[0];
    p.first_pages = a.table[min((int)threadIdx.x % TN_WARP, a.max_blocks - 1)];
    p.split = blockIdx.x, p.kv_head = blockIdx.y, p.seq = 0, p.group = d.group;
    if (d.parts > 1) p.kv_head = blockIdx.y / d.parts, row = blockIdx.y % d.parts * MAX_ROWS;
    p.n_rows = min((int)MAX_ROWS, d.group - row);
    u.head = p.kv_head * d.group + row;
    u.rank = cluster_rank(), u.cluster = p.split >> d.cluster_shift;
    tn_attention_range(a, p.kv_len - 1, p.kv_len, &lo, &hi);
    u.first = lo / KEYS, u.n_tiles = max(0, (hi + KEYS - 1) / KEYS - u.first);
    if (INTERLEAVED) {
        u.n_clusters = p.n_splits = min(a.n_splits, max(1, u.n_tiles / MIN_TILES));
        p.tile = u.first + p.split, p.end = u.first + u.n_tiles;
        return n > 0 && p.split < p.n_splits;
    }
    int size = 1 << d.cluster_shift;
    u.n_clusters = 1, u.per = max(1, (u.n_tiles + size - 1) >> d.cluster_shift);
    if (u.n_tiles > d.alone) {
        int clusters = min(a.n_splits >> d.cluster_shift, max(1, u.n_tiles / (size * MIN_TILES)));
        u.per = (u.n_tiles + clusters * size - 1) / (clusters * size);
        u.n_clusters = (u.n_tiles + u.per * size - 1) / (u.per * size);
    }
    p.n_splits = u.n_clusters * size;
    p.tile = u.first + p.split * u.per;
    p.end = min(u.first + u.n_tiles, p.tile + u.per);
    return n > 0 && u.cluster < u.n_clusters;
}

// Warps of this cluster that have tiles.
template <int WARPS, bool INTERLEAVED> static __device__ __forceinline__ int count_slots(const tn_cuda_attention_token_args &d, const part &p, const share &u)
{
    if (INTERLEAVED) return min((int)WARPS, (p.end - p.tile + p.n_splits - 1) / p.n_splits);
    int n = 0, left = u.n_tiles - (u.cluster << d.cluster_shift) * u.per;
    for (int i = 0; i < 1 << d.cluster_shift; i++, left -= u.per) n += min((int)WARPS, max(0, min(u.per, left)));
    return n;
}

// --- the rows of the token -------------------------------------------------------------------------------

template <int DK> struct token_storage {
    query_storage<DK, 1> queries;
    float row[2][DK];         // k and v
    uint4 encoded[2][DK / 8]; // the same as they stand in the cache
};

// A lane's pairs of a row, as tn_load_pair() has them.
template <int DK> struct row_pairs {
    enum { N = DK / 2 / TN_WARP };
    float x[N], y[N];
};

// What a warp needs for its row of the token: all but the row itself is there before the wait.
template <int DK> struct token_row {
    const char *from;
    int64_t nb;
    int item, n;      // the query heads of the block, then k, then v; elements
    bool normed;
    float eps;
    row_pairs<DK> weight;           // of its norm
    float2 turn[row_pairs<DK>::N];  // cosine, sine
};

// half_turns is read as memory: lanes of a warp want different ones at once.
template <int DK> static __device__ __forceinline__ void find_turns(const tn_cuda_rope_cache_args &r, int position, float2 (&turn)[row_pairs<DK>::N])
{
    const double *half_turns = r.half_turns;
    asm volatile("" : "+l"(half_turns));
    double x[row_pairs<DK>::N];
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int t = threadIdx.x % TN_WARP + i * TN_WARP;
        x[i] = t < r.n_rot / 2 ? half_turns[t] : 0.0;
    }
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int t = threadIdx.x % TN_WARP + i * TN_WARP;
        double turns = position * x[i];
        if (r.factors && t < r.n_rot / 2) turns /= (double)r.factors[t];
        float s, c;
        sincospif((float)(turns - 2.0 * rint(0.5 * turns)), &s, &c);
        turn[i] = make_float2(c * r.m, s * r.m);
    }
}

// Element d of row `row` of the queries to where load_keys() puts its counterpart.
template <int TYPE, int DK> static __device__ __forceinline__ void put_query(query_storage<DK, 1> &shared, int row, int d, float x)
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    int i = d / 32, c = d % 32 / 8, e = d % 8;
    if (tn_cache_traits<TYPE>::QUANT) {
        // Byte b of a block is byte `at` of the words of the pair (tn_quant_byte).
        int last = TYPE == TN_CUDA_CACHE_Q8_0 ? 32 : 16, b = d % last, at = i % 2 || b < 2 ? b : b < last - 2 ? b + 2 : b - (last - 4);
        c = at / 4 % 4, e = at % 4 + (d % 32 >= 16 && TYPE == TN_CUDA_CACHE_Q4_0 ? 4 : 0) + (TYPE == TN_CUDA_CACHE_Q8_0 ? at / 16 * 4 : 0);
    }
    uint32_t hi = tn_pack16<BF16>(x, 0.0f), lo = tn_pack16<BF16>(x - tn_unpack16<BF16>(hi).x, 0.0f);
    ((uint16_t *)&shared.hi[0][i][row * 4 + c])[e] = (uint16_t)hi;
    ((uint16_t *)&shared.lo[0][i][row * 4 + c])[e] = (uint16_t)lo;
}

static __device__ __forceinline__ void pair_of(const tn_cuda_rope_cache_args &r, bool turned, int t, int &first, int &second)
{
    bool apart = turned && r.neox && t < r.n_rot / 2;
    first = apart ? t : 2 * t, second = apart ? t + r.n_rot / 2 : 2 * t + 1;
}

template <int DK> static __device__ __forceinline__ void load_row(const tn_cuda_rope_cache_args &r, row_pairs<DK> &p, bool turned, const char *x, int64_t nb, int n)
{
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int first, second;
        pair_of(r, turned, threadIdx.x % TN_WARP + i * TN_WARP, first, second);
        p.x[i] = first < n ? *(const float *)(x + first * nb) : 0.0f;
        p.y[i] = second < n ? *(const float *)(x + second * nb) : 0.0f;
    }
}

template <int DK> static __device__ __forceinline__ void prepare_row(const tn_cuda_rope_cache_args &r, const part &p, int head, int item, token_row<DK> &row)
{
    int other = item - p.n_rows;
    const tn_cuda_view &view = other < 0 ? r.q : other == 0 ? r.k : r.v;
    const float *norm = other < 0 ? r.norm[0] : other == 0 ? r.norm[1] : NULL;
    row.item = item, row.n = (int)view.ne[3], row.nb = view.nb[3], row.eps = r.eps;
    row.from = view.data + (other < 0 ? head + item : p.kv_head) * view.nb[2];
    row.normed = norm != NULL;
    if (norm) load_row(r, row.weight, true, (const char *)norm, 4, row.n);
}

template <int TYPE, int DK> static __device__ __forceinline__ void do_row(const tn_cuda_rope_cache_args &r, const part &p, const token_row<DK> &row, token_storage<DK> &shared)
{
    constexpr int STORED = TYPE == TN_CUDA_CACHE_F16 ? TN_TYPE_F16 : TYPE == TN_CUDA_CACHE_BF16 ? TN_TYPE_BF16 : TYPE == TN_CUDA_CACHE_Q8_0 ? TN_TYPE_Q8_0 : TN_TYPE_Q4_0;
    int lane = threadIdx.x % TN_WARP, other = row.item - p.n_rows;
    bool turned = other < 1;
    row_pairs<DK> x;
    load_row(r, x, turned, row.from, row.nb, row.n);
    float scale = 1.0f;
    if (row.normed) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < row_pairs<DK>::N; i++) sum += x.x[i] * x.x[i] + x.y[i] * x.y[i];
        scale = 1.0f / sqrtf(tn_warp_sum(sum) / (float)row.n + row.eps);
    }
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int t = lane + i * TN_WARP, first, second;
        pair_of(r, turned, t, first, second);
        float u = x.x[i], v = x.y[i];
        if (row.normed) u *= scale * row.weight.x[i], v *= scale * row.weight.y[i];
        if (turned && t < r.n_rot / 2) {
            float w = u * row.turn[i].x - v * row.turn[i].y;
            v = u * row.turn[i].y + v * row.turn[i].x, u = w;
        }
        // Beyond the row u and v are 0.
        if (other < 0) put_query<TYPE>(shared.queries, row.item, first, u), put_query<TYPE>(shared.queries, row.item, second, v);
        else shared.row[other][first] = u, shared.row[other][second] = v;
    }
    if (other < 0) return;
    __syncwarp();
    tn_write_cache_row((char *)shared.encoded[other], STORED, r.cache_row[other], shared.row[other], row.n, lane);
}

// Encoded rows to their place in the cache.
template <int DK> static __device__ __forceinline__ void write_rows(const tn_cuda_attention_token_args &d, const part &p, int slot, const token_storage<DK> &shared)
{
    const tn_cuda_rope_cache_args &r = d.rope;
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
    if (warp >= 2 || slot < 0) return;
    const int64_t *nb = r.cache_nb[warp];
    uint32_t *out = (uint32_t *)(r.cache[warp] + (slot >> d.block_shift) * nb[0] + p.kv_head * nb[1] + (slot & d.block_mask) * nb[2]);
    int words = (int)((warp == 0 ? d.a.k.row_size : d.a.v.row_size) / 4);
    for (int i = lane; i < words; i += TN_WARP) out[i] = ((const uint32_t *)shared.encoded[warp])[i];
}

// --- tiles -------------------------------------------------------------------------------------------------

template <int TYPE, int DK> static __device__ __forceinline__ void load_keys_of(const tn_cuda_attention_token_args &d, const cursor &at, int page, warp_state<TYPE, DK, DK, 1> &w)
{
    load_keys(d.a, w, at.k + page * d.a.k.block_size + (at.tile * KEYS & d.block_mask) * d.a.k.row_size);
}

template <int TYPE, int DK>
static __device__ __forceinline__ void load_values_of(const tn_cuda_attention_token_args &d, const part &p, const cursor &at, int page, warp_state<TYPE, DK, DK, 1> &w)
{
    load_values(d.a, w, at.v + page * d.a.v.block_size + (at.tile * KEYS & d.block_mask) * d.a.v.row_size, p.kv_len - at.tile * KEYS);
}

// Which rows of a tile a lane has as operands of mma, 2 of keys and 4 of values: any that name the same key at the same place of both sums. Of
// rings, lanes have four values in sequence: with a gap behind each four (ring_gap) they are read from shared memory without conflicts.
template <bool RING> static __device__ __forceinline__ int key_of(int i)
{
    int g = threadIdx.x % TN_WARP / 4;
    return RING ? g / 2 * 4 + g % 2 + 2 * i : g + 8 * i;
}

template <bool RING> static __device__ __forceinline__ int value_of(int i)
{
    int c = threadIdx.x % 4;
    return RING ? 4 * c + i : 2 * c + i % 2 + i / 2 * 8;
}

// The token's own key and value.
template <bool RING, int TYPE, int DK>
static __device__ __forceinline__ void take_own(const tn_cuda_attention_args &a, const token_storage<DK> &shared, int own, int end, warp_state<TYPE, DK, DK, 1> &w)
{
    int lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (own == key_of<RING>(i)) w.key[i].load((const char *)shared.encoded[0], c, a.k.dim);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (own == value_of<RING>(i) && own < end) w.value[i].load((const char *)shared.encoded[1], g, a.v.dim);
}

template <int WARPS> static __device__ __forceinline__ void find_pages_of(const tn_cuda_attention_token_args &d, const part &p, cursor &at)
{
    int tile = at.tile + WARPS * ((int)threadIdx.x % TN_WARP);
    at.base = at.tile;
    at.pages = d.a.table[min(tile, p.end - 1) * KEYS >> d.block_shift];
}

static __device__ __forceinline__ void find_columns(const tn_cuda_attention_args &a, const part &p, int head, column (&col)[1][2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        column &u = col[0][h];
        int row = (int)threadIdx.x % 4 * 2 + h;
        u = {0, 0, p.kv_len - 1, row < p.n_rows ? tn_attention_slope(a, head + row) : 0.0f};
        if (row < p.n_rows) tn_attention_range(a, u.position, p.kv_len, &u.lo, &u.hi);
    }
}

// --- tiles by way of shared memory -----------------------------------------------------------------------------

// Long sequences: copies of whole tiles, STAGES of them of each warp on their way, which no load of a register waits behind.
template <int DK, int WARPS, int STAGES> struct tile_ring {
    struct {
        uint4 k[KEYS * DK / 8], v[KEYS * DK / 8 + 8]; // v with gaps
    } tile[WARPS][STAGES];
    uint64_t full[WARPS][STAGES];
};

// Bytes behind each four rows of values. Blocks of 34 or 18 bytes are spread over the banks as they are, and a piece of a copy has to be a
// multiple of 16 bytes.
template <int TYPE> static __device__ __forceinline__ constexpr int ring_gap()
{
    return tn_cache_traits<TYPE>::QUANT ? 0 : 32;
}

// Where a warp is: its tile, which is number `turn` of those 32 whose pages the lanes have.
struct ring_cursor {
    int tile, turn, pages;
};

// Of tiles that do not exist, another's.
template <int WARPS> static __device__ __forceinline__ int page_ahead(const tn_cuda_attention_token_args &d, const part &p, int tile)
{
    tile += WARPS * p.n_splits * ((int)threadIdx.x % TN_WARP);
    return d.a.table[min(tile, p.end - 1) * KEYS >> d.block_shift];
}

// The page of the warp's tile, which exists, and on to the next one.
template <int WARPS> static __device__ __forceinline__ int next_page(const tn_cuda_attention_token_args &d, const part &p, ring_cursor &at)
{
    if (at.turn == TN_WARP) at.pages = page_ahead<WARPS>(d, p, at.tile), at.turn = 0;
    at.tile += WARPS * p.n_splits;
    return __shfl_sync(0xffffffffu, at.pages, at.turn++);
}

// The next tile of the warp on its way, if there is one.
template <int TYPE, int DK, int WARPS, int STAGES>
static __device__ __forceinline__ void fill(const tn_cuda_attention_token_args &d, const part &p, ring_cursor &at, int stage, tile_ring<DK, WARPS, STAGES> &ring)
{
    int warp = threadIdx.x / TN_WARP, row = at.tile * KEYS & d.block_mask;
    if (at.tile >= p.end) return;
    int page = next_page<WARPS>(d, p, at);
    if (threadIdx.x % TN_WARP != 0) return;
    tn_async_proxy_fence(); // the lanes have read what lies there (PTX ISA, "Async proxy")
    uint32_t k_row = (uint32_t)d.a.k.row_size, v_row = (uint32_t)d.a.v.row_size;
    const char *k = d.a.k.data + p.kv_head * d.a.k.head_size + page * d.a.k.block_size + row * k_row;
    const char *v = d.a.v.data + p.kv_head * d.a.v.head_size + page * d.a.v.block_size + row * v_row;
    uint64_t *full = &ring.full[warp][stage];
    tn_barrier_expect(full, (k_row + v_row) * KEYS);
    tn_bulk_copy_once(ring.tile[warp][stage].k, k, k_row * KEYS, full);
    enum { PIECES = ring_gap<TYPE>() > 0 ? 4 : 1 };
    uint32_t piece = v_row * (KEYS / PIECES);
#pragma unroll
    for (int i = 0; i < PIECES; i++) tn_bulk_copy_once((char *)ring.tile[warp][stage].v + i * (piece + ring_gap<TYPE>()), v + i * piece, piece, full);
}

template <int TYPE, int DK, int WARPS, int STAGES>
static __device__ __forceinline__ void attend_ring(const tn_cuda_attention_token_args &d, const part &p, int head, const token_storage<DK> &shared, int slot, ring_cursor &at, ring_cursor &ahead,
                                                   tile_ring<DK, WARPS, STAGES> &ring, warp_state<TYPE, DK, DK, 1> &w)
{
    const tn_cuda_attention_args &a = d.a;
    int warp = threadIdx.x / TN_WARP, g = threadIdx.x % TN_WARP / 4, c = threadIdx.x % 4;
    column col[1][2];
    find_columns(a, p, head, col);
    for (int i = 0; at.tile < p.end; i++) {
        int stage = i % STAGES, key = at.tile * KEYS, page = next_page<WARPS>(d, p, at), end = p.kv_len - key;
        int own = slot - (page << d.block_shift) - (key & d.block_mask);
        const char *k = (const char *)ring.tile[warp][stage].k, *v = (const char *)ring.tile[warp][stage].v + c * ring_gap<TYPE>();
        float s[1][4];
        tn_barrier_wait(&ring.full[warp][stage], i / STAGES & 1);
#pragma unroll
        for (int r = 0; r < 2; r++) w.key[r].load(k + key_of<true>(r) * (int)a.k.row_size, c, a.k.dim);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (value_of<true>(r) < end) w.value[r].load(v + value_of<true>(r) * (int)a.v.row_size, g, a.v.dim);
            else w.value[r].clear();
        }
        if (own >= 0 && own < KEYS) take_own<true, TYPE, DK>(a, shared, own, end, w);
        if (tn_cache_traits<TYPE>::QUANT) multiply_quants(w, shared.queries, s);
        else multiply_keys(w, shared.queries, s);
        weigh(a, w, col, key + key_of<true>(0), s, 2);
        __syncwarp(); // all lanes have what they need of the tile
        fill<TYPE>(d, p, ahead, stage, ring);
        add_values(w, s);
    }
}

// --- tiles straight into registers ---------------------------------------------------------------------------

template <int TYPE, int DK, int WARPS>
static __device__ __forceinline__ void attend(const tn_cuda_attention_token_args &d, const part &p, int head, const token_storage<DK> &shared, int slot, int page, cursor &at,
                                              warp_state<TYPE, DK, DK, 1> &w)
{
    const tn_cuda_attention_args &a = d.a;
    int lane = threadIdx.x % TN_WARP;
    column col[1][2];
    find_columns(a, p, head, col);
    while (at.tile < p.end) {
        float s[1][4];
        int key = at.tile * KEYS, own = slot - (page << d.block_shift) - (key & d.block_mask);
        if (own >= 0 && own < KEYS) take_own<false, TYPE, DK>(a, shared, own, p.kv_len - key, w);
        if (tn_cache_traits<TYPE>::QUANT) multiply_quants(w, shared.queries, s);
        else multiply_keys(w, shared.queries, s);
        at.tile += WARPS;
        bool more = at.tile < p.end;
        if (more) {
            if (at.tile - at.base == WARPS * TN_WARP) find_pages_of<WARPS>(d, p, at);
            page = (int)page_of<WARPS>(at);
            load_keys_of(d, at, page, w);
        }
        weigh(a, w, col, key + lane / 4, s);
        add_values(w, s);
        if (more) load_values_of(d, p, at, page, w);
    }
}

// --- results -------------------------------------------------------------------------------------------------

// Results of warps, by slot; a block finishes rows rank, rank + C, ...
template <int DK, int PITCH> struct result_storage {
    float2 *end; // [slots, rows]: maximum, sum
    float *o;    // [slots, rows, DK], relative to that maximum; PITCH floats from slot to slot, if it is not 0
    int rows;

    __device__ __forceinline__ float *row(int slot, int i) const { return o + (PITCH > 0 ? slot * PITCH + i * DK : (slot * rows + i) * DK); }
};

template <int TYPE, int DK, int PITCH> static __device__ __forceinline__ void hand_on(const part &p, int shift, int slot, warp_state<TYPE, DK, DK, 1> &w, const result_storage<DK, PITCH> &shared)
{
    int lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        for (int i = 4; i < TN_WARP; i *= 2) w.sum[0][h] += __shfl_xor_sync(0xffffffffu, w.sum[0][h], i);
        int row = 2 * c + h;
        if (row >= p.n_rows) continue;
        int at = slot * shared.rows + (row >> shift), rank = row & ((1 << shift) - 1);
        uint32_t to = cluster_address(shared.row(slot, row >> shift), rank), end = cluster_address(shared.end + at, rank);
        if (g == 0) cluster_store(end, w.max[0][h]), cluster_store(end + 4, w.sum[0][h]);
#pragma unroll
        for (int j = 0; j < DK / 64; j++) {
            if (!tn_cache_traits<TYPE>::QUANT) {
#pragma unroll
                for (int e = 0; e < 2; e++)
                    cluster_store(to + 4 * (j * 64 + g * 8 + e * 4), make_float4(w.o[4 * j + 2 * e][0][h], w.o[4 * j + 2 * e][0][2 + h],
                                                                                 w.o[4 * j + 2 * e + 1][0][h], w.o[4 * j + 2 * e + 1][0][2 + h]));
            } else {
#pragma unroll
                for (int e = 0; e < 8; e++) cluster_store(to + 4 * tn_value_element<TYPE>(j, g, e), w.o[4 * j + e / 2][0][e % 2 * 2 + h]);
            }
        }
    }
}

// What `n` results of a row come to, of each lane the quads lane, lane + 32, ...; the lanes hold the ends of the results.
template <int DK, class END, class QUAD>
static __device__ __forceinline__ void add_up(int n, END end_of, QUAD quad_of, float &max, float &sum, float4 (&o)[DK / 64])
{
    int lane = threadIdx.x % TN_WARP;
    max = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < (DK + 127) / 128; k++) o[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int first = 0; first < n; first += TN_WARP) {
        float2 end = first + lane < n ? end_of(first + lane) : make_float2(-INFINITY, 0.0f);
        float top = fmaxf(max, tn_warp_max(end.x)), keep = max > -INFINITY ? tn_exp2(max - top) : 0.0f;
        float f = end.x > -INFINITY ? tn_exp2(end.x - top) : 0.0f;
        sum = sum * keep + tn_warp_sum(f * end.y);
        max = top;
#pragma unroll
        for (int k = 0; k < (DK + 127) / 128; k++) o[k].x *= keep, o[k].y *= keep, o[k].z *= keep, o[k].w *= keep;
        int last = min(TN_WARP, n - first);
#pragma unroll 8
        for (int i = 0; i < last; i++) {
            float g = __shfl_sync(0xffffffffu, f, i);
#pragma unroll
            for (int k = 0; k < (DK + 127) / 128; k++) {
                float4 x = quad_of(first + i, k);
                o[k].x += g * x.x, o[k].y += g * x.y, o[k].z += g * x.z, o[k].w += g * x.w;
            }
        }
    }
}

// The same of results in memory, of which 16 are on their way at once, where there are registers for them.
template <int DK, class END, class QUAD>
static __device__ __forceinline__ void add_all(int n, END end_of, QUAD quad_of, float &max, float &sum, float4 (&o)[DK / 64])
{
    enum { BATCH = 16, N = (DK + 127) / 128 };
    int lane = threadIdx.x % TN_WARP;
    max = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < N; k++) o[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int first = 0; first < n; first += BATCH) {
        float2 end = end_of(min(first + lane, n - 1));
        float4 x[BATCH][N];
#pragma unroll
        for (int i = 0; i < BATCH; i++)
#pragma unroll
            for (int k = 0; k < N; k++) x[i][k] = quad_of(min(first + i, n - 1), k);
        if (lane >= BATCH || first + lane >= n) end = make_float2(-INFINITY, 0.0f);
        float top = fmaxf(max, tn_warp_max(end.x)), keep = max > -INFINITY ? tn_exp2(max - top) : 0.0f;
        float f = end.x > -INFINITY ? tn_exp2(end.x - top) : 0.0f;
        sum = sum * keep + tn_warp_sum(f * end.y);
        max = top;
#pragma unroll
        for (int k = 0; k < N; k++) o[k].x *= keep, o[k].y *= keep, o[k].z *= keep, o[k].w *= keep;
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            float g = __shfl_sync(0xffffffffu, f, i);
#pragma unroll
            for (int k = 0; k < N; k++) o[k].x += g * x[i][k].x, o[k].y += g * x[i][k].y, o[k].z += g * x[i][k].z, o[k].w += g * x[i][k].w;
        }
    }
}

// The counter before, which wraps to 0 after `last`; what the warp wrote before is seen by those who arrive later.
static __device__ __forceinline__ uint32_t arrive(uint32_t *counter, uint32_t last)
{
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}

// One warp: row `row` from the results of this cluster, and of the others if it is the last.
template <int DK, int PITCH>
static __device__ __forceinline__ void finish(const tn_cuda_attention_args &a, const part &p, const share &u, int row, int at, int n_slots, const result_storage<DK, PITCH> &shared)
{
    int lane = threadIdx.x % TN_WARP, head = u.head + row;
    int quad = min(lane, DK / 4 - 1); // of heads of 64, half of the lanes repeat the last
    float max, sum;
    float4 o[DK / 64];
    add_up<DK>(n_slots, [&](int i) { return shared.end[i * shared.rows + at]; },
               [&](int i, int k) { return *(const float4 *)(shared.row(i, at) + 4 * (quad + 32 * k)); }, max, sum, o);
    float unit = tn_exp2(-WEIGHT_SHIFT);
    sum *= unit;
#pragma unroll
    for (int k = 0; k < (DK + 127) / 128; k++) o[k].x *= unit, o[k].y *= unit, o[k].z *= unit, o[k].w *= unit;
    if (u.n_clusters > 1) {
        float2 *ends = (float2 *)(a.partial + (int64_t)u.n_clusters * a.n_heads * DK);
        float *to = a.partial + ((int64_t)u.cluster * a.n_heads + head) * DK;
#pragma unroll
        for (int k = 0; k < (DK + 127) / 128; k++) *(float4 *)(to + 4 * (quad + 32 * k)) = o[k];
        if (lane == 0) ends[u.cluster * a.n_heads + head] = make_float2(max, sum);
        __syncwarp();
        uint32_t before = 0;
        if (lane == 0) before = arrive(&arrived[head], (uint32_t)u.n_clusters - 1);
        if (__shfl_sync(0xffffffffu, before, 0) != (uint32_t)u.n_clusters - 1) return;
        __syncwarp();
        auto end_of = [&](int i) { return __ldcg(ends + i * a.n_heads + head); };
        auto quad_of = [&](int i, int k) { return __ldcg((const float4 *)(a.partial + ((int64_t)i * a.n_heads + head) * DK + 4 * (quad + 32 * k))); };
        if (PITCH > 0) add_all<DK>(u.n_clusters, end_of, quad_of, max, sum, o);
        else add_up<DK>(u.n_clusters, end_of, quad_of, max, sum, o);
    }
#pragma unroll
    for (int k = 0; k < (DK + 127) / 128; k++) {
        int d = 4 * (lane + 32 * k);
        if (d < a.v.dim) store_result(a, p.first_token, head, d, max, sum, o[k]);
    }
}

// --- a block -----------------------------------------------------------------------------------------------------

// STAGES 0: tiles come straight into registers.
template <int TYPE, int DK, int WARPS, int STAGES> static __device__ __forceinline__ void attend_token(const tn_cuda_attention_token_args &d)
{
    extern __shared__ uint4 shared_bytes[];
    const tn_cuda_attention_args &a = d.a;
    const tn_cuda_rope_cache_args &r = d.rope;
    token_storage<DK> &shared = *reinterpret_cast<token_storage<DK> *>(shared_bytes);
    int warp = threadIdx.x / TN_WARP, slot = -1, position = 0, page = 0;
    part p;
    share u;
    // What a predecessor does not write: lengths, tables and earlier rows, in most programs.
    if (!d.early) tn_pdl_wait();
    cluster_arrive();
    if (r.pos) position = *(const int32_t *)r.pos;
    if (r.slots) slot = *(const int32_t *)r.slots;
    // Of the usual case, that all splits have tiles: read together with the lengths.
    int pages = STAGES > 0 ? a.table[min(((int)blockIdx.x + a.n_splits * (warp + WARPS * ((int)threadIdx.x % TN_WARP))) * KEYS >> d.block_shift, a.max_blocks - 1)] : 0;
    bool any = find_share<(STAGES > 0)>(d, p, u);
    warp_state<TYPE, DK, DK, 1> w;
    cursor at;
    at.tile = p.tile + (STAGES > 0 ? warp * p.n_splits : warp);
    at.k = a.k.data + p.kv_head * a.k.head_size, at.v = a.v.data + p.kv_head * a.v.head_size;
    bool works = any && at.tile < p.end;
    typedef tile_ring<DK, WARPS, (STAGES > 0 ? STAGES : 1)> ring_type;
    ring_type &ring = *reinterpret_cast<ring_type *>(&shared + 1);
    ring_cursor now = {at.tile, 0, pages}, ahead = now;
    if constexpr (STAGES > 0) {
        if (works) {
            if (threadIdx.x % TN_WARP == 0) {
                for (int i = 0; i < STAGES; i++) tn_barrier_init(&ring.full[warp][i], 1);
                tn_barrier_init_fence();
            }
            if (u.first > 0 || p.n_splits < a.n_splits) now.pages = page_ahead<WARPS>(d, p, now.tile);
            ahead = now;
            for (int i = 0; i < STAGES; i++) fill<TYPE>(d, p, ahead, i, ring);
        }
    } else if (works) {
        int first = at.tile * KEYS >> d.block_shift;
        find_pages_of<WARPS>(d, p, at);
        // The way from the length over the table to the keys is the longest of a short sequence.
        page = first < TN_WARP ? __shfl_sync(0xffffffffu, p.first_pages, first) : (int)page_of<WARPS>(at);
        load_keys_of(d, at, page, w);
        load_values_of(d, p, at, page, w);
    }
    if (slot < 0 || slot >= r.n_slots) slot = -KEYS << d.block_shift; // of no tile
    int n_items = p.n_rows + (r.slots ? 2 : 0), n_slots = count_slots<WARPS, (STAGES > 0)>(d, p, u), rows = (p.n_rows + (1 << d.cluster_shift) - 1) >> d.cluster_shift;
    token_row<DK> mine;
    if (warp < n_items) {
        prepare_row(r, p, u.head, warp, mine);
        find_turns<DK>(r, position, mine.turn);
    }
    // Of a ring, each warp's over its tiles.
    constexpr int PITCH = STAGES > 0 ? (int)sizeof(ring.tile[0]) / 4 : 0;
    result_storage<DK, PITCH> results = {(float2 *)(&shared + 1), (float *)(&shared + 1) + (((rows * WARPS << d.cluster_shift) + 1) / 2 * 4), rows};
    if (STAGES > 0) results.end = (float2 *)(&ring + 1), results.o = (float *)&ring;
    asm volatile("" ::"l"(a.y), "l"(a.quantised_y.rows), "l"(a.sinks), "r"(a.v.dim)); // brought here before they are needed
    cluster_wait(); // all blocks of the cluster have begun
    if (d.early) tn_pdl_wait();
    if (!any) return;
    for (int item = warp; item < n_items; item += WARPS) {
        if (item >= WARPS) prepare_row(r, p, u.head, item, mine);
        do_row<TYPE>(r, p, mine, shared);
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; h++) w.max[0][h] = -INFINITY, w.sum[0][h] = 0.0f;
#pragma unroll
    for (int i = 0; i < DK / 16; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) w.o[i][0][e] = 0.0f;
    if constexpr (STAGES > 0) attend_ring<TYPE, DK, WARPS, STAGES>(d, p, u.head, shared, slot, now, ahead, ring, w);
    else attend<TYPE, DK, WARPS>(d, p, u.head, shared, slot, page, at, w);
    tn_pdl_trigger(); // not before: the next kernel's copies of weights would hold up the keys
    if (works) hand_on(p, d.cluster_shift, STAGES > 0 ? warp : u.rank * min((int)WARPS, u.per) + warp, w, results);
    cluster_arrive();
    if (p.split == 0 && u.head == p.kv_head * p.group) write_rows(d, p, slot, shared);
    cluster_wait();
    int row = u.rank + (warp << d.cluster_shift);
    if (row < p.n_rows) finish(a, p, u, row, warp, n_slots, results);
}

// --- entries -----------------------------------------------------------------------------------------------------

// The sizes stand in attention_token.c too. A block has a multiprocessor for itself.
#define ENTRY(name, type, d, warps, stages)                                                                                               \
    TN_ENTRY __launch_bounds__(warps *TN_WARP, 1) tn_attention_token_##name##_##d##_##stages(const __grid_constant__ tn_cuda_attention_token_args a) \
    {                                                                                                                                     \
        attend_token<type, d, warps, stages>(a);                                                                                          \
    }
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
#define LONG(name, type) ENTRY(name, type, 64, 8, 6) ENTRY(name, type, 128, 8, 3)
#else
#define LONG(name, type)
#endif
#define ENTRIES(name, type) ENTRY(name, type, 64, 12, 0) ENTRY(name, type, 128, 12, 0) ENTRY(name, type, 256, 8, 0) LONG(name, type)

ENTRIES(f16, TN_CUDA_CACHE_F16)
ENTRIES(bf16, TN_CUDA_CACHE_BF16)
ENTRIES(q8_0, TN_CUDA_CACHE_Q8_0)
ENTRIES(q4_0, TN_CUDA_CACHE_Q4_0)
