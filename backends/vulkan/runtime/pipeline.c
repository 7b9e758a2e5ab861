// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pipelines: a shader with its specialisation constants, compiled by the driver at first use, and what is
// known about the result.
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"
#include "core/hash.h"

#include <string.h>

// Embedded by shaders/embed.sh: words of SPIR-V, and where they end.
#define DECLARE_MODULE(module) extern const uint32_t tn_vk_code_##module[], tn_vk_code_end_##module[];

#define TN_VK_SHADER(module, source, macro) DECLARE_MODULE(module)
#define TN_VK_SHADER_COOPMAT_NV(module, source, macro)                                                       \
    DECLARE_MODULE(module)                                                                                   \
    DECLARE_MODULE(module##_nv)
#include "backends/vulkan/shaders.def"

typedef struct module {
    const uint32_t *code, *end;
} module;
static const struct {
    module here, nv;
} shaders[TN_VK_SHADER_COUNT] = {
#define MODULE(module)                                                                                       \
    {                                                                                                        \
        tn_vk_code_##module, tn_vk_code_end_##module                                                         \
    }
#define TN_VK_SHADER(module, source, macro) [TN_VK_SHADER_##module] = {MODULE(module), MODULE(module)},
#define TN_VK_SHADER_COOPMAT_NV(module, source, macro)                                                       \
    [TN_VK_SHADER_##module] = {MODULE(module), MODULE(module##_nv)},
#include "backends/vulkan/shaders.def"
};

// What a subgroup of a shader holds together: nothing, sums, or cooperative matrices.
enum { TEAM_NONE, TEAM_SUMS, TEAM_MATRICES };
static int32_t team_of(int32_t shader)
{
    static const uint8_t teams[TN_VK_SHADER_COUNT] = {
#define TN_VK_SHADER(module, source, macro)           [TN_VK_SHADER_##module] = TEAM_NONE,
#define TN_VK_SHADER_SUBGROUPS(module, source, macro) [TN_VK_SHADER_##module] = TEAM_SUMS,
#define TN_VK_SHADER_COOPMAT(module, source, macro)   [TN_VK_SHADER_##module] = TEAM_MATRICES,
#include "backends/vulkan/shaders.def"
    };
    return teams[shader];
}

const char *tn_vk_shader_name(int32_t shader)
{
    static const char *const names[TN_VK_SHADER_COUNT] = {
#define TN_VK_SHADER(module, source, macro) [TN_VK_SHADER_##module] = #module,
#include "backends/vulkan/shaders.def"
    };
    return names[shader];
}

static module module_of(const tn_vk *v, int32_t shader)
{
    return v->has & TN_VK_COOPMAT_NV ? shaders[shader].nv : shaders[shader].here;
}

static size_t size_of(module m)
{
    return (size_t)(m.end - m.code) * sizeof(uint32_t);
}

// Several threads may run it at once.
static VkResult make(const tn_vk *v, tn_vk_pipeline *p)
{
    module m = module_of(v, p->shader);
    VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .pCode = m.code, .codeSize = size_of(m)};
    VkShaderModule made;
    VkResult r = v->f.CreateShaderModule(v->handle, &code, NULL, &made);
    if (r != VK_SUCCESS) return r;
    VkSpecializationMapEntry entries[TN_VK_CONSTANTS];
    for (uint32_t i = 0; i < TN_VK_CONSTANTS; i++)
        entries[i] = (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(int32_t), sizeof(int32_t)};
    VkSpecializationInfo constants = {TN_VK_CONSTANTS, entries, sizeof p->constants, p->constants};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .layout = v->layout,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = made,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
    };
    int32_t team = team_of(p->shader);
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = team == TEAM_MATRICES ? (uint32_t)v->coopmat.subgroup : v->subgroup};
    if (team != TEAM_NONE && tn_vk_asks_for_subgroups(v)) {
        info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
        if (v->sizes.can_require) info.stage.pNext = &size;
    }
    r = v->f.CreateComputePipelines(v->handle, v->cache, 1, &info, NULL, &p->handle);
    v->f.DestroyShaderModule(v->handle, made, NULL);
    return r;
}

// Looks for the verdict of an earlier process, by the hash of the SPIR-V, so that a changed shader is judged
// anew.
static void recall(const tn_vk *v, tn_vk_pipeline *p)
{
    tn_hash h;
    module m = module_of(v, p->shader);
    tn_hash_init(&h);
    tn_hash_add(&h, m.code, size_of(m));
    p->code = tn_hash_value(&h);
    for (int32_t i = 0; i < v->n_known; i++) {
        const tn_vk_stored_verdict *k = &v->known[i];
        if (k->code != p->code || memcmp(k->constants, p->constants, sizeof p->constants) != 0) continue;
        p->verdict =
            k->verdict == TN_VK_GOOD || k->verdict == TN_VK_BAD ? (tn_vk_verdict)k->verdict : TN_VK_UNKNOWN;
    }
}

static tn_vk_pipeline *find(const tn_vk *v, int32_t shader, const int32_t constants[TN_VK_CONSTANTS])
{
    for (tn_vk_pipeline *p = v->pipelines; p; p = p->next)
        if (p->shader == shader && memcmp(p->constants, constants, sizeof p->constants) == 0) return p;
    return NULL;
}

typedef struct making {
    tn_vk *v;
    tn_vk_pipeline *pipelines[TN_VK_MAX_REQUESTS];
    VkResult results[TN_VK_MAX_REQUESTS];
    int32_t n;
    _Atomic int32_t next;
} making;

static void make_some(void *arg, int32_t thread, int32_t team)
{
    making *m = arg;
    TN_UNUSED(thread);
    TN_UNUSED(team);
    for (;;) {
        // Relaxed: it only has to give each thread another index.
        int32_t i = atomic_fetch_add_explicit(&m->next, 1, memory_order_relaxed);
        if (i >= m->n) return;
        m->results[i] = make(m->v, m->pipelines[i]);
    }
}

// Puts those that were made into the list, and frees the others.
static tn_status make_all(making *m)
{
    tn_vk *v = m->v;
    atomic_init(&m->next, 0);
    int32_t n_tasks = TN_MIN(m->n, tn_context_n_threads(v->device->ctx));
    tn_status started = tn_parallel(v->device->ctx, n_tasks, make_some, m), status = started;
    for (int32_t i = 0; i < m->n; i++) {
        tn_vk_pipeline *p = m->pipelines[i];
        if (started != TN_OK || m->results[i] != VK_SUCCESS) {
            if (started == TN_OK) status = tn_vk_check(v, m->results[i], "making a pipeline");
            tn_free(v->device->ctx, p);
            continue;
        }
        if (p->verdict == TN_VK_UNKNOWN) v->n_compiled++;
        p->next = v->pipelines;
        v->pipelines = p;
    }
    return status;
}

// The first of the requests from *at on that are not there yet, no more than `most`.
static tn_status gather(tn_vk *v, const tn_vk_pipeline_requests *requests, int32_t most, int32_t *at,
                        making *m)
{
    *m = (making){.v = v};
    for (; *at < requests->n && m->n < most; ++*at) {
        const tn_vk_pipeline_request *w = &requests->of[*at];
        if (find(v, w->shader, w->constants)) continue;
        tn_vk_pipeline *p = tn_calloc(v->device->ctx, 1, sizeof *p);
        if (!p) {
            while (m->n > 0) tn_free(v->device->ctx, m->pipelines[--m->n]);
            return TN_ERR_MEMORY;
        }
        p->shader = w->shader;
        memcpy(p->constants, w->constants, sizeof p->constants);
        recall(v, p);
        m->pipelines[m->n++] = p;
    }
    return TN_OK;
}

void tn_vk_pipeline_request_add(tn_vk_pipeline_requests *requests, int32_t shader,
                                const int32_t constants[TN_VK_CONSTANTS])
{
    for (int32_t i = 0; i < requests->n; i++)
        if (requests->of[i].shader == shader &&
            memcmp(requests->of[i].constants, constants, sizeof requests->of[i].constants) == 0)
            return;
    if (requests->n == TN_VK_MAX_REQUESTS) return; // the others are made one by one, when they are used
    tn_vk_pipeline_request *w = &requests->of[requests->n++];
    w->shader = shader;
    memcpy(w->constants, constants, sizeof w->constants);
}

// How many of them no earlier process has judged.
static int32_t count_first(tn_vk *v, const tn_vk_pipeline_requests *requests)
{
    int32_t n = 0;
    tn_mutex_lock(&v->lock);
    for (int32_t i = 0; i < requests->n; i++) {
        const tn_vk_pipeline_request *w = &requests->of[i];
        if (find(v, w->shader, w->constants)) continue;
        tn_vk_pipeline p = {.shader = w->shader};
        memcpy(p.constants, w->constants, sizeof p.constants);
        recall(v, &p);
        n += p.verdict == TN_VK_UNKNOWN;
    }
    tn_mutex_unlock(&v->lock);
    return n;
}

tn_status tn_vk_pipelines_make(tn_vk *v, const tn_vk_pipeline_requests *requests)
{
    making m;
    tn_status status = TN_OK;
    int32_t threads = tn_context_n_threads(v->device->ctx), first = count_first(v, requests),
            before = tn_vk_n_compiled(v);
    for (int32_t at = 0; at < requests->n && status == TN_OK;) {
        int32_t done = tn_vk_n_compiled(v) - before;
        if (done < first)
            tn_notice(v->device->ctx, TN_EVENT_COMPILING,
                      "%s: compiling kernels for the first time: %d of %d are there", v->device->name, done,
                      first);
        tn_mutex_lock(&v->lock);
        status = gather(v, requests, threads, &at,
                        &m); // one for each thread, so that progress can be reported in between
        if (status == TN_OK) status = make_all(&m);
        tn_mutex_unlock(&v->lock);
    }
    return status;
}

int32_t tn_vk_n_compiled(tn_vk *v)
{
    tn_mutex_lock(&v->lock);
    int32_t n = v->n_compiled;
    tn_mutex_unlock(&v->lock);
    return n;
}

tn_status tn_vk_pipeline_get(tn_vk *v, int32_t shader, const int32_t constants[TN_VK_CONSTANTS],
                             tn_vk_pipeline **out)
{
    tn_vk_pipeline_requests one = {.n = 1, .of = {{.shader = shader}}};
    memcpy(one.of[0].constants, constants, sizeof one.of[0].constants);
    making m;
    int32_t at = 0;
    tn_mutex_lock(&v->lock);
    tn_status status = gather(v, &one, 1, &at, &m);
    if (status == TN_OK && m.n > 0) status = make_all(&m);
    if (status == TN_OK) *out = find(v, shader, constants);
    tn_mutex_unlock(&v->lock);
    return status;
}

tn_vk_verdict tn_vk_verdict_get(tn_vk *v, tn_vk_pipeline *const *pipelines, int32_t n)
{
    tn_vk_verdict worst = TN_VK_GOOD;
    tn_mutex_lock(&v->lock);
    for (int32_t i = 0; i < n; i++)
        if (pipelines[i]->verdict == TN_VK_BAD || worst == TN_VK_GOOD) worst = pipelines[i]->verdict;
    tn_mutex_unlock(&v->lock);
    return worst;
}

void tn_vk_verdict_set(tn_vk *v, tn_vk_pipeline *const *pipelines, int32_t n, tn_vk_verdict verdict)
{
    tn_mutex_lock(&v->lock);
    for (int32_t i = 0; i < n; i++) {
        if (pipelines[i]->verdict != TN_VK_UNKNOWN) continue;
        pipelines[i]->verdict = verdict;
        v->n_new++;
    }
    tn_mutex_unlock(&v->lock);
}

void tn_vk_pipelines_free(tn_vk *v)
{
    while (v->pipelines) {
        tn_vk_pipeline *p = v->pipelines;
        v->pipelines = p->next;
        if (!tn_vk_is_given_up(v)) v->f.DestroyPipeline(v->handle, p->handle, NULL);
        tn_free(v->device->ctx, p);
    }
}
