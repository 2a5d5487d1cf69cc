// Reductions of what goes to one place: products, means, extremes, and sums of products.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "formulas.hpp"

namespace repdl_torch::formulas {
namespace {

// For each place that any of the elements go to a row of their positions, in their order, and which of the row's numbers there are:
// f(places, positions, there). Rows of 2^(k-1) + 1 to 2^k elements come together, so that all rows have less than twice the elements.
template <class F>
void for_each_bunch(const Tensor& place, F&& f) {
  if (place.numel() == 0) return;
  const auto [sorted, order] = place.sort(/*stable=*/true, 0, /*descending=*/false);
  const auto [places, inverse, counts] = at::unique_consecutive(sorted, false, /*return_counts=*/true);
  const Tensor starts = counts.cumsum(0).sub(counts);
  const int64_t most = counts.max().item<int64_t>();
  for (int64_t width = 1;; width *= 2) {
    const Tensor rows = counts.gt(width / 2).logical_and(counts.le(width)).nonzero().view({-1});
    if (rows.numel() > 0) {
      const Tensor column = at::arange(width, place.options()), first = starts.index_select(0, rows).unsqueeze(1);
      const Tensor there = column.lt(counts.index_select(0, rows).unsqueeze(1));
      f(places.index_select(0, rows), order.index({first.add(column).clamp_max(place.numel() - 1)}), there);
    }
    if (width >= most) return;
  }
}

// What is reduced: terms, each with its place in a vector of numbers.
struct reduced {
  Tensor terms, place;
  int64_t places;

  Tensor empty(double value) const { return at::full({places}, value, terms.options()); }
  Tensor touched() const { return at::zeros({places}, place.options().dtype(at::kBool)).index_fill(0, place, true); }
  Tensor sums() const { return at::index_add(empty(0), 0, place, terms); }
  Tensor means() const { return at::embedding_dense_backward(terms.unsqueeze(1), place, places, -1, true).view({-1}); }
  Tensor products() const {
    Tensor out = empty(1);
    for_each_bunch(place, [&](const Tensor& at, const Tensor& position, const Tensor& there) {
      out.index_copy_(0, at, at::prod(terms.index({position}).masked_fill(there.logical_not(), 1), 1));
    });
    return out;
  }
  // NaN wins, -0 < +0; infinities where nothing goes. As integers, of which aten's kernels find the greatest in any order.
  Tensor extremes(bool greatest) const {
    const at::ScalarType type = terms.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::ScalarType integer = type == at::kDouble ? at::kLong : at::kInt;
    const int64_t most =
        type == at::kDouble ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
    const int64_t wins = greatest ? most : -most - 1, sign = type == at::kDouble ? 63 : 31;
    // The bits of numbers as integers of the numbers' order, -0 below +0; and such integers as bits again.
    const auto in_order = [&](const Tensor& bits) { return bits.bitwise_xor(bits.__rshift__(sign).bitwise_and(most)); };
    const double infinity = std::numeric_limits<double>::infinity();
    const auto ordered = [&](const Tensor& t) {
      return in_order(converted(t, type).view(integer)).masked_fill(t.isnan(), wins);
    };
    const Tensor start = ordered(empty(greatest ? -infinity : infinity));
    const Tensor found =
        in_order(start.scatter_reduce(0, place, ordered(terms), greatest ? "amax" : "amin", true)).view(type);
    return converted(found.masked_fill(found.isnan(), std::numeric_limits<double>::quiet_NaN()), terms.scalar_type());
  }
  Tensor operator()(const std::string& how) const {
    return how == "sum"    ? sums()
           : how == "mean" ? means()
           : how == "prod" ? products()
                           : extremes(how == "amax" || how == "max");
  }
};

// self with what source has for its places along an axis; the places that nothing goes to keep their bits.
Tensor reduce_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const std::string& how,
                   bool with_self) {
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "scatter(): Expected self.dtype to be equal to src.dtype");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "scatter(): Expected dtype int32/int64 for index");
  if (index.numel() == 0) return self.clone();
  const auto whole = [](const Tensor& t) { return t.dim() == 0 ? t.unsqueeze(0) : t; };
  const Tensor x = whole(self), at = whole(index).to(at::kLong);
  const int64_t axis = at::maybe_wrap_dim(dim, x.dim());
  TORCH_CHECK(at.dim() == x.dim() && whole(source).dim() == x.dim(),
              "Index tensor must have the same number of dimensions as self tensor");
  // The first place of each line, and the distance between a line's places.
  Tensor line = at::arange(x.numel(), at.options()).view(x.sizes()).narrow(axis, 0, 1), terms = whole(source);
  for (int64_t i = 0; i < x.dim(); ++i) {
    TORCH_CHECK(at.size(i) <= terms.size(i) && (i == axis || at.size(i) <= x.size(i)), "Expected index ", at.sizes(),
                " to be no larger than self ", x.sizes(), " apart from dimension ", axis,
                " and to be no larger size than src ", terms.sizes());
    if (i != axis) line = line.narrow(i, 0, at.size(i));
    terms = terms.narrow(i, 0, at.size(i));
  }
  expect_all(at.ge(0).logical_and(at.lt(x.size(axis))), "index out of bounds");
  const int64_t step = c10::multiply_integers(x.sizes().slice(axis + 1));
  reduced r{terms.reshape({-1}), line.add(at.mul(step)).reshape({-1}), x.numel()};
  const Tensor touched = r.touched(), before = x.reshape({-1});
  if (with_self) {
    const Tensor own = touched.nonzero().view({-1});
    r.terms = at::cat({before.index_select(0, own), r.terms});
    r.place = at::cat({own, r.place});
  }
  return at::where(touched, r(how), before).view(self.sizes());
}
void check_kind(const std::string& how, const std::string& name, const std::string& kinds) {
  TORCH_CHECK((" " + kinds + " ").find(" " + how + " ") != std::string::npos, name, ": reduce argument must be one of ",
              kinds, ", got ", how);
}
}  // namespace

// self, dim, index, src, reduce, include_self
void scatter_reduce(call& c) {
  const Tensor& x = c.tensor(0);
  const std::string how = c.text(4);
  if (!at::isFloatingType(x.scalar_type()) && !at::isComplexType(x.scalar_type())) return c.leave();
  if (!(type_bit(x.scalar_type()) & FLOATS)) c.refuse("");
  check_kind(how, "scatter_reduce", "sum prod mean amax amin");
  c.give(how == "sum" && c.boolean(5) ? at::scatter_add(x, c.integer(1), c.tensor(2), c.tensor(3))
                                      : reduce_into(x, c.integer(1), c.tensor(2), c.tensor(3), how, c.boolean(5)));
}
// self, dim, index, source, reduce, include_self: the index is of slices
void index_reduce(call& c) {
  const Tensor &x = c.tensor(0), &index = c.tensor(2), &source = c.tensor(3);
  if (!at::isFloatingType(x.scalar_type()) && !at::isComplexType(x.scalar_type())) return c.leave();
  if (!(type_bit(x.scalar_type()) & FLOATS)) c.refuse("");
  check_kind(c.text(4), "index_reduce", "prod mean amax amin");
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), x.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_reduce_(): Index is supposed to be a vector");
  TORCH_CHECK(x.dim() == source.dim() && index.numel() == (source.dim() == 0 ? 1 : source.size(axis)),
              "index_reduce_(): Number of indices (", index.numel(), ") should be equal to source.size(dim)");
  std::vector<int64_t> shape(source.dim(), 1);
  if (source.dim() > 0) shape[axis] = index.numel();
  c.give(reduce_into(x, axis, index.reshape(shape).expand(source.sizes()), source, c.text(4), c.boolean(5)));
}

namespace {
// Segments of an axis, of each line before it; what is behind the last belongs to none.
struct segments {
  int64_t lines, count, length, inner;
  Tensor segment;  // of each number of a line, with the line's own: `count` of them; those of no segment come last
  Tensor lengths;  // of each line's segments
  std::vector<int64_t> shape;
  segments(const Tensor& data, const Tensor& lengths_, const Tensor& offsets, int64_t dim) {
    const int64_t axis = at::maybe_wrap_dim(dim, data.dim());
    TORCH_CHECK(lengths_.defined() != offsets.defined(),
                "segment_reduce(): Either lengths or offsets must be defined.");
    lengths = (lengths_.defined() ? lengths_ : at::diff(offsets)).to(at::kLong);
    TORCH_CHECK(lengths.dim() == axis + 1, "segment_reduce(): Expected axis to be the last dimension of ",
                lengths_.defined() ? "lengths" : "offsets", " but got ", axis, ".");
    const auto sizes = data.sizes();
    shape = sizes.vec();
    count = shape[axis] = lengths.size(axis);
    length = sizes[axis];
    lines = c10::multiply_integers(sizes.slice(0, axis));
    inner = c10::multiply_integers(sizes.slice(axis + 1));
    lengths = lengths.reshape({lines, count});
    expect_all(lengths.ge(0).logical_and(lengths.sum(1, true).le(length)),
               "segment_reduce(): Expected lengths that are not negative and add up to no more than the axis");
    const Tensor numbers = at::arange(length, lengths.options()).expand({lines, length}).contiguous();
    segment = at::searchsorted(lengths.cumsum(1), numbers, /*out_int32=*/false, /*right=*/true);
  }
  // Of each element, in the order of memory; one more than there are where it belongs to no segment.
  Tensor places() const {
    const auto options = segment.options();
    const Tensor row = segment.add(at::arange(lines, options).unsqueeze(1).mul(count));
    const Tensor all = row.unsqueeze(2).mul(inner).add(at::arange(inner, options));
    return all.masked_fill(segment.ge(count).unsqueeze(2), all_places()).reshape({-1});
  }
  int64_t all_places() const { return lines * count * inner; }
  Tensor of_each_place(const Tensor& t) const { return t.unsqueeze(2).expand({lines, count, inner}).reshape({-1}); }
};
}  // namespace
// data, reduce, lengths, indices, offsets, axis, unsafe, initial
void segment_reduce(call& c) {
  const Tensor& x = c.tensor(0);
  const std::string how = c.text(1);
  check_kind(how, "segment_reduce()", "max mean min sum prod");
  TORCH_CHECK(!c.tensor(3).defined(), "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(x.numel() > 0, "segment_reduce(): Expected a tensor of one element or more.");
  const segments s(x, c.tensor(2), c.tensor(4), c.integer(5));
  if (!c.boolean(6))
    expect_all(s.lengths.sum(1).eq(s.length),
               "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
               "!unsafe.");
  const int64_t n = s.all_places();
  reduced r{x.reshape({-1}), s.places(), n + 1};
  const auto with_initial = [&](const reduced& all) {
    if (!c.has(7)) return all;
    return reduced{at::cat({at::full({n}, c.number(7, x.scalar_type()), x.options()), all.terms}),
                   at::cat({at::arange(n, all.place.options()), all.place}), n + 1};
  };
  // A mean of an initial value is over the segment's length: a sum, rounded, and a quotient.
  const bool of_sum = how == "mean" && c.has(7);
  Tensor out = with_initial(r)(of_sum ? "sum" : how).narrow(0, 0, n);
  const Tensor length = s.of_each_place(s.lengths);
  if (of_sum) out = map("div", {out, length.to(x.scalar_type())});
  if (how == "mean") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double of_nothing = c.has(7) ? c.number(7, x.scalar_type()) : nan;
    out = out.masked_fill(length.eq(0), of_nothing);
  }
  c.give(out.reshape(s.shape));
}
// grad, output, data, reduce, lengths, offsets, axis, initial: g; of means g/length; of extremes g/(how many elements are the result) to
// each; of products g times the product of the others: of the rounded product that over the element, where it is 0 that of those which are
// not.
void segment_reduce_backward(call& c) {
  const Tensor &y = c.tensor(1), &x = c.tensor(2);
  const std::string how = c.text(3);
  const segments s(x, c.tensor(4), c.tensor(5), c.integer(6));
  const int64_t n = s.all_places();
  const Tensor place = s.places(), terms = x.reshape({-1}), nothing = at::zeros({1}, x.options());
  const auto of_elements = [&](const Tensor& of_places) {
    return at::cat({of_places, nothing}).index_select(0, place);
  };
  const auto count = [&](const Tensor& these) {
    return at::index_add(at::zeros({n + 1}, x.options().dtype(at::kLong)), 0, place, these.to(at::kLong))
        .narrow(0, 0, n);
  };
  const Tensor g = c.tensor(0).reshape({-1});
  const auto over = [&](const Tensor& t) { return map("div", {g, t.to(x.scalar_type())}); };
  Tensor out;
  if (how == "sum") {
    out = of_elements(g);
  } else if (how == "mean") {
    out = of_elements(over(s.of_each_place(s.lengths)));
  } else if (how == "prod") {
    const Tensor zero = terms.eq(0), zeros = count(zero);
    const Tensor others = reduced{terms.masked_fill(zero, 1), place, n + 1}.products().narrow(0, 0, n);
    const Tensor rest =
        c.has(7) ? map("mul", {others, number_on(c.number(7, x.scalar_type()), x.scalar_type(), x.device())}) : others;
    const Tensor of_zero = map("mul", {g, rest}).masked_fill(zeros.gt(1), 0);
    const Tensor of_rest = map("mul", {g, y.reshape({-1})});
    out = at::where(zero, of_elements(of_zero), map("div", {of_elements(of_rest), terms.masked_fill(zero, 1)}));
  } else {
    const Tensor is = terms.eq(of_elements(y.reshape({-1}))).logical_or(terms.isnan()).logical_and(place.lt(n));
    out = of_elements(over(count(is).clamp_min(1))).masked_fill(is.logical_not(), 0);
  }
  c.give(out.view(x.sizes()));
}

namespace {
// Of each bunch the sum of weights times rows, rounded once; +0 where there is none. rows, weights: of the elements of `place`.
Tensor weighted_sums(const Tensor& rows, const Tensor& weights, const Tensor& place, int64_t places) {
  const Tensor out = at::zeros({places, rows.size(1)}, rows.options());
  for_each_bunch(place, [&](const Tensor& at, const Tensor& position, const Tensor& there) {
    const Tensor absent = there.logical_not(), w = weights.index({position}).masked_fill(absent, 0),
                 those = rows.index({position}).masked_fill(absent.unsqueeze(2), 0);
    out.index_copy_(0, at, at::bmm(w.unsqueeze(1), those).squeeze(1));
  });
  return out;
}
constexpr int64_t bags_sum = 0, bags_mean = 1, bags_max = 2;
}  // namespace
// weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx -> (result, each
// sample's bag, the bags' sizes, places of maxima). Sums or means of rows, rounded once: a gradient of rows to bags.
void embedding_bag(call& c) {
  static const operation op("embedding_backward");
  const Tensor &weight = c.tensor(0), &factors = c.tensor(6);
  const int64_t mode = c.integer(4), padding = c.integer(8);
  const Tensor index = c.tensor(1).to(at::kLong), offsets = c.tensor(2).to(at::kLong);
  TORCH_CHECK(weight.dim() == 2 && index.dim() == 1 && offsets.dim() == 1,
              "embedding_bag: expected a matrix, indices and offsets of one dimension");
  const int64_t bags = offsets.numel() - (c.boolean(7) ? 1 : 0);
  TORCH_CHECK(bags >= 0, "include_last_offset: number of offset should be at least 1");
  if (offsets.is_cpu() && offsets.numel() > 0) {
    const int64_t first = offsets.select(0, 0).item<int64_t>(), last = offsets.select(0, -1).item<int64_t>();
    TORCH_CHECK(
        first == 0,
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0, but got ",
        first);
    TORCH_CHECK(last <= index.numel(), "offsets[-1] can not be greater than input's length(", index.numel(),
                ") but got offsets[-1] of ", last);
  }
  const Tensor bag =
      at::searchsorted(offsets, at::arange(index.numel(), index.options()), /*out_int32=*/false, /*right=*/true).sub(1);
  // What is padding goes to a bag of its own.
  const Tensor place = padding >= 0 ? bag.masked_fill(index.eq(padding), bags) : bag;
  const Tensor size = at::bincount(place, {}, bags + 1).narrow(0, 0, bags).contiguous();
  TORCH_CHECK(!factors.defined() || (mode == bags_sum && factors.sizes() == index.sizes()),
              "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'");
  Tensor greatest = size.clone();  // of sums and means aten has nothing here
  Tensor out;
  if (mode == bags_max) {
    out = at::zeros({bags + 1, weight.size(1)}, weight.options());
    greatest = at::zeros(out.sizes(), index.options());
    for_each_bunch(place, [&](const Tensor& at, const Tensor& position, const Tensor& there) {
      const Tensor rows = weight.index({index.index({position})});
      const auto [value, column] =
          rows.masked_fill(there.logical_not().unsqueeze(2), -std::numeric_limits<double>::infinity()).max(1);
      out.index_copy_(0, at, value);
      greatest.index_copy_(0, at, index.index({position}).gather(1, column));
    });
    greatest = greatest.narrow(0, 0, bags).contiguous();
  } else if (factors.defined()) {
    out = weighted_sums(weight.index_select(0, index), factors, place, bags + 1);
  } else {
    const Tensor rows = weight.index_select(0, index);
    out = at::empty({bags + 1, weight.size(1)}, weight.options());
    op({rows, place}, {&out}, {{"rows", bags + 1}, {"padding_idx", bags}, {"scale_grad_by_freq", mode == bags_mean}});
  }
  c.give(out.narrow(0, 0, bags).contiguous());
  c.give(bag);
  c.give(size);
  c.give(greatest);
}
// grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx. Of
// means the gradient of a row is rounded before rows are added.
void embedding_bag_dense_backward(call& c) {
  static const operation divide("div");
  Tensor g = c.tensor(0);
  const Tensor index = c.tensor(1).to(at::kLong), bag = c.tensor(2).to(at::kLong), &factors = c.tensor(8);
  const int64_t mode = c.integer(7), rows = c.integer(5);
  if (mode == bags_max) {  // to the rows of the maxima, a column at a time
    const Tensor full = c.tensor(3).gt(0).nonzero().view({-1});
    return c.give(at::zeros({rows, g.size(1)}, g.options())
                      .scatter_add(0, c.tensor(4).index_select(0, full), g.index_select(0, full)));
  }
  if (factors.defined()) {
    const Tensor here = index.ne(c.integer(9)).nonzero().view({-1});
    if (c.boolean(6)) c.refuse("with weights of samples and scale_grad_by_freq");
    return c.give(weighted_sums(g.index_select(0, bag.index_select(0, here)), factors.index_select(0, here),
                                index.index_select(0, here), rows));
  }
  if (mode == bags_mean && g.numel() > 0) {
    const Tensor wide = converted(g, at::kDouble), size = c.tensor(3).to(at::kDouble).unsqueeze(1),
                 quotient = at::empty(g.sizes(), g.options());
    divide({wide, size}, {&quotient});
    g = quotient;
  }
  c.give(at::embedding_dense_backward(g.index_select(0, bag), index, rows, c.integer(9), c.boolean(6)));
}
// grad, weight, indices, offsets, offset2bag, mode, padding_idx: the product of a bag's gradient and the sample's row, rounded once
void embedding_bag_samples_backward(call& c) {
  const Tensor &g = c.tensor(0), &weight = c.tensor(1), index = c.tensor(2).to(at::kLong),
               bag = c.tensor(4).to(at::kLong);
  TORCH_CHECK(c.integer(5) == bags_sum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  const Tensor out =
      at::bmm(g.index_select(0, bag).unsqueeze(1), weight.index_select(0, index).unsqueeze(2)).view({-1});
  c.give(out.masked_fill(index.eq(c.integer(6)), 0));
}

}  // namespace repdl_torch::formulas
