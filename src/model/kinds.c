/* SPDX-License-Identifier: BSD-3-Clause */
/* The built-in kinds, see kinds.h. */
#include "model/kinds.h"

#include <stddef.h>

#include <nt/log_layout.h>

static const struct {
    const char *name, *unit;
} kinds[] = {
#define NT_KIND(number, symbol, name, unit, policy, text) [number] = { name, #unit },
#include <nt/kinds.def>
#undef NT_KIND
};

static const char *const object_kinds[] = {
#define NT_OBJECT_KIND(number, symbol, name, text) [number] = name,
#include <nt/objects.def>
#undef NT_OBJECT_KIND
};

#define OWN_LINKS 128u /* from here on types are the applications' */

static const char *const link_types[] = {
#define NT_LINK_TYPE(number, symbol, name, text) [number] = name,
#include <nt/links.def>
#undef NT_LINK_TYPE
};

static const char *const pairings[] = {
    [NT_PAIR_NONE] = "none",
    [NT_PAIR_COUNT] = "count",
    [NT_PAIR_BYTES] = "bytes",
    [NT_PAIR_ID] = "id",
};

const char *nt_model_kind_name(unsigned kind)
{
    return kind < sizeof kinds / sizeof *kinds ? kinds[kind].name : NULL;
}

const char *nt_model_kind_unit(unsigned kind)
{
    return kind < sizeof kinds / sizeof *kinds ? kinds[kind].unit : NULL;
}

const char *nt_model_object_kind_name(unsigned kind)
{
    return kind < sizeof object_kinds / sizeof *object_kinds ? object_kinds[kind] : NULL;
}

const char *nt_model_link_type_name(unsigned type)
{
    if (type >= OWN_LINKS)
        return "own";
    return type < sizeof link_types / sizeof *link_types ? link_types[type] : NULL;
}

const char *nt_model_pairing_name(unsigned pairing)
{
    return pairing < sizeof pairings / sizeof *pairings ? pairings[pairing] : NULL;
}
