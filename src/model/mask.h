/* SPDX-License-Identifier: BSD-3-Clause */
/* Masks in words: "+read" logs reads too, "-poll,wait" those no more, "=read,write" these alone; "+all", "-all"; "user"
   are all user-defined kinds, which share one bit. What is written is what can be read back. */
#ifndef NT_MODEL_MASK_H
#define NT_MODEL_MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/objects.h"

/* What several words in turn do to a mask. All zeros: nothing. */
struct nt_model_mask_edit {
    uint64_t clear, set; /* first the one, then the other; no bit is in both */
    bool user;           /* a user-defined kind was named by its own name */
};

/* Adds a word to what is done. The names of kinds are the built-in ones and those that any program of the model
   declares. 0, or -NT_ESYNTAX: *ret_wrong is the part of the word that is no kind, or empty: it is no such word. */
int nt_model_mask_word(struct nt_model_mask_edit *edit, const struct nt_model *model, const char *word,
                       struct nt_bytes *ret_wrong);
static inline uint64_t nt_model_mask_apply(const struct nt_model_mask_edit *edit, uint64_t mask)
{
    return (mask & ~edit->clear) | edit->set;
}

/* Appends the mask as words: "+all -poll", "=read,write", "-all". Bits that stand for no kind are not told. */
void nt_model_mask_append(struct nt_buffer *buffer, uint64_t mask);
/* Calls once for each kind of the mask, in the order of their bits; the last one is "user". */
void nt_model_mask_each(uint64_t mask, void (*kind)(void *arg, const char *name), void *arg);

#endif
