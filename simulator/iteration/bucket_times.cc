// Tests: tests/simulator/prediction_test.cc, tests/simulator/cycles_test.cc.
#include "simulator/iteration/bucket_times.h"

#include "simulator/cost/dispatch_cost.h"

namespace paceline::simulator {
namespace {

using models::Precision;
using models::WireType;

// The times of a bucket besides its all-reduce, as our runtime spends them
// (runtime/exchange/gradient_exchange.h). Gradients are FP32 in one array, and a bucket is a part of
// it, so that nothing is packed. Another wire type is cast to before and from after the all-reduce.
// Sums are read once more, to find infinities.
BucketTimes runtime_bucket_times(const models::Plan& plan, const models::Bucket& bucket,
                                 const TransportCost& transport) {
  BucketTimes times;
  if (plan.ranks == 1) return times;
  const Bytes wire_bytes = plan.bytes(bucket);
  const SecondsPerByte cast = plan.wire == WireType::fp16   ? transport.cast_fp16
                              : plan.wire == WireType::bf16 ? transport.cast_bf16
                                                            : SecondsPerByte{0};
  times.cast = wire_bytes * cast;
  times.unpack = wire_bytes * cast + static_cast<double>(bucket.elements) *
                                         models::element_size(WireType::fp32) * transport.copy;
  return times;
}

}  // namespace

const ServedPhases& BucketTimes::served() const {
  static const ServedPhases none;
  const auto* phases = std::get_if<ServedPhases>(&by_way);
  return phases == nullptr ? none : *phases;
}

BucketTimes bucket_times(const models::Plan& plan, const models::Bucket& bucket,
                         Precision precision, BytesPerSecond memory,
                         const CommunicationCost& cost) {
  if (cost.transport && cost.transport->copy > SecondsPerByte{0})
    return runtime_bucket_times(plan, bucket, *cost.transport);
  const auto elements = static_cast<double>(bucket.elements);
  const Bytes wire_bytes = plan.bytes(bucket);
  const Bytes gradient_bytes = elements * models::element_size(precision);
  const bool converts = models::has_masters(precision) != (plan.wire != WireType::fp32);
  BucketTimes times;
  if (plan.ranks == 1) return times;
  if (converts) times.cast = (gradient_bytes + wire_bytes) / memory;
  if (bucket.gradient_count > 1) {
    if (!converts) times.pack = 2 * wire_bytes / memory;  // a cast packs on its way
    times.unpack = 2 * wire_bytes / memory;
  }
  return times;
}

BucketAside bucket_aside(WireType wire, int ranks, Precision precision, BytesPerSecond memory,
                         const CommunicationCost& cost) {
  models::Plan plan;
  plan.ranks = ranks;
  plan.wire = wire;
  const auto of_element = [&](int gradients) {
    const models::Bucket one{.gradient_count = gradients, .elements = 1};
    const BucketTimes times = bucket_times(plan, one, precision, memory, cost);
    return (times.cast + times.pack + times.unpack).value();
  };
  return {0, of_element(1), of_element(2)};
}

void add_dispatch(const models::Plan& plan, const models::Bucket& bucket,
                  const CommunicationCost& cost, Bound bound, BucketTimes& times) {
  if (plan.ranks == 1) return;
  const Seconds agreed =
      negotiation_time(plan.dispatch.negotiation, plan.ranks, bucket.gradient_count, cost, bound);
  // What is handed over ahead, within a credit, is agreed on while others travel.
  (plan.dispatch.credit ? times.wait : times.negotiation) = agreed;
  times.wait += bucket.wait;
  if (const auto& other = models::strategy(plan.strategy).other)
    times.negotiation += hand_over_time(other->system, bound);
  if (!plan.dispatch.through_host) return;
  const HostWay way = host_way(plan.bytes(bucket), plan.ranks, bound);
  times.pack += way.copy;
  times.all_reduce = way.messages * times.all_reduce + way.sum;
  times.unpack += way.copy;
}

}  // namespace paceline::simulator
