// Calibration of a GPU on the double's virtual clock: a device that is described must be found to be
// just that.
#include "calibration/device_profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/network/work.h"
#include "models/network/zoo.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/probe/cuda/cuda_probe.h"
#include "simulator/cost/compute_time.h"
#include "tests/support/cuda_on_host/control.h"
#include "tests/support/cuda_on_host/nccl_control.h"

namespace paceline::calibration {
namespace {

using cuda_on_host::Order;
using models::CurveKind;
using models::DeviceWork;
using models::NumberType;
using models::Precision;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Seconds enough{0.5};
constexpr std::size_t mebibyte = std::size_t{1} << 20;

class DeviceCalibration : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::present()) GTEST_SKIP() << "a GPU has a clock of its own";
    begin("*=1e-6");
  }
  static void begin(const std::string& clock, int devices = 1, std::uint64_t seed = 1) {
    cuda_on_host::reset(Order::eager, seed);
    cuda_on_host::nccl::reset();
    cuda_on_host::set_devices(devices);
    cuda_on_host::set_clock("bodies=0; " + clock);
  }
  static void expect_clean() {
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
    EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
    EXPECT_EQ(cuda_on_host::nccl::live_communicators(), 0);
  }
};

// The backend of training, with kernels of our own.
class OwnKernels final : public runtime::Backend {
 public:
  explicit OwnKernels(int index) : device_(index) {}
  [[nodiscard]] runtime::Device& device() override { return device_; }
  [[nodiscard]] std::string description() const override {
    return device_.description() + ", layers by own kernels";
  }
  [[nodiscard]] std::unique_ptr<runtime::TrainableNetwork> make_network(
      const models::Network& network, const runtime::TrainableNetworkOptions& options) override {
    return std::make_unique<runtime::CudaNetwork>(device_, network, options);
  }
  [[nodiscard]] std::unique_ptr<runtime::CollectiveExecutor> make_executor(
      const runtime::Endpoint& /*endpoint*/, const runtime::DeviceShare& /*share*/) override {
    return nullptr;
  }

 private:
  runtime::CudaDevice device_;
};

std::unique_ptr<runtime::DeviceProbe> probe_of(int index, bool all_devices) {
  return runtime::make_cuda_probe(std::make_unique<OwnKernels>(index), all_devices);
}

DeviceProfile profile_of(DeviceMeasurements measured) {
  return make_device_profile(measured,
                             {.name = "p", .cluster = "c", .device = "d", .origin = "a test"});
}

DeviceMeasurements measure_works(std::size_t largest = mebibyte) {
  const auto probe = probe_of(0, false);
  DeviceMeasurements measured;
  measured.device = measure_device(*probe, {.largest = largest, .time = Seconds{2}});
  return measured;
}

NetworkTimes measure(const models::Network& network, int batch, Precision precision,
                     bool all_devices = false) {
  const auto probe = probe_of(0, all_devices);
  return measure_network(
      *probe, {.network = network, .batch = batch, .precision = precision, .time = enough},
      "a test");
}

const models::DeviceCurve& curve_of(const models::Profile& profile, DeviceWork work,
                                    NumberType type) {
  const auto& curves = profile.device_costs.value().curves;
  const auto at = std::find_if(curves.begin(), curves.end(), [&](const models::DeviceCurve& c) {
    return c.work == work && c.type == type;
  });
  EXPECT_NE(at, curves.end()) << name(work);
  return *at;
}

struct Planted {
  double alpha_s;
  double bytes_per_s;
};

// The curve is one line, that of the planted figures, and its interval holds it.
void expect_line(const std::vector<models::CurvePiece>& pieces, double alpha_s, double beta,
                 double within) {
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_NEAR(pieces[0].alpha.value.value(), alpha_s, within * alpha_s);
  EXPECT_NEAR(pieces[0].beta.value.value(), beta, within * beta);
  EXPECT_LE(pieces[0].alpha.low, pieces[0].alpha.value);
  EXPECT_LE(pieces[0].alpha.value, pieces[0].alpha.high);
}

// Any device is found to be what it is, to a thousandth. The bytes of kernels are
// those that they declare: of a sum both arrays, each once; of casts and packing the FP32 and the 16
// bits.
TEST_F(DeviceCalibration, FindsTheDeviceThatWasDescribed) {
  std::mt19937_64 random(4);
  const auto draw = [&](double least, double most) {
    return std::exp(std::uniform_real_distribution<>(std::log(least), std::log(most))(random));
  };
  for (int trial = 0; trial < 5; ++trial) {
    const Planted in{draw(4e-6, 40e-6), draw(5e9, 60e9)};
    const Planted out{draw(4e-6, 40e-6), draw(5e9, 60e9)};
    const Planted copy{draw(2e-6, 9e-6), draw(1e11, 1e12)};
    const Planted kernel{draw(2e-6, 9e-6), draw(1e11, 1e12)};
    begin(fmt::format(
        "host=0.5e-6; event=0.2e-6; copy host to device={}+{}; copy device to host={}+{}; "
        "copy={}+{}; *={}+{}",
        in.alpha_s, in.bytes_per_s, out.alpha_s, out.bytes_per_s, copy.alpha_s, copy.bytes_per_s,
        kernel.alpha_s, kernel.bytes_per_s));
    const DeviceProfile made = profile_of(measure_works());
    const models::DeviceCosts& costs = made.profile.device_costs.value();
    EXPECT_NEAR(costs.launch.value().value.value(), kernel.alpha_s, 2e-3 * kernel.alpha_s);
    EXPECT_EQ(costs.curves.size(), 13U) << testing::PrintToString(made.complaints);
    const auto expect = [&](DeviceWork work, NumberType type, const Planted& planted,
                            double bytes_moved) {
      SCOPED_TRACE(std::string(name(work)));
      expect_line(curve_of(made.profile, work, type).pieces, planted.alpha_s,
                  bytes_moved / planted.bytes_per_s, 5e-3);
    };
    expect(DeviceWork::host_to_device, NumberType::fp32, in, 1);
    expect(DeviceWork::device_to_host, NumberType::fp32, out, 1);
    expect(DeviceWork::copy, NumberType::fp32, copy, 1);
    for (const NumberType half : {NumberType::fp16, NumberType::bf16}) {
      expect(DeviceWork::cast, half, kernel, 3);
      expect(DeviceWork::reduce, half, kernel, 2);
      expect(DeviceWork::pack, half, kernel, 3);
      expect(DeviceWork::unpack, half, kernel, 3);
    }
    expect(DeviceWork::reduce, NumberType::fp32, kernel, 2);
    for (const models::CalibratedRate& rate : made.profile.rates) {
      const Planted& planted = rate.kind == models::RateKind::copy ? copy : kernel;
      const double moved = rate.kind == models::RateKind::copy   ? 1
                           : rate.kind == models::RateKind::cast ? 3
                                                                 : 2;
      const double bytes = mebibyte;
      EXPECT_NEAR(rate.bytes.value.value(),
                  bytes / (planted.alpha_s + moved * bytes / planted.bytes_per_s),
                  5e-3 * rate.bytes.value.value());
    }
    EXPECT_EQ(made.profile.rates.size(), 6U);
    expect_clean();
  }
}

// A host that is slower than the device is what launches then cost.
TEST_F(DeviceCalibration, SaysWhatAHostThatIsTooSlowMakesOfLaunches) {
  begin("host=20e-6; *=5e-6");
  const auto probe = probe_of(0, false);
  EXPECT_NEAR(probe->time_launches(100).device, 20e-6, 1e-6);
}

TEST_F(DeviceCalibration, IsLessSureOfADeviceThatIsDisturbed) {
  const auto width = [](const auto& figure) { return (figure.high - figure.low) / figure.value; };
  const auto calibrate = [&](const std::string& jitter) {
    begin("jitter=" + jitter + "; copy=20e-6+20e9; *=5e-6+100e9", 1, 3);
    DeviceMeasurements measured = measure_works();
    measured.networks.push_back(measure(models::zoo_network("cnn-small"), 2, Precision::fp32));
    return profile_of(std::move(measured)).profile;
  };
  const models::Profile quiet = calibrate("0");
  const models::Profile noisy = calibrate("0.5");
  // Every sample is the mean of many kernels, of which each is disturbed for itself.
  EXPECT_GT(width(*noisy.device_costs->launch), width(*quiet.device_costs->launch) + 1e-4);
  EXPECT_GT(
      width(curve_of(noisy, DeviceWork::host_to_device, NumberType::fp32).pieces[0].beta),
      width(curve_of(quiet, DeviceWork::host_to_device, NumberType::fp32).pieces[0].beta) + 1e-4);
  ASSERT_EQ(quiet.layers.size(), noisy.layers.size());
  for (std::size_t i = 0; i < quiet.layers.size(); ++i) {
    // Their layer before does it on the way, or nothing is to do.
    if (quiet.layers[i].forward.value == Seconds{0}) continue;
    EXPECT_GT(width(noisy.layers[i].forward), width(quiet.layers[i].forward) + 0.01)
        << quiet.layers[i].layer;
  }
  EXPECT_NEAR(noisy.device_costs->launch->value.value(), 5e-6, 0.1 * 5e-6);
}

// Each layer has the time of its kernels. The first has the batch's way to the device before it, and
// the loss the way of its outcome to the host behind it.
TEST_F(DeviceCalibration, TimesEveryLayerAsItsKernelsWereDescribed) {
  begin(
      "copy host to device=100e-6; copy device to host=200e-6; LoadImages=7e-6; "
      "ConvolutionForward=11e-6; ConvolutionDataGradient=13e-6; ConvolutionFilterGradient=17e-6; "
      "BiasGradient=3e-6; ReluForward=2e-6; ReluDataGradient=5e-6; MaxPoolForward=23e-6; "
      "MaxPoolDataGradient=29e-6; Flatten=0; LossForward=31e-6; LossDataGradient=37e-6; Load=1e-6; "
      "*=41e-6");
  const NetworkTimes times = measure(models::zoo_network("cnn-small"), 2, Precision::fp32);
  const std::map<std::string, std::pair<double, double>> expected = {
      // Labels and the pass travel at its begin, images beside the pass before; and there is no gradient
      // of images.
      {"conv1", {100 + 100 + 7 + 11, 3 + 17}},
      {"conv2", {11, 3 + 17 + 13}},
      {"fc1", {11, 3 + 17 + 13}},
      {"fc2", {11, 3 + 17 + 13}},
      {"relu1", {0, 5}},  // the layer before does it on its way
      {"relu2", {0, 5}},
      {"relu3", {0, 5}},
      {"pool1", {23, 29}},
      {"pool2", {23, 29}},
      {"flatten", {0, 0}},
      {"loss", {31 + 200, 100 + 37}}};
  ASSERT_EQ(times.layers.size(), expected.size());
  for (const models::CalibratedLayer& layer : times.layers) {
    const auto& [forward, backward] = expected.at(layer.layer);
    EXPECT_NEAR(layer.forward.value.value() * 1e6, forward, 0.02) << layer.layer;
    EXPECT_NEAR(layer.backward.value.value() * 1e6, backward, 0.02) << layer.layer;
    EXPECT_EQ(layer.forward.provenance, Provenance::measured);
  }
  // A look for what is not finite, and an update, which writes the working copies.
  EXPECT_NEAR(times.updates.front().value() * 1e6, 41 + 41, 0.02);
}

models::Cluster cluster() {
  return models::catalog_cluster("jizhi-p40");
}

// What the simulator makes of the profile is what the device takes for an iteration.
TEST_F(DeviceCalibration, PredictsTheIterationOfTheDevice) {
  const models::Device device = cluster().device;
  for (const char* const name : {"cnn-small", "resnet-small"}) {
    const models::Network network = models::zoo_network(name);
    const models::NetworkWork work = models::work(network);
    for (const Precision precision : {Precision::fp32, Precision::mixed}) {
      for (const char* const clock :
           {"*=20e-6+100e9", "host=2e-6; event=1e-6; copy=10e-6+20e9; *=5e-6+50e9",
            // With a jitter of 0.3 a sum is 5 % off in one run of about 30.
            "jitter=0.15; host=1e-6; event=0.5e-6; copy=10e-6+20e9; *=8e-6+50e9"}) {
        SCOPED_TRACE(std::string(name) + ", " + clock);
        begin(clock);
        DeviceMeasurements measured;
        for (const int batch : {2, 5})
          measured.networks.push_back(measure(network, batch, precision));
        const DeviceProfile made = profile_of(measured);
        ASSERT_EQ(made.profile.checks.size(), 2U) << testing::PrintToString(made.complaints);
        ASSERT_EQ(made.profile.updates.size(), 1U);
        for (const models::CalibrationCheck& check : made.profile.checks) {
          const simulator::ComputeTimes times = simulator::compute_times(
              {work, device, &made.profile, precision, check.batch_per_rank},
              simulator::Bound::stated);
          EXPECT_NEAR(times.total() / check.iteration.value, 1, far_sum);
          EXPECT_LT(std::abs(check.difference()), far_sum);
          EXPECT_THAT(times.source, HasSubstr(fmt::format("{0} of {0} layers and the update as "
                                                          "calibrated in profile p",
                                                          network.layers().size())));
        }
        EXPECT_THAT(made.complaints, testing::Each(testing::Not(HasSubstr("add up to"))));
      }
    }
  }
}

// Where it is not so, the profile says it.
TEST_F(DeviceCalibration, ComplainsOfLayersThatDoNotAddUp) {
  begin("*=10e-6");
  DeviceMeasurements measured;
  measured.networks.push_back(measure(models::zoo_network("cnn-small"), 2, Precision::fp32));
  EXPECT_THAT(profile_of(measured).complaints, IsEmpty());
  for (Seconds& iteration : measured.networks[0].iterations) iteration *= 1.1;
  const DeviceProfile made = profile_of(measured);
  ASSERT_EQ(made.profile.checks.size(), 1U);
  EXPECT_NEAR(made.profile.checks[0].difference(), 1 / 1.1 - 1, 1e-3);
  EXPECT_THAT(made.complaints,
              testing::ElementsAre(
                  HasSubstr("the layers and the update of cnn-small at batch 2, fp32 add up to ")));
}

TEST_F(DeviceCalibration, TimesLayersBesideTraffic) {
  begin("beside=1.5; *=20e-6+100e9");
  DeviceMeasurements measured;
  measured.networks.push_back(measure(models::zoo_network("cnn-small"), 4, Precision::fp32));
  EXPECT_THAT(measured.networks[0].traffic, HasSubstr("as there is one GPU"));
  const DeviceProfile made = profile_of(measured);
  for (const models::CalibratedLayer& layer : made.profile.layers) {
    ASSERT_TRUE(layer.forward_beside_traffic && layer.backward_beside_traffic);
    EXPECT_THAT(layer.forward_beside_traffic->source, HasSubstr("as there is one GPU"));
    // Copies between host and device wait for those of the traffic, too.
    if (layer.layer == "conv1" || layer.layer == "loss" || layer.layer == "flatten") continue;
    if (layer.layer.starts_with("relu")) continue;  // the layer before does it on its way
    EXPECT_NEAR(layer.forward_beside_traffic->value / layer.forward.value, 1.5, 0.01)
        << layer.layer;
    EXPECT_NEAR(layer.backward_beside_traffic->value / layer.backward.value, 1.5, 0.01)
        << layer.layer;
  }
  begin("beside=2; *=20e-6+100e9", 3);
  const NetworkTimes times = measure(models::zoo_network("cnn-small"), 4, Precision::fp32, true);
  EXPECT_THAT(times.traffic, HasSubstr("NCCL's all-reduce"));
  EXPECT_THAT(times.traffic, HasSubstr("between 3 GPUs"));
  EXPECT_NEAR(times.layers[3].forward_beside_traffic.value().value / times.layers[3].forward.value,
              2, 0.02);
  expect_clean();
}

// Traffic that takes no time outlasts nothing.
TEST_F(DeviceCalibration, LeavesOutTrafficThatDoesNotOutlastTheLayers) {
  begin("copy=0; AddBody=0; Add=0; *=20e-6");
  DeviceMeasurements measured;
  measured.networks.push_back(measure(models::zoo_network("cnn-small"), 2, Precision::fp32));
  const DeviceProfile made = profile_of(measured);
  for (const models::CalibratedLayer& layer : made.profile.layers)
    EXPECT_FALSE(layer.forward_beside_traffic);
  EXPECT_THAT(made.complaints, testing::Contains(HasSubstr("no traffic outlasted them")));
}

TEST_F(DeviceCalibration, MeasuresNcclBetweenAllDevices) {
  begin("host=0.2e-6; all-reduce=30e-6+40e9; send=12e-6+25e9; receive=12e-6+25e9; *=2e-6", 3);
  const auto probe = probe_of(0, true);
  DeviceMeasurements measured;
  measured.collectives = measure_collectives(*probe, {.largest = mebibyte, .time = Seconds{2}});
  const DeviceProfile made = profile_of(measured);
  ASSERT_EQ(made.profile.curves.size(), 6U) << testing::PrintToString(made.complaints);
  std::vector<std::pair<CurveKind, int>> kinds;
  for (const models::CalibratedCurve& curve : made.profile.curves) {
    SCOPED_TRACE(curve.source);
    kinds.emplace_back(curve.kind, curve.ranks);
    EXPECT_FALSE(curve.between_nodes);
    EXPECT_EQ(curve.library, curve.kind == CurveKind::all_reduce ? "nccl" : "");
    if (curve.kind == CurveKind::all_reduce)
      expect_line(curve.pieces, 30e-6, 1 / 40e9, 0.01);
    else
      expect_line(curve.pieces, 12e-6, 1 / 25e9, 0.01);
  }
  EXPECT_THAT(kinds,
              testing::ElementsAre(
                  std::pair(CurveKind::all_reduce, 2), std::pair(CurveKind::all_reduce, 2),
                  std::pair(CurveKind::point_to_point, 2), std::pair(CurveKind::all_reduce, 3),
                  std::pair(CurveKind::all_reduce, 3), std::pair(CurveKind::exchange, 3)));
  EXPECT_NEAR(made.profile.intra_latency.value().value.value(), 12e-6, 0.2e-6);
  EXPECT_NEAR(made.profile.intra_bandwidth.value().value.value(), 25e9, 0.2e9);
  const auto alone = probe_of(1, false);
  EXPECT_THAT(measure_collectives(*alone, {.largest = mebibyte}), IsEmpty());
}

TEST_F(DeviceCalibration, NamesTheDeviceAndItsLibraries) {
  begin("", 2);
  const runtime::ProbedDevice device = probe_of(1, true)->device();
  EXPECT_THAT(device.description, HasSubstr("NVIDIA H100 80GB HBM3 (double), sm_90"));
  EXPECT_THAT(device.driver, testing::ContainsRegex("CUDA [0-9]+\\.[0-9]$"));
  EXPECT_THAT(device.runtime, testing::MatchesRegex("CUDA [0-9]+\\.[0-9]"));
  EXPECT_THAT(device.collectives, testing::MatchesRegex("(NCCL [0-9]+\\.[0-9]+\\.[0-9]+)?"));
  EXPECT_EQ(device.layers, "own kernels");
  EXPECT_EQ(device.devices, 2);
  EXPECT_EQ(probe_of(1, false)->device().devices, 1);
}

// All that a calibration asks of a device, once. Returns the error, or nothing.
std::string error_of_calibration() {
  try {
    const auto probe = probe_of(0, true);
    const auto network = probe->load(models::zoo_network("cnn-small"), 1, Precision::fp32);
    (void)network->time_iterations(1);
    (void)network->time_layers(1);
    (void)network->time_beside_traffic(1, 1e-3);
    (void)probe->time_launches(2);
    for (const auto& [work, type] : {std::pair(DeviceWork::host_to_device, NumberType::fp32),
                                     std::pair(DeviceWork::device_to_host, NumberType::fp32),
                                     std::pair(DeviceWork::copy, NumberType::fp32),
                                     std::pair(DeviceWork::cast, NumberType::fp16),
                                     std::pair(DeviceWork::reduce, NumberType::bf16),
                                     std::pair(DeviceWork::pack, NumberType::fp16),
                                     std::pair(DeviceWork::unpack, NumberType::fp16)})
      (void)probe->time(work, type, 4096, 2);
    const auto collectives = probe->make_collectives(2);
    (void)collectives->time_all_reduce(NumberType::fp32, 64, 2);
    (void)collectives->time_exchange(64, 2);
    (void)collectives->time_point_to_point(64, 2);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// Whatever call fails, calibration ends in one line, and nothing is left over.
TEST_F(DeviceCalibration, EndsInOneLineWhateverCallFails) {
  const std::string clock = "*=50e-6";
  begin(clock, 2);
  ASSERT_EQ(error_of_calibration(), "");
  expect_clean();
  const std::map<std::string, int> errors = {{"cudaGetDeviceCount", 999},
                                             {"cudaGetDeviceProperties", 999},
                                             {"cudaGetDevice", 999},
                                             {"cudaSetDevice", 999},
                                             {"cudaMalloc", 2},
                                             {"cudaHostAlloc", 2},
                                             {"cudaStreamCreateWithFlags", 2},
                                             {"cudaEventCreateWithFlags", 2},
                                             {"cudaEventRecord", 999},
                                             {"cudaEventQuery", 999},
                                             {"cudaEventElapsedTime", 999},
                                             {"cudaStreamWaitEvent", 999},
                                             {"cudaMemcpyAsync", 999},
                                             {"cudaLaunchKernelExC", 999},
                                             {"cudaStreamDestroy", 999},
                                             {"cudaEventDestroy", 999},
                                             {"cudaFree", 999},
                                             {"ncclCommInitAll", 2},
                                             {"ncclGroupStart", 3},
                                             {"ncclGroupEnd", 3},
                                             {"ncclAllReduce", 2},
                                             {"ncclSend", 2},
                                             {"ncclRecv", 2},
                                             {"ncclCommDestroy", 2}};
  std::map<std::string, long> calls;
  for (const auto& [function, error] : errors) calls[function] = cuda_on_host::calls(function);
  int failed = 0;
  for (const auto& [function, error] : errors) {
    EXPECT_GT(calls[function], 0) << function;
    const long step = 1 + calls[function] / 4;
    for (long number = 1; number <= calls[function]; number += step) {
      SCOPED_TRACE(testing::Message() << "call " << number << " of " << function);
      begin(clock, 2);
      cuda_on_host::fail(function, static_cast<int>(number), error);
      const std::string line = error_of_calibration();
      EXPECT_THAT(line, testing::Not(HasSubstr("\n")));
      if (!line.empty()) EXPECT_THAT(line, testing::StartsWith("cannot "));
      failed += line.empty() ? 0 : 1;
      expect_clean();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(failed, 50);
}

TEST_F(DeviceCalibration, EndsInOneLineWhenTheDeviceBreaks) {
  for (const int operation : {1, 20, 200, 1000}) {
    begin("*=50e-6", 2);
    cuda_on_host::fail_device(0, operation, 700);
    const std::string line = error_of_calibration();
    EXPECT_THAT(line, testing::StartsWith("cannot ")) << operation;
    EXPECT_THAT(line, HasSubstr("an illegal memory access was encountered"));
    EXPECT_THAT(line, testing::Not(HasSubstr("\n")));
    EXPECT_EQ(cuda_on_host::nccl::live_communicators(), 0);
  }
}

}  // namespace
}  // namespace paceline::calibration
