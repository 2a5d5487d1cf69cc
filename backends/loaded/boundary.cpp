#include "backends/loaded/boundary.hpp"

#include <new>
#include <stdexcept>
#include <string>

namespace repdl::loaded {
namespace {

// The parts of a message that error's constructor made. `expected` may itself have ", got " in it; wherever the rest is
// cut, the parts make the same message again.
thrown parts_of(const error& e) {
  constexpr std::string_view before_expected = ": expected ", before_got = ", got ";
  std::string_view rest = e.what();
  rest.remove_prefix(e.op().size() + 2 + e.argument().size() + before_expected.size());
  const std::size_t cut = rest.find(before_got);
  return {
      thrown::kind::error, e.site(), e.op(), e.argument(), rest.substr(0, cut), rest.substr(cut + before_got.size())};
}

}  // namespace

void caller::make_again(caller& self, const thrown& t) noexcept {
  try {
    switch (t.what) {
      case thrown::kind::error:
        fail(t.site, t.op, t.argument, t.expected, t.got);
      case thrown::kind::out_of_memory:
        throw std::bad_alloc();
      case thrown::kind::other:
        throw std::runtime_error(std::string(t.got));
    }
  } catch (...) {
    self.thrown_ = std::current_exception();
  }
}

void tell_current(caller& c) noexcept {
  try {
    throw;
  } catch (const error& e) {
    c.tell(parts_of(e));
  } catch (const std::bad_alloc&) {
    c.tell({.what = thrown::kind::out_of_memory});
  } catch (const std::exception& e) {
    c.tell({.what = thrown::kind::other, .got = e.what()});
  } catch (...) {
    c.tell({.what = thrown::kind::other, .got = "an exception of unknown type"});
  }
}

}  // namespace repdl::loaded
