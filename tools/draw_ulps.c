// Numbers for draw_ulps.py, which compiles this as a shared library: inputs, glibc's results, those of its vector functions
// (libmvec), exact values in binary128 (libquadmath), and errors.
//
// The exact values have 113 bits, with an error of a unit or two in the last one: 2^-87 of a unit of binary32. No result of
// these functions in binary32 is known to lie so close to the middle between two numbers, so that rounding them gives the
// correctly rounded result.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define WIDTH 16
#define ENTRY "_ZGVeN16v_"
#elif defined(__AVX2__)
#define WIDTH 8
#define ENTRY "_ZGVdN8v_"
#elif defined(__aarch64__)
#define WIDTH 4
#define ENTRY "_ZGVnN4v_"
#else
#define WIDTH 4
#define ENTRY "_ZGVbN4v_"
#endif
typedef float vector __attribute__((vector_size(4 * WIDTH)));

enum { EXP, LOG, TANH, SIN, GELU, FUNCTIONS };

const char* glibc(void) { return gnu_get_libc_version(); }
int width(void) { return WIDTH; }

// The numbers in ascending order, -0 and +0 together.
static int32_t ordinal(float x) {
  int32_t i;
  memcpy(&i, &x, sizeof i);
  return i < 0 ? INT32_MIN - i : i;
}
static float at_ordinal(int32_t o) {
  const int32_t i = o < 0 ? INT32_MIN - o : o;
  float x;
  memcpy(&x, &i, sizeof x);
  return x;
}

// n numbers from lo to hi, ascending: one anywhere in each of n pieces with equally many numbers.
void inputs(float lo, float hi, int64_t n, float* x) {
  const double first = ordinal(lo), step = (ordinal(hi) - first) / (double)n;
  uint64_t w = 0x9e3779b97f4a7c15u;
  for (int64_t i = 0; i < n; ++i) {
    w ^= w << 13;
    w ^= w >> 7;
    w ^= w << 17;
    x[i] = at_ordinal((int32_t)(first + step * ((double)i + (double)(w >> 40) * 0x1p-24)));
  }
}
// Where x lies among the numbers from lo to hi: 0 to 1.
double position(float lo, float hi, float x) {
  return ((double)ordinal(x) - ordinal(lo)) / ((double)ordinal(hi) - ordinal(lo));
}

void reference(int f, const float* x, __float128* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const __float128 v = x[i];
    switch (f) {
      case EXP:
        y[i] = expq(v);
        break;
      case LOG:
        y[i] = logq(v);
        break;
      case TANH:
        y[i] = tanhq(v);
        break;
      case SIN:
        y[i] = sinq(v);
        break;
      case GELU:  // x Phi(x); erfc does not cancel
        y[i] = v / 2 * erfcq(-v * M_SQRT1_2q);
        break;
    }
  }
}

// The formula that one writes for gelu, with binary32 functions.
#define GELU_OF(x, erf) (0.5f * (x) * (1.0f + erf((x)*0.70710678f)))

int with_glibc(int f, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    switch (f) {
      case EXP:
        y[i] = expf(x[i]);
        break;
      case LOG:
        y[i] = logf(x[i]);
        break;
      case TANH:
        y[i] = tanhf(x[i]);
        break;
      case SIN:
        y[i] = sinf(x[i]);
        break;
      case GELU:
        y[i] = GELU_OF(x[i], erff);
        break;
    }
  }
  return 1;
}

// 0 where libmvec lacks the function. n is a multiple of 16.
int with_libmvec(int f, const float* x, float* y, int64_t n) {
  static const char* const names[FUNCTIONS] = {ENTRY "expf", ENTRY "logf", ENTRY "tanhf", ENTRY "sinf", ENTRY "erff"};
  void* const library = dlopen("libmvec.so.1", RTLD_NOW);
  if (library == NULL) return 0;
  vector (*const function)(vector) = (vector(*)(vector))dlsym(library, names[f]);
  if (function == NULL) return 0;
  for (int64_t i = 0; i < n; i += WIDTH) {
    vector v;
    memcpy(&v, x + i, sizeof v);
    v = f == GELU ? GELU_OF(v, function) : function(v);
    memcpy(y + i, &v, sizeof v);
  }
  return 1;
}

// Of each of `bins` bins of n / bins results the greatest error, in units in the last place of the exact value; in *where
// the index of the greatest one of all. Returns how many results are not the correctly rounded one.
int64_t errors(const __float128* exact, const float* y, int64_t n, int64_t bins, double* greatest, int64_t* where) {
  int64_t wrong = 0;
  double of_all = -1;
  const int64_t in_bin = n / bins;
  for (int64_t i = 0; i < n; ++i) {
    const float rounded = (float)exact[i];
    double error = 0;
    if (y[i] != rounded) {
      int e;
      frexpq(exact[i], &e);  // |exact| in [2^(e-1), 2^e)
      if (e < -125) e = -125;
      const __float128 result = isinf(y[i]) ? copysignq(0x1p128Q, y[i]) : y[i];
      error = isnan(y[i]) ? INFINITY : (double)scalbnq(fabsq(result - exact[i]), 24 - e);
      ++wrong;
    } else if (!isinf(rounded)) {
      int e;
      frexpq(exact[i], &e);
      if (e < -125) e = -125;
      error = (double)scalbnq(fabsq(rounded - exact[i]), 24 - e);
    }
    double* const bin = &greatest[i / in_bin];
    if (i % in_bin == 0 || error > *bin) *bin = error;
    if (error > of_all) {
      of_all = error;
      *where = i;
    }
  }
  return wrong;
}
