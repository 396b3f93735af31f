// How fast the executor's all-reduce is beside Open MPI's and Gloo's, in the same processes.
//
//   mpirun -n 2 build/release/tests/benchmarks/all_reduce_benchmark [options]
//     --sizes 1024,1048576   bytes of the FP32 bucket     --repetitions 30   of each contender
//     --message BYTES        the largest message          --only TEXT,TEXT   names that contain one
//     --all                  a row for each contender     --json             machine-readable
//     --best                 the least of the repetitions, where others use the cores
//
// For each size every contender runs once per repetition, in turn, so that what else the machine
// does falls on all alike: ours with each schedule of the catalogue, MPI_Allreduce with its own
// choice and with each of its algorithms, Gloo's algorithms over loopback TCP. A run of a small
// size is a few all-reduces. Its time is that of the slowest rank; figures are medians of the
// repetitions. Of each library the fastest contender is in the table, named: that is what a planner
// would choose. The exchange of an empty message with the next rank, by MPI and through our
// transport, is the overhead of the transport.
//
// malloc keeps its pages for all (mallopt below): Open MPI allocates scratch on each call, and is
// twice as fast with it above 1 MiB.
#include <fmt/format.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/collective/catalogue.h"
#include "runtime/collective/executor.h"
#include "runtime/device/memory.h"
#include "runtime/tensor/kernels.h"
#include "runtime/transport/mpi_transport.h"

namespace {

using namespace paceline;

struct Options {
  std::vector<std::size_t> sizes;
  int repetitions = 30;
  std::size_t message_bytes = 0;
  std::vector<std::string> only;
  bool all = false;
  bool best = false;
  bool json = false;
};

struct Contender {
  std::string library;  // "ours", "ours fp16", "open-mpi", "gloo"
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};

  bool by_best = false;  // what contenders are compared by: the least, or the median

  [[nodiscard]] double figure() const { return by_best ? best() : median(); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

Options options_of(int argc, char** argv) {
  Options options;
  const auto number = [](std::string_view text) {
    std::size_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
      std::exit(2);
    return value;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--all") {
      options.all = true;
      continue;
    }
    if (option == "--best") {
      options.best = true;
      continue;
    }
    if (option == "--json") {
      options.json = true;
      continue;
    }
    ++i;
    if (option == "--repetitions") options.repetitions = static_cast<int>(number(value));
    if (option == "--message") options.message_bytes = number(value);
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      const std::string_view word = value.substr(at, comma - at);
      if (option == "--only") options.only.emplace_back(word);
      if (option == "--sizes") options.sizes.push_back(number(word));
      at = comma + 1;
    }
  }
  if (options.sizes.empty()) {
    for (std::size_t bytes = 1 << 10; bytes <= std::size_t{64} << 20; bytes *= 4)
      options.sizes.push_back(bytes);
  }
  return options;
}

// A communicator for each of Open MPI's algorithms: the choice is read when one is made.
std::vector<std::pair<std::string, MPI_Comm>> open_mpi_algorithms() {
  const char* names[] = {"its choice", "linear",         "nonoverlapping", "recursive doubling",
                         "ring",       "segmented ring", "rabenseifner"};
  std::vector<std::pair<std::string, MPI_Comm>> made;
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  int index = 0;
  const bool found = MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) == MPI_SUCCESS;
  for (int algorithm = 0; algorithm < (found ? 7 : 1); ++algorithm) {
    if (found) {
      MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
      int count = 0;
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count);
      MPI_T_cvar_write(handle, &algorithm);
      MPI_T_cvar_handle_free(&handle);
    }
    made.emplace_back(names[algorithm], MPI_COMM_NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &made.back().second);
  }
  return made;
}

std::shared_ptr<gloo::rendezvous::Context> gloo_context(int rank, int ranks) {
  int job = getpid();
  MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("paceline-gloo-{}", job);
  std::filesystem::create_directories(folder);
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  gloo::rendezvous::FileStore store(folder.string());
  context->connectFullMesh(store, device);
  MPI_Barrier(MPI_COMM_WORLD);
  std::error_code ignored;
  if (rank == 0) std::filesystem::remove_all(folder, ignored);
  return context;
}

constexpr double longest_s = 20;  // for a size

// Runs all contenders in turn, `inner` times each. Their times are the slowest rank's.
void measure(std::vector<Contender>& contenders, int repetitions, int inner) {
  const double begin = MPI_Wtime();
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    // At least three of each, however long they take.
    int late = repetition >= 3 && MPI_Wtime() - begin > longest_s ? 1 : 0;
    MPI_Bcast(&late, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (late != 0) return;
    for (Contender& contender : contenders) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < inner; ++i) contender.run();
      const double own = (MPI_Wtime() - start) / inner;
      double slowest = 0;
      MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (repetition >= 0) contender.seconds.push_back(slowest);
    }
  }
}

const Contender& fastest(const std::vector<Contender>& contenders, const std::string& library) {
  const Contender* least = nullptr;
  for (const Contender& c : contenders) {
    if (c.library == library && (least == nullptr || c.figure() < least->figure())) least = &c;
  }
  static const Contender none{.library = "", .name = "-", .run = {}, .seconds = {0}};
  return least == nullptr ? none : *least;
}

void add_ours(std::vector<Contender>& contenders, runtime::Executor& executor, int ranks,
              std::size_t elements, float* data) {
  for (const auto type : {runtime::NumberType::fp32, runtime::NumberType::fp16}) {
    for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue()) {
      // Never best there, and slow.
      if (elements > (1 << 18) && algorithm.name == "double-binary-tree") continue;
      // All ranks are one group: to one master, and back.
      const bool through_master = algorithm.name.starts_with("hierarchical");
      models::Schedule schedule =
          algorithm.build({.ranks = ranks, .group_size = through_master ? ranks : 0});
      const runtime::Collective collective =
          executor.prepare(schedule, static_cast<std::int64_t>(elements), type);
      contenders.push_back({type == runtime::NumberType::fp32 ? "ours" : "ours fp16",
                            std::string(algorithm.name),
                            [&executor, collective, data] { executor.run(collective, data); }});
    }
  }
}

template <class Algorithm>
void add_gloo(std::vector<Contender>& contenders, const char* name,
              const std::shared_ptr<gloo::rendezvous::Context>& context, float* data,
              std::size_t elements) {
  auto algorithm =
      std::make_shared<Algorithm>(context, std::vector<float*>{data}, static_cast<int>(elements));
  contenders.push_back({"gloo", name, [algorithm] { algorithm->run(); }});
}

void print_overhead(runtime::Transport& transport, bool json, nlohmann::json& document) {
  const int rank = transport.rank();
  const int ranks = transport.ranks();
  if (ranks < 2) return;
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  runtime::Executor executor(transport);
  const runtime::Collective ring =
      executor.prepare(models::all_reduce_algorithm("ring").build({.ranks = ranks}), ranks,
                       runtime::NumberType::fp32);
  std::vector<float> bucket(static_cast<std::size_t>(ranks));
  std::vector<float> room(2);
  const auto by_mpi = [&] {
    for (int step = 0; step < 2 * (ranks - 1); ++step) {
      MPI_Request requests[2];
      MPI_Irecv(&room[0], 4, MPI_BYTE, previous, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(&room[1], 4, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
  };
  std::vector<Contender> contenders;
  contenders.push_back({"mpi", "messages of a ring, bare", by_mpi});
  contenders.push_back(
      {"ours", "the same through the executor", [&] { executor.run(ring, bucket.data()); }});
  measure(contenders, 200, 50);
  if (rank != 0) return;
  const double messages = 2.0 * (ranks - 1);
  const double bare = contenders[0].median() / messages * 1e6;
  const double ours = contenders[1].median() / messages * 1e6;
  document["message_us"] = {{"mpi", bare}, {"ours", ours}};
  if (!json)
    fmt::print(
        "a message of 4 bytes in a ring: {:.2f} us by bare MPI, {:.2f} us by the executor\n\n",
        bare, ours);
}

void report(const Options& options, std::size_t bytes, const std::vector<Contender>& contenders,
            nlohmann::json& document) {
  const Contender& ours = fastest(contenders, "ours");
  const Contender& half = fastest(contenders, "ours fp16");
  const Contender& open_mpi = fastest(contenders, "open-mpi");
  const Contender& gloo = fastest(contenders, "gloo");
  double peer = open_mpi.figure() > 0 ? open_mpi.figure() : gloo.figure();
  if (gloo.figure() > 0) peer = std::min(peer, gloo.figure());
  nlohmann::json row = {{"bytes", bytes}, {"ratio", peer / ours.figure()}};
  for (const Contender& c : contenders) {
    row["contenders"].push_back(
        {{"library", c.library}, {"name", c.name}, {"median_s", c.median()}, {"best_s", c.best()}});
  }
  document["sizes"].push_back(row);
  if (options.json) return;
  fmt::print(
      "{:>10} {:>10.1f} {:<22} {:>10.1f} {:<20} {:>10.1f} {:<16} {:>6.2f} {:>10.1f} {:>6.2f}\n",
      bytes, ours.figure() * 1e6, ours.name, open_mpi.figure() * 1e6, open_mpi.name,
      gloo.figure() * 1e6, gloo.name, peer / ours.figure(), half.figure() * 1e6,
      ours.figure() / half.figure());
  if (options.all) {
    for (const Contender& c : contenders)
      fmt::print("    {:<10} {:<22} {:>10.1f} us, best {:.1f}\n", c.library, c.name,
                 c.median() * 1e6, c.best() * 1e6);
  }
  std::fflush(stdout);
}

int run(const Options& options) {
  setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
  const auto transport = runtime::mpi_transport();
  const int rank = transport->rank();
  const int ranks = transport->ranks();
  const auto open_mpi = open_mpi_algorithms();
  const auto gloo = gloo_context(rank, ranks);
  nlohmann::json document = {{"schema", "paceline.all_reduce_benchmark/1"}, {"ranks", ranks}};
  print_overhead(*transport, options.json, document);
  if (rank == 0 && !options.json) {
    fmt::print("{} ranks; microseconds, {} of {} runs in turn\n", ranks,
               options.best ? "the least" : "medians", options.repetitions);
    fmt::print("{:>10} {:>10} {:<22} {:>10} {:<20} {:>10} {:<16} {:>6} {:>10} {:>6}\n", "bytes",
               "ours", "schedule", "open-mpi", "algorithm", "gloo", "algorithm", "ratio",
               "ours fp16", "gain");
  }
  for (const std::size_t bytes : options.sizes) {
    const std::size_t elements = bytes / sizeof(float);
    const runtime::Memory memory = runtime::host_memory(bytes);  // all contenders' bucket
    const std::span<float> data(reinterpret_cast<float*>(memory.bytes().data()), elements);
    std::fill(data.begin(), data.end(), 0.0F);
    runtime::Executor executor(*transport, {.message_bytes = options.message_bytes});
    std::vector<Contender> contenders;
    add_ours(contenders, executor, ranks, elements, data.data());
    for (const auto& [name, communicator] : open_mpi) {
      if (elements > (1 << 20) && (name == "linear" || name == "nonoverlapping")) continue;
      contenders.push_back({"open-mpi", name, [data, communicator = communicator] {
                              MPI_Allreduce(MPI_IN_PLACE, data.data(),
                                            static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM,
                                            communicator);
                            }});
    }
    add_gloo<gloo::AllreduceHalvingDoubling<float>>(contenders, "halving-doubling", gloo,
                                                    data.data(), elements);
    add_gloo<gloo::AllreduceRingChunked<float>>(contenders, "ring chunked", gloo, data.data(),
                                                elements);
    add_gloo<gloo::AllreduceRing<float>>(contenders, "ring", gloo, data.data(), elements);
    std::erase_if(contenders, [&](const Contender& c) {
      return !options.only.empty() &&
             std::none_of(options.only.begin(), options.only.end(), [&](const std::string& text) {
               return (c.library + " " + c.name).find(text) != std::string::npos;
             });
    });
    for (Contender& c : contenders) c.by_best = options.best;
    measure(contenders, options.repetitions, bytes <= (1 << 16) ? 20 : bytes <= (16 << 20) ? 4 : 1);
    if (rank == 0) report(options, bytes, contenders, document);
  }
  if (rank == 0 && options.json) fmt::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 256 << 20);
  try {
    return run(options_of(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
