// Events of a Chrome trace (the "Trace Event Format" of catapult-project/catapult), one after the
// other, for the readers of traces beside this header.
//
// The text is parsed as it goes by (nlohmann's SAX parser), without recursion: a trace takes as
// much memory as its reader keeps. Control characters and stray backslashes in strings, which
// torch.profiler writes, are no errors. Files of torch.profiler are an object with "traceEvents",
// and files of Horovod are an array of events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::calibration {

// A number or a text; other values are left out.
struct TraceArgument {
  std::string key;
  std::string text;
  std::optional<double> number = {};
};

struct TraceEvent {
  char phase =
      '?';  // 'X' complete, 'B' begin, 'E' end, 'M' metadata, 's' and 'f' flow, 'i' instant
  std::string name;
  std::string category;
  double begin_us = 0;
  double duration_us = 0;
  std::string pid;  // numbers and texts alike
  std::string tid;
  std::vector<TraceArgument> arguments = {};
  // torch.profiler with record_shapes writes the sizes of each input ("Input Dims"), and from PyTorch
  // 2.1 on the inputs that are no tensors, as text ("Concrete Inputs"); both by their place.
  std::vector<std::vector<std::int64_t>> input_sizes = {};
  std::vector<std::string> concrete_inputs = {};

  // Nothing if there is no such argument. Keys are compared without their case.
  [[nodiscard]] const TraceArgument* argument(std::string_view key) const;
};

struct TraceEnd {
  bool early = false;                    // the JSON is not closed
  std::optional<double> schema_version;  // of torch.profiler
  std::size_t events = 0;
};

enum class EarlyEnd { refused, taken };

// Calls `sink` for each event. If the text ends early and that is accepted, the event that is cut is
// left out.
// Throws InputError (with line and column) if the text is no JSON, holds no array of events, an
// event is no object, a time is no finite number from 0 to 1e18, an input is an object, or a size
// is no number from 0 to 1e12. Other objects and arrays where a text or a number is expected are
// left out with all that is in them. Of a list that is there twice, the last is taken. O(text).
TraceEnd read_chrome_trace(std::string_view text, const std::string& file, EarlyEnd early_end,
                           const std::function<void(TraceEvent&&)>& sink);

}  // namespace paceline::calibration
