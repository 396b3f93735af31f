#include "models/collective/export/msccl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "models/collective/algorithms.h"
#include "tests/support/error_of.h"
#include "tests/support/msccl_interpreter.h"
#include "tests/support/schedules.h"

namespace paceline::models {
namespace {

// docs/formats.md, "MSCCL XML", describes this file.
TEST(ExportMsccl, RingOfTwoByHand) {
  EXPECT_EQ(
      msccl(Collective::all_reduce, ring_all_reduce(2), "ring p=2"),
      R"(<algo name="ring p=2" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1" outofplace="0" minBytes="0" maxBytes="1125899906842624">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="1" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="-1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="1" deps="0" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="0" chan="0">
      <step s="0" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)");
}

// Each runtime has a rule by which it chooses among the files that it has for a call.
TEST(ExportMsccl, BothRuntimesChooseTheFileForAnySizeThatTheChunksDivide) {
  const test::MscclFile file =
      test::parse_msccl(msccl(Collective::all_reduce, ring_all_reduce(6), "ring p=6"));
  for (const std::int64_t count : {6LL, 600LL, 6'000'000'000LL}) {
    EXPECT_TRUE(test::msccl_chooses(file, 6, count, 4)) << count;
    EXPECT_TRUE(test::msccl_executor_chooses(file, 6, count, 4)) << count;
  }
  // The executor divides the elements of a call by the chunks, too.
  EXPECT_FALSE(test::msccl_chooses(file, 6, 7, 4));
  EXPECT_FALSE(test::msccl_executor_chooses(file, 6, 7, 4));
  EXPECT_FALSE(test::msccl_chooses(file, 5, 600, 4));
}

using test::MscclMachine;

// Every chunk of every rank starts as another random number, so that a sum of them is right only
// where each is in it exactly once.
void expect_sums(const std::string& text, const std::string& name) {
  const test::MscclFile file = test::parse_msccl(text);
  EXPECT_EQ(file.attributes.at("coll"), "allreduce");
  EXPECT_EQ(file.number("ngpus"), static_cast<int>(file.gpus.size()));
  const auto chunks = static_cast<std::size_t>(file.number("nchunksperloop"));
  for (const std::size_t slots : {1, 8}) {
    for (const unsigned seed : {1U, 2U}) {
      std::mt19937_64 random(seed);
      std::vector<MscclMachine::Buffers> buffers(file.gpus.size());
      MscclMachine::Buffer sum(chunks, 0);
      for (MscclMachine::Buffers& own : buffers) {
        for (std::size_t c = 0; c < chunks; ++c) {
          own.input.push_back(random());
          sum[c] += own.input.back();
        }
      }
      MscclMachine machine(file, slots);
      ASSERT_NO_THROW(machine.run(buffers, seed)) << name << " slots " << slots;
      for (const MscclMachine::Buffers& own : buffers) ASSERT_EQ(own.input, sum) << name;
    }
  }
}

bool goes_wrong(const test::MscclFile& file) {
  const auto chunks = static_cast<std::size_t>(file.number("nchunksperloop"));
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::vector<MscclMachine::Buffers> buffers(file.gpus.size());
    for (std::size_t r = 0; r < buffers.size(); ++r)
      buffers[r].input.assign(chunks, std::uint64_t{1} << r);
    try {
      MscclMachine machine(file, 8);
      machine.run(buffers, seed);
    } catch (const std::runtime_error&) {
      return true;
    }
    for (const MscclMachine::Buffers& own : buffers) {
      for (const std::uint64_t sum : own.input) {
        if (sum != (std::uint64_t{1} << buffers.size()) - 1) return true;
      }
    }
  }
  return false;
}

TEST(ExportMsccl, ExecutedItIsAnAllReduce) {
  int exported = 0;
  for (const int p : {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 20, 24, 33}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      std::string text;
      const std::string refused = test::error_of([&] {
        text = msccl(Collective::all_reduce, schedule, name);
        return text;
      });
      if (refused != "no error") {
        // Only what is large: a rank that talks to more than 32, or very many segments.
        EXPECT_GE(p, 16) << name << ": " << refused;
        continue;
      }
      ++exported;
      expect_sums(text, name + " p=" + std::to_string(p));
    }
  }
  EXPECT_GT(exported, 150);
}

// The judge can tell: with any one wait of a send left out, some order of the threadblocks goes
// wrong. (What a receive waits for is often certain by the way of other ranks, which the exporter
// does not look at.)
TEST(ExportMsccl, EveryWaitOfASendIsNeeded) {
  for (const char* name : {"ring", "halving-doubling", "double-binary-tree"}) {
    const Schedule schedule = all_reduce_algorithm(name).build({.ranks = 6, .segments = 2});
    const test::MscclFile file =
        test::parse_msccl(msccl(Collective::all_reduce, schedule, "judged"));
    for (std::size_t block = 0; block < file.gpus[1].blocks.size(); ++block) {
      for (std::size_t step = 0; step < file.gpus[1].blocks[block].steps.size(); ++step) {
        test::MscclFile broken = file;
        test::MscclStep& without = broken.gpus[1].blocks[block].steps[step];
        if (without.wait_block < 0 || without.type != "s") continue;
        without.wait_block = without.wait_step = -1;
        EXPECT_TRUE(goes_wrong(broken)) << name << " block " << block << " step " << step;
      }
    }
  }
}

MscclMachine::Buffer values(std::mt19937_64& random, std::size_t count) {
  MscclMachine::Buffer buffer(count);
  for (std::uint64_t& value : buffer) value = random();
  return buffer;
}

// In place: the input is the rank's own part of the output, which is where the file keeps it.
TEST(ExportMsccl, ExecutedTheOtherCollectivesDoWhatTheyPromise) {
  for (const int p : {2, 3, 4, 6, 8, 13}) {
    const auto ranks = static_cast<std::size_t>(p);
    for (const CollectiveAlgorithm& algorithm : collective_catalogue()) {
      if (algorithm.collective == Collective::all_reduce) continue;
      const bool has_name = algorithm.collective < Collective::reduce ||
                            algorithm.collective == Collective::all_to_all;
      // From four ranks on, its blocks travel by way of other ranks.
      const bool is_indirect = algorithm.name == "bruck-all-to-all" && p > 3;
      if (!has_name || is_indirect) {
        EXPECT_THROW(static_cast<void>(msccl(algorithm.collective, algorithm.build({.ranks = p}),
                                             algorithm.name)),
                     InputError);
        continue;
      }
      const test::MscclFile file = test::parse_msccl(
          msccl(algorithm.collective, algorithm.build({.ranks = p}), algorithm.name));
      const auto in = static_cast<std::size_t>(file.gpus[0].input_chunks);
      const auto out = static_cast<std::size_t>(file.gpus[0].output_chunks);
      const std::string name = std::string(algorithm.name) + " p=" + std::to_string(p);
      std::mt19937_64 random(7);
      std::vector<MscclMachine::Buffers> start(ranks);
      for (MscclMachine::Buffers& own : start) own = {values(random, in), values(random, out)};
      std::vector<MscclMachine::Buffers> end = start;
      MscclMachine machine(file);
      ASSERT_NO_THROW(machine.run(end, 11)) << name;
      for (std::size_t r = 0; r < ranks; ++r) {
        switch (algorithm.collective) {
          case Collective::reduce_scatter:
            ASSERT_EQ(in, out * ranks) << name;
            for (std::size_t c = r * out; c < (r + 1) * out; ++c) {
              std::uint64_t sum = 0;
              for (const MscclMachine::Buffers& own : start) sum += own.input[c];
              EXPECT_EQ(end[r].input[c], sum) << name;
            }
            break;
          case Collective::all_gather:
            ASSERT_EQ(out, in * ranks) << name;
            for (std::size_t c = 0; c < out; ++c)
              EXPECT_EQ(end[r].output[c], start[c / in].output[c]) << name;
            break;
          case Collective::broadcast:
            EXPECT_EQ(end[r].output, start[0].output) << name;
            break;
          case Collective::all_to_all:
            ASSERT_EQ(in, out) << name;
            for (std::size_t c = 0; c < out; ++c) {
              const std::size_t block = out / ranks;
              EXPECT_EQ(end[r].output[c], start[c / block].input[r * block + c % block]) << name;
            }
            break;
          case Collective::all_reduce:
          case Collective::reduce:
          case Collective::gather:
          case Collective::scatter:
          case Collective::neighbour_exchange:
            break;
        }
      }
    }
  }
}

// A pipeline of one segment per chunk and a half that is 200 chunks in one message.
TEST(ExportMsccl, LongMessagesAreCutAtSeventyOneChunks) {
  const Schedule schedule =
      sequence({on_part(0, 2, recursive_doubling_all_reduce(4)), on_part(1, 2, ring_all_reduce(4)),
                on_part(0, 400, ring_all_reduce(4))});
  const std::string text = msccl(Collective::all_reduce, schedule, "cut");
  EXPECT_NE(text.find("cnt=\"71\""), std::string::npos);
  EXPECT_EQ(text.find("cnt=\"72\""), std::string::npos);
}

TEST(ExportMsccl, WhatMscclCannotExpressIsRefused) {
  const auto refusal = [](const Schedule& schedule) {
    return test::error_of([&] { return msccl(Collective::all_reduce, schedule, "x"); });
  };
  EXPECT_EQ(refusal(ring_all_reduce(1)), "one rank exchanges nothing; give --ranks 2 or more");
  EXPECT_EQ(refusal(parameter_server(34, 1, 0)),
            "rank 0 talks to more than 32 others, the most that a channel of MSCCL has; export "
            "fewer ranks, groups or segments");
  EXPECT_EQ(refusal(ring_all_reduce(200)),
            "a threadblock of rank 0 has more than 256 steps, the most that MSCCL has; export "
            "fewer ranks, groups or segments");
  EXPECT_EQ(refusal(multi_ring_all_reduce(128, 16, 1)),
            "rank 0 would read more than 4095 elements of XML, the most that MSCCL has; export "
            "fewer ranks, groups or segments");
  EXPECT_EQ(refusal(sequence({on_part(0, 40'000, ring_all_reduce(4)), ring_all_reduce(4)})),
            "the bucket is cut into more than 32767 chunks, the most that MSCCL has; export fewer "
            "ranks, groups or segments");
}

TEST(ExportMsccl, NamesAreEscapedAndCut) {
  const std::string text =
      msccl(Collective::all_reduce, ring_all_reduce(2), "a<b>&\"c\"\n" + std::string(100, 'x'));
  EXPECT_NE(text.find("name=\"a&lt;b&gt;&amp;&quot;c&quot; xxx"), std::string::npos);
  EXPECT_EQ(text.find(std::string(60, 'x')), std::string::npos);
}

}  // namespace
}  // namespace paceline::models
