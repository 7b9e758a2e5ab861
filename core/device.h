// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The only way to reach a device: every call goes through here.
#ifndef TN_CORE_DEVICE_H
#define TN_CORE_DEVICE_H

#include "core/backend.h"

TN_MUST_USE tn_status tn_devices_open(tn_context *ctx);
void tn_devices_close(tn_context *ctx);
// The first device whose backend has that role, NULL if there is none.
tn_device *tn_device_of_role(const tn_context *ctx, tn_backend_role role);

// A buffer of the device; its bytes are undefined. On failure *out is unchanged.
TN_MUST_USE tn_status tn_buffer_create(tn_device *device, size_t size, tn_buffer *out);
// Writes zeros: the bytes are defined, and the system has really provided the memory (it may overcommit).
TN_MUST_USE tn_status tn_buffer_zero(tn_buffer *buffer, size_t offset, size_t n);
// The same for `rows` runs of n bytes that begin `pitch` bytes apart.
TN_MUST_USE tn_status tn_buffer_zero_rows(tn_buffer *buffer, size_t offset, size_t n, size_t pitch,
                                          size_t rows);
// Memory of the device as a buffer, not owned: a part of another buffer or, on devices with host_memory, any.
tn_buffer tn_buffer_borrow(tn_device *device, const void *data, size_t size);
// [offset, offset + size) of a buffer that outlives it.
tn_buffer tn_buffer_part(const tn_buffer *whole, size_t offset, size_t size);
void tn_buffer_destroy(tn_buffer *buffer); // clears it; a zeroed buffer is fine
TN_MUST_USE tn_status tn_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n);
// Writes a whole weight of `size` bytes, given as in a file, so that kernels find it at `offset`.
TN_MUST_USE tn_status tn_buffer_write_weight(tn_buffer *buffer, size_t offset, const struct tn_view *weight,
                                             const void *bytes, size_t size);
TN_MUST_USE tn_status tn_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n);

#endif
