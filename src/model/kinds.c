/* SPDX-License-Identifier: BSD-3-Clause */
/* The built-in kinds, see kinds.h. */
#include "model/kinds.h"

#include <stddef.h>

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
