/* SPDX-License-Identifier: BSD-3-Clause */
/* What histograms tell. */
#ifndef NT_MODEL_HISTOGRAM_H
#define NT_MODEL_HISTOGRAM_H

#include "source/source.h"

/* Of a kind; NULL if none is kept. */
const struct nt_source_histogram *nt_model_histogram(const struct nt_source_object *object, unsigned kind);
/* The bucket that the value lies in which is the per_mille / 1000 part of the way up, 1 to 1000: of n values in order
   the ceil(n * per_mille / 1000)-th. Where in the bucket it lies is not known. */
const struct nt_source_bucket *nt_model_quantile(const struct nt_source_histogram *histogram, unsigned per_mille);

#endif
