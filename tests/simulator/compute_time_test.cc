#include "simulator/cost/compute_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/cost/transformer_roofline.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using models::Precision;

models::Device device() {
  models::Device d;
  d.name = "test";
  d.fp32 = Figure<FlopsPerSecond>::exact(FlopsPerSecond{2e12}, Provenance::datasheet, "test");
  d.fp16 = Figure<FlopsPerSecond>::exact(FlopsPerSecond{1e11}, Provenance::datasheet, "test");
  d.memory_bandwidth =
      Figure<BytesPerSecond>::exact(BytesPerSecond{2e11}, Provenance::datasheet, "test");
  d.compute_efficiency = {0.5, 0.25, 1.0, Provenance::assumed, "test"};
  d.memory_efficiency = {0.5, 0.25, 1.0, Provenance::assumed, "test"};
  d.roofline_efficiency = {2, 1, 8, Provenance::calibrated, "test"};
  d.roofline_efficiency_mixed = {4, 4, 4, Provenance::calibrated, "test"};
  return d;
}

// Forward: 1e6 FLOP a sample against (20 + 10) elements a sample and 100 parameters.
models::NetworkWork one_layer() {
  models::NetworkWork network;
  network.name = "one";
  models::LayerWork layer;
  layer.name = "fc";
  layer.parameters = {{"fc.weight", {10, 10}, 100}};
  layer.forward_flops = 1'000'000;
  layer.weight_gradient_flops = 1'000'000;
  layer.data_gradient_flops = 500'000;
  layer.forward_read = 20;
  layer.forward_written = 10;
  layer.backward_read = 40;
  layer.backward_written = 20;
  network.layers = {layer};
  network.gradients = {{"fc.weight", 100, 0}};
  return network;
}

// 8 samples: 8e6 FLOP / 1e12 = 8 us beats (8 * 30 + 100) * 4 B / 1e11 = 13.6 ns; backward 12e6
// FLOP.
TEST(Roofline, ComputeBoundByHand) {
  const models::NetworkWork network = one_layer();
  const models::Device d = device();
  const ComputeTimes times =
      roofline_times({network, d, nullptr, Precision::fp32, 8}, Bound::stated);
  EXPECT_DOUBLE_EQ(times.layers[0].forward.value(), 8e-6);
  EXPECT_DOUBLE_EQ(times.layers[0].backward.value(), 12e-6);
  EXPECT_DOUBLE_EQ(times.update.value(), 100 * 20 / 1e11);
}

// The update of the network and precision at hand, whatever the batch; another's leaves the roofline.
TEST(LayerProfile, TakesTheUpdateThatWasCalibrated) {
  const models::NetworkWork network = one_layer();
  const models::Device d = device();
  const auto figure = [](double seconds) {
    return Figure<Seconds>{Seconds{seconds}, Seconds{seconds / 2}, Seconds{seconds * 2},
                           Provenance::measured, "test"};
  };
  models::Profile profile;
  profile.name = "p";
  profile.layers = {{"one", Precision::fp32, 8, "fc", figure(1e-3), figure(2e-3)}};
  const ComputeRequest request{network, d, &profile, Precision::fp32, 8};
  const ComputeTimes by_roofline = compute_times(request, Bound::stated);
  EXPECT_DOUBLE_EQ(by_roofline.update.value(), 100 * 20 / 1e11);
  EXPECT_EQ(by_roofline.source,
            "1 of 1 layers as calibrated in profile p, the rest and the update by roofline");
  profile.updates = {{"one", Precision::mixed, figure(9e-3)},
                     {"other", Precision::fp32, figure(9e-3)}};
  EXPECT_EQ(compute_times(request, Bound::stated).update, by_roofline.update);
  profile.updates.push_back({"one", Precision::fp32, figure(5e-4)});
  const ComputeTimes times = compute_times(request, Bound::stated);
  EXPECT_DOUBLE_EQ(times.update.value(), 5e-4);
  EXPECT_DOUBLE_EQ(times.total().value(), 3.5e-3);
  EXPECT_DOUBLE_EQ(compute_times(request, Bound::slow).update.value(), 1e-3);
  EXPECT_DOUBLE_EQ(compute_times(request, Bound::fast).update.value(), 2.5e-4);
  EXPECT_EQ(times.source, "1 of 1 layers and the update as calibrated in profile p");
}

// An embedding moves the rows that it picks, and its backward pass writes the whole table: 8 x 4
// numbers, rows read and rows written, of 2 features. A tied layer reads the table itself.
TEST(Roofline, OfAnEmbeddingMovesRowsForwardAndTheTableBackward) {
  const auto times_of = [](std::int64_t entries) {
    models::NetworkBuilder net("toy", models::Shape::sequence(4));
    net.add("table", models::Embedding{.entries = entries, .features = 2});
    net.add("logits", models::TiedLinear{}, {"table", "table"});
    net.add("loss", models::SoftmaxCrossEntropy{});
    const models::NetworkWork network = models::work(net.build());
    models::Device d = device();
    d.fp32 = Figure<FlopsPerSecond>::exact(FlopsPerSecond{1e30}, Provenance::datasheet, "test");
    return roofline_times({network, d, nullptr, Precision::fp32, 8}, Bound::stated).layers;
  };
  for (const std::int64_t entries : {10, 1000}) {
    const std::vector<LayerTime> layers = times_of(entries);
    EXPECT_DOUBLE_EQ(layers[0].forward.value(), 8 * (4 + 8 + 8) * 4 / 1e11);
    const auto table = 2.0 * static_cast<double>(entries);
    EXPECT_DOUBLE_EQ(layers[0].backward.value(), (8 * (4 + 8 + 8) + table) * 4 / 1e11);
    const auto logits = 4.0 * static_cast<double>(entries);
    EXPECT_DOUBLE_EQ(layers[1].forward.value(), (8 * (8 + logits) + table) * 4 / 1e11);
    EXPECT_DOUBLE_EQ(layers[1].backward.value(), (8 * (8 + 2 * logits + 8) + 2 * table) * 4 / 1e11);
  }
}

TEST(Roofline, MemoryBoundByHand) {
  models::NetworkWork network = one_layer();
  network.layers[0].forward_flops = 0;
  network.layers[0].weight_gradient_flops = 0;
  network.layers[0].data_gradient_flops = 0;
  const models::Device d = device();
  const ComputeTimes times =
      roofline_times({network, d, nullptr, Precision::mixed, 8}, Bound::stated);
  EXPECT_DOUBLE_EQ(times.layers[0].forward.value(), (8 * 30 + 100) * 2 / 1e11);
  EXPECT_DOUBLE_EQ(times.layers[0].backward.value(), (8 * 60 + 200) * 2 / 1e11);
}

// The test device's FP16 is slower than its FP32, as the P40's is.
TEST(Roofline, SlowNativeHalfPrecisionIsNotUsed) {
  const models::NetworkWork network = one_layer();
  const models::Device d = device();
  EXPECT_EQ(roofline_times({network, d, nullptr, Precision::mixed, 8}, Bound::stated)
                .layers[0]
                .forward.value(),
            8e-6);
}

TEST(Roofline, SlowBoundIsSlower) {
  const models::NetworkWork network = one_layer();
  const models::Device d = device();
  const ComputeRequest request{network, d, nullptr, Precision::fp32, 8};
  EXPECT_DOUBLE_EQ(roofline_times(request, Bound::slow).layers[0].forward.value(), 16e-6);
  EXPECT_DOUBLE_EQ(roofline_times(request, Bound::fast).layers[0].forward.value(), 4e-6);
}

// Where a device has TF32, frameworks compute FP32 networks in it.
TEST(Roofline, OfFp32TakesTf32) {
  const models::NetworkWork network = one_layer();
  models::Device d = device();
  const ComputeRequest request{network, d, nullptr, Precision::fp32, 8};
  const Seconds before = roofline_times(request, Bound::stated).layers[0].forward;
  d.tf32 = Figure<FlopsPerSecond>::exact(FlopsPerSecond{8e12}, Provenance::datasheet, "test");
  EXPECT_DOUBLE_EQ(roofline_times(request, Bound::stated).layers[0].forward / before, 0.25);
}

// Without any calibration: the stated roofline and 3 us of the one layer with weights (0.55 of
// that in mixed precision), over the share that is reached. The ends are the share's, not those of the roofline's own efficiencies.
TEST(ComputeTimes, OfTheRooflineHaveFixedTimesAndTheShareThatIsReached) {
  const models::NetworkWork network = one_layer();
  const models::Device d = device();
  models::Effects effects = *models::catalog_cluster("jizhi-p40").effects;
  effects.layer_launch = Figure<Seconds>::exact(Seconds{3e-6}, Provenance::measured, "test");
  const ComputeRequest request{network, d, nullptr, Precision::fp32, 8, 1, &effects};
  const Seconds roofline = roofline_times(request, Bound::stated).total();
  const double structural = roofline.value() + 3e-6;
  EXPECT_NEAR(compute_times(request, Bound::stated).total().value(), structural / 2, 1e-15);
  EXPECT_NEAR(compute_times(request, Bound::slow).total().value(), structural, 1e-15);
  EXPECT_NEAR(compute_times(request, Bound::fast).total().value(), structural / 8, 1e-15);
  const ComputeRequest mixed{network, d, nullptr, Precision::mixed, 8, 1, &effects};
  EXPECT_NEAR(compute_times(mixed, Bound::stated).total().value(),
              (roofline_times(mixed, Bound::stated).total().value() + 0.55 * 3e-6) / 4, 1e-15);
}

// The host launches a layer after the other: a small batch takes as long as that, and a large one hides it.
TEST(ComputeTimes, OfASmallBatchAreThoseOfItsHost) {
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const models::Device d = models::catalog_device("h100");
  models::Effects effects = *models::catalog_cluster("h100-ndr").effects;
  const auto exact = [](double us) {
    return Figure<Seconds>::exact(Seconds{us * 1e-6}, Provenance::measured, "test");
  };
  const auto total = [&](double host_us, int batch) {
    effects.layer_launch = exact(40);
    effects.host_launch = exact(host_us);
    return compute_times({network, d, nullptr, Precision::mixed, batch, 1, &effects}, Bound::stated)
        .total();
  };
  constexpr int layers = 54;
  for (const int batch : {1, 8, 64, 512}) {
    EXPECT_GE(total(100, batch), total(0, batch));
    EXPECT_GE(total(100, batch), layers * Seconds{100e-6});
    EXPECT_LE(total(100, batch), total(0, batch) + layers * Seconds{100e-6});
  }
  EXPECT_LT(total(100, 1), 1.2 * layers * Seconds{100e-6});
  EXPECT_LT(total(100, 512), 1.002 * total(0, 512));
}

// A transformer has a time of its host's of its own.
TEST(ComputeTimes, OfASmallBatchOfATransformerAreThoseOfItsHost) {
  const models::NetworkWork network = models::work(models::zoo_network("gpt2-small"));
  const models::Device d = models::catalog_device("h100");
  models::Effects effects = *models::catalog_cluster("h100-ndr").effects;
  const auto total = [&](double of_transformers_us, double of_others_us) {
    const auto exact = [](double us) {
      return Figure<Seconds>::exact(Seconds{us * 1e-6}, Provenance::measured, "test");
    };
    effects.host_launch = exact(of_others_us);
    effects.host_launch_transformer = exact(of_transformers_us);
    return compute_times({network, d, nullptr, Precision::mixed, 1, 1, &effects}, Bound::stated)
        .total();
  };
  const auto layers = std::ranges::count_if(
      network.layers, [](const models::LayerWork& layer) { return layer.forward_flops > 0; });
  EXPECT_EQ(total(0, 1000), total(0, 0));
  EXPECT_GE(total(1000, 0), static_cast<double>(layers) * Seconds{1e-3});
}

// An update on the host: 28 bytes of FP32 numbers and two of the copy, for all ranks of the node, and the copy's way back.
TEST(ComputeTimes, OfAnUpdateOnTheHostAreThoseOfItsMemory) {
  const models::NetworkWork network = models::work(models::zoo_network("gpt2-small"));
  const models::Device d = models::catalog_device("h100");
  const models::Cluster cluster = models::catalog_cluster("h100-ndr");
  models::Effects effects = *cluster.effects;
  effects.host_update =
      Figure<BytesPerSecond>::exact(BytesPerSecond{1e11}, Provenance::measured, "test");
  const auto n = static_cast<double>(network.parameters());
  ComputeRequest request{network, d, nullptr, Precision::mixed, 1, 8, &effects};
  request.host_link = &cluster.intra;
  request.ranks_of_node = 8;
  const Seconds on_device = compute_times(request, Bound::stated).update;
  request.optimizer.on_host = true;
  const Seconds on_host = compute_times(request, Bound::stated).update;
  EXPECT_NEAR(on_host.value(), 8 * 30 * n / 1e11 + 2 * n / cluster.intra.bandwidth.value.value(),
              1e-9 * on_host.value());
  EXPECT_GT(on_host, 10 * on_device);
}

// Neither the fixed times of layers nor the update grow with the batch.
TEST(ComputeTimes, OfAnotherBatchKeepWhatDoesNotGrowWithIt) {
  const models::NetworkWork network = models::work(models::zoo_network("bert-large"));
  const models::Device d = models::catalog_device("a100");
  models::Effects effects = *models::catalog_cluster("dgx-a100-hdr").effects;
  effects.host_launch_transformer =
      Figure<Seconds>::exact(Seconds{0}, Provenance::measured, "test");
  models::Profile profile{.name = "test", .cluster = "", .device = "a100", .origin = "test"};
  profile.throughputs = {
      {"bert-large", Precision::mixed, 64,
       Figure<PerSecond>::exact(PerSecond{320}, Provenance::measured, "a test")}};
  const auto times = [&](int batch) {
    return compute_times({network, d, &profile, Precision::mixed, batch, 1, &effects},
                         Bound::stated);
  };
  const auto fixed = 2 * times(32).total() - times(64).total();
  EXPECT_EQ(times(64).update, times(8).update);
  EXPECT_GT(fixed, times(64).update + 24 * 6 * Seconds{40e-6});
  EXPECT_NEAR((times(64).total() - times(8).total()) / (Seconds{64.0 / 320} - fixed), 56.0 / 64,
              1e-9);
}

models::Profile profile_with(double samples, int batch) {
  models::Profile profile;
  profile.name = "p";
  profile.device = "p40";
  profile.throughputs = {{"resnet50",
                          Precision::fp32,
                          batch,
                          {PerSecond{samples}, PerSecond{samples - 1}, PerSecond{samples + 1},
                           Provenance::calibrated, "test"}}};
  return profile;
}

TEST(ComputeTimes, CalibratedThroughputIsTheTotal) {
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const models::Device p40 = models::catalog_device("p40");
  const models::Profile profile = profile_with(172, 64);
  const ComputeRequest request{network, p40, &profile, Precision::fp32, 64};
  EXPECT_NEAR(64 / compute_times(request, Bound::stated).total().value(), 172, 1e-9);
  EXPECT_NEAR(64 / compute_times(request, Bound::slow).total().value(), 171, 1e-9);
  EXPECT_NEAR(64 / compute_times(request, Bound::fast).total().value(), 173, 1e-9);
}

TEST(ComputeTimes, AnotherBatchKeepsTheTimeOfASampleAndSaysSo) {
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const models::Device p40 = models::catalog_device("p40");
  const models::Profile profile = profile_with(172, 64);
  const ComputeTimes times =
      compute_times({network, p40, &profile, Precision::fp32, 32}, Bound::stated);
  EXPECT_NEAR(32 / times.total().value(), 172, 1e-9);
  EXPECT_NE(times.source.find("at batch 64"), std::string::npos) << times.source;
}

// A throughput for samples of 128 elements is scaled for others, between the ratio of lengths, which
// leaves out that attention grows with their square, and that of rooflines. One of the right length
// goes first, whatever its batch.
TEST(ComputeTimes, SamplesOfAnotherLengthTakeTheRatioOfRooflines) {
  const models::Device p40 = models::catalog_cluster("jizhi-p40").device;
  models::Profile profile{.name = "test", .cluster = "", .device = "p40", .origin = "test"};
  const auto rate = [](double samples) {
    return Figure<PerSecond>::exact(PerSecond{samples}, Provenance::measured, "a test");
  };
  profile.throughputs = {{"bert-large", Precision::fp32, 8, rate(20), 1, 1, 128}};
  const auto rate_of = [&](std::int64_t elements, Bound bound = Bound::stated) {
    const models::NetworkWork network =
        models::work(models::zoo_network("bert-large").with_sequence(elements));
    const ComputeRequest request{network, p40, &profile, Precision::fp32, 8};
    return 8 / compute_times(request, bound).total().value();
  };
  EXPECT_NEAR(rate_of(128), 20, 1e-9);
  EXPECT_LT(rate_of(512), 20.0 / 4);
  EXPECT_GT(rate_of(512), 20.0 / 8);
  EXPECT_NEAR(rate_of(512, Bound::fast), 20.0 / 4, 1e-9);
  EXPECT_NEAR(rate_of(512, Bound::slow), rate_of(512), 1e-9);
  profile.throughputs.push_back({"bert-large", Precision::fp32, 4, rate(3), 1, 1, 512});
  EXPECT_NEAR(rate_of(512), 3, 1e-9);
  // One of unknown length is taken to be the job's.
  profile.throughputs.front().sequence = 0;
  EXPECT_NEAR(rate_of(64), 20, 1e-9);
}

TEST(ComputeTimes, ALengthOfSamplesThatAreNoSequenceIsRefused) {
  const models::Device p40 = models::catalog_cluster("jizhi-p40").device;
  models::Profile profile{.name = "test", .cluster = "", .device = "p40", .origin = "test"};
  const auto rate = Figure<PerSecond>::exact(PerSecond{100}, Provenance::measured, "a test");
  profile.throughputs = {{"resnet50", Precision::fp32, 8, rate, 1, 1, 128}};
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const ComputeRequest request{network, p40, &profile, Precision::fp32, 8};
  EXPECT_EQ(test::error_of([&] { (void)compute_times(request, Bound::stated); }),
            "profile test: a throughput of resnet50 is of samples of 128 elements, and the network "
            "reads no sequence; leave its sequence out");
}

TEST(ComputeTimes, AnotherNetworkTakesTheRatioOfTheOneThatIsCalibrated) {
  const models::NetworkWork resnet = models::work(models::zoo_network("resnet50"));
  const models::NetworkWork vgg = models::work(models::zoo_network("vgg16"));
  const models::Device p40 = models::catalog_device("p40");
  const models::Profile profile = profile_with(172, 64);
  const double ratio =
      compute_times({resnet, p40, &profile, Precision::fp32, 64}, Bound::stated).total() /
      roofline_times({resnet, p40, nullptr, Precision::fp32, 64}, Bound::stated).total();
  const ComputeRequest request{vgg, p40, &profile, Precision::fp32, 64};
  EXPECT_NEAR(compute_times(request, Bound::stated).total() /
                  roofline_times(request, Bound::stated).total(),
              ratio, 1e-12);
  EXPECT_NE(compute_times(request, Bound::stated).source.find("resnet50"), std::string::npos);
  // Its waiting for others is in the other network's times, too.
  models::Profile of_many = profile;
  of_many.throughputs.front().solved_from = 16;
  const ComputeRequest from_many{vgg, p40, &of_many, Precision::fp32, 64};
  EXPECT_EQ(compute_times(from_many, Bound::stated).calibrated_ranks, 16);
  EXPECT_LT(compute_times(request, Bound::fast).total(),
            compute_times(request, Bound::slow).total());
}

TEST(ComputeTimes, LayerProfileGoesFirst) {
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const models::Device p40 = models::catalog_device("p40");
  models::Profile profile = profile_with(172, 64);
  profile.layers = {{"resnet50", Precision::fp32, 64, network.layers[0].name,
                     Figure<Seconds>::exact(Seconds{0.25}, Provenance::measured, "test"),
                     Figure<Seconds>::exact(Seconds{0.5}, Provenance::measured, "test")}};
  const ComputeTimes times =
      compute_times({network, p40, &profile, Precision::fp32, 64}, Bound::stated);
  EXPECT_EQ(times.layers[0].forward.value(), 0.25);
  EXPECT_EQ(times.layers[0].backward.value(), 0.5);
}

// The layers of Llama 3 8B at 8,192 tokens by the figures of the H100: 0.72 of 989 TFLOP/s for sides of 4,096, and
// attention at 640 x 8192 / (8192 + 1640) of heads of 128.
TEST(TransformerKernels, LayersByHand) {
  const models::NetworkWork network = models::work(models::zoo_network("llama-3-8b"));
  const models::Device h100 = models::catalog_device("h100");
  const ComputeTimes times =
      roofline_times({network, h100, nullptr, Precision::mixed, 1}, Bound::stated);
  const auto layer = [&](std::string_view name) {
    const auto found = std::ranges::find(network.layers, name, &models::LayerWork::name);
    return static_cast<std::size_t>(found - network.layers.begin());
  };
  const std::size_t product = layer("h0.mlp.up");
  const double flops = 2.0 * 8192 * 4096 * 14336;
  EXPECT_NEAR(times.layers[product].forward.value(), flops / (0.72 * 989e12), 1e-9);
  EXPECT_NEAR(times.layers[product].backward.value(), 2 * flops / (0.72 * 989e12), 1e-9);
  const std::size_t attention = layer("h0.attn");
  const double half_square = 2.0 * 8192 * 8192 * 4096;
  const double rate = 640e12 * 8192 / (8192 + 1640);
  EXPECT_NEAR(times.layers[attention].forward.value(), half_square / rate, 1e-9);
  EXPECT_NEAR(times.layers[attention].backward.value(), 2.5 * half_square / (0.82 * rate), 1e-9);
  const std::size_t norm = layer("h0.norm1");
  EXPECT_NEAR(times.layers[norm].forward.value(), (2.0 * 8192 + 1) * 4096 * 2 / (0.60 * 3350e9),
              1e-9);
}

// Other networks, FP32 and devices without a table rest on the device's efficiencies.
TEST(TransformerKernels, AreOfFusedAttentionInMixedPrecision) {
  const models::NetworkWork llama = models::work(models::zoo_network("llama-2-7b"));
  const models::NetworkWork bert = models::work(models::zoo_network("bert-base"));
  const auto source = [](const models::NetworkWork& network, const char* device,
                         Precision precision) {
    const models::Device of = models::catalog_device(device);
    return roofline_times({network, of, nullptr, precision, 1}, Bound::stated).source.substr(0, 8);
  };
  EXPECT_EQ(source(llama, "h100", Precision::mixed), "kernels ");
  EXPECT_EQ(source(llama, "h100", Precision::fp32), "roofline");
  EXPECT_EQ(source(llama, "v100", Precision::mixed), "roofline");
  EXPECT_EQ(source(bert, "h100", Precision::mixed), "roofline");
}

// Narrow networks reach less of the peak, and longer sequences more of attention's rate; the share that steps
// reach is the interval of what nothing calibrates.
TEST(TransformerKernels, ReachLessWhereTheyAreNarrow) {
  const models::Device a100 = models::catalog_device("a100-80g");
  const auto rate = [&](const char* name) {
    const models::NetworkWork network = models::work(models::zoo_network(name));
    const ComputeTimes times =
        roofline_times({network, a100, nullptr, Precision::mixed, 1}, Bound::stated);
    const auto found = std::ranges::find_if(
        network.layers, [](const models::LayerWork& layer) { return layer.name == "h0.mlp.down"; });
    const auto i = static_cast<std::size_t>(found - network.layers.begin());
    return static_cast<double>(found->forward_flops) / times.layers[i].forward.value();
  };
  EXPECT_GT(rate("llama-3-8b"), rate("qwen2.5-7b"));
  EXPECT_NEAR(rate("llama-3-70b"), rate("llama-3-8b"), 1e6);
  const models::NetworkWork network = models::work(models::zoo_network("llama-2-7b"));
  const auto total = [&](Bound bound) {
    return compute_times({network, a100, nullptr, Precision::mixed, 1}, bound).total().value();
  };
  EXPECT_LT(total(Bound::fast), total(Bound::stated) / 1.2);
  EXPECT_GT(total(Bound::slow), total(Bound::stated) * 1.2);
}

TEST(TransformerKernels, FillTheLastWaveOfTilesLessWithFewTokens) {
  // 132 tiles of 256 x 128 are one wave on 132 multiprocessors. One tile more makes 266 of half the size the best, in three
  // waves at 0.9 of the rate.
  const double many = wave_share(8192, 132 * 128, 132);
  EXPECT_EQ(many, 1);
  const double full = wave_share(256, 132 * 128, 132);
  EXPECT_NEAR(wave_share(256, 133 * 128, 132) / full, 3 * 0.5 / 0.9 * 132 / 133, 0.05);
  for (const int multiprocessors : {108, 132, 148})
    for (const double features : {1792.0, 4096.0, 7168.0, 14336.0, 128256.0}) {
      double before = 0;
      for (double tokens = 64; tokens <= 65536; tokens *= 1.3) {
        // More tokens never take less, and many never wait for a wave.
        const double time = tokens * wave_share(tokens, features, multiprocessors);
        EXPECT_GE(time, before * (1 - 1e-12)) << tokens << " x " << features;
        before = time;
        if (tokens * features > 4096.0 * 14336) {
          EXPECT_NEAR(wave_share(tokens, features, multiprocessors), 1, 0.3) << tokens;
        }
      }
    }
}

}  // namespace
}  // namespace paceline::simulator
