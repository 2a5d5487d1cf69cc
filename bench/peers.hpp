// What the library is measured against: plain loops, compiled with -Ofast -march=native.
#pragma once

#include <cstdint>

namespace peers {

float sum(const float* x, std::int64_t n);
float dot(const float* x, const float* y, std::int64_t n);
double sum(const double* x, std::int64_t n);
double dot(const double* x, const double* y, std::int64_t n);
void copy(const float* x, float* y, std::int64_t n);
void sgd(float* p, const float* g, float* velocity, std::int64_t n, float lr, float momentum, float weight_decay);
/// PyTorch's defaults but for lr.
void adamw(float* p, const float* g, float* m, float* v, std::int64_t n, float lr, int step);
/// libm, through the compiler: with -Ofast GCC calls glibc's vector versions (4 ulp).
using map_function = void(const float* x, float* y, std::int64_t n);
extern map_function *const exp, *const log, *const tanh;

}  // namespace peers
