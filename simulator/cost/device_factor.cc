// Tests: tests/simulator/sensitivity_test.cc.
#include "simulator/cost/device_factor.h"

#include "models/base/scale_figure.h"

namespace paceline::simulator {

models::Cluster with_device(models::Cluster cluster, double factor) {
  models::Device& device = cluster.device;
  scale(device.fp32, factor);
  scale(device.tf32, factor);
  scale(device.fp16, factor);
  scale(device.fp16_tensor, factor);
  scale(device.bf16, factor);
  scale(device.memory_bandwidth, factor);
  if (device.transformer) scale(device.transformer->attention, factor);
  if (cluster.effects) scale(cluster.effects->layer_launch, 1 / factor);
  return cluster;
}

models::Profile with_device(models::Profile profile, double factor) {
  for (models::CalibratedThroughput& entry : profile.throughputs) scale(entry.samples, factor);
  for (models::CalibratedLayer& layer : profile.layers) {
    scale(layer.forward, 1 / factor);
    scale(layer.backward, 1 / factor);
    scale(layer.forward_beside_traffic, 1 / factor);
    scale(layer.backward_beside_traffic, 1 / factor);
  }
  for (models::CalibratedRate& rate : profile.rates) scale(rate.bytes, factor);
  return profile;
}

}  // namespace paceline::simulator
