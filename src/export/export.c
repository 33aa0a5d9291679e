/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of formats, see export.h. */
#include "export/export.h"

#include <string.h>

const struct nt_export_format *const nt_export_formats[] = { &nt_export_text, &nt_export_json, NULL };

const struct nt_export_format *nt_export_find(const char *name)
{
    for (size_t i = 0; nt_export_formats[i]; i++) {
        if (strcmp(nt_export_formats[i]->name, name) == 0)
            return nt_export_formats[i];
    }
    return NULL;
}
