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

void exp(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}

void log(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::log(x[i]);
}

void tanh(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

}  // namespace peers
