// Pages of host memory that are given back while nobody needs what stands there.
#pragma once

#include "models/collective/rank_program.h"
#include "runtime/device/memory.h"

namespace paceline::runtime {

// Asks for small pages for ordinary host memory of which parts only are written, so that no more becomes resident.
void use_small_pages(const ArrayView& array);

// Gives the whole pages of a range of an array of ordinary host memory back to the system, and keeps a part of the range.
// Memory that was given back reads as zeros until it is written again, or as it was. Each page that is needed again takes a
// fault.
void give_back_all_but(const models::Elements& kept, const models::Elements& range,
                       const ArrayView& array);

}  // namespace paceline::runtime
