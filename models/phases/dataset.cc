// Tests: tests/models/phases_test.cc.
#include "models/phases/dataset.h"

#include <array>
#include <cctype>
#include <vector>

#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/phases/length.h"

namespace paceline::models {
namespace {

constexpr std::array<KnownDataset, 5> datasets = {
    {{"imagenet", 1281167, "ILSVRC 2012, training set (Russakovsky et al. 2015)"},
     {"cifar-10", 50000, "Krizhevsky 2009, training set"},
     {"cifar-100", 50000, "Krizhevsky 2009, training set"},
     {"mnist", 60000, "LeCun et al. 1998, training set"},
     {"fashion-mnist", 60000, "Xiao et al. 2017, training set"}}};

}  // namespace

std::span<const KnownDataset> known_datasets() {
  return datasets;
}

Dataset parse_dataset(std::string_view text) {
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) == 0)
    return {"", parse_number(text, 1, longest)};
  std::vector<std::string> names;
  for (const KnownDataset& known : datasets) {
    if (known.name == text) return {std::string(known.name), known.samples};
    names.emplace_back(known.name);
  }
  throw unknown_name("data set", text, names);
}

}  // namespace paceline::models
