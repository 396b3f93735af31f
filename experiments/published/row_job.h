// From the words of a row to what is predicted: its network, its cluster, its strategy and options.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "experiments/published/source.h"
#include "models/cluster/cluster.h"
#include "models/network/work.h"
#include "models/phases/dataset.h"
#include "models/phases/length.h"
#include "models/plan/strategy.h"
#include "simulator/question/question.h"

namespace paceline::experiments {

struct SourceNetwork {
  models::NetworkWork work;
  Bytes stored_sample{0};
};

// The strategy and the options of a row, read.
struct RowOptions {
  const models::Strategy* strategy = nullptr;
  simulator::Question question;  // with the batch and the precision of the row
  // The length of the training, in rows that are a time to train.
  std::optional<models::Length> length;
  std::optional<models::Dataset> dataset;
  // The words that `paceline predict` takes: the strategy's, and all others.
  std::string strategy_words;
  std::string words;
};

// Reads "fused-ring --theta 64MiB" and "--wire fp16" into options. Throws InputError.
[[nodiscard]] RowOptions row_options(const TrainingRow& row);

// The job of a row. It refers into the SourceParts that made it.
struct RowJob {
  const SourceNetwork* network = nullptr;
  const models::Cluster* cluster = nullptr;
  RowOptions options;
  int ranks = 1;

  [[nodiscard]] models::WireType wire() const;
  // Samples of all ranks in an iteration.
  [[nodiscard]] double samples() const { return options.question.samples(ranks); }
  // Samples of the whole training, in rows that are a time to train.
  [[nodiscard]] double training_samples() const {
    return models::samples(*options.length, samples(), options.dataset->samples);
  }
  // `profile` may be null. It must outlive the request, as must the job.
  [[nodiscard]] simulator::PredictionRequest request(const models::Profile* profile) const;
  // Whether two rows can share a Predictor, if their series are the same.
  [[nodiscard]] bool shares_predictor(const RowJob& other) const;
};

// What is done to each cluster once it is read; empty: nothing.
using ClusterEdit = std::function<void(models::Cluster&)>;

// The clusters and networks of a source's rows, each read once. Reading is not for several threads
// at once; what was read may be used by all.
class SourceParts {
 public:
  explicit SourceParts(const Source& source, ClusterEdit edit = {})
      : source_(source), edit_(std::move(edit)) {}
  SourceParts(const SourceParts&) = delete;
  SourceParts& operator=(const SourceParts&) = delete;

  // Throws InputError that names expected.csv and the row's line, or the file and line of a
  // cluster or network.
  [[nodiscard]] RowJob job(const TrainingRow& row);
  // With its ranks placed as `placement` says, layers' times those of the stack, and attention that of the kernel,
  // where they do.
  [[nodiscard]] const models::Cluster& cluster(const std::string& name,
                                               std::optional<models::Placement> placement = {},
                                               std::optional<models::Stack> stack = {},
                                               std::optional<models::AttentionKernel> kernel = {});
  [[nodiscard]] const SourceNetwork& network(const std::string& name, std::optional<int> sequence);

  // The words by which `paceline predict` knows them: a path or a name.
  [[nodiscard]] std::string cluster_word(const std::string& name) const;
  [[nodiscard]] std::string network_word(const std::string& name) const;

 private:
  const Source& source_;
  ClusterEdit edit_;
  std::map<std::tuple<std::string, std::optional<models::Placement>, std::optional<models::Stack>,
                      std::optional<models::AttentionKernel>>,
           std::unique_ptr<models::Cluster>>
      clusters_;
  std::map<std::pair<std::string, int>, std::unique_ptr<SourceNetwork>> networks_;
};

}  // namespace paceline::experiments
