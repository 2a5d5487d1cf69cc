#include "bench/peers.hpp"

#include <cmath>

namespace peers {

namespace {

template <class T>
T sum_of(const T* x, std::int64_t n) {
  T s = 0;
  for (std::int64_t i = 0; i < n; ++i) s += x[i];
  return s;
}
template <class T>
T dot_of(const T* x, const T* y, std::int64_t n) {
  T s = 0;
  for (std::int64_t i = 0; i < n; ++i) s += x[i] * y[i];
  return s;
}

}  // namespace

float sum(const float* x, std::int64_t n) { return sum_of(x, n); }
float dot(const float* x, const float* y, std::int64_t n) { return dot_of(x, y, n); }
double sum(const double* x, std::int64_t n) { return sum_of(x, n); }
double dot(const double* x, const double* y, std::int64_t n) { return dot_of(x, y, n); }

void copy(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i];
}

void sgd(float* p, const float* g, float* velocity, std::int64_t n, float lr, float momentum, float weight_decay) {
  for (std::int64_t i = 0; i < n; ++i) {
    velocity[i] = momentum * velocity[i] + (g[i] + weight_decay * p[i]);
    p[i] -= lr * velocity[i];
  }
}

void adamw(float* p, const float* g, float* m, float* v, std::int64_t n, float lr, int step) {
  const float b1 = 0.9f, b2 = 0.999f;
  const float c1 = 1 - std::pow(b1, static_cast<float>(step)), c2 = 1 - std::pow(b2, static_cast<float>(step));
  const float keep = 1 - lr * 0.01f, scale = lr / c1, root = 1 / std::sqrt(c2);
  for (std::int64_t i = 0; i < n; ++i) {
    m[i] = b1 * m[i] + (1 - b1) * g[i];
    v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
    p[i] = keep * p[i] - scale * m[i] / (std::sqrt(v[i]) * root + 1e-8f);
  }
}

template <float (*f)(float)>
static void map(const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}
map_function* const exp = map<std::exp>;
map_function* const log = map<std::log>;
map_function* const tanh = map<std::tanh>;

}  // namespace peers
