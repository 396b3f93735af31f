// How fast the executor's collectives are beside Open MPI's and Gloo's, in one run.
//
//   mpirun -n 2 build/release/tests/benchmarks/collective_benchmark [options]
//     --collective all-gather   all-reduce (the default), reduce-scatter, all-gather, all-to-all
//     --sizes 1024,1048576      bytes of the FP32 bucket   --repetitions 30   of each contender
//     --message BYTES           the largest message        --only TEXT,TEXT   names with one of them
//     --all                     a row for each contender   --json             machine-readable
//     --best                    the least of the repetitions, where others use the cores
//
// A bucket is what all ranks have together: a rank's part of an all-gather is one of its p parts.
// For each size every contender runs once per repetition, in an order that is drawn anew, so that
// what else the machine does, and what a contender leaves in the caches, falls on all alike: ours with each algorithm of the catalogue, over MPI and between as many
// threads of rank 0's process, while the other processes sleep; MPI's with its own choice and with
// each of its algorithms; Gloo's algorithms over loopback TCP. A run of a small size is a few
// collectives. Its time is that of the slowest rank; figures are medians of the repetitions. Of
// each library the fastest contender is in the table, named: that is what a planner would choose.
// The exchange of an empty message with the next rank, by MPI and through our transport, is the
// overhead of the transport.
//
// malloc keeps its pages for all (mallopt below): Open MPI allocates scratch on each call, and is
// twice as fast with it above 1 MiB.
#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <malloc.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "runtime/collective/executor.h"
#include "runtime/device/memory.h"
#include "runtime/tensor/kernels.h"
#include "runtime/transport/mpi_transport.h"
#include "runtime/transport/thread_transport.h"

namespace {

using namespace paceline;
using models::Collective;

struct Options {
  Collective collective = Collective::all_reduce;
  std::vector<std::size_t> sizes;
  int repetitions = 30;
  std::size_t message_bytes = 0;
  std::vector<std::string> only;
  bool all = false;
  bool best = false;
  bool json = false;
};

struct Contender {
  std::string library;  // "ours", "ours fp16", "threads", "open-mpi", "gloo"
  std::string name;
  // Runs the collective this many times. Returns this rank's time, in seconds.
  std::function<double(int)> time;
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

// The collective that is timed, and its memory. `bucket` is the rank's bucket. `other` has the same
// size, for libraries that do not work in place.
struct Job {
  Collective collective;
  int rank;
  int ranks;
  std::size_t message_bytes;
  std::span<float> bucket;
  std::span<float> other;

  [[nodiscard]] int elements() const { return static_cast<int>(bucket.size()); }
  [[nodiscard]] int part() const { return elements() / ranks; }
};

Options options_of(int argc, char** argv) {
  Options options;
  const auto number = [](std::string_view text) {
    std::size_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
      throw InputError(fmt::format("{} is no number", text), "give one");
    return value;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--all") options.all = true;
    if (option == "--best") options.best = true;
    if (option == "--json") options.json = true;
    if (i + 1 == argc) break;
    const std::string_view value = argv[i + 1];
    if (option == "--collective") options.collective = models::collective_from_name(value);
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

std::function<double(int)> timed(std::function<void()> run) {
  return [run = std::move(run)](int runs) {
    run();  // the caches then hold what is its own
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < runs; ++i) run();
    return MPI_Wtime() - start;
  };
}

// The ranks of a job as threads of this process, each with a bucket of its own.
class ThreadRanks {
 public:
  ThreadRanks(const Job& job, const models::Schedule& schedule, runtime::NumberType type)
      : transports_(runtime::thread_transports(job.ranks, 1)), together_(job.ranks + 1) {
    for (int rank = 0; rank < job.ranks; ++rank)
      threads_.emplace_back(
          [this, &job, &schedule, type, rank] { serve(job, schedule, type, rank); });
    together_.arrive_and_wait();
  }
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;
  ~ThreadRanks() {
    runs_ = 0;
    together_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  // The time of the slowest rank.
  [[nodiscard]] double time(int runs) {
    runs_ = runs;
    slowest_ = 0;
    together_.arrive_and_wait();
    together_.arrive_and_wait();
    return slowest_;
  }

 private:
  // Where mpirun would have a rank: on a core of its own where there are enough, on any where not.
  static void place(int rank, int ranks) {
    const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core = 0; core < cores; ++core)
      if (ranks > cores || core == rank) CPU_SET(to_size(core), &set);
    sched_setaffinity(0, sizeof set, &set);
  }

  void serve(const Job& job, const models::Schedule& schedule, runtime::NumberType type, int rank) {
    place(rank, job.ranks);
    runtime::Executor executor(*transports_[to_size(rank)], {.message_bytes = job.message_bytes});
    const runtime::Memory memory = runtime::host_memory(job.bucket.size_bytes());
    std::ranges::fill(memory.bytes(), std::byte{0});
    const runtime::Collective collective = executor.prepare(schedule, job.elements(), type);
    together_.arrive_and_wait();
    for (;;) {
      together_.arrive_and_wait();
      if (runs_ == 0) return;
      executor.run(collective, memory.bytes().data());  // all are awake after it
      const double start = MPI_Wtime();
      for (int i = 0; i < runs_; ++i) executor.run(collective, memory.bytes().data());
      const double own = MPI_Wtime() - start;
      double slowest = slowest_;
      while (own > slowest && !slowest_.compare_exchange_weak(slowest, own)) {
      }
      together_.arrive_and_wait();
    }
  }

  std::vector<std::unique_ptr<runtime::Transport>> transports_;
  std::barrier<> together_;
  std::atomic<int> runs_ = 0;
  std::atomic<double> slowest_ = 0;
  std::vector<std::thread> threads_;
};

// The other processes leave the cores to rank 0's threads.
void sleep_until_all_are_here() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) usleep(200);
  }
}

void add_ours(std::vector<Contender>& contenders, runtime::Executor& executor, const Job& job) {
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    if (algorithm.collective != job.collective) continue;
    // Never best there, and slow.
    if (job.elements() > (1 << 18) && algorithm.name == "double-binary-tree") continue;
    // All ranks are one group: to one master, and back.
    const bool through_master = algorithm.name.starts_with("hierarchical");
    const models::Schedule schedule =
        algorithm.build({.ranks = job.ranks, .group_size = through_master ? job.ranks : 0});
    const std::string name(algorithm.name);
    for (const auto type : {runtime::NumberType::fp32, runtime::NumberType::fp16}) {
      if (type != runtime::NumberType::fp32 && !models::reduces(job.collective)) continue;
      const runtime::Collective collective = executor.prepare(schedule, job.elements(), type);
      contenders.push_back({.library = type == runtime::NumberType::fp32 ? "ours" : "ours fp16",
                            .name = name,
                            .time = timed([&executor, collective, data = job.bucket.data()] {
                              executor.run(collective, data);
                            })});
    }
    std::shared_ptr<ThreadRanks> threads;
    if (job.rank == 0)
      threads = std::make_shared<ThreadRanks>(job, schedule, runtime::NumberType::fp32);
    contenders.push_back({.library = "threads", .name = name, .time = [threads](int runs) {
                            const double own = threads ? threads->time(runs) : 0;
                            sleep_until_all_are_here();
                            return own;
                          }});
  }
}

// A communicator for each of Open MPI's algorithms: the choice is read when one is made.
struct MpiAlgorithm {
  std::string name;
  MPI_Comm communicator = MPI_COMM_NULL;
};
std::vector<MpiAlgorithm> mpi_algorithms(const char* variable, const char* prefix,
                                         std::initializer_list<const char*> names) {
  std::vector<MpiAlgorithm> made;
  int index = 0;
  const bool found = MPI_T_cvar_get_index(variable, &index) == MPI_SUCCESS;
  int algorithm = 0;
  for (const char* name : names) {
    if (algorithm > 0 && !found) break;
    if (found) {
      MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
      int count = 0;
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count);
      MPI_T_cvar_write(handle, &algorithm);
      MPI_T_cvar_handle_free(&handle);
    }
    MpiAlgorithm& one = made.emplace_back(MpiAlgorithm{.name = std::string(prefix) + name});
    MPI_Comm_dup(MPI_COMM_WORLD, &one.communicator);
    MPI_Comm_set_errhandler(one.communicator, MPI_ERRORS_RETURN);
    ++algorithm;
  }
  return made;
}

// MPI's call for a collective, and Open MPI's algorithms for it. An algorithm that refuses the
// number of ranks returns an error.
struct MpiCall {
  std::vector<MpiAlgorithm> algorithms;
  std::function<int(const Job&, MPI_Comm)> run;
};
std::vector<MpiCall> mpi_calls(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return {{mpi_algorithms("coll_tuned_allreduce_algorithm", "",
                              {"its choice", "linear", "nonoverlapping", "recursive doubling",
                               "ring", "segmented ring", "rabenseifner"}),
               [](const Job& j, MPI_Comm communicator) {
                 return MPI_Allreduce(MPI_IN_PLACE, j.bucket.data(), j.elements(), MPI_FLOAT,
                                      MPI_SUM, communicator);
               }}};
    case Collective::reduce_scatter:
      return {{mpi_algorithms("coll_tuned_reduce_scatter_block_algorithm", "block ",
                              {"its choice", "linear", "recursive doubling", "recursive halving",
                               "butterfly"}),
               [](const Job& j, MPI_Comm communicator) {
                 return MPI_Reduce_scatter_block(j.bucket.data(), j.other.data(), j.part(),
                                                 MPI_FLOAT, MPI_SUM, communicator);
               }},
              {mpi_algorithms(
                   "coll_tuned_reduce_scatter_algorithm", "",
                   {"its choice", "nonoverlapping", "recursive halving", "ring", "butterfly"}),
               [](const Job& j, MPI_Comm communicator) {
                 const std::vector<int> counts(to_size(j.ranks), j.part());
                 return MPI_Reduce_scatter(j.bucket.data(), j.other.data(), counts.data(),
                                           MPI_FLOAT, MPI_SUM, communicator);
               }}};
    case Collective::all_gather:
      return {{mpi_algorithms("coll_tuned_allgather_algorithm", "",
                              {"its choice", "linear", "bruck", "recursive doubling", "ring",
                               "neighbor", "two-proc"}),
               [](const Job& j, MPI_Comm communicator) {
                 return MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, j.bucket.data(), j.part(),
                                      MPI_FLOAT, communicator);
               }}};
    case Collective::all_to_all:
      return {{mpi_algorithms("coll_tuned_alltoall_algorithm", "",
                              {"its choice", "linear", "pairwise", "modified bruck", "linear sync",
                               "two-proc"}),
               [](const Job& j, MPI_Comm communicator) {
                 const int block = j.part() / j.ranks;
                 return MPI_Alltoall(j.bucket.data() + j.rank * j.part(), block, MPI_FLOAT,
                                     j.other.data(), block, MPI_FLOAT, communicator);
               }}};
    default:
      throw InputError(fmt::format("{} has no benchmark", name(collective)),
                       "choose all-reduce, reduce-scatter, all-gather or all-to-all");
  }
}

void add_open_mpi(std::vector<Contender>& contenders, const std::vector<MpiCall>& calls,
                  const Job& job) {
  for (const MpiCall& call : calls) {
    for (const MpiAlgorithm& algorithm : call.algorithms) {
      // Never best there, and slow.
      if (job.elements() > (1 << 20) && algorithm.name.starts_with("linear") &&
          job.collective == Collective::all_reduce)
        continue;
      if (call.run(job, algorithm.communicator) != MPI_SUCCESS) continue;
      contenders.push_back({.library = "open-mpi",
                            .name = algorithm.name,
                            .time = timed([&call, &job, communicator = algorithm.communicator] {
                              call.run(job, communicator);
                            })});
    }
  }
}

using GlooContext = std::shared_ptr<gloo::rendezvous::Context>;

GlooContext gloo_context(int rank, int ranks) {
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

void add_gloo(std::vector<Contender>& contenders, const GlooContext& context, const Job& job) {
  const auto add = [&](const char* name, std::function<void()> run) {
    contenders.push_back({.library = "gloo", .name = name, .time = timed(std::move(run))});
  };
  const auto add_algorithm = [&](const char* name, std::shared_ptr<gloo::Algorithm> algorithm) {
    add(name, [algorithm] { algorithm->run(); });
  };
  const std::vector<float*> buckets{job.bucket.data()};
  switch (job.collective) {
    case Collective::all_reduce:
      add_algorithm("halving-doubling", std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
                                            context, buckets, job.elements()));
      add_algorithm("ring chunked", std::make_shared<gloo::AllreduceRingChunked<float>>(
                                        context, buckets, job.elements()));
      add_algorithm("ring",
                    std::make_shared<gloo::AllreduceRing<float>>(context, buckets, job.elements()));
      return;
    case Collective::reduce_scatter:
      add_algorithm("halving-doubling", std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
                                            context, buckets, job.elements(),
                                            std::vector<int>(to_size(job.ranks), job.part())));
      return;
    case Collective::all_gather: {
      add_algorithm("ring", std::make_shared<gloo::AllgatherRing<float>>(
                                context, std::vector<const float*>{job.other.data()},
                                job.bucket.data(), job.part()));
      add("its choice", [context, &job] {
        gloo::AllgatherOptions options(context);
        options.setInput(job.other.data(), to_size(job.part()));
        options.setOutput(job.bucket.data(), to_size(job.part() * job.ranks));
        gloo::allgather(options);
      });
      return;
    }
    case Collective::all_to_all:
      add("its choice", [context, &job] {
        gloo::AlltoallOptions options(context);
        options.setInput(job.bucket.data() + job.rank * job.part(), to_size(job.part()));
        options.setOutput(job.other.data(), to_size(job.part()));
        gloo::alltoall(options);
      });
      return;
    default:
      return;
  }
}

constexpr double longest_s = 20;  // for a size

// Runs all contenders, `runs` times each. Their times are the slowest rank's.
void measure(std::vector<Contender>& contenders, int repetitions, int runs) {
  const double begin = MPI_Wtime();
  std::mt19937 random(1);  // all ranks draw alike
  std::vector<Contender*> turns;
  for (Contender& contender : contenders) turns.push_back(&contender);
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    // At least three of each, however long they take.
    int late = repetition >= 3 && MPI_Wtime() - begin > longest_s ? 1 : 0;
    MPI_Bcast(&late, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (late != 0) return;
    std::ranges::shuffle(turns, random);
    for (Contender* contender : turns) {
      const double own = contender->time(runs) / runs;
      double slowest = 0;
      MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (repetition >= 0) contender->seconds.push_back(slowest);
    }
  }
}

const Contender& fastest(const std::vector<Contender>& contenders, const std::string& library) {
  const Contender* least = nullptr;
  for (const Contender& c : contenders) {
    if (c.library == library && (least == nullptr || c.figure() < least->figure())) least = &c;
  }
  static const Contender none{.library = "", .name = "-", .time = {}, .seconds = {0}};
  return least == nullptr ? none : *least;
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
  std::vector<float> bucket(to_size(ranks));
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
  contenders.push_back(
      {.library = "mpi", .name = "messages of a ring, bare", .time = timed(by_mpi)});
  contenders.push_back({.library = "ours",
                        .name = "the same through the executor",
                        .time = timed([&] { executor.run(ring, bucket.data()); })});
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

// The cells of a contender in the table: its time and its name.
std::string cells(const Contender& c) {
  return fmt::format(" {:>9.1f} {:<20.20}", c.figure() * 1e6, c.name);
}

void print_header(const Options& options, int ranks) {
  fmt::print("{} between {} ranks; microseconds, {} of {} runs in turn\n", name(options.collective),
             ranks, options.best ? "the least" : "medians", options.repetitions);
  fmt::print("{:>10}", "bytes");
  for (const char* library : {"ours, MPI", "threads", "open-mpi", "gloo"})
    fmt::print(" {:>9} {:<20}", library, "algorithm");
  fmt::print(" {:>6} {:>8}", "ratio", "threads'");
  if (models::reduces(options.collective)) fmt::print(" {:>9} {:>6}", "ours FP16", "gain");
  fmt::print("\n");
}

void report(const Options& options, std::size_t bytes, const std::vector<Contender>& contenders,
            nlohmann::json& document) {
  const Contender& ours = fastest(contenders, "ours");
  const Contender& threads = fastest(contenders, "threads");
  const Contender& half = fastest(contenders, "ours fp16");
  const Contender& open_mpi = fastest(contenders, "open-mpi");
  const Contender& gloo = fastest(contenders, "gloo");
  double peer = open_mpi.figure() > 0 ? open_mpi.figure() : gloo.figure();
  if (gloo.figure() > 0) peer = std::min(peer, gloo.figure());
  nlohmann::json row = {{"bytes", bytes},
                        {"ratio", peer / ours.figure()},
                        {"threads_ratio", peer / threads.figure()}};
  for (const Contender& c : contenders) {
    row["contenders"].push_back(
        {{"library", c.library}, {"name", c.name}, {"median_s", c.median()}, {"best_s", c.best()}});
  }
  document["sizes"].push_back(row);
  if (options.json) return;
  fmt::print("{:>10}{}{}{}{} {:>6.2f} {:>8.2f}", bytes, cells(ours), cells(threads),
             cells(open_mpi), cells(gloo), peer / ours.figure(), peer / threads.figure());
  if (models::reduces(options.collective))
    fmt::print(" {:>9.1f} {:>6.2f}", half.figure() * 1e6, ours.figure() / half.figure());
  fmt::print("\n");
  if (options.all) {
    for (const Contender& c : contenders)
      fmt::print("    {:<10} {:<24} {:>10.1f} us, best {:.1f}\n", c.library, c.name,
                 c.median() * 1e6, c.best() * 1e6);
  }
  std::fflush(stdout);
}

bool is_asked_for(const Options& options, const Contender& c) {
  return options.only.empty() || std::ranges::any_of(options.only, [&](const std::string& text) {
           return (c.library + " " + c.name).find(text) != std::string::npos;
         });
}

int run(const Options& options) {
  setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
  const auto transport = runtime::mpi_transport();
  const int rank = transport->rank();
  const int ranks = transport->ranks();
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  const auto calls = mpi_calls(options.collective);
  const auto gloo = gloo_context(rank, ranks);
  nlohmann::json document = {{"schema", "paceline.collective_benchmark/1"},
                             {"collective", name(options.collective)},
                             {"ranks", ranks}};
  print_overhead(*transport, options.json, document);
  if (rank == 0 && !options.json) print_header(options, ranks);
  for (const std::size_t bytes : options.sizes) {
    const std::size_t elements = bytes / sizeof(float);
    const runtime::Memory memory = runtime::host_memory(2 * bytes);
    std::ranges::fill(memory.bytes(), std::byte{0});
    auto* data = reinterpret_cast<float*>(memory.bytes().data());
    const Job job{.collective = options.collective,
                  .rank = rank,
                  .ranks = ranks,
                  .message_bytes = options.message_bytes,
                  .bucket = {data, elements},
                  .other = {data + elements, elements}};
    runtime::Executor executor(*transport, {.message_bytes = options.message_bytes});
    std::vector<Contender> contenders;
    add_ours(contenders, executor, job);
    add_open_mpi(contenders, calls, job);
    add_gloo(contenders, gloo, job);
    std::erase_if(contenders, [&](const Contender& c) { return !is_asked_for(options, c); });
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
