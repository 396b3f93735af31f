// Tests: tests/runtime/cudnn/network_plans_test.cc.
#include "runtime/network/cudnn/network_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "models/base/json.h"
#include "models/base/json_reader.h"

namespace paceline::runtime::cudnn {

using namespace steps;
namespace {

constexpr std::string_view schema = "paceline.cudnn-plans/1";
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
constexpr std::int64_t most_count = std::numeric_limits<int>::max();

Json document_of(const std::string& key, const Plan& plan) {
  return {{"operation", key},
          {"engine", plan.engine},
          {"workspace", plan.workspace},
          {"configurations", plan.configurations},
          {"chosen", plan.chosen},
          {"compiled", plan.compiled},
          {"serialised", plan.serialised}};
}

Plan plan_of(const JsonValue& value) {
  value.check_keys(
      {"operation", "engine", "workspace", "configurations", "chosen", "compiled", "serialised"});
  return {.engine = value.at("engine").whole(0, most_count),
          .workspace = value.at("workspace").whole(0, most_bytes),
          .configurations = static_cast<int>(value.at("configurations").whole(1, most_count)),
          .chosen = static_cast<int>(value.at("chosen").whole(0, most_count)),
          .compiled = value.at("compiled").flag(),
          .serialised = value.at("serialised").text()};
}

}  // namespace

PlanStore::PlanStore(const Planner& planner, const PlanRules& rules)
    : planner_(planner), rules_(rules) {}

std::string PlanStore::made_for() const {
  return fmt::format("cuDNN {}, workspace {}, {}, {}, device {}", cudnn_version(), rules_.workspace,
                     rules_.deterministic ? "deterministic" : "any order",
                     rules_.tf32 ? "TF32" : "no TF32", planner_.device().kind);
}

const Plan* PlanStore::find(const std::string& key) {
  const auto place = plans_.find(key);
  if (place == plans_.end()) return nullptr;
  Stored& stored = place->second;
  if (!stored.is_checked) stored.is_checked = planner_.loads(stored.plan.serialised);
  return stored.is_checked ? &stored.plan : nullptr;
}

const Plan& PlanStore::plan(const Operation& operation, models::NumberType storage) {
  plan_all(std::span(&operation, 1), storage, 1);
  return plans_.at(key(operation, storage)).plan;
}

void PlanStore::plan_all(std::span<const Operation> operations, models::NumberType storage,
                         int threads) {
  struct Task {
    const Operation* operation = nullptr;
    Plan plan = {};
    std::exception_ptr error = {};
  };
  std::map<std::string, Task> by_key;
  for (const Operation& operation : operations) {
    std::string name = key(operation, storage);
    if (find(name) == nullptr) by_key.try_emplace(std::move(name), Task{&operation});
  }
  std::vector<Task*> tasks;
  for (auto& [name, task] : by_key) tasks.push_back(&task);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      try {
        tasks[i]->plan = planner_.plan(*tasks[i]->operation, storage, rules_);
      } catch (...) {
        tasks[i]->error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const int most = static_cast<int>(std::min<std::size_t>(tasks.size(), 1000));
    for (int i = 1; i < std::min(threads, most); ++i) others.emplace_back(work);
    work();
  }
  std::exception_ptr first;
  for (auto& [name, task] : by_key) {
    if (task.error != nullptr) {
      if (first == nullptr) first = task.error;
      continue;
    }
    plans_[name] = {std::move(task.plan), true};
    ++made_;
  }
  if (first != nullptr) std::rethrow_exception(first);
}

std::string PlanStore::text() const {
  std::map<std::string, const Plan*> in_order;
  for (const auto& [key, stored] : plans_) in_order.emplace(key, &stored.plan);
  Json plans = Json::array();
  for (const auto& [key, plan] : in_order) plans.push_back(document_of(key, *plan));
  return Json{{"schema", schema}, {"made_for", made_for()}, {"plans", std::move(plans)}}
             .indented() +
         "\n";
}

bool PlanStore::take(std::string_view text, const std::string& file) {
  const JsonDocument document(text, file, "the plans of cuDNN",
                              "remove the file: it is written anew");
  const JsonValue root = document.root();
  root.check_schema(schema, "plans of cuDNN");
  root.check_keys({"schema", "made_for", "plans"});
  std::vector<std::pair<std::string, Plan>> taken;
  root.at("plans").for_each([&](const JsonValue& plan) {
    taken.emplace_back(plan.at("operation").text(), plan_of(plan));
  });
  if (root.at("made_for").text() != made_for()) return false;
  for (auto& [key, plan] : taken) plans_.try_emplace(key, Stored{std::move(plan), false});
  return true;
}

NetworkPlans plan_network(const models::Network& network, int batch, models::NumberType storage,
                          PlanStore& store, int threads) {
  NetworkPlans planned;
  planned.steps = layer_steps(network, batch);
  std::vector<Operation> distinct;
  std::unordered_map<std::string, int> index;
  for (const Step& step : planned.steps) {
    const auto* operation = std::get_if<Operation>(&step.work);
    if (operation == nullptr) {
      planned.plan_of_step.push_back(-1);
      continue;
    }
    const auto [place, is_new] =
        index.emplace(key(*operation, storage), static_cast<int>(distinct.size()));
    if (is_new) distinct.push_back(*operation);
    planned.plan_of_step.push_back(place->second);
  }
  store.plan_all(distinct, storage, threads);
  for (const Operation& operation : distinct) {
    const Plan& plan = store.plan(operation, storage);
    planned.workspace = std::max(planned.workspace, plan.workspace);
    planned.plans.push_back({key(operation, storage), plan});
  }
  return planned;
}

}  // namespace paceline::runtime::cudnn
