// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Export macros, statuses and data types: what every other public header needs.
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TN_EXTERN_C_BEGIN extern "C" {
#define TN_EXTERN_C_END }
#else
#define TN_EXTERN_C_BEGIN
#define TN_EXTERN_C_END
#endif

#if defined(_WIN32) && defined(TENON_BUILDING)
#define TN_API __declspec(dllexport)
#elif defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

#if defined(__GNUC__)
#define TN_MUST_USE __attribute__((warn_unused_result))
#else
#define TN_MUST_USE
#endif

TN_EXTERN_C_BEGIN

// Structs that a program and the library give each other begin with `size_t struct_size`, the size that the
// struct has in the headers of the program. So either may be newer than the other:
//     tn_session_config cfg;
//     tn_session_config_default(&cfg);             // what the library reads: defaults, struct_size included
//     tn_piece piece = {.struct_size = sizeof piece}; // what the library writes
// - Read: a struct that is shorter than the library's has the defaults in the fields that are missing. One
//   that is longer is accepted if what the library does not know is zero, else the call fails with
//   TN_ERR_UNSUPPORTED.
// - Written: fields that the program does not know are left out; those that the library does not know become
//   zero.
// - A struct_size of 0, or one that no struct can have, is TN_ERR_ARG everywhere.
// - In an array that the library reads, all elements have the same struct_size. Arrays that it returns hold
//   pointers.
// - tn_x_default(&x) is tn_x_init(&x, sizeof x), for programs in languages that do not compile these headers.
// New fields are added at the end, with 0 as their default. Fields called `reserved` are 0; they fill the
// struct up, because the bytes of a new field would else be padding of undefined value in older programs.
// Structs without struct_size never change.

// 0 is success, everything negative is a failure; the message is on the context (context.h).
typedef int32_t tn_status;
enum {
#define TN_STATUS(name, value, text) TN_##name = (value),
#include <tenon/status.def>
};

// Element types of tensors. A block type packs several elements with shared scales; its blocks
// run along the last (contiguous) dimension only.
typedef int32_t tn_dtype;
enum {
#define TN_DTYPE(name, block, bytes, file_id) TN_TYPE_##name,
#include <tenon/dtypes.def>
    TN_TYPE_COUNT
};

// Short text of a status ("out of memory"); "unknown status" for other values. Any thread.
TN_API const char *tn_status_text(tn_status status);

// Name of a data type ("Q4_K"), or "?" if out of range. Any thread.
TN_API const char *tn_dtype_name(tn_dtype type);
// Elements per block (1 for plain types), 0 if out of range.
TN_API int64_t tn_dtype_block_elems(tn_dtype type);
// Bytes per block, 0 if out of range.
TN_API size_t tn_dtype_block_size(tn_dtype type);
// Type by name (case-insensitive), or -1.
TN_API tn_dtype tn_dtype_by_name(const char *name);
// Type by GGUF id, or -1 if unknown or removed.
TN_API tn_dtype tn_dtype_by_file_id(int64_t file_id);
// GGUF id of a type, or -1 if it has none.
TN_API int32_t tn_dtype_file_id(tn_dtype type);
// Bytes of a row of n elements, 0 if n is not a multiple of the block.
TN_API size_t tn_dtype_row_size(tn_dtype type, int64_t n);

TN_EXTERN_C_END
#endif
