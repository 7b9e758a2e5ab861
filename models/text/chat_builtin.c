// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Chat templates for files that have none, and for users who name one. They render plain text conversations
// only: tools and reasoning differ between models and need the templates of their files.
#include "models/text/chat.h"

#include <string.h>

typedef struct builtin_row {
    const char *name;
    const char *token; // files without a template get this one if they have that token; NULL: only by name
    const char *text;
} builtin_row;

#define EACH         "{% for m in messages %}"
#define DONE         "{% endfor %}"
#define OPEN(text)   "{% if add_generation_prompt %}{{ '" text "' }}{% endif %}"
#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\\n\\n"
#define TURN(role)   "<|START_OF_TURN_TOKEN|><|" role "_TOKEN|>"
#define SAY(role, before, after)                                                                             \
    "{% if m.role == '" role "' %}{{ '" before "' + m.content + '" after "' }}{% endif %}"
// The system turn is removed from the list and becomes `first`, which is put in front of a user turn.
#define TAKE_SYSTEM                                                                                          \
    "{% set first = '' %}{% if messages and messages[0].role == 'system' %}{% set first = "                  \
    "messages[0].content %}"                                                                                 \
    "{% set messages = messages[1:] %}{% if not messages|selectattr('role', 'equalto', 'user')|list %}"      \
    "{{ raise_exception('the system text needs a user turn') }}{% endif %}{% endif %}"
// [INST]; `last`: the system text is part of the last user turn.
#define INST(before, after, answer, last)                                                                    \
    TAKE_SYSTEM "{{ bos_token }}{% set ns = namespace(users=0) %}"                                           \
                "{% set wanted = messages|selectattr('role', 'equalto', 'user')|list|length if " last        \
                " else 1 %}" EACH "{% if m.role == 'user' %}{% set ns.users = ns.users + 1 %}"               \
                "{{ '" before                                                                                \
                "' + (first + '\\n\\n' if first and ns.users == wanted else '') + m.content + '" after       \
                "' }}"                                                                                       \
                "{% else %}{{ '" answer "' + m.content + '</s>' }}{% endif %}" DONE
#define INST_V7(blank)                                                                                       \
    "{{ bos_token }}" EACH SAY("system", "[SYSTEM_PROMPT]" blank, "[/SYSTEM_PROMPT]")                        \
        SAY("user", "[INST]" blank, "[/INST]") SAY("assistant", blank, "</s>") DONE
#define LLAMA3(system)                                                                                       \
    "{{ bos_token }}" system EACH                                                                            \
    "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content|trim + '<|eot_id|>' }}" DONE  \
    OPEN(HEADER("assistant"))

// clang-format off
static const builtin_row rows[] = {
    {"phi4", "<|im_sep|>",
     EACH "{{ '<|im_start|>' + m.role + '<|im_sep|>' + m.content + '<|im_end|>' }}" DONE
     OPEN("<|im_start|>assistant<|im_sep|>")},
    {"chatml", "<|im_start|>",
     EACH "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}" DONE
     OPEN("<|im_start|>assistant\\n")},
    {"llama3.1", NULL,
     LLAMA3("{% set first = '' %}{% if messages and messages[0].role == 'system' %}{% set first = "
     "messages[0].content|trim %}"
            "{% set messages = messages[1:] %}{% endif %}{{ '" HEADER("system")
      "Cutting Knowledge Date: December 2023\\n"
            "Today Date: ' + date_string|default('26 Jul 2024') + '\\n\\n' + first + '<|eot_id|>' }}")},
    {"llama3", "<|start_header_id|>", LLAMA3("")},
    {"gemma", "<start_of_turn>",
     TAKE_SYSTEM "{{ bos_token }}{% set ns = namespace(first=first|trim) %}" EACH
     "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' }}"
     "{% if ns.first and m.role == 'user' %}{{ ns.first + '\\n\\n' }}{% set ns.first = '' %}{% endif %}"
     "{{ m.content|trim + '<end_of_turn>\\n' }}" DONE OPEN("<start_of_turn>model\\n")},
    {"phi4-mini", NULL, EACH "{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}" DONE OPEN("<|assistant|>")},
    {"harmony", "<|channel|>",
     "{{ '<|start|>system<|message|>You are a helpful assistant.\\nKnowledge cutoff: 2024-06\\n' }}"
     "{% if strftime_now is defined %}{{ 'Current date: ' + strftime_now('%Y-%m-%d') + '\\n' }}{% endif %}"
     "{{ '\\nReasoning: ' + reasoning_effort|default('medium') + '\\n\\n# Valid channels: analysis, "
     "commentary, final. "
     "Channel must be included for every message.<|end|>' }}" EACH
     "{% if m.role in ['system', 'developer'] %}{{ '<|start|>developer<|message|># Instructions\\n\\n' + "
     "m.content + '\\n\\n<|end|>' }}"
     "{% elif m.role == 'assistant' %}{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + "
     "'<|end|>' }}"
     "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}" DONE
     OPEN("<|start|>assistant")},
    {"phi3", "<|end|>",
     EACH "{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}" DONE OPEN("<|assistant|>\\n")},
    {"zephyr", "<|assistant|>",
     EACH "{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}" DONE OPEN("<|assistant|>\\n")},
    {"deepseek", "<｜User｜>",
     "{{ bos_token }}" EACH SAY("system", "", "") SAY("user", "<｜User｜>", "")
     SAY("assistant", "<｜Assistant｜>", "<｜end▁of▁sentence｜>") DONE OPEN("<｜Assistant｜>")},
    {"deepseek2", NULL,
     "{{ bos_token }}" EACH SAY("system", "", "\\n\\n") SAY("user", "User: ", "\\n\\n")
     "{% if m.role == 'assistant' %}{{ 'Assistant: ' + m.content + eos_token }}{% endif %}" DONE
     OPEN("Assistant:")},
    {"command-r", "<|START_OF_TURN_TOKEN|>",
     "{{ bos_token }}" EACH SAY("system", TURN("SYSTEM"), "<|END_OF_TURN_TOKEN|>")
     SAY("user", TURN("USER"), "<|END_OF_TURN_TOKEN|>")
     SAY("assistant", TURN("CHATBOT"), "<|END_OF_TURN_TOKEN|>") DONE OPEN(TURN("CHATBOT"))},
    {"mistral-v7", NULL, INST_V7(" ")},
    {"mistral-v7-tekken", "[SYSTEM_PROMPT]", INST_V7("")},
    {"llama2", NULL,
     TAKE_SYSTEM "{% set ns = namespace(first=first) %}" EACH
     "{% if m.role == 'user' %}{{ bos_token + '[INST] ' }}{% if ns.first %}{{ '<<SYS>>\\n' + ns.first|trim + "
     "'\\n<</SYS>>\\n\\n' }}"
     "{% set ns.first = '' %}{% endif %}{{ m.content|trim + ' [/INST]' }}{% else %}{{ ' ' + m.content|trim + "
     "' ' + eos_token }}"
     "{% endif %}" DONE},
    {"mistral-v1", NULL, INST(" [INST] ", " [/INST]", " ", "false")},
    {"mistral-v3-tekken", NULL, INST("[INST]", "[/INST]", "", "true")},
    {"mistral-v3", "[INST]", INST("[INST] ", "[/INST]", " ", "true")},
    {"mistral", NULL, INST("[INST] ", " [/INST]", " ", "false")},
};
// clang-format on

const char *tn_chat_builtin(const char *name, size_t n)
{
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) return rows[i].text;
    return NULL;
}

const char *tn_chat_builtin_name(size_t i)
{
    return i < TN_COUNT(rows) ? rows[i].name : NULL;
}

const char *tn_chat_builtin_for(const tn_tokenizer *t)
{
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        if (rows[i].token && tn_tokenizer_find(t, rows[i].token, strlen(rows[i].token)) >= 0)
            return rows[i].name;
    return "chatml";
}
