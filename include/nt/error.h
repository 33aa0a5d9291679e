/* SPDX-License-Identifier: BSD-3-Clause */
/* Error codes: every call that can fail returns 0 or a positive result, or a negative code of this table.
   Codes that the system has a name for are its own (-ENOENT …); the ones below are ours. */
#ifndef NT_ERROR_H
#define NT_ERROR_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NT_EFORMAT = 10001,    /* bytes that are not what they should be: bad magic, offsets, checksums */
    NT_EVERSION = 10002,   /* a format version that this build does not read */
    NT_ETRUNCATED = 10003, /* ends before it should */
    NT_EDISABLED = 10004,  /* switched off by NTSCOPE=off */
    NT_ESYNTAX = 10005,    /* text that does not follow its grammar */
    NT_EFORKED = 10006     /* the handle is that of the process that this one was forked from */
};

#ifdef __cplusplus
}
#endif
#endif
