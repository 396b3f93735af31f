#!/usr/bin/env bash
# Installs the Debian packages that Paceline is built from, those that are missing and no others.
# Asks for nothing, and may be run again at any time.
set -euo pipefail

usage="usage: ./setup.sh [--only predict]

Installs the Debian packages that Paceline is built and tested with, those that are missing.

  --only predict   only what building the command without its tests needs:
                   ./setup.sh --only predict
                   cmake --preset release -DPACELINE_BUILD_TESTS=OFF
                   cmake --build --preset release --target paceline
  --help           print this"

refuse() {
  echo "setup: $1; see ./setup.sh --help" >&2
  exit 2
}

# What the command is built from, without its optional parts.
predict=(
  g++ cmake ninja-build ccache pkg-config
  libfmt-dev            # formatting
  nlohmann-json3-dev    # JSON out, and the small JSON files in
  libyaml-cpp-dev       # clusters and networks that people write
  libcli11-dev          # the command line
  libeigen3-dev         # fits of measurements
  libpugixml-dev        # XML: SimGrid platforms
  libboost-dev          # Boost.Graph: the DAG of an iteration; Boost.Beast: HTTP of paceline serve
  libdnnl-dev           # oneDNN: layers on CPUs
  zlib1g-dev libturbojpeg0-dev libprotobuf-dev protobuf-compiler libisal-dev   # IDX, JPEG, TFRecord, its CRC32C
  libxxhash-dev         # checksums of checkpoints
)

# Optional parts of the command, the package for Python, tests, benchmarks and the manual.
others=(
  python3
  libsimgrid-dev        # SimGrid, the reference for shared links; without it that engine alone is missing
  openmpi-bin libopenmpi-dev   # messages between processes; without it that transport alone is missing
  libsodium-dev         # ranks of a rendezvous know each other by it; without it --rendezvous alone is missing
  dataset-fashion-mnist # images to train on
  libgloo-dev           # a peer in the benchmarks
  python3-torch         # plans in PyTorch's DDP are run in it; without it that test is skipped
  python3-yaml          # settings of NeMo are read by it; without it that test is skipped
  python3-jsonschema    # documents are held against their schemas; without it that test is skipped
  chromium chromium-driver python3-selenium   # reports are opened in a browser; without them that test is skipped
  pybind11-dev python3-dev python3-numpy   # the package for Python; without them that alone is missing
  python3-pytest python3-mypy python3-venv python3-pip python3-matplotlib   # its tests and its example
  python3-onnx python3-protobuf python3-torchvision   # ONNX models and Chakra traces; models of PyTorch to try
  python3-sphinx python3-myst-parser furo   # the manual as a site; without them that test is skipped
  dpkg-dev file         # packages of Debian; without them that test is skipped
  iproute2 util-linux   # the lab: hosts as network namespaces
  libboost-context-dev  # threads of GPU blocks, as the tests' double of CUDA runs them
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev   # tests and benchmarks
  clang clang-format clang-tidy libclang-rt-dev   # what CI checks beside the tests (tests/ci/check.sh)
)

packages=("${predict[@]}" "${others[@]}")
while (($# > 0)); do
  case "$1" in
    --help | -h)
      echo "$usage"
      exit 0
      ;;
    --only)
      [[ "${2-}" == predict ]] || refuse "--only takes 'predict', not '${2-}'"
      packages=("${predict[@]}")
      shift 2
      ;;
    *) refuse "unknown word '$1'" ;;
  esac
done

if ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get is here; install what these packages of Debian have: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  if ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$'; then
    missing+=("$package")
  fi
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=(env DEBIAN_FRONTEND=noninteractive)
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: only root may install ${missing[*]}, and there is no sudo" >&2
    exit 1
  fi
  as_root=(sudo "${as_root[@]}")  # sudo keeps no variables of the caller's
fi
echo "setup: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
