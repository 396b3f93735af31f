// Tests: tests/runtime/loop/trainer_test.cc.
#include "runtime/training/job_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "models/base/error.h"
#include "models/base/first_difference.h"
#include "models/network/yaml.h"
#include "runtime/channel/messages.h"

namespace paceline::runtime {
namespace {

// A network of more text than this is described by a checksum, as a checkpoint's header has room
// for no more than 4 MiB.
constexpr std::size_t longest_layers = 1U << 20;

// A line for each layer with all its attributes, as its YAML has them.
std::string layers_lines(const models::Network& network) {
  const std::string yaml = models::to_yaml(network);
  const std::string start = fmt::format("input: {}\n", models::to_text(network.input()));
  if (yaml.size() > longest_layers) {
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a
    for (const char c : yaml) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return start + fmt::format("layers: {}, checksum {:016x}\n", network.layers().size(), hash);
  }
  std::string lines = start;
  constexpr std::string_view key = "layers:\n";
  constexpr std::string_view item = "  - ";
  std::string_view rest = std::string_view(yaml).substr(yaml.find(key) + key.size());
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const std::size_t end = rest.find('\n');
    lines += fmt::format("layer {}: {}\n", i + 1, rest.substr(item.size(), end - item.size()));
    rest.remove_prefix(end + 1);
  }
  return lines;
}

const char* with(bool flag, const char* text) {
  return flag ? text : "";
}

constexpr std::string_view optimizer_name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::momentum_sgd:
      return "momentum SGD";
    case OptimizerKind::rmsprop_warm_up:
      return "RMSprop warm-up";
    case OptimizerKind::adam:
      return "Adam";
    case OptimizerKind::adamw:
      return "AdamW";
  }
  return {};
}

std::string optimizer_lines(const OptimizerRecipe& o) {
  std::string text = fmt::format(
      "optimizer: {}, momentum {}{}{}\nweight decay: {}{}{}\n", optimizer_name(o.kind), o.momentum,
      with(o.nesterov, ", Nesterov"), with(o.momentum_correction, ", corrected"), o.weight_decay,
      with(o.decay_bias, ", of biases too"), with(o.decay_batch_norm, ", of gamma and beta too"));
  text += o.lars.enabled ? fmt::format("LARS: trust {}, epsilon {}{}{}\n", o.lars.trust_coefficient,
                                       o.lars.epsilon, with(o.lars.bias, ", of biases too"),
                                       with(o.lars.batch_norm, ", of gamma and beta too"))
                         : "LARS: none\n";
  if (o.kind == OptimizerKind::rmsprop_warm_up)
    text += fmt::format("RMSprop: centre {}, period {}, rate {}, decay {}, epsilon {}\n",
                        o.rmsprop_centre_epoch, o.rmsprop_period_epochs, o.rmsprop_rate,
                        o.rmsprop_decay, o.rmsprop_epsilon);
  if (o.is_adam())
    text += fmt::format("mean squares: decay {}, epsilon {}\n", o.square_decay, o.adam_epsilon);
  if (o.clip_norm > 0) text += fmt::format("clipped to a norm of {}\n", o.clip_norm);
  return text;
}

std::string decay_line(const LearningRateRecipe& r) {
  switch (r.decay) {
    case DecayKind::constant:
      return "rate decay: none\n";
    case DecayKind::step:
      return fmt::format("rate decay: at epochs {} by {} {}{}\n", fmt::join(r.step_epochs, " "),
                         r.step_factor, fmt::join(r.step_factors, " "),
                         r.increase_batch_instead
                             ? fmt::format(", as batches of up to {}", r.largest_batch_per_rank)
                             : std::string());
    case DecayKind::polynomial:
      return fmt::format("rate decay: polynomial of power {}\n", r.polynomial_power);
    case DecayKind::smooth_exponential:
      return fmt::format("rate decay: by {} every {} epochs\n", r.exponential_factor,
                         r.exponential_epochs);
    case DecayKind::cosine:
      return fmt::format("rate decay: cosine to {}\n", r.cosine_to);
  }
  return {};
}

std::string rate_lines(const LearningRateRecipe& r) {
  return fmt::format("learning rate: {} for {} images{}\nwarm-up: {} epochs from {}\n", r.base,
                     r.base_batch, with(r.linear_scaling, ", scaled"), r.warm_up_epochs,
                     r.warm_up_from) +
         decay_line(r);
}

std::string plan_lines(const models::Plan& plan) {
  std::string text = fmt::format("strategy: {}\nwire: {}\noverlap: {}\nstreams: {}\n",
                                 plan.strategy, name(plan.wire), name(plan.overlap), plan.streams);
  for (std::size_t i = 0; i < plan.schedules.size(); ++i)
    text += fmt::format("schedule {}: {}\n", i, models::described(plan.schedules[i]));
  std::vector<std::string> buckets;
  for (const models::Bucket& bucket : plan.buckets)
    buckets.push_back(fmt::format("{}@{}", bucket.gradient_count, bucket.schedule));
  text += fmt::format("buckets: {}\n", fmt::join(buckets, " "));
  if (plan.layout.tensor > 1) text += fmt::format("tensor: {}\n", plan.layout.tensor);
  return text;
}

// The value of a key at the start of a line. It is empty where no line has the key.
std::string_view value_of(std::string_view job, std::string_view key) {
  for (std::size_t at = 0; at < job.size();) {
    const std::string_view line = job.substr(at, job.find('\n', at) - at);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(": "))
      return line.substr(key.size() + 2);
    at += line.size() + 1;
  }
  return {};
}

std::int64_t count_of(std::string_view job, std::string_view key) {
  const std::string_view text = value_of(job, key);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? std::max<std::int64_t>(count, 0)
                                                                  : 0;
}

// The ranks, or groups of ranks that compute one sample together.
std::int64_t replicas_of(std::string_view job) {
  return count_of(job, "ranks") / std::max<std::int64_t>(1, count_of(job, "tensor"));
}

// The lines that hold whatever the ranks are and however they share out.
std::string lasting_lines(std::string_view job) {
  constexpr std::array passing = {"ranks: ",   "batch: ",   "strategy: ", "schedule ",
                                  "buckets: ", "streams: ", "tensor: "};
  std::string lasting;
  for (std::size_t at = 0; at < job.size();) {
    const std::string_view line = job.substr(at, job.find('\n', at) - at);
    if (std::ranges::none_of(passing, [&](const char* key) { return line.starts_with(key); }))
      lasting.append(line).append("\n");
    at += line.size() + 1;
  }
  return lasting;
}

}  // namespace

std::string why_not_resumed(const std::string& theirs, const std::string& ours) {
  const auto [it, we] = first_difference(lasting_lines(theirs), lasting_lines(ours));
  if (!it.empty() || !we.empty()) return fmt::format("it has \"{}\", and this job \"{}\"", it, we);
  const auto ranks = std::pair(replicas_of(theirs), replicas_of(ours));
  const auto batch = std::pair(count_of(theirs, "batch"), count_of(ours, "batch"));
  if (ranks.first * batch.first == ranks.second * batch.second) return {};
  return fmt::format("its steps take {} x {} samples, and those of this job {} x {}", ranks.first,
                     batch.first, ranks.second, batch.second);
}

std::int64_t ranks_of(const std::string& job) {
  return count_of(job, "ranks");
}

std::string job_description(const TrainingRequest& request, int ranks) {
  const Recipe& recipe = request.recipe;
  std::int64_t parameters = 0;
  for (const ParameterPlace& place : parameter_places(request.network))
    parameters += place.elements;
  return fmt::format("model: {}, {} parameters\n", request.network.name(), parameters) +
         layers_lines(request.network) +
         fmt::format("data: {}, {} samples\n", request.dataset.name(),
                     request.dataset.size(Part::training)) +
         fmt::format("ranks: {}\nbatch: {}\nepochs: {}\nseed: {}\nprecision: {}\n", ranks,
                     recipe.batch_per_rank, recipe.epochs, recipe.seed,
                     name(recipe.working_type())) +
         optimizer_lines(recipe.optimizer) + rate_lines(recipe.learning_rate) +
         fmt::format("loss scale: {} {}, growth {} every {}, backoff {}\n",
                     recipe.loss_scale.dynamic ? "dynamic" : "static", recipe.loss_scale.initial,
                     recipe.loss_scale.growth, recipe.loss_scale.growth_interval,
                     recipe.loss_scale.backoff) +
         fmt::format("augmentation: crop {}, flip {}, resized crop {}\nzero last gamma: {}\n",
                     recipe.augmentation.crop_padding, recipe.augmentation.flip,
                     recipe.augmentation.random_resized_crop, recipe.zero_last_gamma) +
         plan_lines(request.plan);
}

std::string run_description(const TrainingRequest& request) {
  return fmt::format(
      "checkpoint: {}, every {} iterations\nresumes: {}\nstops after: {} iterations\n",
      request.checkpoint.empty() ? "none" : "one", request.checkpoint_every,
      request.resume.empty() ? "no" : "yes", request.most_iterations);
}

void check_same_job(Channel& channel, const std::string& description) {
  const std::vector<std::string> all = gather_texts(channel, description);
  std::string verdict;
  for (std::size_t rank = 1; rank < all.size() && verdict.empty(); ++rank) {
    const auto [ours, theirs] = first_difference(all[0], all[rank]);
    if (!ours.empty() || !theirs.empty())
      verdict = fmt::format("rank {} has \"{}\", and rank 0 \"{}\"", rank, theirs, ours);
  }
  verdict = broadcast_text(channel, verdict);
  if (!verdict.empty()) throw InputError(verdict, "start all ranks with the same options");
}

}  // namespace paceline::runtime
