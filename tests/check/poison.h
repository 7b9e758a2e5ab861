// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What results and scratch hold before a step writes them: NaN, different ones, so that results which depend
// on them differ. The emulated driver (tests/cuda/README.md) takes such words for memory that nobody has
// written: none ends in 0xff, of which fences are made.
#ifndef TN_TESTS_CHECK_POISON_H
#define TN_TESTS_CHECK_POISON_H

#define CHECK_POISONS 0x7fc0dead, 0x7fc1beef, 0x7fc2f00d

#endif
