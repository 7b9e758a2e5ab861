// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of sessions, format 1. Numbers are little endian and not aligned:
//
//   head       "tenon-st", u32 version, u32 flags, u64 bytes of the file, u64 hash of the model, i32 type of
//   K, i32 type of V
//              (ids of GGUF), u32 tokens per block, u32 blocks, u32 sequences, u32 parts, u32 states, u32
//              snapshots
//   parts      u64 bytes of one block, for each part of the cache (K and V of layer 0, K and V of layer 1,
//   ..), then u64 bytes of
//              one slot, for each recurrent state
//   sequences  in rising order: u32 index, u32 tokens, then u32 number of the block for each of its blocks
//   snapshots  of recurrent states, in rising order, one for a sequence at most: u32 index, u32 number of
//   tokens tokens     i32 for each slot of each block; 0 where no sequence reaches data       for each block
//   all its parts, as they lie in the cache, zeros in the rows that no sequence reaches (files
//              written before 2026-11-22: old contents), then for each snapshot all states
//   Parts of layers with a window are zero in blocks that no token behind any sequence sees.
//   checksum   u64 XXH64 of all bytes before
//
// The hash of the model covers all metadata, the table of tensors, and from every tensor 64 bytes at its
// start and in its middle: enough to distinguish fine-tuned versions without reading gigabytes. Where LoRA
// adapters are used, theirs and their scales follow in the same hash.
#ifndef TN_MODELS_STATE_H
#define TN_MODELS_STATE_H

#include "models/run/session.h"

#define TN_STATE_MAGIC "tenon-st"
enum {
    TN_STATE_VERSION = 1,
    TN_STATE_HEAD_SIZE = 64,
    TN_STATE_CHECKSUM_SIZE = 8,
    TN_STATE_LONG_ROPE = 1, // flag: keys were rotated with the rope factors of long contexts
};

// Of the model, and of the adapters that the sequence uses with their scales. TN_ERR_IO: a file cannot be
// read any more.
TN_MUST_USE tn_status tn_state_model_hash(const tn_session *s, int32_t seq, uint64_t *out);
// Flags of a session's files.
uint32_t tn_state_flags(const tn_session *s);

#endif
