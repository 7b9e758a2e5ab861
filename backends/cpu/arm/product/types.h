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

#define TYPE        iq1_s
#define SUB         32
#define MOST        2
#define BIAS        0
#define HAS_MIN     1
#define GROUP_SIZE  50
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq1_m
#define SUB         16
#define MOST        18
#define BIAS        9
#define HAS_MIN     0
#define GROUP_SIZE  56
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq2_xxs
#define SUB         32
#define MOST        (2 * TN_IQ2_BIAS)
#define BIAS        TN_IQ2_BIAS
#define HAS_MIN     0
#define GROUP_SIZE  66
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq2_xs
#define SUB         16
#define MOST        (2 * TN_IQ2_BIAS)
#define BIAS        TN_IQ2_BIAS
#define HAS_MIN     0
#define GROUP_SIZE  74
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq2_s
#define SUB         16
#define MOST        (2 * TN_IQ2_BIAS)
#define BIAS        TN_IQ2_BIAS
#define HAS_MIN     0
#define GROUP_SIZE  82
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq3_xxs
#define SUB         32
#define MOST        (2 * TN_IQ3XXS_BIAS)
#define BIAS        TN_IQ3XXS_BIAS
#define HAS_MIN     0
#define GROUP_SIZE  98
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        iq3_s
#define SUB         32
#define MOST        (2 * TN_IQ3S_BIAS)
#define BIAS        TN_IQ3S_BIAS
#define HAS_MIN     0
#define GROUP_SIZE  110
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        tq1_0
#define SUB         32
#define MOST        2
#define BIAS        1
#define HAS_MIN     0
#define GROUP_SIZE  54
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        tq2_0
#define SUB         32
#define MOST        3
#define BIAS        1
#define HAS_MIN     0
#define GROUP_SIZE  66
#define BLOCK_ELEMS 256
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q1_0
#define SUB         32
#define MOST        2
#define BIAS        1
#define HAS_MIN     0
#define GROUP_SIZE  36
#define BLOCK_ELEMS 128
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        q2_0
#define SUB         32
#define MOST        3
#define BIAS        1
#define HAS_MIN     0
#define GROUP_SIZE  72
#define BLOCK_ELEMS 64
#include "backends/cpu/arm/product/product_arm_tmpl.h"

#define TYPE        nvfp4
#define SUB         16
#define MOST        12
#define BIAS        0
#define HAS_MIN     0
#define GROUP_SIZE  144
#define BLOCK_ELEMS 64
#include "backends/cpu/arm/product/product_arm_tmpl.h"
