// What is asked of a device that is to be calibrated: how long its work takes, by its own clock.
//
// A probe measures and decides nothing: how often, until when and what becomes of the numbers is
// calibration's (calibration/measure). The GPU's is in runtime/probe/cuda, in the module that is loaded
// when it is asked for.
//
// Times are between two events in the stream of the work, of `count` equal works one behind the other,
// over `count`. One more runs before the first event, so that the host is ahead of the device. A work
// that takes the device less long than the host takes to start the next one has the host's time, as it
// has in training.
//
// All functions throw RunError in one line if the device fails.
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/network/network.h"
#include "models/profile/profile.h"

namespace paceline::runtime {

// For people, in the source of every figure.
struct ProbedDevice {
  std::string description;  // "NVIDIA H100 80GB HBM3, sm_90"
  std::string driver;       // "580.65.06, CUDA 13.0"
  std::string runtime;      // "CUDA 13.0"
  std::string collectives;  // "NCCL 2.28.9"; empty if there is none
  std::string layers;       // what computes them: "own kernels"
  int devices = 1;          // that this process can use
};

// One iteration of training on one rank, in seconds, with an event behind every layer. What the events
// themselves take of the stream is measured, and taken off.
//
// Times of layers are from the end of the one before to the end of this one. That of the first layer's
// forward pass includes the batch's way to the device, where nothing hides it. That of the loss's
// includes its way to the host. The update lasts from the end of backward until the weights
// are as the next pass takes them, with the host's look for what is not finite.
struct IterationTimes {
  std::vector<double> forward;  // of each layer, as in Network::layers()
  std::vector<double> backward;
  double update = 0;
  // Whether the traffic, if it was asked for, was under way until the end.
  bool traffic_outlasted = true;

  [[nodiscard]] double sum() const;
};

// A network with a batch that was drawn.
class NetworkProbe {
 public:
  virtual ~NetworkProbe() = default;
  // What stands for a collective in time_beside_traffic(): "NCCL's all-reduce between 2 GPUs".
  [[nodiscard]] virtual std::string traffic() const = 0;
  // `count` iterations in a row, behind one that is not counted.
  [[nodiscard]] virtual std::vector<IterationTimes> time_layers(int count) = 0;
  // The same while traffic is under way, which is started before and lasts for this many seconds, as far
  // as that can be.
  [[nodiscard]] virtual std::vector<IterationTimes> time_beside_traffic(int count,
                                                                        double seconds) = 0;
  // The same, of this network: that what was asked for is not done, and why; empty where all is.
  [[nodiscard]] virtual std::string remark() = 0;
  // Seconds of each of `count` iterations in a row, as training runs them, without events in between,
  // behind one that is not counted.
  [[nodiscard]] virtual std::vector<double> time_iterations(int count) = 0;
};

// All GPUs of this process, each with a rank, whose calls one thread makes. Rank 0 has the clock.
class CollectiveProbe {
 public:
  virtual ~CollectiveProbe() = default;
  [[nodiscard]] virtual int ranks() const = 0;
  // Seconds of one of `count` all-reduces of this many bytes.
  [[nodiscard]] virtual double time_all_reduce(models::NumberType type, std::size_t bytes,
                                               int count) = 0;
  // Each rank sends to the next and receives from the one before.
  [[nodiscard]] virtual double time_exchange(std::size_t bytes, int count) = 0;
  // Half of a round trip between ranks 0 and 1.
  [[nodiscard]] virtual double time_point_to_point(std::size_t bytes, int count) = 0;
};

class DeviceProbe {
 public:
  DeviceProbe() = default;
  DeviceProbe(const DeviceProbe&) = delete;
  DeviceProbe& operator=(const DeviceProbe&) = delete;
  virtual ~DeviceProbe() = default;

  [[nodiscard]] virtual const ProbedDevice& device() const = 0;
  // What the user should know of how networks are computed, a line each. More may come with load().
  [[nodiscard]] virtual std::vector<std::string> notes() const = 0;
  // Seconds of a work on this many bytes of `type`. A cast is half of one from FP32 and one back.
  [[nodiscard]] virtual double time(models::DeviceWork work, models::NumberType type,
                                    std::size_t bytes, int count) = 0;
  // Kernels on one number each, one behind the other: seconds of the device from one to the next, and
  // of the host (by its own clock, for which there is no event) to start one.
  struct Launch {
    double device = 0;
    double host = 0;
  };
  [[nodiscard]] virtual Launch time_launches(int count) = 0;
  // Throws InputError as runtime::check_trainable does. The probe outlives it.
  [[nodiscard]] virtual std::unique_ptr<NetworkProbe> load(const models::Network& network,
                                                           int batch,
                                                           models::Precision precision) = 0;
  // Null where this process has fewer GPUs, or was built without a library for them.
  [[nodiscard]] virtual std::unique_ptr<CollectiveProbe> make_collectives(int ranks) = 0;
};

}  // namespace paceline::runtime
