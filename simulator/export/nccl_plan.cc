// Tests: tests/simulator/export/nccl_plan_test.cc.
#include "simulator/export/nccl_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "models/base/error.h"
#include "models/base/json.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// NCCL's algorithm that does what the schedule does. None where it has none.
std::optional<NcclAlgorithm> nccl_algorithm(const models::PlannedSchedule& schedule) {
  if (!schedule.has_steps()) return std::nullopt;
  if (schedule.algorithm == "ring" || schedule.algorithm == "bidirectional-ring" ||
      schedule.algorithm == "multi-ring")
    return NcclAlgorithm::ring;
  if (schedule.algorithm == "double-binary-tree") return NcclAlgorithm::tree;
  return std::nullopt;
}

std::string counted(std::size_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// What the buckets of one size ask for.
struct OfSize {
  std::optional<NcclAlgorithm> algorithm;
  bool is_clear = true;  // all buckets of the size ask for the same
};

// Channels that NCCL itself gives the way.
int channels_of(const NcclPractice& practice, NcclWay way, std::int64_t bytes) {
  const NcclAlgorithm algorithm =
      way.algorithm == NcclWayAlgorithm::ring ? NcclAlgorithm::ring : NcclAlgorithm::tree;
  return practice.model().channels(algorithm, way.protocol, Bytes{static_cast<double>(bytes)});
}

bool is_in_switches(NcclWay way) {
  return way.algorithm == NcclWayAlgorithm::nvls || way.algorithm == NcclWayAlgorithm::nvls_tree;
}

// "rule" lines of the tuner's file.
std::string rule_line(const NcclRule& rule, const NcclPractice& practice) {
  return fmt::format("rule allreduce {} {} {} {} {} {} keep\n", practice.ranks(),
                     practice.model().nodes(), rule.least, rule.most,
                     tuner_name(rule.way.algorithm), tuner_name(rule.way.protocol));
}

// What the rule makes of NCCL's own choice: "at most 4.1 % faster than NCCL's own choice". A gain is
// that choice's time over the rule's, less 1.
std::string against_own(const NcclRule& rule) {
  constexpr double percent = 100;
  if (rule.gain < 0)
    return fmt::format("up to {:.1f} % slower than NCCL's own choice",
                       percent * (1 / (1 + rule.gain) - 1));
  return fmt::format("up to {:.1f} % faster than NCCL's own choice",
                     percent * (1 - 1 / (1 + rule.gain)));
}

std::string rule_comment(const NcclRule& rule) {
  return fmt::format("# {}: predicted {}\n",
                     rule.is_asked ? "as the plan asks" : "by the cluster's links",
                     against_own(rule));
}

// A warning where the plan's own algorithms cost time.
void warn_of_losses(const std::vector<NcclRule>& rules, std::vector<std::string>& notes) {
  const NcclRule* worst = nullptr;
  for (const NcclRule& rule : rules) {
    if (rule.is_asked && rule.gain < -least_nccl_gain && (!worst || rule.gain < worst->gain))
      worst = &rule;
  }
  if (worst != nullptr)
    notes.push_back(fmt::format(
        "the plan's {} is predicted {}, at sizes from {} to {} B: a plan of --strategy nccl leaves "
        "the choice to NCCL and the cluster's links",
        tuner_name(worst->way.algorithm), against_own(*worst), worst->least, worst->most));
}

}  // namespace

std::string plan_title(const std::string& network, const models::Plan& plan) {
  std::string title =
      fmt::format("{}, {}, {} ranks", network.substr(0, 64), plan.strategy, plan.ranks);
  // The tuner's file holds printable ASCII only.
  std::replace_if(
      title.begin(), title.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return title;
}

NcclPlan::NcclPlan(const models::Plan& plan, const NcclPractice& practice) {
  PACELINE_ASSERT(plan.ranks == practice.ranks(), "the plan is for the ranks that are timed");
  std::map<std::int64_t, OfSize> sizes;
  std::vector<std::size_t> unsaid(plan.schedules.size());
  std::size_t whole_tensors = 0;
  for (const models::Bucket& bucket : plan.buckets) {
    const auto schedule = to_size(bucket.schedule);
    const models::PlannedSchedule& planned = plan.schedules[schedule];
    const auto algorithm = nccl_algorithm(planned);
    if (!algorithm && planned.library() != models::Library::nccl) ++unsaid[schedule];
    const auto [entry, is_new] =
        sizes.try_emplace(static_cast<std::int64_t>(plan.bytes(bucket).value()), OfSize{algorithm});
    if (!is_new && entry->second.algorithm != algorithm) entry->second.is_clear = false;
    whole_tensors += bucket.gradient_count == 1 ? 1 : 0;
  }
  for (std::size_t i = 0; i < unsaid.size(); ++i) {
    if (unsaid[i] > 0)
      notes_.push_back(
          fmt::format("{} of {}: NCCL has no such all-reduce, and takes another one for {}",
                      counted(unsaid[i], "bucket"), described(plan.schedules[i]),
                      unsaid[i] == 1 ? "it" : "them"));
  }
  const OfSize* last = nullptr;
  for (const auto& [bytes, of_size] : sizes) {
    if (!of_size.is_clear)
      notes_.push_back(fmt::format(
          "buckets of {} B travel in several ways, which NCCL tells apart by size only", bytes));
    const bool asks = of_size.is_clear && of_size.algorithm.has_value();
    if (asks) {
      if (last != nullptr && last->is_clear && last->algorithm == of_size.algorithm)
        asked_.back().most = bytes;
      else
        asked_.push_back({bytes, bytes, *of_size.algorithm});
    }
    last = &of_size;
  }
  if (whole_tensors < plan.buckets.size() || plan.is_of_other_system())
    notes_.push_back(
        "which tensors make a bucket is the framework's, not NCCL's: see --format horovod and "
        "docs/exports.md for PyTorch");
  if (plan.overlap != models::Overlap::wait_free)
    notes_.push_back(
        fmt::format("overlap {}: when a bucket travels is the framework's", name(plan.overlap)));
}

ExportedText nccl_tuner_text(const std::string& title, const models::Plan& plan,
                             const NcclPractice& practice, bool by_constants) {
  const NcclPlan mapped(plan, practice);
  const std::vector<NcclRule> rules = nccl_rules(
      practice, mapped.asked(), by_constants ? NcclElsewhere::leave : NcclElsewhere::improve);
  const NcclConstants constants = by_constants ? nccl_constants(practice) : NcclConstants{};
  ExportedText exported{.text = "paceline.nccl-tuner/1\n", .notes = mapped.notes()};
  std::string& text = exported.text;
  text += fmt::format("plan {}\n", title);
  text += fmt::format("# {}; all gains are predicted\n", described(practice));
  for (const NcclRule& rule : rules) text += rule_comment(rule) + rule_line(rule, practice);
  if (by_constants)
    text += fmt::format(
        "# times that NCCL expects with these constants are {:.6g} of what we predict\n",
        constants.unit);
  for (const NcclConstant& constant : constants.values)
    text += fmt::format("constant {} {} {} {:.6f}\n", practice.ranks(), practice.model().nodes(),
                        constant.name, constant.value);
  text += fmt::format("end {}\n", rules.size() + constants.values.size());
  warn_of_losses(rules, exported.notes);
  exported.notes.insert(exported.notes.end(), constants.notes.begin(), constants.notes.end());
  if (rules.empty() && !by_constants)
    exported.notes.emplace_back(
        "NCCL's own choice is within 1 % of the best for every size: the file has no rule");
  return exported;
}

ExportedText nccl_csv_text(const std::string& title, const models::Plan& plan,
                           const NcclPractice& practice) {
  const NcclPlan mapped(plan, practice);
  ExportedText exported{.text = {}, .notes = mapped.notes()};
  std::string& text = exported.text;
  text += fmt::format("# {}\n# {}\n", title, described(practice));
  for (const NcclRule& rule : nccl_rules(practice, mapped.asked(), NcclElsewhere::fill))
    text += fmt::format("allreduce,{},{},{},{},0,{},{},-1,-1\n", rule.least, rule.most,
                        tuner_name(rule.way.algorithm), tuner_name(rule.way.protocol),
                        practice.model().nodes(), practice.ranks());
  exported.notes.emplace_back(
      "NVIDIA's example gives calls that no line is for one channel (other collectives, other "
      "communicators), and changes NCCL's constants; libnccl-tuner-paceline.so (--format "
      "nccl-tuner) leaves them to NCCL");
  return exported;
}

ExportedText nccl_config_text(const std::string& title, const models::Plan& plan,
                              const NcclPractice& practice) {
  const NcclPlan mapped(plan, practice);
  const std::vector<NcclRule> rules = nccl_rules(practice, mapped.asked(), NcclElsewhere::fill);
  Json json = {{"schema", "paceline.nccl-config/1"},
               {"plan", title},
               {"ranks", plan.ranks},
               {"communicators", Json::array()}};
  const int streams = std::min(plan.streams, std::max(1, static_cast<int>(plan.buckets.size())));
  bool in_switches = false;
  for (int stream = 0; stream < streams; ++stream) {
    Json buckets = Json::array();
    int channels = 1;
    for (std::size_t i = to_size(stream); i < plan.buckets.size(); i += to_size(streams)) {
      buckets.push_back(i);
      const auto bytes = static_cast<std::int64_t>(plan.bytes(plan.buckets[i]).value());
      const auto rule = std::find_if(rules.begin(), rules.end(), [&](const NcclRule& one) {
        return one.least <= bytes && bytes <= one.most;
      });
      if (rule == rules.end()) continue;
      in_switches = in_switches || is_in_switches(rule->way);
      channels = std::max(channels, channels_of(practice, rule->way, bytes));
    }
    Json config = {
        {"minCTAs", 1}, {"maxCTAs", channels}, {"commName", fmt::format("paceline-{}", stream)}};
    if (stream > 0) config["splitShare"] = 1;
    json["communicators"].push_back(
        {{"stream", stream}, {"buckets", std::move(buckets)}, {"config", std::move(config)}});
  }
  ExportedText exported{.text = json.indented() + "\n", .notes = mapped.notes()};
  if (in_switches)
    exported.notes.emplace_back(
        "maxCTAs is that of rings and trees; what NVSwitches reduce has channels of its own");
  return exported;
}

}  // namespace paceline::simulator
