// The elementwise table: the operations, which are in shards (map_shard.cuh), and the launchers of conversions.
#include <vector>

#include "backends/cuda/map/map.cuh"
#include "librepdl/ops/elementwise/convert.hpp"

namespace repdl::cuda {

extern const map_operation* const map_operations[];  // map_operations.cpp

namespace {

template <class To, class From>
struct conversion {
  static constexpr int arity = 1;
  static constexpr tier first = tier::proved;
  static constexpr unsigned booleans = 0;
  using input = num::stored<From>;
  using output = To;
  using tally = no_tally;
  __device__ static To eval(const input* x, tally&) { return num::convert_body<To, From>::eval(num::load(x[0])); }
};

// To 8 bits, where the option is whether to saturate.
template <class To, class From>
struct conversion_to_8_bits : num::parameters {
  static constexpr int arity = 1;
  static constexpr tier first = tier::proved;
  static constexpr unsigned booleans = 0;
  using input = num::stored<From>;
  using output = To;
  using tally = no_tally;
  __device__ To eval(const input* x, tally&) const {
    return num::convert_body<To, From>::eval(num::load(x[0]), value[0] != 0);
  }
};
template <class To, class From>
using conversion_of = std::conditional_t<num::is_byte_float<To>, conversion_to_8_bits<To, From>, conversion<To, From>>;

// [from][to]
constexpr auto conversion_table = [] {
  std::array<std::array<launcher, ops::dtype_count>, ops::dtype_count> table{};
  ops::for_each_format<ops::ALL>([&]<class From>() {
    ops::for_each_format<ops::ALL>([&]<class To>() {
      table[static_cast<std::size_t>(dtype_of<From>)][static_cast<std::size_t>(dtype_of<To>)] = {
          launch<conversion_of<To, From>>, false, false};
    });
  });
  return table;
}();

launcher launcher_of(const plan::map_plan& p) {
  const auto format = static_cast<std::size_t>(p.in_type);
  if (p.op == ops::op_id::convert) return conversion_table[format][static_cast<std::size_t>(p.out_type)];
  const map_operation& operation = *map_operations[static_cast<int>(p.op)];
  return p.loop_of(p.has_other_format() ? operation.to_other_format[format] : operation.loops[format]);
}

// A call in parts, as a list: of a self-test. More than a block of them, one element, the others, which begin at no pack.
std::vector<plan::map_plan> parts_of(const plan::map_plan& p) {
  std::vector<plan::map_plan> parts;
  for (std::int64_t first = 0, n = least_block + 4; first < p.count; first += n, n = n == 1 ? p.count : 1) {
    plan::map_plan& part = parts.emplace_back(p);
    part.count = part.shape[0] = std::min(n, p.count - first);
    const auto from = [&](const void* data, dtype type) {
      return static_cast<const std::byte*>(data) + first * static_cast<std::int64_t>(size_of(type));
    };
    for (int k = 0; k < p.arity; ++k) part.in[k].data = from(p.in[k].data, p.in[k].type);
    part.out = const_cast<std::byte*>(from(p.out, p.out_type));
  }
  return parts;
}
bool is_flat(const plan::map_plan& p) {
  bool flat = p.rank == 1 && p.out_stride[0] == 1;
  for (int k = 0; k < p.arity; ++k) flat = flat && p.in[k].data != nullptr && p.in[k].stride[0] == 1;
  return flat;
}

class map_work final : public planned {
 public:
  map_work(const plan::map_plan& p, const job& given)
      : planned(given), p_(p), launcher_(launcher_of(p)), list_(p.list) {
    if (j.device.choice.split && is_flat(p)) list_ = parts_ = parts_of(p);
    if (!list_.empty()) {
      if (launcher_.has_last_tier) take_undecided(space, own_.undecided, list_);
      return;
    }
    if (may_use_table(p, j.device)) space.take(own_.table, table_size);
    if (launcher_.has_last_tier) take_undecided(space, own_.undecided, p.count, j);
    if (launcher_.has_factor && may_use_factors(p, j.device, j.first_tier)) space.take(own_.factors, most_factors);
  }

 private:
  void enqueue() override {
    if (list_.empty()) return launcher_.launch(p_, j, own_);
    if (launcher_.launch_list != nullptr) return launcher_.launch_list(list_, j, own_);
    for (const plan::map_plan& c : list_) launcher_.launch(c, j, own_.of_call(c, j));
  }

  const plan::map_plan p_;
  const launcher launcher_;
  map_space own_;
  std::span<const plan::map_plan> list_;
  std::vector<plan::map_plan> parts_;
};

}  // namespace

void prepare(const plan::map_plan& p, const job& j, dispatch::task& t) { t.emplace<map_work>(p, j); }

}  // namespace repdl::cuda
