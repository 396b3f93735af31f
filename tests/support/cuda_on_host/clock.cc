#include "tests/support/cuda_on_host/clock.h"

#include <algorithm>
#include <cstdlib>

#include "tests/support/cuda_on_host/state.h"

namespace cuda_on_host {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// A number of at least 0 that begins at `at`, which is then behind it.
double number(const std::string& entry, std::size_t& at) {
  char* end = nullptr;
  const double value = std::strtod(entry.c_str() + at, &end);
  const auto next = static_cast<std::size_t>(end - entry.c_str());
  if (next == at || !(value >= 0)) die("the clock does not understand '" + entry + "'");
  at = next;
  return value;
}

void add_entry(const std::string& entry, ClockModel& model) {
  const std::size_t equals = entry.rfind('=');
  if (equals == std::string::npos) die("the clock does not understand '" + entry + "'");
  const std::string what = trimmed(entry.substr(0, equals));
  std::size_t at = equals + 1;
  const double first = number(entry, at);
  double second = 0;
  const bool has_second = at < entry.size() && entry[at] == '+';
  if (has_second) second = number(entry, ++at);
  if (at != entry.size() || what.empty()) die("the clock does not understand '" + entry + "'");
  struct Setting {
    const char* name;
    double* value;
  };
  double bodies = 1;
  for (const Setting& setting : {Setting{"host", &model.host_s}, Setting{"event", &model.event_s},
                                 Setting{"beside", &model.beside}, Setting{"jitter", &model.jitter},
                                 Setting{"bodies", &bodies}}) {
    if (what != setting.name) continue;
    if (has_second) die("the clock does not understand '" + entry + "'");
    *setting.value = first;
    if (what == "bodies") model.bodies = bodies > 0;
    return;
  }
  model.rules.push_back({what, first, second});
}

double bytes_of(const Operation& operation) {
  if (operation.timed_bytes >= 0) return operation.timed_bytes;
  double bytes = 0;
  for (const Access& access : operation.accesses) bytes += static_cast<double>(access.bytes);
  return bytes;
}

double duration(const Operation& operation) {
  ClockState& clock = state().clock;
  if (operation.is_record) return clock.model.event_s;
  if (operation.accesses.empty() && operation.timed_bytes < 0) return 0;  // a wait
  const std::string& name = operation.timed_as.empty() ? operation.what : operation.timed_as;
  for (const ClockRule& rule : clock.model.rules) {
    if (rule.what != "*" && name.find(rule.what) == std::string::npos) continue;
    double seconds = rule.seconds;
    if (rule.bytes_per_s > 0) seconds += bytes_of(operation) / rule.bytes_per_s;
    if (clock.model.jitter > 0)
      seconds *= 1 + clock.model.jitter * std::uniform_real_distribution<>(-1, 1)(clock.random);
    return std::max(0.0, seconds);
  }
  return 0;
}

// The end of work of this many seconds that begins then, where other streams of the device slow it down.
double end_beside(const Operation& operation, double begin, double seconds) {
  const ClockState& clock = state().clock;
  if (clock.model.beside <= 1) return begin + seconds;
  std::vector<Busy> others;
  for (const Busy& busy : clock.busy) {
    const auto* const stream = static_cast<const Stream*>(busy.stream);
    if (stream == operation.stream || stream->device != operation.stream->device) continue;
    if (busy.end > begin) others.push_back(busy);
  }
  std::sort(others.begin(), others.end(),
            [](const Busy& a, const Busy& b) { return a.begin < b.begin; });
  double now = begin;
  double left = seconds;
  for (const Busy& busy : others) {
    if (busy.end <= now) continue;
    const double alone = std::max(0.0, busy.begin - now);
    if (left <= alone) return now + left;
    now += alone;
    left -= alone;
    const double stretch = busy.end - now;
    if (left * clock.model.beside <= stretch) return now + left * clock.model.beside;
    left -= stretch / clock.model.beside;
    now = busy.end;
  }
  return now + left;
}

void remember(const Operation& operation) {
  constexpr std::size_t most = 1024;
  std::vector<Busy>& all = state().clock.busy;
  if (operation.ends_at <= operation.begins_at) return;
  for (auto busy = all.rbegin(); busy != all.rend(); ++busy) {
    if (busy->stream != operation.stream) continue;
    if (operation.begins_at > busy->end) break;
    busy->end = std::max(busy->end, operation.ends_at);
    return;
  }
  if (all.size() >= most) all.erase(all.begin());
  all.push_back({operation.stream, operation.begins_at, operation.ends_at});
}

// The copy engine of the operation, or null.
std::vector<Busy>* engine_of(const Operation& operation) {
  const int way = operation.timed_as == "copy host to device"   ? 0
                  : operation.timed_as == "copy device to host" ? 1
                                                                : -1;
  if (way < 0) return nullptr;
  std::vector<std::vector<Busy>>& engines = state().clock.engines;
  const auto at = static_cast<std::size_t>(2 * operation.stream->device + way);
  if (engines.size() <= at) engines.resize(at + 1);
  return &engines[at];
}

// The first time from `earliest` on at which the engine is free for so long; it is taken then.
double take(std::vector<Busy>& engine, double earliest, double seconds) {
  constexpr std::size_t most = 4096;
  if (engine.size() >= most) engine.erase(engine.begin(), engine.begin() + most / 2);
  double begin = earliest;
  auto next = engine.begin();
  for (; next != engine.end(); ++next) {
    if (next->end <= begin) continue;
    if (next->begin >= begin + seconds) break;
    begin = next->end;
  }
  engine.insert(next, {nullptr, begin, begin + seconds});
  return begin;
}

}  // namespace

ClockModel parse_clock(const std::string& text) {
  ClockModel model;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const std::string entry = trimmed(text.substr(at, end - at));
    if (!entry.empty()) add_entry(entry, model);
    at = end + 1;
  }
  model.is_on = !text.empty();
  if (model.is_on && (model.beside < 1 || model.jitter > 1))
    die("the clock takes beside from 1 and jitter up to 1");
  return model;
}

double arrival_of(const Operation& operation) {
  double at = std::max({operation.issued_at, operation.not_before, operation.stream->is_free_at});
  for (const OperationPointer& earlier : operation.after) at = std::max(at, earlier->ends_at);
  return at;
}

bool runs_bodies() {
  const ClockModel& model = state().clock.model;
  return !model.is_on || model.bodies;
}

void set_times(Operation& operation) {
  operation.begins_at = arrival_of(operation);
  const double seconds = duration(operation);
  std::vector<Busy>* const engine = engine_of(operation);
  if (engine != nullptr) operation.begins_at = take(*engine, operation.begins_at, seconds);
  operation.ends_at =
      seconds > 0 ? end_beside(operation, operation.begins_at, seconds) : operation.begins_at;
  operation.stream->is_free_at = operation.ends_at;
  remember(operation);
}

}  // namespace cuda_on_host
