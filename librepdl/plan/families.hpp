// The families of operations. Each has a plan (NAME_plan, plans.hpp) and in every backend a driver; on the CPU also a
// table of kernels for every instruction set (NAME_kernels).
#pragma once

#define REPDL_FAMILIES(X) \
  X(map)                  \
  X(reduce)               \
  X(product)              \
  X(conv)                 \
  X(pool)                 \
  X(row)                  \
  X(step)                 \
  X(random)               \
  X(loss) X(scatter) X(nll) X(clip) X(sequence) X(upsample) X(draw) X(scan) X(exponent) X(attention) X(interpolation)
