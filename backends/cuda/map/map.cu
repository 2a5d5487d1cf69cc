// The elementwise table: the shards, and the launchers of conversions and of results in other formats.
#include "backends/cuda/map/map.cuh"
#include "backends/cuda/map/other_format.cuh"

namespace repdl::cuda {

#include "map_shards.inc"
static_assert(std::size(map_shards) == ops::shard_count, "backends/CMakeLists.txt cuts elementwise.def otherwise");

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

// [from][to]
constexpr auto conversion_table = [] {
  std::array<std::array<launcher, ops::dtype_count>, ops::dtype_count> table{};
  ops::for_each_format<ops::ALL>([&]<class From>() {
    ops::for_each_format<ops::ALL>([&]<class To>() {
      table[static_cast<std::size_t>(dtype_of<From>)][static_cast<std::size_t>(dtype_of<To>)] =
          launch<conversion<To, From>>;
    });
  });
  return table;
}();

class map_work final : public planned {
 public:
  map_work(const plan::map_plan& p, const job& given) : planned(given), p_(p) {
    if (may_use_table(p, j)) space.take(own_.table, table_size);
    if (has_last_tier(p)) take_open(space, own_.open, p.count, j);
  }

 private:
  void enqueue() override {
    const auto format = static_cast<std::size_t>(p_.in_type);
    if (p_.op == ops::op_id::convert) {
      conversion_table[format][static_cast<std::size_t>(p_.out_type)](p_, j, own_);
    } else if (p_.has_other_format()) {
      p_.loop_of(other_format_table[static_cast<std::size_t>(ops::any_float_index(p_.op))][format])(p_, j, own_);
    } else {
      p_.loop_of(map_shards[ops::shard_of(p_.op)]->all[ops::row_in_shard(p_.op)][format])(p_, j, own_);
    }
  }

  const plan::map_plan p_;
  map_space own_;
};

}  // namespace

void prepare(const plan::map_plan& p, const job& j, dispatch::task& t) { t.emplace<map_work>(p, j); }

}  // namespace repdl::cuda
