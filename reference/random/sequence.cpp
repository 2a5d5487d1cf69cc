// Numbers at equal distances, as rational numbers.
#include "reference/numbers/real.hpp"
#include "reference/structured/structured.hpp"

namespace repdl::reference {
namespace {

/// Element i is RN(start + i distance).
array sequence(dtype t, std::int64_t count, const mpq_class& start, const mpq_class& distance, outcomes* where) {
  array out(t, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    outcome o;
    out.set(static_cast<std::size_t>(i), round_exact(t, start + distance * mpz_class(static_cast<long>(i)), &o));
    if (where != nullptr) where->push_back(o);
  }
  return out;
}

}  // namespace

array linspace(dtype t, std::int64_t count, double start, double end, outcomes* where) {
  mpq_class distance = rational(end) - rational(start);
  if (count > 1) distance /= mpz_class(static_cast<long>(count - 1));
  return sequence(t, count, rational(start), distance, where);
}

array arange(dtype t, std::int64_t count, double start, double step, outcomes* where) {
  return sequence(t, count, rational(start), rational(step), where);
}

}  // namespace repdl::reference
