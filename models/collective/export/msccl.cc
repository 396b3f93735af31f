// Tests: tests/models/export_msccl_test.cc.
#include "models/collective/export/msccl.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/base/xml_text.h"
#include "models/collective/export/messages.h"

namespace paceline::models {
namespace {

constexpr const char* fewer = "export fewer ranks, groups or segments";

// The place of an instruction of a GPU: its threadblock, and where in it.
struct Place {
  int block = -1;
  int step = -1;
  bool operator==(const Place&) const = default;
};

struct Cell {
  char buffer = 'i';
  std::int64_t offset = 0;
};

struct Instruction {
  const char* type = "nop";
  Cell source = {};
  Cell target = {};
  std::int64_t count = 0;
  Place waits_for = {};
  bool waited_for = false;
};

struct Threadblock {
  int send = -1;
  int receive = -1;
  std::vector<Instruction> instructions;
  std::map<int, int> seen;  // the last step of each other threadblock that this one has waited for
};

// What was done to a chunk of a rank's buffer, for the instructions that come after.
struct Chunk {
  Place written;
  std::vector<Place> read;  // by instructions since it was written
};

class Gpu {
 public:
  Gpu(int rank, std::int64_t chunks) : rank_(rank), chunks_(to_size(chunks)) {}

  [[nodiscard]] const std::vector<Threadblock>& blocks() const { return blocks_; }

  void send(int to, Cell source, Cell target, Span<std::int64_t> span) {
    const int block = block_of(to_, to, &Threadblock::send);
    std::vector<Place> waits;
    for_each_chunk(span, [&](const Chunk& chunk) { waits.push_back(chunk.written); });
    const Place place = add(block, "s", source, target, span.size, waits);
    for_each_chunk(span, [&](Chunk& chunk) { chunk.read.push_back(place); });
  }
  void receive(int from, Cell source, Cell target, Span<std::int64_t> span, bool reduce) {
    const int block = block_of(from_, from, &Threadblock::receive);
    std::vector<Place> waits;
    for_each_chunk(span, [&](const Chunk& chunk) {
      waits.push_back(chunk.written);
      waits.insert(waits.end(), chunk.read.begin(), chunk.read.end());
    });
    // "rrc" adds what arrives to its source, and puts the sum into its target: here both are one.
    const Place place =
        add(block, reduce ? "rrc" : "r", reduce ? target : source, target, span.size, waits);
    for_each_chunk(span, [&](Chunk& chunk) {
      chunk.written = place;
      chunk.read.clear();
    });
  }
  // A copy that waits for nothing, and that nothing waits for.
  void copy(Cell source, Cell target, std::int64_t count) {
    if (blocks_.empty()) blocks_.emplace_back();
    add(0, "cpy", source, target, count, {});
  }

 private:
  template <class F>
  void for_each_chunk(Span<std::int64_t> span, F visit) {
    for (std::int64_t c = span.begin; c < span.end(); ++c) visit(chunks_[to_size(c)]);
  }
  int block_of(std::map<int, int>& blocks, int peer, int Threadblock::*direction) {
    const auto [entry, is_new] = blocks.try_emplace(peer, static_cast<int>(blocks_.size()));
    if (!is_new) return entry->second;
    if (static_cast<int>(blocks.size()) > MscclLimits::peers) {
      throw InputError(fmt::format("rank {} talks to more than {} others, the most that a channel "
                                   "of MSCCL has",
                                   rank_, MscclLimits::peers),
                       fewer);
    }
    blocks_.emplace_back().*direction = peer;
    return entry->second;
  }
  Place add(int block, const char* type, Cell source, Cell target, std::int64_t count,
            const std::vector<Place>& waits) {
    Threadblock& mine = blocks_[to_size(block)];
    std::map<int, int> latest;
    for (const Place& place : waits) {
      if (place.block < 0 || place.block == block) continue;
      const auto seen = mine.seen.find(place.block);
      if (seen != mine.seen.end() && seen->second >= place.step) continue;
      int& step = latest.try_emplace(place.block, place.step).first->second;
      step = std::max(step, place.step);
    }
    std::vector<Instruction>& list = mine.instructions;
    for (const auto& [other, step] : latest) {
      mine.seen[other] = step;
      at({other, step}).waited_for = true;
      list.push_back({.waits_for = {other, step}});
    }
    // Several waits are "nop"s; the last one is part of the instruction itself.
    if (latest.empty()) list.emplace_back();
    Instruction& last = list.back();
    last.type = type;
    last.source = source;
    last.target = target;
    last.count = count;
    if (static_cast<int>(list.size()) > MscclLimits::steps) {
      throw InputError(fmt::format("a threadblock of rank {} has more than {} steps, the most that "
                                   "MSCCL has",
                                   rank_, MscclLimits::steps),
                       fewer);
    }
    return {block, static_cast<int>(list.size()) - 1};
  }
  Instruction& at(Place place) {
    return blocks_[to_size(place.block)].instructions[to_size(place.step)];
  }

  int rank_;
  std::vector<Chunk> chunks_;
  std::vector<Threadblock> blocks_;
  std::map<int, int> to_;  // peer -> threadblock
  std::map<int, int> from_;
};

// How MSCCL calls a collective, and in which buffer the chunks of a bucket are.
struct Form {
  const char* name;
  bool in_place;
  char home;         // the buffer that holds all of the bucket; of all-to-all none does
  bool input_part;   // the input is one part of the ranks' many
  bool output_part;  // the output is one part of the ranks' many
};

Form form_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return {"allreduce", true, 'i', false, false};
    case Collective::reduce_scatter:
      return {"reducescatter", true, 'i', false, true};
    case Collective::all_gather:
      return {"allgather", true, 'o', true, false};
    case Collective::broadcast:
      return {"broadcast", true, 'o', false, false};
    case Collective::all_to_all:
      return {"alltoall", false, 'i', true, true};
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::neighbour_exchange:
      throw InputError(fmt::format("MSCCL has no {}", models::name(collective)),
                       "choose an all-reduce, reduce-scatter, all-gather, broadcast or all-to-all");
  }
  PACELINE_ASSERT(false, "a collective is one of those");
}

// The parts of a span that one instruction can move.
template <class F>
void for_each_piece(Span<std::int64_t> span, F visit) {
  for (std::int64_t begin = span.begin; begin < span.end(); begin += MscclLimits::count)
    visit(Span<std::int64_t>{begin, std::min(MscclLimits::count, span.end() - begin)});
}

// Throws InputError where the runtime's parser would give up.
void check_elements(const std::vector<Threadblock>& blocks, int rank, int ranks) {
  std::size_t elements = 1 + to_size(ranks) + blocks.size();
  for (const Threadblock& block : blocks) elements += block.instructions.size();
  if (elements > MscclLimits::elements) {
    throw InputError(fmt::format("rank {} would read more than {} elements of XML, the most that "
                                 "MSCCL has",
                                 rank, MscclLimits::elements),
                     fewer);
  }
}

void print(std::string& text, const std::vector<Threadblock>& blocks) {
  const auto out = std::back_inserter(text);
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    fmt::format_to(out, "    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", block,
                   blocks[block].send, blocks[block].receive);
    const std::vector<Instruction>& list = blocks[block].instructions;
    for (std::size_t step = 0; step < list.size(); ++step) {
      const Instruction& i = list[step];
      const bool nop = i.count == 0;
      fmt::format_to(out,
                     "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" "
                     "dstoff=\"{}\" cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
                     step, i.type, i.source.buffer, nop ? -1 : i.source.offset, i.target.buffer,
                     nop ? -1 : i.target.offset, i.count, i.waits_for.block, i.waits_for.step,
                     i.waited_for ? 1 : 0);
    }
    text += "    </tb>\n";
  }
}

}  // namespace

std::int64_t msccl_chunks(Collective collective, const Schedule& schedule) {
  const std::int64_t ranks = schedule.ranks();
  const Form form = form_of(collective);
  const bool parts = form.input_part || form.output_part;
  const std::int64_t natural = schedule.natural_chunks(MscclLimits::chunks);
  const std::int64_t cut = collective == Collective::all_to_all ? ranks * ranks : ranks;
  const std::int64_t chunks = natural > 0 && parts ? std::lcm(natural, cut) : natural;
  if (chunks == 0 || chunks > MscclLimits::chunks) {
    throw InputError(
        fmt::format("the bucket is cut into more than {} chunks, the most that MSCCL has",
                    MscclLimits::chunks),
        fewer);
  }
  return chunks;
}

std::string msccl(Collective collective, const Schedule& schedule, std::string_view name,
                  const MscclChoice& choice) {
  const std::int64_t ranks = schedule.ranks();
  if (ranks < 2) throw InputError("one rank exchanges nothing", "give --ranks 2 or more");
  const Form form = form_of(collective);
  const std::int64_t chunks = msccl_chunks(collective, schedule);
  const std::int64_t part = chunks / ranks;  // of an all-to-all: a row, which is ranks blocks
  const std::int64_t block = part / ranks;
  const auto cells = [&](const Message& m, Span<std::int64_t> span) {
    if (collective != Collective::all_to_all)
      return std::pair<Cell, Cell>{{form.home, span.begin}, {form.home, span.begin}};
    const std::int64_t row = span.begin / part;
    const std::int64_t column = span.begin % part / block;
    const bool one_block = (span.end() - 1) / block == span.begin / block;
    if (m.reduce || !one_block || row != m.from || column != m.to) {
      throw InputError("this all-to-all sends blocks by way of other ranks",
                       "only direct ones have a file: choose all-to-all");
    }
    const std::int64_t inside = span.begin % block;
    return std::pair<Cell, Cell>{{'i', column * block + inside}, {'o', row * block + inside}};
  };

  check_exported_messages(schedule, chunks);
  std::string text = fmt::format(
      "<algo name=\"{}\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"{}\" "
      "coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" minBytes=\"{}\" maxBytes=\"{}\">\n",
      xml_text(name.substr(0, MscclLimits::name)),
      collective == Collective::all_to_all ? part : chunks, ranks, form.name, form.in_place ? 1 : 0,
      form.in_place ? 0 : 1, choice.least_bytes, choice.below_bytes);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    Gpu gpu(rank, chunks);
    const RankMessages all = messages_of_rank(schedule, rank, chunks);
    for_each_step(all, [&](auto sent, auto received) {
      // Sends stand before receives: they read what was held before the step.
      for (const Message& m : sent) {
        for_each_piece(m.span, [&](Span<std::int64_t> piece) {
          const auto [source, target] = cells(m, piece);
          gpu.send(m.to, source, target, piece);
        });
      }
      for (const Message& m : received) {
        for_each_piece(m.span, [&](Span<std::int64_t> piece) {
          const auto [source, target] = cells(m, piece);
          gpu.receive(m.from, source, target, piece, m.reduce);
        });
      }
    });
    if (collective == Collective::all_to_all) {
      for_each_piece(Span<std::int64_t>{rank * block, block}, [&](Span<std::int64_t> own) {
        gpu.copy({'i', own.begin}, {'o', own.begin}, own.size);
      });
    }
    text += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"0\">\n", rank,
                        form.input_part ? part : chunks, form.output_part ? part : chunks);
    check_elements(gpu.blocks(), rank, schedule.ranks());
    print(text, gpu.blocks());
    text += "  </gpu>\n";
  }
  text += "</algo>\n";
  return text;
}

}  // namespace paceline::models
