/* SPDX-License-Identifier: BSD-3-Clause */
/* What an error code says, in words. */
#ifndef NT_BASE_ERROR_H
#define NT_BASE_ERROR_H

/* A short text for a code of <nt/error.h> or an errno value, of either sign. Static; never NULL. */
const char *nt_error_text(int code);

#endif
