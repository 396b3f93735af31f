// Any bytes as the output of each of the other tools: samples that can be fitted, or an InputError.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "calibration/fit/plot.h"
#include "calibration/import/import_file.h"
#include "calibration/import/machine_cluster.h"
#include "calibration/import/traced_network.h"
#include "models/base/error.h"
#include "models/base/limits.h"
#include "models/network/zoo.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  using calibration::ImportFormat;
  static const models::Network network = models::zoo_network("resnet-small");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const ImportFormat format :
       {ImportFormat::nccl_tests, ImportFormat::osu, ImportFormat::kineto, ImportFormat::horovod,
        ImportFormat::nvidia_topology, ImportFormat::nccl_topology, ImportFormat::nccl_log,
        ImportFormat::mlperf}) {
    try {
      const calibration::Imported imported =
          calibration::import_text(format, text, "file", &network);
      for (const calibration::ImportedCurve& curve : imported.curves) {
        PACELINE_ASSERT(!curve.samples.empty(), "a curve has samples");
        const calibration::Fit fit =
            calibration::fit_piecewise(curve.samples, {.draws = 4, .source = ""});
        PACELINE_ASSERT(std::isfinite(fit.residual), "a residual is a number");
        PACELINE_ASSERT(!calibration::fit_svg(curve.samples, fit, {.title = curve.what}).empty(),
                        "a fit has a picture");
      }
      for (const calibration::ImportedLayer& layer : imported.layers) {
        PACELINE_ASSERT(layer.forward.low >= Seconds{0} &&
                            layer.forward.low <= layer.forward.value &&
                            layer.forward.value <= layer.forward.high,
                        "a layer takes time");
      }
      for (const calibration::ImportedThroughput& throughput : imported.throughputs)
        PACELINE_ASSERT(
            within_limits(throughput.samples.low) && within_limits(throughput.samples.high),
            "a throughput is within limits");
      if (imported.machine) {
        const calibration::MachineContext context{.file = "file",
                                                  .name = "fuzz",
                                                  .tool = "tool",
                                                  .nodes = 0,
                                                  .device = {},
                                                  .nic = {},
                                                  .intra = {}};
        PACELINE_ASSERT(!calibration::cluster_description(*imported.machine, context).yaml.empty(),
                        "a machine has a description");
      }
    } catch (const InputError&) {
    }
  }
  try {
    const calibration::TracedNetwork traced = calibration::traced_network(text, "file", "fuzz");
    PACELINE_ASSERT(traced.batch > 0, "a network reads a batch");
  } catch (const InputError&) {
  }
  return 0;
}
