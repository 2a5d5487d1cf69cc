#include "bench/peers.hpp"

#include <cmath>

namespace peers {

float sum(const float* x, std::int64_t n) {
  float s = 0;
  for (std::int64_t i = 0; i < n; ++i) s += x[i];
  return s;
}

float dot(const float* x, const float* y, std::int64_t n) {
  float s = 0;
  for (std::int64_t i = 0; i < n; ++i) s += x[i] * y[i];
  return s;
}

void copy(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i];
}

template <float (*f)(float)>
static void map(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}
map_function* const exp = map<std::exp>;
map_function* const log = map<std::log>;
map_function* const tanh = map<std::tanh>;

}  // namespace peers
