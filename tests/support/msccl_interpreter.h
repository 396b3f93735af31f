// MSCCL's algorithm files as its runtime reads and runs them: threadblocks in program order,
// connections as queues of a few messages, flags between threadblocks. Written from the runtime's
// parser and interpreter (microsoft/msccl, src/graph/topo.cc and
// src/collectives/device/msccl_interpreter.h) alone; knows nothing of schedules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace paceline::test {

struct MscclStep {
  std::string type;
  char source_buffer = 'i';
  int source = 0;
  char target_buffer = 'i';
  int target = 0;
  int count = 0;
  int wait_block = -1;
  int wait_step = -1;
  bool waited_for = false;
};

struct MscclBlock {
  int send = -1;
  int receive = -1;
  std::vector<MscclStep> steps;
};

struct MscclGpu {
  int input_chunks = 0;
  int output_chunks = 0;
  std::vector<MscclBlock> blocks;
};

struct MscclFile {
  std::map<std::string, std::string> attributes;
  std::vector<MscclGpu> gpus;

  [[nodiscard]] int number(const std::string& key) const { return std::stoi(attributes.at(key)); }
};

// Does microsoft/msccl choose the file for an all-reduce of `count` elements? (src/collectives,
// where it looks for an algorithm: a count that nchunksperloop divides, and minBytes <= bytes <
// maxBytes.)
inline bool msccl_chooses(const MscclFile& file, int ranks, std::int64_t count, int element_bytes) {
  const std::int64_t bytes = count * element_bytes;
  return file.number("ngpus") == ranks && count % file.number("nchunksperloop") == 0 &&
         bytes >= std::stoll(file.attributes.at("minBytes")) &&
         bytes < std::stoll(file.attributes.at("maxBytes"));
}

// Does msccl-executor-nccl's own scheduler? (src/misc/msccl/msccl_lifecycle.cc: bytes <= maxBytes,
// and a maxBytes of 0 bounds nothing.)
inline bool msccl_executor_chooses(const MscclFile& file, int ranks, std::int64_t count,
                                   int element_bytes) {
  const std::int64_t bytes = count * element_bytes;
  const std::int64_t most = std::stoll(file.attributes.at("maxBytes"));
  return file.number("ngpus") == ranks && count > 0 && count % file.number("nchunksperloop") == 0 &&
         bytes >= std::stoll(file.attributes.at("minBytes")) && (most == 0 || bytes <= most);
}

// The runtime's parser knows elements with attributes apart by single spaces, and nothing else.
// Throws std::runtime_error where it would give up.
inline MscclFile parse_msccl(const std::string& text) {
  const auto fail = [](const std::string& why) { throw std::runtime_error(why); };
  MscclFile file;
  std::vector<std::string> open;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    static const std::regex element("^ *<(/?)([a-z]+)((?: [A-Za-z_]+=\"[^\"<>&]*\")*)(/?)>$");
    std::smatch m;
    if (!std::regex_match(line, m, element)) fail("not an element: " + line);
    const std::string name = m[2];
    if (m[1] == "/") {
      if (open.empty() || open.back() != name) fail("closes what is not open: " + line);
      open.pop_back();
      continue;
    }
    std::map<std::string, std::string> values;
    static const std::regex attribute("([A-Za-z_]+)=\"([^\"]*)\"");
    const std::string attributes = m[3];
    for (std::sregex_iterator i(attributes.begin(), attributes.end(), attribute), end; i != end;
         ++i) {
      if (!values.emplace((*i)[1], (*i)[2]).second) fail("twice the same attribute: " + line);
    }
    const auto number = [&](const char* key) {
      if (!values.contains(key)) fail(std::string("no attribute ") + key + ": " + line);
      return std::stoi(values[key]);
    };
    if (name == "algo") {
      file.attributes = values;
    } else if (name == "gpu") {
      if (number("id") != static_cast<int>(file.gpus.size())) fail("gpus come in order");
      file.gpus.push_back({number("i_chunks"), number("o_chunks"), {}});
      if (number("s_chunks") < 0) fail("negative scratch");
    } else if (name == "tb") {
      std::vector<MscclBlock>& blocks = file.gpus.back().blocks;
      if (number("id") != static_cast<int>(blocks.size())) fail("threadblocks come in order");
      if (number("chan") != 0) fail("one channel is enough");
      blocks.push_back({number("send"), number("recv"), {}});
    } else if (name == "step") {
      std::vector<MscclStep>& steps = file.gpus.back().blocks.back().steps;
      if (number("s") != static_cast<int>(steps.size())) fail("steps come in order");
      steps.push_back({values["type"], values["srcbuf"].at(0), number("srcoff"),
                       values["dstbuf"].at(0), number("dstoff"), number("cnt"), number("depid"),
                       number("deps"), number("hasdep") == 1});
    } else {
      fail("unknown element: " + name);
    }
    if (m[4] != "/") open.push_back(name);
  }
  if (!open.empty()) fail("not closed: " + open.back());
  return file;
}

// Runs a file on buffers of whole numbers (sums wrap). Threadblocks of all GPUs take turns at
// random, or one runs as far as it can before the next; a send waits while its connection holds
// `slots` messages.
class MscclMachine {
 public:
  using Buffer = std::vector<std::uint64_t>;
  struct Buffers {
    Buffer input;
    Buffer output;
  };

  // Throws std::runtime_error for a file that the runtime would refuse.
  explicit MscclMachine(const MscclFile& file, std::size_t slots = 1) : file_(file), slots_(slots) {
    for (std::size_t gpu = 0; gpu < file.gpus.size(); ++gpu) check(static_cast<int>(gpu));
  }

  // Throws std::runtime_error on a deadlock, on messages that do not match or are left over, and
  // on an access out of bounds.
  void run(std::vector<Buffers>& buffers, unsigned seed) {
    std::vector<std::vector<std::size_t>> at;
    std::vector<std::vector<int>> flags;
    std::vector<std::pair<std::size_t, std::size_t>> running;
    for (std::size_t gpu = 0; gpu < file_.gpus.size(); ++gpu) {
      at.emplace_back(file_.gpus[gpu].blocks.size(), 0);
      flags.emplace_back(file_.gpus[gpu].blocks.size(), -1);
      for (std::size_t block = 0; block < at.back().size(); ++block)
        running.push_back({gpu, block});
    }
    std::map<std::pair<std::size_t, std::size_t>, std::deque<Buffer>> wires;
    std::mt19937 random(seed);
    while (!running.empty()) {
      std::shuffle(running.begin(), running.end(), random);
      bool moved = false;
      for (const auto& [gpu, block] : running) {
        const bool greedy = random() % 2 == 0;
        do {
          if (!advance(gpu, block, at[gpu][block], flags[gpu], wires, buffers[gpu])) break;
          moved = true;
        } while (greedy);
      }
      std::erase_if(running, [&](const auto& who) {
        return at[who.first][who.second] == file_.gpus[who.first].blocks[who.second].steps.size();
      });
      if (!moved && !running.empty()) throw std::runtime_error("deadlock");
    }
    for (const auto& [ends, wire] : wires) {
      if (!wire.empty()) throw std::runtime_error("a message is left over");
    }
  }

 private:
  void check(int gpu) const {
    const auto fail = [gpu](const char* why) {
      throw std::runtime_error(std::string(why) + " at gpu " + std::to_string(gpu));
    };
    std::map<int, int> senders;
    std::map<int, int> receivers;
    const std::vector<MscclBlock>& blocks = file_.gpus[static_cast<std::size_t>(gpu)].blocks;
    for (const MscclBlock& block : blocks) {
      if (block.send == gpu || block.receive == gpu) fail("talks to itself");
      if (block.send >= 0 && ++senders[block.send] > 1) fail("two threadblocks for one peer");
      if (block.receive >= 0 && ++receivers[block.receive] > 1)
        fail("two threadblocks for one peer");
      if (block.steps.size() > 256) fail("more than 256 steps");
      bool pending = false;
      for (const MscclStep& step : block.steps) {
        if (step.type != "nop" && (step.count < 1 || step.count >= 72)) fail("count");
        if (pending && step.wait_block < 0) fail("the last of several waits is the instruction's");
        pending = step.type == "nop";
        if (step.type == "s" && block.send < 0) fail("nobody to send to");
        if ((step.type == "r" || step.type == "rrc") && block.receive < 0) fail("nobody to hear");
        if (step.wait_block < 0) continue;
        if (step.wait_block >= static_cast<int>(blocks.size())) fail("waits for no threadblock");
        const auto& other = blocks[static_cast<std::size_t>(step.wait_block)].steps;
        if (step.wait_step >= static_cast<int>(other.size()) ||
            !other[static_cast<std::size_t>(step.wait_step)].waited_for)
          fail("waits for a flag that nobody sets");
      }
      if (pending) fail("a nop without an instruction");
    }
    if (senders.size() > 32 || receivers.size() > 32) fail("more than 32 peers");
  }

  static std::uint64_t* cells(Buffers& own, char buffer, int offset, int count) {
    Buffer& cells = buffer == 'i' ? own.input : own.output;
    if (offset < 0 || offset + count > static_cast<int>(cells.size()))
      throw std::runtime_error("out of bounds");
    return cells.data() + offset;
  }

  bool advance(std::size_t gpu, std::size_t block, std::size_t& at, std::vector<int>& flags,
               std::map<std::pair<std::size_t, std::size_t>, std::deque<Buffer>>& wires,
               Buffers& own) {
    const MscclBlock& code = file_.gpus[gpu].blocks[block];
    if (at == code.steps.size()) return false;
    const MscclStep& step = code.steps[at];
    if (step.wait_block >= 0 && flags[static_cast<std::size_t>(step.wait_block)] < step.wait_step)
      return false;
    const auto count = static_cast<std::size_t>(step.count);
    if (step.type == "s") {
      auto& wire = wires[{gpu, static_cast<std::size_t>(code.send)}];
      if (wire.size() >= slots_) return false;
      const std::uint64_t* from = cells(own, step.source_buffer, step.source, step.count);
      wire.emplace_back(from, from + count);
    } else if (step.type == "r" || step.type == "rrc") {
      auto& wire = wires[{static_cast<std::size_t>(code.receive), gpu}];
      if (wire.empty()) return false;
      if (wire.front().size() != count) throw std::runtime_error("counts do not match");
      std::uint64_t* to = cells(own, step.target_buffer, step.target, step.count);
      const std::uint64_t* from =
          step.type == "r" ? nullptr : cells(own, step.source_buffer, step.source, step.count);
      for (std::size_t i = 0; i < count; ++i)
        to[i] = wire.front()[i] + (from == nullptr ? 0 : from[i]);
      wire.pop_front();
    } else if (step.type == "cpy") {
      const std::uint64_t* from = cells(own, step.source_buffer, step.source, step.count);
      std::copy(from, from + count, cells(own, step.target_buffer, step.target, step.count));
    } else if (step.type != "nop") {
      throw std::runtime_error("unknown type " + step.type);
    }
    if (step.waited_for) flags[block] = static_cast<int>(at);
    ++at;
    return true;
  }

  MscclFile file_;
  std::size_t slots_;
};

}  // namespace paceline::test
