// Times Gloo's all-reduces by size, as timing.h says, over TCP on the device "nic".
//
// mpirun starts it, and its variables say the rank; MPI itself is not used. Ranks meet in the folder
// GLOO_FOLDER. GLOO_ALGORITHM is ring, bcube, ring-old, ring-chunked or halving-doubling.
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "experiments/lab/peers/timing.h"

namespace paceline::lab {
namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

using Context = std::shared_ptr<gloo::rendezvous::Context>;

Context connect(Ranks ranks) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = variable("GLOO_DEVICE", "nic");
  auto context = std::make_shared<gloo::rendezvous::Context>(ranks.rank, ranks.ranks);
  gloo::rendezvous::FileStore store(variable("GLOO_FOLDER", "."));
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(store, device);
  return context;
}

double slowest(const Context& context, double seconds) {
  gloo::AllreduceOptions options(context);
  options.setOutput(&seconds, 1);
  options.setReduceFunction([](void* result, const void* a, const void* b, std::size_t count) {
    gloo::max<double>(result, a, b, count);
  });
  gloo::allreduce(options);
  return seconds;
}

// The interface of today, which has ring and bcube.
void all_reduce(const Context& context, gloo::AllreduceOptions::Algorithm algorithm,
                std::vector<float>& bucket) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setOutput(bucket.data(), bucket.size());
  options.setReduceFunction([](void* result, const void* a, const void* b, std::size_t count) {
    gloo::sum<float>(result, a, b, count);
  });
  gloo::allreduce(options);
}

template <class Body>
bool timed(const Context& context, Ranks ranks, std::int64_t bytes, int repetitions, Body body) {
  return time_all_reduce(
      "gloo", ranks, bytes, repetitions,
      [&] {
        gloo::BarrierOptions options(context);
        gloo::barrier(options);
      },
      [&](double seconds) { return slowest(context, seconds); }, body);
}

// The older interface, an object that is bound to one bucket. It is made once the bucket is known, in
// the repetition that is not counted.
template <template <class> class Algorithm>
bool timed_object(const Context& context, Ranks ranks, std::int64_t bytes, int repetitions) {
  std::unique_ptr<Algorithm<float>> object;
  return timed(context, ranks, bytes, repetitions, [&](std::vector<float>& bucket) {
    if (!object) {
      object = std::make_unique<Algorithm<float>>(context, std::vector<float*>{bucket.data()},
                                                  static_cast<int>(bucket.size()));
    }
    object->run();
  });
}

template <class T>
using Ring = gloo::AllreduceRing<T>;
template <class T>
using RingChunked = gloo::AllreduceRingChunked<T>;
template <class T>
using HalvingDoubling = gloo::AllreduceHalvingDoubling<T>;

bool timed_algorithm(const std::string& name, const Context& context, Ranks ranks,
                     std::int64_t bytes, int repetitions) {
  using Modern = gloo::AllreduceOptions::Algorithm;
  if (name == "ring-chunked") {
    return timed_object<RingChunked>(context, ranks, bytes, repetitions);
  }
  if (name == "halving-doubling") {
    return timed_object<HalvingDoubling>(context, ranks, bytes, repetitions);
  }
  if (name == "ring-old") return timed_object<Ring>(context, ranks, bytes, repetitions);
  const auto algorithm = name == "bcube" ? Modern::BCUBE : Modern::RING;
  return timed(context, ranks, bytes, repetitions,
               [&](std::vector<float>& bucket) { all_reduce(context, algorithm, bucket); });
}

}  // namespace
}  // namespace paceline::lab

int main(int argc, char** argv) {
  using namespace paceline::lab;
  const auto options = TimingOptions::from_arguments(argc, argv);
  const Ranks ranks{std::stoi(variable("OMPI_COMM_WORLD_RANK", "0")),
                    std::stoi(variable("OMPI_COMM_WORLD_SIZE", "1"))};
  const auto context = connect(ranks);
  const std::string algorithm = variable("GLOO_ALGORITHM", "ring");
  bool right = true;
  for (std::int64_t bytes = options.smallest_bytes; bytes <= options.largest_bytes; bytes *= 2) {
    right = timed_algorithm(algorithm, context, ranks, bytes, options.repetitions) && right;
  }
  return right ? 0 : 1;
}
