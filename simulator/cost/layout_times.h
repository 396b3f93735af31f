// What the layout of a job (models/layout) adds to an iteration of a rank: what travels between ranks that
// work on one sample, and the stages of a pipeline.
//
// Collectives behind a forward pass are beside nothing. On the way back, what is summed travels beside the
// weight gradients of the layers that read it, and what is gathered again beside their gradients of
// activations, as Megatron-LM has them (tensor_parallel/layers.py). Keys and values of other contexts travel
// beside attention, but for the first part (1 / context of it). What is longer than what hides it is exposed.
#pragma once

#include <algorithm>
#include <vector>

#include "models/base/units.h"
#include "models/layout/layout.h"
#include "models/layout/stages.h"

namespace paceline::simulator {

// A collective that may be beside computation for as long as this.
struct HiddenTime {
  Seconds time;
  Seconds hides;

  [[nodiscard]] Seconds exposed() const { return std::max(Seconds{0}, time - hides); }
};

// The exchanges of one layer's output for one batch.
struct ExchangeTimes {
  std::vector<HiddenTime> forward;   // behind its forward pass
  std::vector<HiddenTime> backward;  // ahead of its backward pass

  [[nodiscard]] static Seconds exposed(const std::vector<HiddenTime>& parts) {
    Seconds sum;
    for (const HiddenTime& part : parts) sum += part.exposed();
    return sum;
  }
};

struct LayerTime {
  Seconds forward;
  Seconds backward;
};

struct LayoutTimes {
  models::Layout layout = {};
  models::Stages stages = {};
  int batches = 1;                       // of an iteration, each of which goes through all stages
  std::vector<ExchangeTimes> exchanges;  // of each layer; empty where nothing is exchanged
  std::vector<Seconds> sends;  // of a batch from each chunk to the next, and of its gradient back
  // The layers of batches whose passes over a stage are one task, as long as nothing else slows them down.
  std::vector<LayerTime> passes;

  [[nodiscard]] Seconds behind_forward(std::size_t layer) const {
    return exchanges.empty() ? Seconds{0} : ExchangeTimes::exposed(exchanges[layer].forward);
  }
  [[nodiscard]] Seconds ahead_of_backward(std::size_t layer) const {
    return exchanges.empty() ? Seconds{0} : ExchangeTimes::exposed(exchanges[layer].backward);
  }
  // Exposed exchanges of one batch in both passes of all layers.
  [[nodiscard]] Seconds exposed() const {
    Seconds sum;
    for (std::size_t i = 0; i < exchanges.size(); ++i)
      sum += behind_forward(i) + ahead_of_backward(i);
    return sum;
  }
  // All that travels for one batch, whatever hides it.
  [[nodiscard]] Seconds communication() const {
    Seconds sum;
    for (const ExchangeTimes& layer : exchanges)
      for (const auto* parts : {&layer.forward, &layer.backward})
        for (const HiddenTime& part : *parts) sum += part.time;
    for (const Seconds send : sends) sum += 2 * send;
    return sum;
  }
  [[nodiscard]] bool is_pipeline() const { return layout.pipeline > 1; }
};

// The same with all communication this many times as long.
[[nodiscard]] inline LayoutTimes with_communication(LayoutTimes times, double factor) {
  for (ExchangeTimes& layer : times.exchanges)
    for (auto* parts : {&layer.forward, &layer.backward})
      for (HiddenTime& part : *parts) part.time *= factor;
  for (Seconds& send : times.sends) send *= factor;
  return times;
}

}  // namespace paceline::simulator
