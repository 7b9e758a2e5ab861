// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <tenon/session.h>
#include <tenon/text.h>

int main(int argc, char **argv)
{
    tn_context *ctx = NULL;
    tn_model *model = NULL;
    tn_session *session = NULL;
    tn_generation *gen = NULL;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    tn_turn turn;
    tn_sampling sampling;
    tn_generation_config cfg;
    tn_sampling_default(&sampling);
    tn_generation_config_default(&cfg);
    memset(&turn, 0, sizeof turn);
    turn.struct_size = sizeof turn;
    turn.role = "user";
    turn.content = argc > 2 ? argv[2] : "Hello!";
    cfg.max_tokens = 64;
    cfg.sampling = &sampling;
    sampling.temperature = 0; // always the most probable token

    int ok = argc > 1 && tn_context_create(NULL, &ctx) == TN_OK &&
             tn_model_open(ctx, argv[1], NULL, &model) == TN_OK &&
             tn_chat_tokenize(model, &turn, 1, NULL, &ids, &n_ids) == TN_OK &&
             tn_session_create(model, NULL, &session) == TN_OK &&
             tn_generation_create(session, &cfg, &gen) == TN_OK &&
             tn_generation_prompt(gen, ids, n_ids) == TN_OK;
    tn_piece piece;
    memset(&piece, 0, sizeof piece);
    piece.struct_size = sizeof piece;
    while (ok && piece.stop == TN_STOP_NONE && (ok = tn_generation_step(gen, &piece) == TN_OK) != 0)
        fwrite(piece.text, 1, piece.n_text, stdout);
    char message[512] = "usage: embed MODEL [TEXT]";
    if (!ok && ctx) tn_context_error(ctx, message, sizeof message);
    if (!ok) fprintf(stderr, "%s\n", message);

    if (ids) tn_tokens_free(model, ids);
    tn_generation_destroy(&gen);
    tn_session_destroy(&session);
    tn_model_unref(&model);
    tn_context_destroy(&ctx);
    return !ok;
}
