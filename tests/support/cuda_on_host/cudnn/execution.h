// A plan in a stream.
#pragma once

#include "tests/support/cuda_on_host/cudnn/descriptor.h"
#include "tests/support/cuda_on_host/cudnn/handles.h"

namespace cuda_on_host::cudnn {

// Puts one operation into the handle's stream, or into the graph that is captured from it. It reads
// and writes the graph's tensors where the variant pack says, and writes the whole workspace.
// Numbers by value are read from the host here and now. Throws Refusal; aborts (die) for what
// cuDNN does not notice.
void execute(const cudnnContext& handle, const ContentPointer& plan, const Content& pack);

}  // namespace cuda_on_host::cudnn
