// Pages of host memory that are given back while nobody needs what stands there.
#pragma once

#include <cstddef>

#include "models/collective/rank_program.h"
#include "runtime/device/memory.h"

namespace paceline::runtime {

// Gives the whole pages inside a range of ordinary host memory back to the system. What stood there reads as zeros
// until it is written again, or as it was. Each page that is needed again takes a fault.
void give_back_pages(std::byte* data, std::size_t bytes);

// Asks for small pages for ordinary host memory of which parts only are written, so that no more becomes resident.
void use_small_pages(const ArrayView& array);

// The same as give_back_pages() for an array, but for a part of it: what a rank holds of a bucket while it has no use for the rest.
void give_back_all_but(const models::Elements& kept, const models::Elements& range,
                       const ArrayView& array);

}  // namespace paceline::runtime
