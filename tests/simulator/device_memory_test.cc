// What a rank needs of its device's memory, against totals worked out by hand.
#include "simulator/cost/device_memory.h"

#include <gtest/gtest.h>

#include "models/network/zoo.h"
#include "models/plan/strategy.h"

namespace paceline::simulator {
namespace {

struct Job {
  models::NetworkWork network;
  models::Plan plan;
  models::Precision precision = models::Precision::fp32;
  int batch = 32;

  Job(const char* model, const char* strategy, int ranks, models::WireType wire,
      const models::Thresholds& thresholds = {})
      : network(models::work(models::zoo_network(model))),
        plan(models::make_plan(models::strategy(strategy), network.gradients, ranks, wire,
                               thresholds)) {}
  [[nodiscard]] MemoryRequest request() const { return {network, plan, precision, batch}; }
};

// relu1 leaves 16 x 28 x 28 = 12544 elements where conv1 wrote them, pool1 3136 and as many indices, and relu2
// 6272. In the backward pass of relu2 all later layers have dropped theirs.
constexpr double kept = 12544 + 2 * 3136 + 6272;
// (25 + 1) x 16, (25 x 16 + 1) x 32, (1568 + 1) x 128, (128 + 1) x 10.
constexpr double parameters = 416 + 12832 + 200832 + 1290;
// relu2 reads a gradient of 6272 elements and writes one.
constexpr double largest_layer = 2 * 6272;

TEST(DeviceMemory, OfASmallNetworkIsWhatOneCountsByHand) {
  const Job job("cnn-small", "ring", 4, models::WireType::fp32);
  const DeviceMemory memory = device_memory(job.request());
  EXPECT_EQ(memory.parameters.value(), 4 * parameters);
  EXPECT_EQ(memory.masters.value(), 0);
  EXPECT_EQ(memory.gradients.value(), 4 * parameters);
  EXPECT_EQ(memory.optimizer.value(), 4 * parameters);
  EXPECT_EQ(memory.activations.value(), 32 * 4 * kept);
  EXPECT_EQ(memory.input.value(), 32 * 4 * 784);
  EXPECT_EQ(memory.workspace.value(), 32 * 4 * largest_layer);
  EXPECT_EQ(memory.buffers.value(), 2 * 4 * 1568 * 128);  // fc1.weight
  EXPECT_EQ(memory.total().value(),
            3 * 4 * parameters + 32 * 4 * (kept + 784 + largest_layer) + 2 * 4 * 1568 * 128);
  EXPECT_EQ(job.network.layers[static_cast<std::size_t>(memory.peak_layer)].name, "relu2");
}

// Four tokens of 4 features in 2 heads. Attention keeps the softmax of its 2 x 4 x 4 scores (not the
// scores), what dropout makes of it and its mask, and writes 4 x 4 features. The loss writes as
// many elements as it has logits.
TEST(DeviceMemory, OfAttentionIsTheSoftmaxOfItsScores) {
  models::NetworkBuilder net("toy", models::Shape::sequence(4));
  net.add("embedding", models::Embedding{.entries = 9, .features = 4});
  net.add("qkv", models::Linear{12});
  net.add("attention", models::Attention{.heads = 2, .dropout = 0.1});
  net.add("logits", models::Linear{5});
  net.add("loss", models::SoftmaxCrossEntropy{});
  const models::NetworkWork network = models::work(net.build());
  const models::Plan plan =
      models::make_plan(models::strategy("ring"), network.gradients, 1, models::WireType::fp32, {});
  const DeviceMemory memory =
      device_memory({network, plan, models::Precision::fp32, /*batch_per_rank=*/3});
  const double embedding = 4 * 4;
  const double attention = 3 * 2 * 4 * 4 + 4 * 4;
  // In its backward pass the logits are gone, and it has gradients of its output, its inputs and its scores.
  EXPECT_EQ(memory.activations.value(), 3 * 4 * (embedding + 4 * 12 + attention));
  EXPECT_EQ(memory.workspace.value(), 3 * 4 * (4 * 4 + 4 * 12 + 3 * 2 * 4 * 4));
  // The gradient of the table is dense.
  EXPECT_EQ(memory.gradients.value(), 4.0 * (9 * 4 + (4 + 1) * 12 + (4 + 1) * 5));
}

// Mixed precision halves what the passes work on, and adds the masters. Buffers are of the wire.
TEST(DeviceMemory, OfMixedPrecisionHasMasters) {
  Job job("cnn-small", "ring", 4, models::WireType::fp16);
  job.precision = models::Precision::mixed;
  const DeviceMemory memory = device_memory(job.request());
  EXPECT_EQ(memory.parameters.value(), 2 * parameters);
  EXPECT_EQ(memory.masters.value(), 4 * parameters);
  EXPECT_EQ(memory.gradients.value(), 2 * parameters);
  EXPECT_EQ(memory.optimizer.value(), 4 * parameters);
  EXPECT_EQ(memory.activations.value(), 32 * 2 * kept);
  EXPECT_EQ(memory.input.value(), 32 * 4 * 784);
  EXPECT_EQ(memory.workspace.value(), 32 * 2 * largest_layer);
  EXPECT_EQ(memory.buffers.value(), 2 * 2 * 1568 * 128);
}

// The host has masters and states, and of gradients those that are split. Parameters stay in 16 bits.
TEST(DeviceMemory, OfAnOptimizerOnTheHostHasNone) {
  for (const char* strategy : {"ring", "zero1", "zero2", "fsdp"}) {
    SCOPED_TRACE(strategy);
    Job job("cnn-small", strategy, 4, models::WireType::fp16);
    job.precision = models::Precision::mixed;
    MemoryRequest request = job.request();
    const DeviceMemory before = device_memory(request);
    request.optimizer.on_host = true;
    const DeviceMemory after = device_memory(request);
    const std::string_view name = strategy;
    const double shards = name == "ring" ? 1 : 4;
    EXPECT_EQ(after.masters.value() + after.optimizer.value(), 0);
    EXPECT_EQ(after.on_host.value(), 4 * parameters *
                                         (name == "ring"    ? 3
                                          : name == "zero1" ? 1 + 2 / shards
                                                            : 3 / shards));
    const bool splits_gradients = name == "zero2" || name == "fsdp";
    EXPECT_EQ(after.gradients.value(), splits_gradients ? 0 : before.gradients.value());
    EXPECT_EQ(after.parameters.value(), name == "fsdp" ? 2 * parameters / 4 : 2 * parameters);
    EXPECT_LT(after.total().value(), before.total().value());
  }
}

TEST(DeviceMemory, CountsTheStatesOfTheOptimizer) {
  const Job job("cnn-small", "ring", 4, models::WireType::fp32);
  MemoryRequest request = job.request();
  for (const int states : {0, 1, 2}) {
    request.optimizer.states = states;
    EXPECT_EQ(device_memory(request).optimizer.value(), states * 4 * parameters);
  }
}

// The gradients of the last iteration wait for the update while this one's come.
TEST(DeviceMemory, OfDoubleBufferingHasTheGradientsTwice) {
  Job job("cnn-small", "ring", 4, models::WireType::fp32);
  job.plan.overlap = models::Overlap::double_buffered;
  EXPECT_EQ(device_memory(job.request()).gradients.value(), 2 * 4 * parameters);
}

TEST(DeviceMemory, HasBuffersForWhatTravelsAtTheSameTime) {
  const auto buffers = [](const char* strategy, int ranks, const models::Thresholds& thresholds) {
    return device_memory(
               Job("cnn-small", strategy, ranks, models::WireType::fp32, thresholds).request())
        .buffers.value();
  };
  EXPECT_EQ(buffers("ring", 1, {}), 0);
  EXPECT_EQ(buffers("ring", 4, {.streams = 2}), 2 * 4 * (1568 * 128 + 400 * 32));
  EXPECT_EQ(buffers("fused-ring", 4, {.fusion = Bytes{1e9}}), 2 * 4 * parameters);
  EXPECT_EQ(buffers("ring", 4, {.streams = 100}), 2 * 4 * parameters);
  EXPECT_EQ(buffers("parameter-server", 4, {.servers = 2}), 2 * 4 * parameters);
}

TEST(DeviceMemory, TheLargestBatchFitsAndTheNextDoesNot) {
  const Job job("cnn-small", "ring", 4, models::WireType::fp32);
  const Bytes need = device_memory(job.request()).total();
  EXPECT_EQ(largest_batch(job.request(), need), 32);
  EXPECT_EQ(largest_batch(job.request(), need - Bytes{1}), 31);
  const double fixed = 3 * 4 * parameters + 2 * 4 * 1568 * 128;
  EXPECT_EQ(largest_batch(job.request(), Bytes{fixed}), 0);
  EXPECT_EQ(largest_batch(job.request(), Bytes{fixed - 1}), 0);
  for (const char* model : {"resnet50", "vgg16", "alexnet"}) {
    Job large(model, "fused-ring", 8, models::WireType::fp16, {.fusion = Bytes{1e7}});
    large.precision = models::Precision::mixed;
    const Bytes capacity{16e9};
    large.batch = largest_batch(large.request(), capacity);
    EXPECT_LE(device_memory(large.request()).total(), capacity) << model;
    ++large.batch;
    EXPECT_GT(device_memory(large.request()).total(), capacity) << model;
  }
}

// VGG-16 as the literature counts it. CS231n (Stanford, convolutional networks, "VGGNet in detail")
// lists 15.2 million numbers of input, convolutions, pools and fully connected layers: 58 MiB an
// image in FP32; and 138 million parameters.
TEST(DeviceMemory, OfVgg16IsThatOfTheLiterature) {
  Job job("vgg16", "ring", 8, models::WireType::fp32);
  job.batch = 1;
  double outputs = static_cast<double>(job.network.input_elements);
  for (const models::LayerWork& layer : job.network.layers) {
    if (layer.kind == "convolution" || layer.kind == "max_pool" || layer.kind == "fully_connected")
      outputs += static_cast<double>(layer.output.elements());
  }
  EXPECT_EQ(outputs, 15237608);
  EXPECT_NEAR(outputs * 4 / (1 << 20), 58.1, 0.05);
  const DeviceMemory memory = device_memory(job.request());
  EXPECT_NEAR(memory.parameters.value(), 138.36e6 * 4, 0.01e6 * 4);
  // Beside these, the indices of 5 pools, the outputs and masks of 2 dropouts, and the loss.
  double stored = static_cast<double>(job.network.input_elements);
  for (const models::LayerWork& layer : job.network.layers)
    stored += static_cast<double>(layer.stored);
  EXPECT_EQ(stored, outputs + 1530368 + 2 * 2 * 4096 + 1000);
  // No pass needs more than all of it with the gradients of the widest layer.
  EXPECT_LE((memory.activations + memory.input + memory.workspace).value(),
            4 * (stored + 2 * 64 * 224 * 224));
  // 16 GB hold tens of images, not 100,000.
  const int most = largest_batch(job.request(), Bytes{16e9});
  EXPECT_GT(most, 64);
  EXPECT_LT(most, 256);
}

}  // namespace
}  // namespace paceline::simulator
