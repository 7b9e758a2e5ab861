// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pipelines: a shader with its specialisation constants, compiled by the driver at first use, and what is
// known about the result.
#include "backends/vulkan/device.h"
#include "core/hash.h"

#include <string.h>

// Embedded by shaders/embed.sh: words of SPIR-V, and where they end.
#define TN_VK_SHADER(stem) extern const uint32_t tn_vk_code_##stem[], tn_vk_code_end_##stem[];
#include "backends/vulkan/shaders.def"

static const struct {
    const uint32_t *code, *end;
} shaders[TN_VK_SHADER_COUNT] = {
#define TN_VK_SHADER(stem) [TN_VK_SHADER_##stem] = {tn_vk_code_##stem, tn_vk_code_end_##stem},
#include "backends/vulkan/shaders.def"
};

static tn_status make(tn_vk *v, tn_vk_pipeline *p)
{
    VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                     .pCode = shaders[p->shader].code,
                                     .codeSize = (size_t)(shaders[p->shader].end - shaders[p->shader].code) *
                                                 sizeof(uint32_t)};
    VkShaderModule module;
    tn_status status =
        tn_vk_check(v, v->f.CreateShaderModule(v->handle, &code, NULL, &module), "making a shader");
    if (status != TN_OK) return status;
    VkSpecializationMapEntry entries[TN_VK_CONSTANTS];
    for (uint32_t i = 0; i < TN_VK_CONSTANTS; i++)
        entries[i] = (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(int32_t), sizeof(int32_t)};
    VkSpecializationInfo constants = {TN_VK_CONSTANTS, entries, sizeof p->constants, p->constants};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .layout = v->layout,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
    };
    status = tn_vk_check(v, v->f.CreateComputePipelines(v->handle, v->cache, 1, &info, NULL, &p->handle),
                         "making a pipeline");
    v->f.DestroyShaderModule(v->handle, module, NULL);
    return status;
}

// By the code that was compiled: a new release of a shader is another one.
static void recall(const tn_vk *v, tn_vk_pipeline *p)
{
    tn_hash h;
    tn_hash_init(&h);
    tn_hash_add(&h, shaders[p->shader].code,
                (size_t)(shaders[p->shader].end - shaders[p->shader].code) * sizeof(uint32_t));
    p->code = tn_hash_value(&h);
    for (int32_t i = 0; i < v->n_known; i++) {
        const tn_vk_known *k = &v->known[i];
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

tn_status tn_vk_pipeline_get(tn_vk *v, int32_t shader, const int32_t constants[TN_VK_CONSTANTS],
                             tn_vk_pipeline **out)
{
    mtx_lock(&v->lock);
    tn_vk_pipeline *p = find(v, shader, constants);
    tn_status status = TN_OK;
    if (!p) {
        p = tn_calloc(v->device->ctx, 1, sizeof *p);
        if (!p) status = TN_ERR_MEMORY;
        if (status == TN_OK) {
            p->shader = shader;
            memcpy(p->constants, constants, sizeof p->constants);
            recall(v, p);
            status = make(v, p);
            if (p->verdict == TN_VK_UNKNOWN) v->n_compiled++;
        }
        if (status == TN_OK) {
            p->next = v->pipelines;
            v->pipelines = p;
        } else
            tn_free(v->device->ctx, p);
    }
    mtx_unlock(&v->lock);
    if (status == TN_OK) *out = p;
    return status;
}

tn_vk_verdict tn_vk_verdict_get(tn_vk *v, tn_vk_pipeline *const *pipelines, int32_t n)
{
    tn_vk_verdict worst = TN_VK_GOOD;
    mtx_lock(&v->lock);
    for (int32_t i = 0; i < n; i++)
        if (pipelines[i]->verdict == TN_VK_BAD || worst == TN_VK_GOOD) worst = pipelines[i]->verdict;
    mtx_unlock(&v->lock);
    return worst;
}

void tn_vk_verdict_set(tn_vk *v, tn_vk_pipeline *const *pipelines, int32_t n, tn_vk_verdict verdict)
{
    mtx_lock(&v->lock);
    for (int32_t i = 0; i < n; i++) {
        if (pipelines[i]->verdict != TN_VK_UNKNOWN) continue;
        pipelines[i]->verdict = verdict;
        v->n_new++;
    }
    mtx_unlock(&v->lock);
}

void tn_vk_pipelines_free(tn_vk *v)
{
    while (v->pipelines) {
        tn_vk_pipeline *p = v->pipelines;
        v->pipelines = p->next;
        v->f.DestroyPipeline(v->handle, p->handle, NULL);
        tn_free(v->device->ctx, p);
    }
}
