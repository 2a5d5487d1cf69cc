// Calls between the library and a backend in a shared library of its own, in both directions.
//
// No exception leaves a called function: the two sides may have different copies of the C++ runtime. What is thrown is
// told to the caller, whose own code makes the same exception again. What one side allocates that side frees: a result
// that has memory is copied by the side that asked for it, while the other one still has it.
#pragma once

#include <exception>
#include <string_view>
#include <utility>

#include "librepdl/error.hpp"

namespace repdl::loaded {

/// What a call threw.
struct thrown {
  enum class kind { error, out_of_memory, other } what;
  error_site site{};
  std::string_view op{}, argument{}, expected{}, got{};  ///< of an error; `got` is the text of any other exception
};

/// The caller, to the function that it calls.
class caller {
 public:
  caller() = default;
  caller(const caller&) = delete;
  caller& operator=(const caller&) = delete;

  void tell(const thrown& t) noexcept { tell_(*this, t); }
  /// The caller's: throws what the call threw.
  void check() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 protected:
  std::exception_ptr thrown_;

 private:
  static void make_again(caller& self, const thrown& t) noexcept;
  void (*tell_)(caller&, const thrown&) noexcept = make_again;  // code of the side that made the object
};

/// A caller that expects a value.
template <class T>
class asker : public caller {
 public:
  void answer(const T& value) noexcept { copy_(*this, value); }
  /// The caller's: the answer, or throws what the call threw.
  T take() {
    check();
    return std::move(value_);
  }

 private:
  static void copy(asker& self, const T& value) noexcept {
    try {
      self.value_ = value;
    } catch (...) {
      self.thrown_ = std::current_exception();
    }
  }
  void (*copy_)(asker&, const T&) noexcept = copy;  // likewise
  T value_{};
};

/// Tells the caller what is being handled.
void tell_current(caller& c) noexcept;

/// The body of a called function.
template <class F>
void contain(caller& c, F&& body) noexcept {
  try {
    body();
  } catch (...) {
    tell_current(c);
  }
}

/// Calls: f(caller).
template <class F>
void cross(F&& f) {
  caller c;
  f(c);
  c.check();
}
/// Likewise, for an answer.
template <class T, class F>
T ask(F&& f) {
  asker<T> c;
  f(c);
  return c.take();
}

}  // namespace repdl::loaded
