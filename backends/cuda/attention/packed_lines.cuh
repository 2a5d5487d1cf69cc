// Lines in binary64, eight at a time, in orders in which the fp64 matrix instruction takes them: as columns of a product over the numbers of a line, or as
// rows of a sum over the lines, line 2 t + j being in the place 4 j + t. What is taken in one way only has the two numbers of a lane side by side. What is
// taken in both has number x of line i in the place where the 16 lanes that shared memory serves at a time ask for 16 different pairs of banks, whether their
// lines or their numbers differ.
#pragma once

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/attention/staged_tile.cuh"

namespace repdl::cuda {

enum class packed_for { products, sums, both };

// Of 64 numbers.
template <packed_for For>
__device__ int place_of_packed(int line, int x) {
  if constexpr (For == packed_for::products) return 2 * (4 * line + x % 4) + x / 4;
  if constexpr (For == packed_for::sums) return 2 * (4 * x + line / 2) + line % 2;
  const int pair = line / 2, half = (line ^ pair) & 1, turned = (pair ^ (pair / 2)) & 1;
  return 16 * pair + 8 * half + (x ^ 4 * turned);
}

inline constexpr std::int64_t packed_at_once = 32;  // lines; what is behind the last one is 0
// Bytes of a call, unless a head has more; where kernels are emulated so few that calls come in parts.
#ifdef REPDL_EMULATED
inline constexpr std::int64_t most_packed = std::int64_t{1} << 16;
#else
inline constexpr std::int64_t most_packed = std::int64_t{1} << 30;
#endif
__host__ __device__ inline std::int64_t padded_lines(std::int64_t lines) {
  return (lines + packed_at_once - 1) / packed_at_once * packed_at_once;
}
// How many heads are packed at a time, of `lines` lines each.
inline std::int64_t packed_heads(std::int64_t heads, std::int64_t lines, std::int64_t size) {
  return std::clamp<std::int64_t>(most_packed / (lines * size * static_cast<std::int64_t>(sizeof(double))), 1, heads);
}

template <int Size, int Lines, packed_for For>
struct packed_tile {
  alignas(16) double numbers[Lines / 8][Size / 8][64];

  template <int Threads>
  __device__ void copy(int thread, const double* from) {
    constexpr int packs = Lines * Size / 2;
#pragma unroll 4
    for (int i = thread; i < packs; i += Threads)
      copy_async<16>(reinterpret_cast<float*>(&numbers[0][0][0] + 2 * i), reinterpret_cast<const float*>(from + 2 * i),
                     true);
  }
  // Operand b of the instruction, of eight lines and eight numbers.
  __device__ void for_products(int eight, int s, double (&b)[2]) const {
    static_assert(For != packed_for::sums);
    const int lane = lane_of_thread(), at = place_of_packed<For>(lane / 4, lane % 4);
    take(eight, s, at, at ^ 4, b);
  }
  __device__ void for_sums(int eight, int s, double (&b)[2]) const {
    static_assert(For != packed_for::products);
    const int lane = lane_of_thread(), at = place_of_packed<For>(2 * (lane % 4), lane / 4);
    take(eight, s, at, at ^ 8, b);
  }

 private:
  __device__ void take(int eight, int s, int first, int second, double (&b)[2]) const {
    if constexpr (For == packed_for::both) {
      b[0] = numbers[eight][s][first];
      b[1] = numbers[eight][s][second];
    } else {
      const double2 x = *reinterpret_cast<const double2*>(&numbers[eight][s][first]);
      b[0] = x.x;
      b[1] = x.y;
    }
  }
};

// Where eight lines go, in each order; null: nowhere.
struct packed_group {
  double *products = nullptr, *sums = nullptr, *both = nullptr;
};

// What a warp's lanes know of lines of at most Size numbers: of its lines the greatest square of a norm, and of columns lane, lane + 32, ... the greatest
// magnitude and the sum of squares; rounded up.
template <int Size>
struct line_survey {
  static constexpr int columns = Size / 32;
  float square_of_norm = 0, most[columns] = {}, squares[columns] = {};

  // Eight lines, `count` of which are there, and where they go. Of norms or columns nothing is known where nobody asks for them.
  template <bool Norms, bool Columns, class T>
  __device__ void take(const T* from, std::int64_t row, std::int64_t count, std::int64_t size, const packed_group& to) {
    const int lane = lane_of_thread();
    constexpr int at_once = Size == 64 ? 8 : 4;  // whose numbers are on their way
#pragma unroll 1
    for (int first = 0; first < 8; first += at_once) {
      float x[at_once][columns];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
#pragma unroll
        for (int c = 0; c < columns; ++c) {
          const int d = 32 * c + lane;
          x[i][c] = first + i < count && d < size ? num::widen_to_float(from[(first + i) * row + d]) : 0.0f;
        }
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        float square = 0;
#pragma unroll
        for (int c = 0; c < columns; ++c) {
          const float y = x[i][c];
          if constexpr (Norms) square = __fmaf_ru(y, y, square);
          if constexpr (Columns) add(c, y);
          const int s = 4 * c + lane / 8;
          if (to.products != nullptr)
            to.products[64 * s + place_of_packed<packed_for::products>(first + i, lane % 8)] = static_cast<double>(y);
          if (to.both != nullptr)
            to.both[64 * s + place_of_packed<packed_for::both>(first + i, lane % 8)] = static_cast<double>(y);
        }
        if constexpr (Norms) add_square<1>(square);
      }
      if (to.sums == nullptr) continue;
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const int s = 4 * c + lane / 8;
        // The numbers of a column lie side by side.
        auto* const column =
            reinterpret_cast<double2*>(to.sums + 64 * s + place_of_packed<packed_for::sums>(first, lane % 8));
#pragma unroll
        for (int i = 0; i < at_once; i += 2)
          column[i / 2] = {static_cast<double>(x[i][c]), static_cast<double>(x[i + 1][c])};
      }
    }
  }

  // Of a tile's lines, what is not there being 0: norms, of which lanes have a line or a part of one each, or columns.
  template <class T, int Threads, int Rows>
  __device__ void take_norms(const staged_tile<T, Size, Threads, Rows>& lines) {
    constexpr int of_line = 32 / Rows, each = 16 / sizeof(T), packs = Size / each / of_line;
    const int lane = lane_of_thread();
    const auto* const from = reinterpret_cast<const uint4*>(lines.rows[lane % Rows]) + lane / Rows * packs;
    float square = 0;
#pragma unroll 4
    for (int i = 0; i < packs; ++i) {
      const uint4 pack = from[i];
      alignas(16) T x[each];
      *reinterpret_cast<uint4*>(x) = pack;
#pragma unroll
      for (int n = 0; n < each; ++n) square = __fmaf_ru(num::widen_to_float(x[n]), num::widen_to_float(x[n]), square);
    }
    add_square<Rows>(square);
  }
  template <class T, int Threads, int Rows>
  __device__ void take_columns(const staged_tile<T, Size, Threads, Rows>& lines) {
#pragma unroll 4
    for (int r = 0; r < Rows; ++r) {
#pragma unroll
      for (int c = 0; c < columns; ++c) add(c, lines.number(r, 32 * c + lane_of_thread()));
    }
  }

 private:
  __device__ void add(int c, float x) {
    most[c] = greater(x, most[c]);
    squares[c] = __fmaf_ru(x, x, squares[c]);
  }
  // Of `Lines` lines, of which every Lines-th lane has a part.
  template <int Lines>
  __device__ void add_square(float part) {
#pragma unroll
    for (int by = Lines; by < 32; by *= 2) part = __fadd_ru(part, __shfl_xor_sync(full_warp, part, by));
    square_of_norm = greater(part, square_of_norm);
  }
};

// That of a block's warps.
template <int Warps>
struct joined_survey {
  unsigned norm, most[most_size];
  float squares[Warps][most_size];

  __device__ void clear() {
    for (int i = static_cast<int>(threadIdx.x); i < most_size; i += 32 * Warps) {
      most[i] = 0;
      for (int w = 0; w < Warps; ++w) squares[w][i] = 0;
    }
    if (threadIdx.x == 0) norm = 0;
  }
  // In the order of the bits NaN is the greatest.
  template <int Size>
  __device__ void add(const line_survey<Size>& s) {
    const int lane = lane_of_thread(), warp = static_cast<int>(threadIdx.x / 32);
    atomicMax(&norm, __float_as_uint(__fsqrt_ru(s.square_of_norm)) & 0x7fffffffu);
#pragma unroll
    for (int c = 0; c < line_survey<Size>::columns; ++c) {
      atomicMax(most + 32 * c + lane, __float_as_uint(s.most[c]) & 0x7fffffffu);
      squares[warp][32 * c + lane] = s.squares[c];
    }
  }
  __device__ float squares_of(int e) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Warps; ++i) sum = __fadd_ru(sum, squares[i][e]);
    return sum;
  }
};

}  // namespace repdl::cuda
