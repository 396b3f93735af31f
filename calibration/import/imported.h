// What the output of another tool says, before anything is fitted: samples of time by size, times
// of layers, and when tensors were ready. The readers beside this header make it; import_profile.h
// makes a profile of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/import/imported_machine.h"
#include "models/base/figure.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/profile/profile.h"

namespace paceline::calibration {

// Whether a curve is time by size as it is, or the time that a message adds to a stream of many
// (osu_bw), which tells a link's bandwidth and nothing of its latency.
enum class CurveUse { time, stream };

// A number of ranks or nodes, as far as a file tells it.
struct Count {
  int least = 1;
  int most = 1'000'000;

  [[nodiscard]] static Count of(int number) { return {number, number}; }
  [[nodiscard]] bool is_known() const { return least == most; }
  [[nodiscard]] bool allows(int number) const { return least <= number && number <= most; }
  bool operator==(const Count&) const = default;
};

struct ImportedCurve {
  models::CurveKind kind = models::CurveKind::all_reduce;
  CurveUse use = CurveUse::time;
  std::string what;     // "all_reduce_perf, in place, float sum"
  std::string library;  // whose collective it is: "nccl", "mpi"; may be empty
  std::optional<models::WireType> wire = {};
  Count ranks = {};
  Count nodes = {};
  int runs = 1;  // whose samples these are
  std::vector<Sample> samples = {};
  // Sizes are of one rank's part: the bucket has as many of them as there are ranks.
  bool has_sizes_of_parts = false;

  // The samples by the bytes of the bucket, as nccl-tests counts them, of a run over these ranks.
  [[nodiscard]] std::vector<Sample> samples_of_buckets(int of_ranks) const {
    std::vector<Sample> all = samples;
    for (Sample& sample : all)
      if (has_sizes_of_parts) sample.bytes = of_ranks * sample.bytes;
    return all;
  }
};

// A layer of the network, by its name there.
struct ImportedLayer {
  std::string layer;
  Figure<Seconds> forward;  // the median of the iterations with its interval (fit/statistics.h)
  Figure<Seconds> backward;
};

// When the gradient of a tensor was ready, after the first one of its iteration. Times are medians
// over the iterations.
struct ReadyTensor {
  std::string tensor;
  Bytes bytes;         // 0: the file does not say
  Seconds ready;       // on the last rank
  Seconds apart;       // from the first rank that was ready to the last
  Seconds all_reduce;  // what its bucket took
  std::size_t iterations = 0;
};

// The throughput of a training job, of all of its ranks.
struct ImportedThroughput {
  std::string benchmark;    // as the file names it: "resnet"
  double global_batch = 0;  // samples of an update; 0: the file does not say
  Figure<PerSecond> samples;
};

// A quantity that a training log states of each iteration. Those that need fewer facts beside them come first.
enum class LogQuantity {
  seconds,  // of an iteration
  iterations_per_second,
  tokens_per_second_of_a_rank,
  tokens_per_second,
  samples_per_second_of_a_rank,
  samples_per_second,
};

struct ImportedIterations {
  std::string written_as;  // "elapsed time per iteration (ms)"
  LogQuantity quantity = LogQuantity::seconds;
  std::vector<double> values = {};  // in the order of the file, without those of the warm-up
  double global_batch = 0;          // samples of an iteration; 0: the file does not say
};

struct Imported {
  std::string tool;     // "nccl-tests"
  std::string version;  // as the file says it; empty if it does not
  std::vector<ImportedCurve> curves = {};
  std::vector<ImportedLayer> layers = {};
  std::vector<ReadyTensor> tensors = {};
  std::vector<ImportedThroughput> throughputs = {};
  std::optional<ImportedIterations> training = {};  // of the log of a training job
  std::optional<ImportedMachine> machine = {};      // of a file that tells of one
  std::size_t iterations = 0;                       // that layers and tensors were timed in
  std::vector<std::string> remarks = {};  // what the user should know: what was left out, and why
};

}  // namespace paceline::calibration
