#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "experiments/published/csv.h"
#include "experiments/published/row_job.h"
#include "experiments/published/source.h"
#include "models/base/error.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/iteration/measured_all_reduce.h"

namespace paceline::experiments {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string header =
    "id,where,what,series,role,cluster,model,batch,sequence,precision,ranks,strategy,options,"
    "quantity,against,published,unit,note\n";
const std::string one =
    "a,p. 1,one GPU,s,calibrates,jizhi-p40,resnet50,64,,fp32,1,ring,,throughput,,172,images/s,\n";

SourceFiles files_of(const std::string& expected) {
  return {"t", "t", {{"expected.csv", expected}}};
}

template <class F>
std::string error_of(F call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string source_error(const std::string& rows) {
  return error_of([&] { (void)read_source(files_of(header + rows)); });
}

TEST(Csv, ReadsWhatRfc4180Writes) {
  const std::vector<CsvRecord> records =
      parse_csv("a,b\r\n# a comment\n\n\"x, y\",\"say \"\"so\"\"\"\n\"two\nlines\",\n3,4", "f.csv",
                {"a", "b"});
  ASSERT_EQ(records.size(), 3U);
  EXPECT_THAT(records[0].fields, ElementsAre("x, y", "say \"so\""));
  EXPECT_EQ(records[0].line, 4);
  EXPECT_THAT(records[1].fields, ElementsAre("two lines", ""));
  EXPECT_THAT(records[2].fields, ElementsAre("3", "4"));
  EXPECT_EQ(records[2].line, 7);
}

// `paceline time --measured` refuses no all-reduce that somebody published.
TEST(ShippedSources, HaveAllReducesThatTheirLinksAllow) {
  int rows = 0;
  for (const std::string& name : shipped_source_names()) {
    const Source source = read_source(shipped_source_files(name));
    SourceParts parts(source);
    for (const AllReduceRow& row : source.all_reduces) {
      if (row.role == Role::left_out) continue;
      const simulator::CommunicationCost cost = simulator::communication_cost(
          parts.cluster(row.cluster), nullptr, simulator::Bound::fast, row.ranks);
      EXPECT_GT(row.published_s,
                simulator::least_time({row.ranks, Bytes{row.bytes}, Seconds{1}}, cost).value())
          << name << " " << row.id;
      ++rows;
    }
  }
  EXPECT_GT(rows, 400);
}

TEST(Csv, FaultsNameTheirLine) {
  const auto error = [](const std::string& text) {
    return error_of([&] { (void)parse_csv(text, "f.csv", {"a", "b"}); });
  };
  EXPECT_EQ(error(""), "f.csv:1: an empty table; begin with a,b");
  EXPECT_EQ(error("a,c\n"), "f.csv:1: the header is 'a,c'; write a,b");
  EXPECT_THAT(error("a,b\n1\n"), HasSubstr("f.csv:2: 1 fields, not 2; "));
  EXPECT_THAT(error("a,b\n1,2\n1,\"2\n\n\n"), HasSubstr("f.csv:3: a quote that is never closed"));
  EXPECT_THAT(error("a,b\n1,\"2\"3\n"), HasSubstr("f.csv:2: text after a closing quote"));
  EXPECT_THAT(error("a,b\n1,2\"3\n"), HasSubstr("f.csv:2: a quote inside a field"));
  EXPECT_THAT(error("a,b\n1,\x1b[2J\n"), HasSubstr("f.csv:2: control character 0x1b"));
  EXPECT_THAT(error(std::string("a,b\n1,\0\n", 8)), HasSubstr("f.csv:2: control character"));
}

TEST(PublishedSource, RowsAreRead) {
  const Source source = read_source(files_of(
      header + one +
      "b,p. 2,\"8, fused\",s,predicted,jizhi-p40,resnet50,64,128,mixed,8,fused-ring,--theta 64MiB "
      "--wire fp32,efficiency,a,97.25,%,why\n"));
  ASSERT_EQ(source.training.size(), 2U);
  EXPECT_EQ(source.training[0].published, 172);
  EXPECT_DOUBLE_EQ(source.training[0].rounding, 0.5);
  const TrainingRow& row = source.training[1];
  EXPECT_EQ(row.line, 3);
  EXPECT_EQ(row.sequence, 128);
  EXPECT_EQ(row.what, "8, fused");
  EXPECT_DOUBLE_EQ(row.rounding, 0.005);
  const RowOptions options = row_options(row);
  EXPECT_EQ(options.strategy->name, "fused-ring");
  EXPECT_EQ(options.question.thresholds.fusion, Bytes{64.0 * 1024 * 1024});
  EXPECT_EQ(options.question.wires, std::vector{models::WireType::fp32});
  EXPECT_EQ(options.strategy_words, "--strategy fused-ring");
  EXPECT_EQ(options.words, " --theta 64MiB --wire fp32");
}

TEST(PublishedSource, RowsThatAreLeftOutNeedANoteAndNoMore) {
  EXPECT_EQ(source_error("x,,gRPC,,left-out,,,,,,,,,,,,,no such transport\n"), "no error");
  EXPECT_THAT(source_error("x,,gRPC,,left-out,,,,,,,,,,,,,\n"), HasSubstr("t/expected.csv:2: "));
}

TEST(PublishedSource, FaultsNameTheirLine) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string row = one;
    return source_error(row.replace(row.find(from), from.size(), to));
  };
  EXPECT_EQ(with("calibrates", "calibrated"),
            "t/expected.csv:2: role: unknown role 'calibrated'; did you mean 'calibrates'?");
  EXPECT_THAT(with("172", "fast"),
              HasSubstr("t/expected.csv:2: published: 'fast' is not a number"));
  EXPECT_THAT(with("172", "-1"), HasSubstr("t/expected.csv:2: published: "));
  EXPECT_THAT(with("172", "nan"), HasSubstr("t/expected.csv:2: published: "));
  EXPECT_THAT(with("fp32,1", "fp32,0"), HasSubstr("t/expected.csv:2: ranks: "));
  EXPECT_THAT(with("images/s", "furlongs"), HasSubstr("unknown unit of throughput 'furlongs'"));
  EXPECT_THAT(with("throughput", "iteration"), HasSubstr("unknown unit of iteration"));
  EXPECT_THAT(with("throughput,", "ratio,b"), HasSubstr("t/expected.csv:2: "));
  EXPECT_THAT(with("throughput,,172,images/s", "ratio,b,2,x"), HasSubstr("there is no row 'b'"));
  EXPECT_THAT(with("throughput,,172,images/s", "ratio,,2,x"), HasSubstr("against nothing"));
  EXPECT_THAT(with("64,,", "64.5,,"), HasSubstr("batch: '64.5' is not a whole number"));
  EXPECT_THAT(with(",ring,", ",,"), HasSubstr("strategy is empty"));
  EXPECT_THAT(source_error(one + one), HasSubstr("t/expected.csv:3: the id 'a' stands twice"));
  EXPECT_EQ(error_of([] {
              (void)read_source({"t", "t", {}});
            }),
            "t: neither expected.csv nor all_reduce.csv is there; a source has one of them");
}

TEST(PublishedSource, OptionsAreReadByOneTable) {
  TrainingRow row;
  const auto error = [&row](const std::string& strategy, const std::string& options) {
    row.strategy = strategy;
    row.options = options;
    return error_of([&] { (void)row_options(row); });
  };
  EXPECT_EQ(error("fused-ring --theta 64MiB", "--host-copies --streams 2"), "no error");
  EXPECT_EQ(error("fused-ring", "--thetta 64MiB"),
            "unknown option '--thetta'; did you mean '--theta'?");
  EXPECT_THAT(error("fused-ring", "--theta"), HasSubstr("'--theta' has no value"));
  EXPECT_THAT(error("fused-ring", "--theta 64"), HasSubstr("--theta: '64' has no unit"));
  EXPECT_THAT(error("fussed-ring", ""), HasSubstr("did you mean 'fused-ring'?"));
  EXPECT_THAT(error("", ""), HasSubstr("a row without a strategy"));
  row.quantity = Quantity::minutes;
  EXPECT_THAT(error("ring", "--epochs 90"), HasSubstr("without epochs or dataset"));
}

// Whatever stands in a table, it is read or refused.
TEST(PublishedSource, DamagedTablesAreReadOrRefused) {
  const std::string good =
      header + one +
      "b,\"p. \"\"2\"\"\",8,s,predicted,jizhi-p40,resnet50,64,,fp32,8,fused-ring,--theta "
      "64MiB,ratio,a,7.9,x,\n";
  std::mt19937 random(1);
  const auto draw = [&random](std::size_t most) { return random() % (most + 1); };
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (std::size_t change = 0; change <= draw(2); ++change) {
      const std::size_t at = draw(text.size() - 1);
      switch (draw(2)) {
        case 0:
          text[at] = static_cast<char>(draw(255));
          break;
        case 1:
          text.erase(at, 1 + draw(20));
          break;
        default:
          text.insert(at, 1, "\",\n\r#-"[draw(5)]);
      }
    }
    const std::string error = error_of([&] {
      const Source source = read_source(files_of(text));
      SourceParts parts(source);
      for (const TrainingRow& row : source.training) {
        if (row.role != Role::left_out) (void)parts.job(row);
      }
    });
    if (error == "no error") continue;
    ++refused;
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_THAT(error, HasSubstr("t/expected.csv:"));
  }
  EXPECT_GT(refused, 1000);
}

TEST(PublishedSource, EveryShippedSourceIsRead) {
  const std::vector<std::string> names = shipped_source_names();
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names)
    EXPECT_EQ(error_of([&] {
                const Source source = read_source(shipped_source_files(name));
                EXPECT_EQ(source.title, shipped_source_title(name));
                EXPECT_FALSE(source.training.empty() && source.all_reduces.empty()) << name;
              }),
              "no error")
        << name;
}

}  // namespace
}  // namespace paceline::experiments
