/* What generation asks of a sampler beside generate.h. */
#ifndef HEED_SAMPLER_H
#define HEED_SAMPLER_H

#include "runtime/Filters.h"
#include "runtime/Model.h"

const heed_rules *heed_rules_of_sampler(const heed_sampler *sampler);

/** Room for so many more tokens of a row, where the rules need them. */
heed_status heed_reserve_tokens(heed_sampler *sampler, int64_t row,
                                size_t more);

#endif
