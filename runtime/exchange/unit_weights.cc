// Tests: tests/runtime/loop/trainer_test.cc, tests/runtime/loop/replay_test.cc.
#include "runtime/exchange/unit_weights.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "models/base/to_size.h"
#include "models/network/work.h"
#include "runtime/device/host_pages.h"

namespace paceline::runtime {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

UnitWeights::UnitWeights(std::span<const ParameterPlace> places, const models::Plan& plan,
                         GradientExchange& exchange, const ArrayView& weights, std::size_t layers)
    : exchange_(exchange),
      weights_(weights),
      overlaps_(plan.overlap != models::Overlap::none),
      of_layers_(layers) {
  const auto* const use = plan.uses<models::ShardUse>();
  PACELINE_ASSERT(use != nullptr, "only a sharded plan has units");
  keeps_parts_ = models::sharding(use->kind).before_pass().has_value();
  places_gradients_ = models::sharding(use->kind).sums_in_each_pass();
  const std::vector<models::Elements> own = exchange.own();
  int next = 0;
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    const models::Bucket& bucket = plan.buckets[i];
    const auto of_unit = places.subspan(to_size(next), to_size(bucket.gradient_count));
    const bool is_root = std::ranges::any_of(
        of_unit, [](const ParameterPlace& place) { return models::block_of(place.name).empty(); });
    units_.push_back({.first_parameter = next,
                      .parameters = bucket.gradient_count,
                      .all = {of_unit.front().offset, bucket.elements},
                      .own = own[i],
                      .stays = is_root || !use->reshard || !keeps_parts_,
                      .first_layer = of_unit.back().layer});
    for (const ParameterPlace& place : of_unit) read_by(place.layer, static_cast<int>(i));
    next += bucket.gradient_count;
  }
}

void UnitWeights::read_by(int layer, int unit) {
  std::vector<int>& all = of_layers_[to_size(layer)];
  if (std::ranges::find(all, unit) == all.end()) all.push_back(unit);
  Unit& read = units_[to_size(unit)];
  read.first_layer = std::min(read.first_layer, layer);
  read.last_layer = std::max(read.last_layer, layer);
}

void UnitWeights::tie(int layer, int owner) {
  for (const int unit : std::vector(of_layers_[to_size(owner)])) read_by(layer, unit);
}

void UnitWeights::serve(Reader reader) {
  reader_ = std::move(reader);
  for (Unit& unit : units_) drop(unit);
}

void UnitWeights::at(std::int64_t iteration, LayerObserver* next) {
  iteration_ = iteration;
  next_ = next;
}

bool UnitWeights::lacks(int layer) const {
  return std::ranges::any_of(of_layers_[to_size(layer)],
                             [&](int unit) { return units_[to_size(unit)].state != State::here; });
}

void UnitWeights::began(bool backward, int layer) {
  for (const int index : of_layers_[to_size(layer)]) {
    Unit& unit = units_[to_size(index)];
    bring(unit);
    if (backward && places_gradients_ && reader_.put_gradients) place(unit);
  }
  if (overlaps_ && keeps_parts_) prefetch(backward, layer);
  if (next_ != nullptr) next_->began(backward, layer);
}

void UnitWeights::ended(bool backward, int layer) {
  if (next_ != nullptr) next_->ended(backward, layer);
  for (const int index : of_layers_[to_size(layer)]) {
    Unit& unit = units_[to_size(index)];
    if (backward && unit.first_layer == layer) unit.is_placed = false;
    if (!keeps_parts_) continue;
    if (backward ? unit.first_layer == layer : unit.last_layer == layer && !unit.stays) drop(unit);
  }
}

void UnitWeights::accompany_forward() {
  LayerObserver* const next = std::exchange(next_, nullptr);
  for (std::size_t layer = 0; layer < of_layers_.size(); ++layer) {
    began(false, static_cast<int>(layer));
    ended(false, static_cast<int>(layer));
  }
  next_ = next;
}

void UnitWeights::refresh(const Token& when) {
  changed_ = when;
  for (Unit& unit : units_) drop(unit);
  if (keeps_parts_) return;
  // Units are in backward order.
  for (std::size_t i = units_.size(); i-- > 0;) fetch(units_[i]);
  if (overlaps_) return;
  for (Unit& unit : units_) bring(unit);
}

void UnitWeights::arrive() {
  for (Unit& unit : units_)
    if (unit.state == State::coming) bring(unit);
}

void UnitWeights::fill() {
  if (keeps_parts_) return exchange_.gather(weights_, iteration_);
  for (Unit& unit : units_) bring(unit);
}

void UnitWeights::keep_own() const {
  if (!keeps_parts_) return;
  for (const Unit& unit : units_) give_back_all_but(unit.own, unit.all, weights_);
}

Seconds UnitWeights::take_waited() {
  return std::exchange(waited_, Seconds{0});
}

ArrayView UnitWeights::values(const Unit& unit) const {
  if (keeps_parts_) return unit.buffer.array(NumberType::fp32).part(0, to_size(unit.all.size));
  return weights_.part(to_size(unit.all.begin), to_size(unit.all.size));
}

void UnitWeights::fetch(Unit& unit) {
  if (unit.state != State::away) return;
  if (keeps_parts_) {
    unit.buffer = spare_.take(to_size(unit.all.size) * sizeof(float));
    std::ranges::copy(
        host_floats(weights_).subspan(to_size(unit.own.begin), to_size(unit.own.size)),
        host_floats(values(unit)).begin() + (unit.own.begin - unit.all.begin));
  }
  exchange_.start_gather(index(unit), values(unit), iteration_, changed_);
  unit.state = State::coming;
}

void UnitWeights::await(Unit& unit) {
  const Clock::time_point before = Clock::now();
  exchange_.await_gather(index(unit));
  waited_ += Seconds{std::chrono::duration<double>(Clock::now() - before).count()};
}

void UnitWeights::bring(Unit& unit) {
  if (unit.state == State::here) return;
  fetch(unit);
  await(unit);
  reader_.take(values(unit), unit.first_parameter, unit.parameters);
  spare_.put_back(std::exchange(unit.buffer, {}));
  unit.state = State::here;
}

void UnitWeights::place(Unit& unit) {
  if (unit.is_placed) return;
  reader_.put_gradients(unit.first_parameter, unit.parameters, exchange_.place(index(unit)));
  unit.is_placed = true;
}

void UnitWeights::drop(Unit& unit) {
  if (unit.state == State::coming) {
    await(unit);
    spare_.put_back(std::exchange(unit.buffer, {}));
  }
  if (keeps_parts_) reader_.drop(unit.first_parameter, unit.parameters);
  unit.state = State::away;
}

// Gathers the next two units of a forward pass, and the next one of a backward pass, as FSDP does.
void UnitWeights::prefetch(bool backward, int layer) {
  int left = backward ? 1 : 2;
  for (std::size_t i = 0; i < units_.size() && left > 0; ++i) {
    Unit& unit = units_[backward ? i : units_.size() - 1 - i];  // units are in backward order
    if (backward ? unit.last_layer >= layer : unit.first_layer <= layer) continue;
    fetch(unit);
    --left;
  }
}

}  // namespace paceline::runtime
