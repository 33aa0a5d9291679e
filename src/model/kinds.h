/* SPDX-License-Identifier: BSD-3-Clause */
/* The built-in kinds of events, objects and links by number, from their tables <nt/kinds.def>, <nt/objects.def> and
   <nt/links.def>. */
#ifndef NT_MODEL_KINDS_H
#define NT_MODEL_KINDS_H

#include <stdint.h>

enum nt_model_kind {
#define NT_KIND(number, symbol, name, unit, policy, text) NT_MODEL_KIND_##symbol = number,
#include <nt/kinds.def>
#undef NT_KIND
};

enum nt_model_object_kind {
#define NT_OBJECT_KIND(number, symbol, name, text) NT_MODEL_OBJECT_##symbol = number,
#include <nt/objects.def>
#undef NT_OBJECT_KIND
};

/* Names and units; NULL if the number is not built in. Units: bytes, ns, code, count. */
const char *nt_model_kind_name(unsigned kind);
const char *nt_model_kind_unit(unsigned kind);
const char *nt_model_object_kind_name(unsigned kind);
/* Of what type the link of a key is, by the key's first byte; "own" if it is an application's own. */
const char *nt_model_link_type_name(unsigned type);
/* How messages are paired: none, count, bytes, id. */
const char *nt_model_pairing_name(unsigned pairing);

#endif
