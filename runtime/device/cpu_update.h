// The update of all parameters on CPUs, by as many threads as its table was made for. The same
// numbers give the same bits, whatever the number of threads and the CPU.
#pragma once

#include "runtime/device/kernels.h"

namespace paceline::runtime {

void update_on_cpu(const UpdateParameters& update);

}  // namespace paceline::runtime
