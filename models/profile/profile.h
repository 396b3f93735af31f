// A profile: calibrated parameters of a cluster and its device, as Figures. A prediction takes them
// in place of the catalogue's datasheet figures. A profile is data (JSON, "paceline.profile/1",
// docs/formats.md). Reading one gives a valid value or throws.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/figure.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/collective/catalogue.h"
#include "models/network/work.h"

namespace paceline::models {

// Samples per second for a whole network: of one rank, computation alone, or of all ranks of a
// training job, with its communication. What a job of several ranks says of computation depends on
// how its gradients travelled (simulator/prediction/matched_compute.h).
struct CalibratedThroughput {
  std::string network;
  Precision precision = Precision::fp32;
  int batch_per_rank = 0;
  Figure<PerSecond> samples;
  int ranks = 1;
  // A rate of one rank may be solved from the throughput of a job: the ranks of that job. The time
  // that they wait for each other is then in the rate.
  int solved_from = 1;
  // Elements of each sample, where samples are sequences; 0: not known, and taken to be the job's.
  std::int64_t sequence = 0;
  // The network, where it is at hand; null where its name says it.
  std::shared_ptr<const NetworkWork> of = nullptr;
};

// How many times as long a rank of a job of several ranks computes as one alone; and how many times
// as long as that, at least 1, while a collective that runs as kernels of the device is on its way.
// Where the second is absent, it is not known.
struct CalibratedSlowdown {
  std::string network;
  Precision precision = Precision::fp32;
  Figure<double> factor;
  int solved_from = 1;  // the ranks of the job, as above
  std::optional<Figure<double>> beside_traffic = {};
};

// Forward and backward time of one layer at a batch size while no message travels, and, where it
// was measured, while messages travel all the time.
struct CalibratedLayer {
  std::string network;
  Precision precision = Precision::fp32;
  int batch_per_rank = 0;
  std::string layer;
  Figure<Seconds> forward;
  Figure<Seconds> backward;
  std::optional<Figure<Seconds>> forward_beside_traffic = {};
  std::optional<Figure<Seconds>> backward_beside_traffic = {};
};

// The time of an update of all parameters of a network: what the optimizer computes, and what the next
// iteration needs of it. It does not depend on the batch.
struct CalibratedUpdate {
  std::string network;
  Precision precision = Precision::fp32;
  Figure<Seconds> time;
};

// A whole iteration of one rank, measured beside its parts, and the sum of their figures. Nothing is
// computed from it: it says how far the parts make the whole.
struct CalibrationCheck {
  std::string network;
  Precision precision = Precision::fp32;
  int batch_per_rank = 0;
  Figure<Seconds> iteration;
  Figure<Seconds> sum;  // of the layers and the update

  // The sum over the iteration, less 1.
  [[nodiscard]] double difference() const { return sum.value / iteration.value - 1; }
};

// A message of n bytes takes alpha + n beta, for n from `from` up to where the next piece begins.
struct CurvePiece {
  Bytes from;
  Figure<Seconds> alpha;
  Figure<SecondsPerByte> beta;
};

enum class CurveKind {
  point_to_point,  // half of a round trip between two ranks while the others are idle
  exchange,        // every rank sends a message to one and receives one from another at once
  // The collectives of a library.
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  neighbour_exchange,
};

// The kind of a collective's curves. Its bytes are those that nccl-tests counts: of a rank's buffer in an
// all-to-all, and else of the whole bucket.
[[nodiscard]] CurveKind curve_kind(Collective collective);
// Nothing of messages.
[[nodiscard]] std::optional<Collective> collective_of(CurveKind kind);
[[nodiscard]] bool is_of_library(CurveKind kind);

// The smallest and the largest size that were measured.
struct MeasuredSizes {
  Bytes least;
  Bytes most;

  bool operator==(const MeasuredSizes&) const = default;
};

// Fits look for no structure in noise below this share: tools print three or four digits, and the
// best of lines differs by this much from what a library does (calibration/fit/piecewise.h).
inline constexpr double least_misfit = 0.01;

// A piecewise alpha-beta fit of time by message size.
struct CalibratedCurve {
  CurveKind kind = CurveKind::point_to_point;
  bool between_nodes = true;
  std::string library = {};                    // that ran the collective; empty for messages
  WireType wire = WireType::fp32;              // type of a collective's elements
  int ranks = 2;                               // how many ranks took part
  std::optional<MeasuredSizes> measured = {};  // none: not known
  std::vector<CurvePiece> pieces = {};         // at least one; from 0 bytes on, ascending
  double residual = 0;                         // root mean square of (measured - fitted) / fitted
  std::string source;

  [[nodiscard]] const CurvePiece& piece(Bytes bytes) const;
  // The time by the stated values of the pieces.
  [[nodiscard]] Seconds time(Bytes bytes) const;
  // The relative standard deviation of a time that is read from the curve: the residual, which is
  // never believed to be less than `least_misfit`.
  [[nodiscard]] double misfit() const;
};

// Kernels of one rank that go through memory once.
enum class RateKind { copy, cast, reduce };

struct CalibratedRate {
  RateKind kind = RateKind::copy;
  NumberType type = NumberType::fp32;  // of the elements; a cast is to or from FP32
  Figure<BytesPerSecond> bytes;        // bytes of `type` per second
};

// What a device does besides the layers of a network.
enum class DeviceWork {
  host_to_device,  // a copy from pinned memory by a copy engine
  device_to_host,
  copy,    // within the memory of the device
  cast,    // from or to FP32
  reduce,  // a sum of two arrays in the place of one
  pack,    // many FP32 arrays into one array of the type
  unpack,  // from an array of the type to FP32, with a look for what is not finite
};

// A piecewise alpha-beta fit of time by bytes of `type`.
struct DeviceCurve {
  DeviceWork work = DeviceWork::copy;
  NumberType type = NumberType::fp32;
  std::optional<MeasuredSizes> measured = {};
  std::vector<CurvePiece> pieces = {};  // as those of CalibratedCurve
  double residual = 0;
  std::string source = {};
};

// What a device that runs kernels by itself takes to be started. Predictions do not use it yet.
struct DeviceCosts {
  // From one kernel that has nothing to do to the next in the same stream, and what the host takes to
  // start each.
  std::optional<Figure<Seconds>> launch = {};
  std::optional<Figure<Seconds>> host_launch = {};
  std::vector<DeviceCurve> curves = {};
};

// The transport that runs schedules: the sizes of its messages, and their overheads.
struct CalibratedTransport {
  std::string name;  // "open-mpi"
  Bytes smallest_message;
  Bytes largest_message;
  Bytes ahead;  // by how much sends may run ahead (MessageSizes::ahead_bytes); 0: without limit
  // Least time between the starts of two messages of a rank; absent if not known, and then taken as 0.
  std::optional<Figure<Seconds>> message_gap = {};
  // The bytes that each message adds on a link between nodes; absent if not known.
  std::optional<Figure<Bytes>> message_header = {};
  // How messages to several receivers share a rank's link: 0, one after the other; 1, evenly.
  double fairness = 0;
};

struct Profile {
  std::string name;
  std::string cluster;  // the cluster that it was calibrated on
  std::string device;
  std::string origin;  // how the profile was made: command, host, date
  std::optional<Figure<Seconds>> intra_latency = {};
  std::optional<Figure<BytesPerSecond>> intra_bandwidth = {};
  std::optional<Figure<Seconds>> nic_latency = {};
  std::optional<Figure<BytesPerSecond>> nic_bandwidth = {};
  // Time of a large message each way at once over that of one alone: 1 full duplex, 2 half duplex.
  std::optional<Figure<double>> intra_both_ways = {};
  std::optional<Figure<double>> nic_both_ways = {};
  // Bandwidth of the nodes under a fat tree's leaf switch over that of its uplink, at least 1.
  std::optional<Figure<double>> uplink_oversubscription = {};
  std::optional<CalibratedTransport> transport = {};
  std::vector<CalibratedCurve> curves = {};
  std::vector<CalibratedRate> rates = {};
  std::vector<CalibratedThroughput> throughputs = {};
  std::vector<CalibratedSlowdown> slowdowns = {};
  std::vector<CalibratedLayer> layers = {};
  std::vector<CalibratedUpdate> updates = {};
  std::optional<DeviceCosts> device_costs = {};
  std::vector<CalibrationCheck> checks = {};
};

[[nodiscard]] std::string_view name(CurveKind kind);
[[nodiscard]] std::string_view name(RateKind kind);
[[nodiscard]] std::string_view name(DeviceWork work);

// `file` names the text in errors. Throws InputError (file, and the JSON path of the fault).
[[nodiscard]] Profile parse_profile(std::string_view text, const std::string& file);
// Pretty-printed JSON that parse_profile reads back to an equal value.
[[nodiscard]] std::string to_json(const Profile& profile);

}  // namespace paceline::models
