// PyTorch's headers of torch.func (ATen/functorch/Interpreter.h) include a library that PyTorch's wheels do not bring. They use it in
// functions that nothing here calls: where it is missing, names are enough.
#pragma once

#if __has_include_next(<nlohmann/json.hpp>)
#include_next <nlohmann/json.hpp>
#else
#include <string>

namespace nlohmann {
struct json {
  template <class T>
  explicit json(const T& value);
  static json parse(const std::string& text);
  std::string dump() const;
  template <class T>
  T get() const;
};
}  // namespace nlohmann
#endif
