#include "runtime/device/copies.h"

#include <gmock/gmock.h>

#include "runtime/device/cpu_device.h"
#include "tests/support/late_device.h"

namespace paceline::runtime {
namespace {

// The copies wait for the kernels before them, and the kernel that copies is done when they return.
void check_copies(Device& device) {
  const auto stream = device.make_stream();
  for (const MemoryKind kind : {device.fastest(), MemoryKind::pinned}) {
    const Memory memory = device.allocate(12, kind);
    const ArrayView array = memory.array(NumberType::fp32);
    copy_from_host(device, *stream, std::vector<float>{1, 2, 3}, array);
    stream->start(Add{array.part(0, 1), array.part(2, 1)});
    EXPECT_EQ(to_host(device, *stream, array), (std::vector<float>{1, 2, 4}));
    stream->start(Fill{array, 7});
    copy_from_host(device, *stream, std::vector<float>{5}, array.part(1, 1));
    EXPECT_EQ(to_host(device, *stream, array), (std::vector<float>{7, 5, 7}));
  }
}

TEST(Copies, GoBothWaysOnTheCpu) {
  CpuDevice device;
  check_copies(device);
}

TEST(Copies, WaitOnALateDevice) {
  for (const auto lateness :
       {test::Lateness::eager, test::Lateness::latest, test::Lateness::random}) {
    test::LateDevice device(lateness, 3);
    check_copies(device);
    EXPECT_THAT(device.hazards(), ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace paceline::runtime
