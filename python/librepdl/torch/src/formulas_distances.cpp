// Distances between rows: differences, rounded; of each row of them a norm.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_cdist_forward.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/triu_indices.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

// Differences that are in memory at once, about. No bits depend on it.
constexpr int64_t at_once = int64_t{1} << 22;

// Calls f(first batch, batches, first row, rows) until all are done, each of which has `width` differences.
template <class F>
void in_blocks(int64_t batches, int64_t rows, int64_t width, F&& f) {
  const int64_t some_rows = std::clamp(at_once / std::max<int64_t>(width, 1), int64_t{1}, std::max<int64_t>(rows, 1)),
                some_batches =
                    some_rows < rows ? 1 : std::max<int64_t>(at_once / std::max<int64_t>(width * rows, 1), 1);
  for (int64_t b = 0; b < batches; b += some_batches) {
    for (int64_t i = 0; i < rows; i += some_rows)
      f(b, std::min(some_batches, batches - b), i, std::min(some_rows, rows - i));
  }
}

struct pairs {
  Tensor x, y;  // batch, row, column
  std::vector<int64_t> batch;
  pairs(const Tensor& a, const Tensor& b) {
    TORCH_CHECK(a.dim() >= 2 && b.dim() >= 2, "cdist only supports at least 2D tensors, got: ", a.dim(), "D and ",
                b.dim(), "D");
    TORCH_CHECK(a.size(-1) == b.size(-1), "X1 and X2 must have the same number of columns. X1: ", a.size(-1),
                " X2: ", b.size(-1));
    TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected the same type, got ", a.scalar_type(), " and ",
                b.scalar_type());
    batch = at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
    const int64_t count = c10::multiply_integers(batch);
    const auto flat = [&](const Tensor& t) { return expanded(t).reshape({count, t.size(-2), t.size(-1)}); };
    x = flat(a);
    y = flat(b);
  }
  Tensor expanded(const Tensor& t) const { return t.expand(with(t.size(-2), t.size(-1))); }
  std::vector<int64_t> with(int64_t a, int64_t b) const {
    std::vector<int64_t> shape = batch;
    shape.push_back(a);
    shape.push_back(b);
    return shape;
  }
  // batch, row of x, row of y, column
  Tensor differences(int64_t b, int64_t nb, int64_t i, int64_t ni) const {
    return map("sub", {x.narrow(0, b, nb).narrow(1, i, ni).unsqueeze(2), y.narrow(0, b, nb).unsqueeze(1)});
  }
  int64_t width() const { return y.size(1) * y.size(2); }
};

// What the gradient to a difference d of a distance r is, but for a factor of all columns: sign d |d|^(p - 1).
Tensor slopes(const Tensor& d, const Tensor& r, double p) {
  if (p == 2) return d;
  const Tensor sign = map("sign", {d});
  if (p == 1) return sign;
  if (std::isinf(p)) return sign.masked_fill(d.abs().ne(r.unsqueeze(-1)), 0);
  return sign.mul(d.abs().pow(p - 1)).masked_fill(d.eq(0), 0);
}

// Of each row of x its gradient: the exact sum, over the rows of y, of slopes times g, or g / r^(p - 1).
Tensor rows_gradient(const Tensor& g, const pairs& both, const Tensor& r, double p) {
  const Tensor &x = both.x, out = at::zeros(x.sizes(), x.options());
  if (p == 0 || x.numel() == 0 || both.y.numel() == 0) return out;
  const Tensor factor = p == 1 || std::isinf(p) ? g : g.div(p == 2 ? r : r.pow(p - 1)).masked_fill(r.eq(0), 0);
  const int64_t others = both.y.size(1), columns = x.size(2);
  in_blocks(x.size(0), x.size(1), both.width(), [&](int64_t b, int64_t nb, int64_t i, int64_t ni) {
    const auto part = [&](const Tensor& t) { return t.narrow(0, b, nb).narrow(1, i, ni); };
    const Tensor slope = slopes(both.differences(b, nb, i, ni), part(r), p);
    part(out).copy_(at::bmm(part(factor).reshape({nb * ni, 1, others}), slope.reshape({nb * ni, others, columns}))
                        .view({nb, ni, columns}));
  });
  return out;
}
}  // namespace

// x1, x2, p, compute_mode: never by products
void cdist(call& c) {
  const pairs both(c.tensor(0), c.tensor(1));
  TORCH_CHECK(c.real(2) >= 0, "cdist only supports non-negative p values");
  const Tensor x = both.expanded(c.tensor(0)), y = both.expanded(c.tensor(1));
  c.give(at::_cdist_forward(x, y, c.real(2), c.has(3) ? std::optional(c.integer(3)) : std::nullopt));
}
void cdist_forward(call& c) {
  const pairs both(c.tensor(0), c.tensor(1));
  const double p = c.real(2);
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  const Tensor &x = both.x, out = at::zeros({x.size(0), x.size(1), both.y.size(1)}, x.options());
  if (x.size(2) > 0 && out.numel() > 0) {
    in_blocks(x.size(0), x.size(1), both.width(), [&](int64_t b, int64_t nb, int64_t i, int64_t ni) {
      out.narrow(0, b, nb).narrow(1, i, ni).copy_(
          at::linalg_vector_norm(both.differences(b, nb, i, ni), p, at::IntArrayRef{3}));
    });
  }
  c.give(out.view(both.with(x.size(1), both.y.size(1))));
}
// grad, x1, x2, p, cdist
void cdist_backward(call& c) {
  const pairs both(c.tensor(1), c.tensor(2));
  const auto flat = [&](const Tensor& t) {
    return t.expand(both.with(both.x.size(1), both.y.size(1)))
        .reshape({both.x.size(0), both.x.size(1), both.y.size(1)});
  };
  const Tensor found = rows_gradient(flat(c.tensor(0)), both, flat(c.tensor(4)), c.real(3));
  c.give(at::sum_to(found.view(both.with(both.x.size(1), both.x.size(2))), c.tensor(1).sizes()));
}

// self, p: of rows i < j, in the order of i and then j
void pdist_forward(call& c) {
  const Tensor& x = c.tensor(0);
  TORCH_CHECK(x.dim() == 2 && c.real(1) >= 0, "pdist only supports 2D tensors and non-negative p values");
  const Tensor pairs = at::triu_indices(x.size(0), x.size(0), 1, x.options().dtype(at::kLong));
  const Tensor out = at::zeros({pairs.size(1)}, x.options());
  if (x.size(1) > 0) {
    in_blocks(1, pairs.size(1), x.size(1), [&](int64_t, int64_t, int64_t i, int64_t n) {
      const auto rows = [&](int64_t of) { return x.index_select(0, pairs.select(0, of).narrow(0, i, n)); };
      out.narrow(0, i, n).copy_(at::linalg_vector_norm(map("sub", {rows(0), rows(1)}), c.real(1), at::IntArrayRef{1}));
    });
  }
  c.give(out);
}
// grad, self, p, pdist: as of all pairs
void pdist_backward(call& c) {
  const Tensor& x = c.tensor(1);
  const int64_t n = x.size(0);
  const Tensor pairs = at::triu_indices(n, n, 1, x.options().dtype(at::kLong)),
               place = pairs.select(0, 0).mul(n).add(pairs.select(0, 1));
  const auto square = [&](const Tensor& t) {
    const Tensor upper = at::zeros({n * n}, x.options()).scatter(0, place, t).view({n, n});
    return at::where(upper.new_ones({n, n}, at::kBool).triu(1), upper, upper.t()).unsqueeze(0);
  };
  c.give(rows_gradient(square(c.tensor(0)), {x, x}, square(c.tensor(3)), c.real(2)).view(x.sizes()));
}

}  // namespace repdl_torch::formulas
