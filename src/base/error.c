/* SPDX-License-Identifier: BSD-3-Clause */
/* What an error code says, see error.h. */
#include "base/error.h"

#include <string.h>

#include <nt/error.h>

const char *nt_error_text(int code)
{
    unsigned magnitude = code < 0 ? 0u - (unsigned)code : (unsigned)code;
    switch (magnitude) {
    case 0:
        return "no error";
    case NT_EFORMAT:
        return "malformed";
    case NT_EVERSION:
        return "a format version that this build does not read";
    case NT_ETRUNCATED:
        return "truncated";
    case NT_EDISABLED:
        return "switched off by NTSCOPE=off";
    case NT_ESYNTAX:
        return "syntax error";
    case NT_EFORKED:
        return "made by the process that this one was forked from";
    default:
        break;
    }
    const char *text = magnitude <= 4096 ? strerrordesc_np((int)magnitude) : NULL;
    return text ? text : "unknown error";
}
