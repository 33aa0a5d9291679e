/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantiles of histograms, see histogram.h. Counts may be anything: their sum is taken with twice the bits. */
#include "model/histogram.h"

const struct nt_source_histogram *nt_model_histogram(const struct nt_source_object *object, unsigned kind)
{
    for (size_t i = 0; object->rare && i < object->rare->histogram_count; i++) {
        if (object->rare->histograms[i].kind == kind)
            return &object->rare->histograms[i];
    }
    return NULL;
}

const struct nt_source_bucket *nt_model_quantile(const struct nt_source_histogram *histogram, unsigned per_mille)
{
    __extension__ unsigned __int128 sum = 0, upto = 0;
    for (size_t i = 0; i < histogram->bucket_count; i++)
        sum += histogram->buckets[i].count;
    size_t at = 0;
    for (; at + 1 < histogram->bucket_count; at++) {
        upto += histogram->buckets[at].count;
        if (upto * 1000 >= sum * per_mille)
            break;
    }
    return &histogram->buckets[at];
}
