// Command-line arguments: options in any order, "--name VALUE" or "--name=VALUE", "--" before names that start with
// '-'.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "librepdl/context.hpp"
#include "tools/cli/text.hpp"

namespace repdl::tools {

[[noreturn]] inline void usage(std::string_view command, std::string_view argument, std::string_view expected,
                               std::string_view got) {
  fail(error_site::usage, command, argument, expected, got);
}

/// Thrown where a command's arguments have --help or -h: main prints the command's text.
struct help_requested {
  std::string_view command;
};

/// The integer that a decimal number is: "12", "-3", "1e6", "2.5e3"; nothing where it is none or beyond 64 bits.
inline std::optional<std::int64_t> exact_integer(std::string_view text) {
  const auto read = [](std::string_view s, auto& to) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), to);
    return error == std::errc() && end == s.data() + s.size();
  };
  // digits times 10^exponent
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  std::int32_t written = 0;
  if (e < text.size() && !read(text.substr(e + (text.substr(e + 1).starts_with('+') ? 2 : 1)), written)) return {};
  std::int64_t exponent = written;
  std::string digits(text.substr(0, e));
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    exponent -= static_cast<std::int64_t>(digits.size() - point - 1);
    digits.erase(point, 1);
  }
  for (; exponent < 0 && digits.ends_with('0'); ++exponent) digits.pop_back();
  constexpr std::int64_t most_digits = 19;  // of 2^63
  if (exponent < 0 || exponent > most_digits) return {};
  digits.append(static_cast<std::size_t>(exponent), '0');
  std::int64_t v = 0;
  return read(digits, v) ? std::optional(v) : std::nullopt;
}

struct option {
  std::string_view name;  ///< "--isa", "-o"
  bool takes_value = true;
};

class arguments {
 public:
  arguments(std::string_view command, std::span<const std::string_view> args, std::initializer_list<option> known)
      : command_(command) {
    bool options_end = false;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const std::string_view a = args[i];
      if (options_end || a.size() < 2 || a[0] != '-') {
        positional_.push_back(a);
        continue;
      }
      if (a == "--") {
        options_end = true;
        continue;
      }
      const std::size_t equals = a.starts_with("--") ? a.find('=') : std::string_view::npos;
      const std::string_view name = a.substr(0, equals);
      const option* o = nullptr;
      std::string names;
      for (const option& k : known) {
        if (k.name == name) o = &k;
        names += (names.empty() ? "" : ", ") + std::string(k.name);
      }
      if (o == nullptr && (a == "--help" || a == "-h")) throw help_requested{command};
      if (o == nullptr) usage(command, "option", names.empty() ? "no options" : "one of " + names, in_quotes(name));
      if (!o->takes_value && equals != std::string_view::npos) usage(command, name, "no value", in_quotes(a));
      std::string_view value;
      if (o->takes_value && equals != std::string_view::npos) {
        value = a.substr(equals + 1);
      } else if (o->takes_value) {
        if (i + 1 == args.size()) usage(command, name, "a value", "the end of the line");
        value = args[++i];
      }
      given_.push_back({o->name, value});
    }
  }

  const std::vector<std::string_view>& positional() const { return positional_; }
  std::vector<std::string_view> values(std::string_view name) const {
    std::vector<std::string_view> all;
    for (const given& g : given_) {
      if (g.name == name) all.push_back(g.value);
    }
    return all;
  }
  bool has(std::string_view name) const { return !values(name).empty(); }
  std::optional<std::string_view> value(std::string_view name) const {
    const auto all = values(name);
    if (all.size() > 1) usage(command_, name, "it at most once", std::to_string(all.size()) + " times");
    return all.empty() ? std::nullopt : std::optional(all[0]);
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t greatest) const {
    const auto text = value(name);
    if (!text) return otherwise;
    const std::optional<std::int64_t> v = exact_integer(*text);
    if (!v || *v < least || *v > greatest) {
      usage(command_, name, "an integer from " + std::to_string(least) + " to " + std::to_string(greatest),
            in_quotes(*text));
    }
    return *v;
  }
  /// --backend, --isa, --threads.
  context_options context() const {
    context_options o;
    const std::string_view backend = value("--backend").value_or("cpu");
    if (backend != "cpu" && backend != "cuda") usage(command_, "--backend", "cpu or cuda", in_quotes(backend));
    if (backend == "cuda") {
      o.where.kind = device_kind::cuda;
      for (const std::string_view cpu_only : {"--isa", "--threads"}) {
        if (has(cpu_only)) usage(command_, cpu_only, "--backend cpu with it", "--backend cuda");
      }
    }
    o.isa = value("--isa").value_or("");
    if (has("--isa") && o.isa.empty()) usage(command_, "--isa", "the name of an instruction set", "''");
    o.threads = static_cast<int>(integer("--threads", 0, 0, max_threads));
    return o;
  }
  void expect_positional(std::size_t least, std::size_t most, std::string_view what) const {
    if (positional_.size() >= least && positional_.size() <= most) return;
    const bool extra = positional_.size() > most;
    usage(command_, "arguments", what, extra ? in_quotes(positional_[most]) : std::to_string(positional_.size()));
  }

 private:
  struct given {
    std::string_view name;
    std::string_view value;
  };
  std::string_view command_;
  std::vector<std::string_view> positional_;
  std::vector<given> given_;
};

}  // namespace repdl::tools
