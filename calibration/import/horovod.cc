// Tests: tests/calibration/import_horovod_test.cc.
#include "calibration/import/horovod.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "calibration/fit/statistics.h"
#include "calibration/import/chrome_trace.h"
#include "calibration/import/table_text.h"
#include "models/base/error.h"
#include "models/base/limits.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

constexpr double us = 1e-6;

// One all-reduce of a tensor; times are in microseconds.
struct Reduction {
  double first_ready = -1;
  double last_ready = -1;
  double begin = -1;  // when the activity that is the all-reduce begins
  double end = -1;
  std::string activity;
  int activities = 0;
  bool fused = false;
  std::string type;
  double bytes = 0;      // 0: not said
  double bucket_us = 0;  // what its bucket takes
};

struct Tensor {
  std::string name;
  std::vector<std::string> open;  // names of what has begun
  Reduction now;
  bool reducing = false;
  std::vector<Reduction> done;
};

double type_size(std::string_view type) {
  if (type == "float32" || type == "int32") return 4;
  if (type == "float16" || type == "bfloat16") return 2;
  if (type == "float64" || type == "int64") return 8;
  if (type == "uint8" || type == "int8" || type == "bool") return 1;
  return 0;
}

std::optional<models::WireType> wire_of(std::string_view type) {
  if (type == "float32") return models::WireType::fp32;
  if (type == "float16") return models::WireType::fp16;
  if (type == "bfloat16") return models::WireType::bf16;
  return std::nullopt;
}

// The elements of a shape: "[64, 3, 7, 7]" is 9408 and "[]" is 1. 0 for what is no shape.
double elements_of(std::string_view shape) {
  if (!shape.starts_with('[') || !shape.ends_with(']')) return 0;
  shape = shape.substr(1, shape.size() - 2);
  double product = 1;
  while (!shape.empty()) {
    const std::size_t comma = std::min(shape.find(','), shape.size());
    std::string_view part = shape.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc{} || end != part.data() + part.size() || size < 0) return 0;
    product *= static_cast<double>(size);
    shape.remove_prefix(std::min(comma + 1, shape.size()));
  }
  return product;
}

class Reader {
 public:
  void read(const TraceEvent& event) {
    Tensor& tensor = tensor_of(event);
    switch (event.phase) {
      case 'B':
        begin(tensor, event);
        break;
      case 'E':
        end(tensor, event);
        break;
      case 'X':
        ready(tensor, event);
        break;
      default:
        break;
    }
  }

  [[nodiscard]] std::vector<Tensor> tensors() {
    std::vector<Tensor> found;
    for (auto& [key, tensor] : tensors_) {
      if (!tensor.done.empty()) found.push_back(std::move(tensor));
    }
    return found;
  }
  [[nodiscard]] const std::set<int>& ranks() const { return ranks_; }

 private:
  Tensor& tensor_of(const TraceEvent& event) {
    const bool names_process = event.phase == 'M' && event.name == "process_name";
    const bool names_thread = event.phase == 'M' && event.name == "thread_name";
    const std::string key = names_process ? event.pid : event.pid + '\n' + event.tid;
    if (names_process || names_thread) {
      const TraceArgument* name = event.argument("name");
      if (name != nullptr && !name->text.empty()) names_[key] = name->text;
    }
    const auto [entry, is_new] = tensors_.try_emplace(event.pid + '\n' + event.tid);
    if (is_new || entry->second.name.empty()) {
      const auto thread = names_.find(entry->first);
      const auto process = names_.find(event.pid);
      entry->second.name = thread != names_.end()    ? thread->second
                           : process != names_.end() ? process->second
                                                     : std::string();
    }
    return entry->second;
  }

  static void begin(Tensor& tensor, const TraceEvent& event) {
    tensor.open.push_back(event.name);
    if (event.name == "NEGOTIATE_ALLREDUCE") tensor.now = Reduction{};
    if (event.name == "ALLREDUCE") tensor.reducing = true;
    if (!tensor.reducing) return;
    if (event.name == "MEMCPY_IN_FUSION_BUFFER") tensor.now.fused = true;
    if (event.name.ends_with("_ALLREDUCE")) {
      tensor.now.activity = event.name;
      tensor.now.begin = event.begin_us;
      ++tensor.now.activities;
    } else if (event.name.starts_with("NCCL_")) {
      ++tensor.now.activities;  // a phase of a hierarchical all-reduce
    }
  }

  static void end(Tensor& tensor, const TraceEvent& event) {
    if (tensor.open.empty()) return;  // it began before the timeline did
    const std::string name = std::move(tensor.open.back());
    tensor.open.pop_back();
    if (name == "NEGOTIATE_ALLREDUCE" && tensor.now.last_ready < 0)
      tensor.now.first_ready = tensor.now.last_ready = event.begin_us;
    if (!tensor.reducing) return;
    if (name == tensor.now.activity) tensor.now.end = event.begin_us;
    if (name != "ALLREDUCE") return;
    const TraceArgument* type = event.argument("dtype");
    const TraceArgument* shape = event.argument("shape");
    if (type != nullptr && shape != nullptr) {
      tensor.now.type = type->text;
      tensor.now.bytes = elements_of(shape->text) * type_size(type->text);
    }
    tensor.reducing = false;
    tensor.done.push_back(std::exchange(tensor.now, Reduction{}));
  }

  void ready(Tensor& tensor, const TraceEvent& event) {
    if (tensor.open.empty() || tensor.open.back() != "NEGOTIATE_ALLREDUCE") return;
    int rank = -1;
    const std::string& name = event.name;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
    if (error != std::errc{} || end != name.data() + name.size() || rank < 0) return;
    ranks_.insert(rank);
    if (tensor.now.first_ready < 0) tensor.now.first_ready = event.begin_us;
    tensor.now.last_ready = std::max(tensor.now.last_ready, event.begin_us);
  }

  std::map<std::string, std::string> names_;  // of processes, and of threads
  std::map<std::string, Tensor> tensors_;     // by process and thread
  std::set<int> ranks_;
};

// Tensors that are on the wire together.
struct Bucket {
  double begin;
  double end;
  double bytes = 0;
  std::vector<Reduction*> members;
};

bool travels_with(const Bucket& bucket, const Reduction& reduction) {
  const Reduction& first = *bucket.members.front();
  if (!first.fused || !reduction.fused || first.activity != reduction.activity ||
      first.type != reduction.type)
    return false;
  const double overlap =
      std::min(bucket.end, reduction.end) - std::max(bucket.begin, reduction.begin);
  const double shorter = std::min(bucket.end - bucket.begin, reduction.end - reduction.begin);
  return overlap > shorter / 2;
}

std::vector<Bucket> buckets_of(std::vector<Tensor>& tensors) {
  std::vector<Reduction*> reductions;
  for (Tensor& tensor : tensors) {
    for (Reduction& reduction : tensor.done) {
      if (reduction.activities == 1 && reduction.begin >= 0 && reduction.end > reduction.begin)
        reductions.push_back(&reduction);
    }
  }
  std::stable_sort(reductions.begin(), reductions.end(),
                   [](const Reduction* a, const Reduction* b) { return a->begin < b->begin; });
  std::vector<Bucket> buckets;
  for (Reduction* reduction : reductions) {
    if (buckets.empty() || !travels_with(buckets.back(), *reduction))
      buckets.push_back({reduction->begin, reduction->end, 0, {}});
    Bucket& bucket = buckets.back();
    bucket.end = std::max(bucket.end, reduction->end);
    bucket.members.push_back(reduction);
  }
  for (Bucket& bucket : buckets) {
    const bool sized = std::all_of(bucket.members.begin(), bucket.members.end(),
                                   [](const Reduction* r) { return r->bytes > 0; });
    for (Reduction* member : bucket.members) {
      if (sized) bucket.bytes += member->bytes;
      member->bucket_us = bucket.end - bucket.begin;
    }
  }
  return buckets;
}

// The library of an activity: "NCCL_ALLREDUCE" is "nccl".
std::string library_of(std::string_view activity) {
  std::string library(activity.substr(0, activity.rfind('_')));
  for (char& c : library) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return printable(library);
}

std::vector<ImportedCurve> curves_of(const std::vector<Bucket>& buckets, int ranks,
                                     std::vector<std::string>& remarks) {
  std::map<std::pair<std::string, std::string>, ImportedCurve> curves;
  std::size_t unsized_buckets = 0;
  std::map<std::string, std::size_t> other_types;
  for (const Bucket& bucket : buckets) {
    const Reduction& first = *bucket.members.front();
    const Seconds time{(bucket.end - bucket.begin) * us};
    if (bucket.bytes <= 0) {
      ++unsized_buckets;
      continue;
    }
    if (!wire_of(first.type)) {
      ++other_types[printable(first.type)];
      continue;
    }
    if (!within_limits(Bytes{bucket.bytes}) || !within_limits(time)) continue;
    ImportedCurve& curve = curves[{first.activity, first.type}];
    curve.what = fmt::format("{} of {} buckets", printable(first.activity), first.type);
    curve.library = library_of(first.activity);
    curve.wire = wire_of(first.type);
    if (ranks > 0) curve.ranks = Count::of(ranks);
    curve.samples.push_back({Bytes{bucket.bytes}, time});
  }
  if (unsized_buckets > 0)
    remarks.push_back(
        fmt::format("{} all-reduces have no dtype and shape, and make no curve of time by size",
                    unsized_buckets));
  for (const auto& [type, count] : other_types)
    remarks.push_back(fmt::format("{} all-reduces of {} are left out", count, type));
  std::vector<ImportedCurve> found;
  for (auto& [key, curve] : curves) found.push_back(std::move(curve));
  return found;
}

// When the first tensor of iteration k was ready, among those that have as many iterations as most.
std::vector<ReadyTensor> ready_times(const std::vector<Tensor>& tensors, std::size_t iterations) {
  std::vector<double> start(iterations, 1e300);
  for (const Tensor& tensor : tensors) {
    for (std::size_t k = 0; k < std::min(iterations, tensor.done.size()); ++k)
      start[k] = std::min(start[k], tensor.done[k].last_ready);
  }
  std::vector<ReadyTensor> ready;
  for (const Tensor& tensor : tensors) {
    std::vector<double> after;
    std::vector<double> apart;
    std::vector<double> reduced;
    for (std::size_t k = 0; k < std::min(iterations, tensor.done.size()); ++k) {
      const Reduction& reduction = tensor.done[k];
      if (reduction.last_ready < 0) continue;
      after.push_back(reduction.last_ready - start[k]);
      apart.push_back(reduction.last_ready - reduction.first_ready);
      reduced.push_back(reduction.bucket_us);
    }
    if (after.empty()) continue;
    ready.push_back({tensor.name, Bytes{tensor.done.back().bytes}, Seconds{median(after) * us},
                     Seconds{median(apart) * us}, Seconds{median(reduced) * us}, after.size()});
  }
  std::stable_sort(ready.begin(), ready.end(),
                   [](const ReadyTensor& a, const ReadyTensor& b) { return a.ready < b.ready; });
  return ready;
}

// As many iterations as most tensors have: some are reduced only once, before training.
std::size_t iterations_of(const std::vector<Tensor>& tensors) {
  std::vector<double> counts;
  for (const Tensor& tensor : tensors) counts.push_back(static_cast<double>(tensor.done.size()));
  return static_cast<std::size_t>(median(counts));
}

}  // namespace

bool looks_like_horovod(std::string_view text) {
  constexpr std::size_t head = 1 << 20;
  return text.substr(0, head).find("\"NEGOTIATE_") != std::string_view::npos;
}

Imported parse_horovod(std::string_view text, const std::string& file) {
  Reader reader;
  const TraceEnd end = read_chrome_trace(text, file, EarlyEnd::taken,
                                         [&](TraceEvent&& event) { reader.read(event); });
  std::vector<Tensor> tensors = reader.tensors();
  if (tensors.empty())
    throw InputError({file}, "no tensor is all-reduced in this timeline",
                     "give a timeline of a job that trains with Horovod");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name.empty()) tensors[i].name = fmt::format("tensor {}", i + 1);
  }
  Imported imported{.tool = "Horovod timeline", .version = ""};
  if (end.early)
    imported.remarks.emplace_back("the timeline is not closed; an event that is cut is left out");
  std::ptrdiff_t in_phases = 0;
  for (const Tensor& tensor : tensors)
    in_phases += std::count_if(tensor.done.begin(), tensor.done.end(),
                               [](const Reduction& r) { return r.activities > 1; });
  if (in_phases > 0)
    imported.remarks.push_back(
        fmt::format("{} all-reduces of several phases make no curve", in_phases));
  const int ranks = static_cast<int>(reader.ranks().size());
  const std::vector<Bucket> buckets = buckets_of(tensors);
  imported.curves = curves_of(buckets, ranks, imported.remarks);
  imported.iterations = iterations_of(tensors);
  imported.tensors = ready_times(tensors, imported.iterations);
  return imported;
}

}  // namespace paceline::calibration
