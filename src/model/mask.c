/* SPDX-License-Identifier: BSD-3-Clause */
/* Masks in words, see mask.h. */
#include "model/mask.h"

#include <string.h>

#include <nt/error.h>
#include <nt/log_layout.h>

#include "model/kinds.h"

#define USER_BIT (NT_LAYOUT_MASK_KINDS - 1)
#define KINDS 256u

static bool is_text(struct nt_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static bool is_declared(const struct nt_model *model, struct nt_bytes name)
{
    for (uint32_t i = 0; i < model->program_count; i++) {
        const struct nt_bytes *kinds = model->programs[i].kinds;
        for (unsigned kind = 0; kinds && kind < KINDS; kind++) {
            if (kinds[kind].size == name.size && kinds[kind].size > 0 &&
                memcmp(kinds[kind].data, name.data, name.size) == 0)
                return true;
        }
    }
    return false;
}

/* The bits of one name; 0: there is no such kind. */
static uint64_t bits_of(struct nt_model_mask_edit *edit, const struct nt_model *model, struct nt_bytes name)
{
    if (is_text(name, "all"))
        return NT_LAYOUT_MASK_BITS;
    for (unsigned kind = 1; kind < KINDS; kind++) {
        const char *built_in = nt_model_kind_name(kind);
        if (built_in && is_text(name, built_in))
            return UINT64_C(1) << (kind < USER_BIT ? kind : USER_BIT);
    }
    bool declared = is_declared(model, name);
    edit->user = edit->user || declared;
    return declared || is_text(name, "user") ? UINT64_C(1) << USER_BIT : 0;
}

int nt_model_mask_word(struct nt_model_mask_edit *edit, const struct nt_model *model, const char *word,
                       struct nt_bytes *ret_wrong)
{
    struct nt_model_mask_edit next = *edit;
    uint64_t bits = 0;
    *ret_wrong = (struct nt_bytes){ word, 0 };
    if (word[0] == '\0' || !strchr("+-=", word[0]))
        return -NT_ESYNTAX;
    for (const char *at = word + 1;; at++) {
        const struct nt_bytes name = { at, strcspn(at, ",") };
        uint64_t more = bits_of(&next, model, name);
        if (more == 0) {
            *ret_wrong = name;
            return -NT_ESYNTAX;
        }
        bits |= more;
        at += name.size;
        if (*at == '\0')
            break;
    }
    uint64_t clear = word[0] == '+' ? 0 : word[0] == '-' ? bits : NT_LAYOUT_MASK_BITS;
    uint64_t set = word[0] == '-' ? 0 : bits;
    next.clear = (next.clear | clear) & ~set;
    next.set = (next.set & ~clear) | set;
    *edit = next;
    return 0;
}

/* ---- Writing ---- */

/* What the bit stands for, or NULL. */
static const char *bit_name(unsigned bit)
{
    return bit == USER_BIT ? "user" : nt_model_kind_name(bit);
}

void nt_model_mask_each(uint64_t mask, void (*kind)(void *arg, const char *name), void *arg)
{
    for (unsigned bit = 0; bit < NT_LAYOUT_MASK_KINDS; bit++) {
        if ((mask >> bit & 1) && bit_name(bit))
            kind(arg, bit_name(bit));
    }
}

struct words {
    struct nt_buffer *buffer;
    const char *before; /* the next name */
};

static void append_name(void *arg, const char *name)
{
    struct words *words = arg;
    nt_buffer_text(words->buffer, words->before);
    nt_buffer_text(words->buffer, name);
    words->before = ",";
}

void nt_model_mask_append(struct nt_buffer *buffer, uint64_t mask)
{
    uint64_t known = 0;
    for (unsigned bit = 0; bit < NT_LAYOUT_MASK_KINDS; bit++)
        known |= (uint64_t)(bit_name(bit) != NULL) << bit;
    mask &= known;
    struct words words = { buffer, " -" };
    if (mask == 0) {
        nt_buffer_text(buffer, "-all");
    } else if (__builtin_popcountll(mask) * 2 > __builtin_popcountll(known)) {
        nt_buffer_text(buffer, "+all");
        nt_model_mask_each(known & ~mask, append_name, &words);
    } else {
        words.before = "=";
        nt_model_mask_each(mask, append_name, &words);
    }
}
