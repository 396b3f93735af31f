// Tests: tests/cli/doctor_test.py.
#include "cli/doctor/doctor.h"

#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "cli/doctor/bounded_child.h"
#include "cli/doctor/probes.h"
#include "runtime/tensor/kernels.h"

namespace paceline::doctor {
namespace {

struct Question {
  const char* name;
  const char* needed_by;
  const char* package;
  std::function<std::string()> ask;
};

const char* const driver = "NVIDIA driver";

std::vector<Question> questions() {
  return {
      {"MPI", "ranks under mpirun or srun: train, replay, calibrate, sweep",
       "openmpi-bin and libopenmpi3", ask_mpi},
      {"oneDNN", "train and calibrate on processors", "libdnnl2", ask_onednn},
      {"SimGrid", "--engine simgrid and agree", "libsimgrid3.32", ask_simgrid},
      {"paceline-simgrid.so", "--engine simgrid and agree",
       "paceline-simgrid, or paceline built with libsimgrid-dev",
       [] { return ask_module("paceline-simgrid.so"); }},
      {"libsodium", "train --rendezvous", "libsodium23", ask_sodium},
      {"CUDA toolkit", "building the parts for GPUs", "cuda-toolkit (NVIDIA's repository)",
       ask_nvcc},
      {driver, "train and calibrate --device cuda", "nvidia-driver (non-free)", ask_driver},
      {"CUDA runtime", "train and calibrate --device cuda", "cuda-cudart (NVIDIA's repository)",
       ask_cuda_runtime},
      {"NCCL", "train --device cuda with several GPUs, and the tuner plugin",
       "libnccl2 (NVIDIA's repository)", ask_nccl},
      {"cuDNN", "train --layers cudnn", "libcudnn9-cuda-13 (NVIDIA's repository)", ask_cudnn},
      {"paceline-cuda.so", "train and calibrate --device cuda",
       "paceline-cuda, or paceline built where the CUDA toolkit is",
       [] { return ask_module("paceline-cuda.so"); }},
      {"paceline-cudnn.so", "train --layers cudnn",
       "paceline-cuda, or paceline built where cuDNN is",
       [] { return ask_module("paceline-cudnn.so"); }},
      {"PyTorch", "plans in DistributedDataParallel (paceline_ddp.py)", "python3-torch",
       ask_pytorch},
  };
}

std::string first_of(const std::string& answer, std::string_view key) {
  const std::vector<std::string> values = values_of(answer, key);
  return values.empty() ? std::string() : values.front();
}

std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::vector<Gpu> gpus_in(const std::string& answer) {
  std::vector<Gpu> gpus;
  for (const std::string& line : values_of(answer, "device")) {
    Gpu gpu;
    std::istringstream words(line);
    words >> gpu.memory_bytes >> gpu.compute_capability >> std::ws;
    std::getline(words, gpu.name);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

// What /proc/cpuinfo says of the first processor under a key.
std::string cpu_fact(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    std::string name = line.substr(0, colon);
    while (!name.empty() && (name.back() == '\t' || name.back() == ' ')) name.pop_back();
    if (name == key) return line.substr(std::min(colon + 2, line.size()));
  }
  return {};
}

Processor processor() {
  std::istringstream words(cpu_fact("flags"));
  std::set<std::string> flags;
  for (std::string flag; words >> flag;) flags.insert(flag);
  const auto has = [&flags](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* flag) { return flags.contains(flag); });
  };
  return {.model = cpu_fact("model name"),
          .threads = static_cast<int>(std::thread::hardware_concurrency()),
          .avx2 = has({"avx2"}),
          .avx512 = has({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
          .bf16 = has({"avx512_bf16"}),
          .amx = has({"amx_tile", "amx_bf16"}),
          .kernels = std::string(runtime::kernel_form())};
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::found:
      return "found";
    case State::missing:
      return "missing";
    case State::no_answer:
      return "no answer";
  }
  return "unknown";
}

Findings look_around(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const std::vector<Question> all = questions();
  std::deque<BoundedChild> children;
  for (const Question& question : all) children.emplace_back(question.ask);
  Findings findings{.processor = processor(), .parts = {}, .gpus = {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Answer answer = children[i].answer(deadline, limit);
    Part part;
    part.name = all[i].name;
    part.needed_by = all[i].needed_by;
    part.package = all[i].package;
    if (answer.is_there) {
      part.state = State::found;
      part.version = first_of(answer.text, "version");
      part.where = first_of(answer.text, "where");
      if (part.name == driver) findings.gpus = gpus_in(answer.text);
    } else {
      part.state = answer.is_silent ? State::no_answer : State::missing;
      part.why = in_one_line(answer.text);
    }
    findings.parts.push_back(std::move(part));
  }
  return findings;
}

namespace {

// A text that may not be there.
template <class Of>
auto maybe(std::string Of::*text) {
  return [text](const Of& of) { return non_empty(of.*text); };
}

const Document<BuiltPart>& built_part_document() {
  static const auto document = Document<BuiltPart>()
                                   .add("name", &BuiltPart::name)
                                   .add("is_there", &BuiltPart::is_there)
                                   .add("version", maybe(&BuiltPart::version));
  return document;
}

const Document<Processor>& processor_document() {
  static const auto document = Document<Processor>()
                                   .add("model", maybe(&Processor::model))
                                   .add("threads", &Processor::threads)
                                   .add("avx2", &Processor::avx2)
                                   .add("avx512", &Processor::avx512)
                                   .add("bf16", &Processor::bf16)
                                   .add("amx", &Processor::amx)
                                   .add("kernels", &Processor::kernels);
  return document;
}

const Document<Part>& part_document() {
  static const auto document = Document<Part>()
                                   .add("name", &Part::name)
                                   .add("state", &Part::state)
                                   .add("version", maybe(&Part::version))
                                   .add("where", maybe(&Part::where))
                                   .add("why", maybe(&Part::why))
                                   .add("needed_by", &Part::needed_by)
                                   .add("package", &Part::package);
  return document;
}

const Document<Gpu>& gpu_document() {
  static const auto document = Document<Gpu>()
                                   .add("name", &Gpu::name)
                                   .add("memory_bytes", &Gpu::memory_bytes)
                                   .add("compute_capability", &Gpu::compute_capability);
  return document;
}

}  // namespace

const Document<Findings>& doctor_document() {
  static const auto document =
      Document<Findings>("paceline.doctor/1",
                         "paceline doctor --json: which parts are on this machine.")
          .add("version", [](const Findings&) { return version(); })
          .add(
              "built_with", [](const Findings&) { return built_parts(); }, built_part_document(), 1)
          .add("processor", &Findings::processor, processor_document())
          .add("parts", &Findings::parts, part_document(), 1)
          .add("gpus", &Findings::gpus, gpu_document());
  return document;
}

}  // namespace paceline::doctor
