// Tests: tests/runtime/steps/layer_steps_test.cc.
#include "runtime/network/steps/operation.h"

#include <fmt/format.h>

#include "models/base/to_size.h"

namespace paceline::runtime::steps {
namespace {

std::string text(const Images& i) {
  return fmt::format("{}x{}x{}x{}", i.batch, i.channels, i.height, i.width);
}
std::string text(const models::Extent& e) {
  return fmt::format("{}x{}", e.height, e.width);
}
std::string_view text(Pass pass) {
  return pass == Pass::forward ? "forward" : "backward";
}

struct Key {
  std::string operator()(const Convolution& c) const {
    constexpr std::string_view products[] = {"forward", "data-gradient", "filter-gradient"};
    std::string key =
        fmt::format("conv-{} {} -> {} k{} s{} p{}", products[to_size(c.product)], text(c.x),
                    text(c.y), text(c.kernel), text(c.stride), text(c.padding));
    if (c.dilation != models::square(1)) key += " d" + text(c.dilation);
    if (c.groups != 1) key += fmt::format(" g{}", c.groups);
    if (c.bias) key += " bias";
    if (c.relu) key += " relu";
    return key;
  }
  std::string operator()(const BatchNorm& b) const {
    return fmt::format("batch-norm-{} {}{}{}", text(b.pass), text(b.x), b.residual ? " add" : "",
                       b.relu ? " relu" : "");
  }
  std::string operator()(const Pool& p) const {
    return fmt::format("{}-pool-{} {} -> {} k{} s{} p{}",
                       p.kind == Pool::Kind::max ? "max" : "average", text(p.pass), text(p.x),
                       text(p.y), text(p.kernel), text(p.stride), text(p.padding));
  }
  std::string operator()(const Sum& s) const {
    return fmt::format("sum {} of {}{}", text(s.x), s.terms, s.relu ? " relu" : "");
  }
  std::string operator()(const ReluBackward& r) const {
    return fmt::format("relu-backward {} of {}", text(r.x), r.terms);
  }
};

}  // namespace

std::string key(const Operation& operation, models::NumberType storage) {
  return fmt::format("{} {}", std::visit(Key{}, operation), models::name(storage));
}

std::int64_t flops(const Operation& operation) {
  const auto* c = std::get_if<Convolution>(&operation);
  if (c == nullptr) return 0;
  return 2 * c->y.batch * c->y.channels * c->y.height * c->y.width * (c->x.channels / c->groups) *
         c->kernel.height * c->kernel.width;
}

}  // namespace paceline::runtime::steps
