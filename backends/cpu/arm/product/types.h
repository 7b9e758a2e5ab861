// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The quantised weight types with kernels; included once by each level, after its pieces, for the kernels of
// all of them. What the macros say: product_arm_tmpl.h.

#define TYPE        q4_0
#define SUB         32
#define MOST        15
#define BIAS        8
#define HAS_MIN     0
#define GROUP_SIZE  144
#define BLOCK_ELEMS 32
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q4_1
#define SUB         32
#define MOST        15
#define BIAS        0
#define HAS_MIN     1
#define GROUP_SIZE  160
#define BLOCK_ELEMS 32
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q5_0
#define SUB         32
#define MOST        31
#define BIAS        16
#define HAS_MIN     0
#define GROUP_SIZE  176
#define BLOCK_ELEMS 32
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q5_1
#define SUB         32
#define MOST        31
#define BIAS        0
#define HAS_MIN     1
#define GROUP_SIZE  192
#define BLOCK_ELEMS 32
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q8_0
#define SUB         32
#define MOST        128
#define BIAS        0
#define HAS_MIN     0
#define GROUP_SIZE  272
#define BLOCK_ELEMS 32
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq4_nl
#define SUB         32
#define MOST        128
#define BIAS        0
#define HAS_MIN     0
#define GROUP_SIZE  144
#define BLOCK_ELEMS 32
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        mxfp4
#define SUB         32
#define MOST        12
#define BIAS        0
#define HAS_MIN     0
#define GROUP_SIZE  136
#define BLOCK_ELEMS 32
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q2_k
#define SUB         16
#define MOST        3
#define BIAS        0
#define HAS_MIN     1
#define GROUP_SIZE  84
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q3_k
#define SUB         16
#define MOST        7
#define BIAS        4
#define HAS_MIN     0
#define GROUP_SIZE  110
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q4_k
#define SUB         32
#define MOST        15
#define BIAS        0
#define HAS_MIN     1
#define GROUP_SIZE  144
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q5_k
#define SUB         32
#define MOST        31
#define BIAS        0
#define HAS_MIN     1
#define GROUP_SIZE  176
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q6_k
#define SUB         16
#define MOST        63
#define BIAS        32
#define HAS_MIN     0
#define GROUP_SIZE  210
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq4_xs
#define SUB         32
#define MOST        128
#define BIAS        0
#define HAS_MIN     0
#define GROUP_SIZE  136
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"
