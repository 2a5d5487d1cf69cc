#include "reference/digests.hpp"

#include <bit>
#include <sstream>
#include <stdexcept>

#include "reference/attributes.hpp"
#include "reference/exhaustive.hpp"
#include "reference/layout.hpp"

namespace repdl::reference {
namespace {

std::string hex64(std::uint64_t v) {
  std::string s;
  for (int i = 60; i >= 0; i -= 4) s += "0123456789abcdef"[(v >> i) & 15];
  return s;
}

std::string integer_hex(std::int64_t v) {
  const std::uint64_t magnitude = v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  if (magnitude >> 53 != 0) throw std::invalid_argument("digest: a parameter is not a binary64 number");
  return (v < 0 ? "-" : "") + binary64_hex(magnitude);
}

std::string joined(const std::vector<std::int64_t>& v, char separator) {
  std::string s;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (i != 0) s += separator;
    s += std::to_string(v[i]);
  }
  return s;
}

std::string shapes_text(const std::vector<shape_list>& shapes) {
  if (shapes.empty()) return "-";
  std::string s;
  for (const shape_list& shape : shapes)
    s += (s.empty() ? "" : ",") + (shape.empty() ? "scalar" : shape == absent_shape ? "absent" : joined(shape, 'x'));
  return s;
}

/// For the header: numbers as binary64 hex.
std::string parameter(const attribute_value& v) {
  if (const auto* b = std::get_if<bool>(&v)) return integer_hex(*b ? 1 : 0);
  if (const auto* i = std::get_if<std::int64_t>(&v)) return integer_hex(*i);
  if (const auto* d = std::get_if<double>(&v)) return hex64(std::bit_cast<std::uint64_t>(*d));
  if (const auto* s = std::get_if<std::string>(&v)) return *s;
  std::string s;
  for (const std::int64_t i : std::get<std::vector<std::int64_t>>(v)) s += (s.empty() ? "" : ",") + integer_hex(i);
  return s;
}

/// For the line: true, 5, h3ff0000000000000 (binary64 hex), text, [0,1].
std::string attribute_text(const attribute_value& v) {
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&v)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&v)) return 'h' + hex64(std::bit_cast<std::uint64_t>(*d));
  if (const auto* s = std::get_if<std::string>(&v)) return *s;
  return '[' + joined(std::get<std::vector<std::int64_t>>(v), ',') + ']';
}

array transposed(const array& x) {  // the last two axes
  shape_list shape = x.shape;
  const std::size_t r = shape.size(), rows = static_cast<std::size_t>(shape[r - 2]),
                    cols = static_cast<std::size_t>(shape[r - 1]);
  std::swap(shape[r - 2], shape[r - 1]);
  array y(x.type, shape);
  const std::size_t matrix = rows * cols;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.count()); ++i) {
    const std::size_t base = i / matrix * matrix, at = i % matrix;
    y.set(base + at % cols * rows + at / cols, x.get(i));
  }
  return y;
}

std::vector<array> matmul_inputs(const digest_case& c) {
  const bool ta = attribute_or(c.attrs, "transpose_a", false), tb = attribute_or(c.attrs, "transpose_b", false);
  const auto natural = [](shape_list s, bool transposed_side) {
    if (transposed_side) std::swap(s[s.size() - 2], s[s.size() - 1]);
    return s;
  };
  const shape_list sa = natural(c.shapes[0], ta), sb = natural(c.shapes[1], tb);
  const std::int64_t m = sa[sa.size() - 2], k = sa[sa.size() - 1], n = sb[sb.size() - 1];
  array a(c.formats[0], sa), b(c.formats[0], sb), bias;
  // With one b for all batches the rows of all of them go with it; else a batch has its own factors.
  const std::int64_t all = count_of(sa), batches = sb.size() == 2 ? 1 : all == 0 ? 0 : all / (m * k);
  const std::int64_t rows = sb.size() == 2 && m * k != 0 ? all / k : m;
  for (std::int64_t t = 0; t < batches; ++t) {
    const factors f =
        fill_factors(c.kind, rows, n, k, c.shapes.size() > 2, c.seed, static_cast<std::uint64_t>(t), c.formats[0]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows * k); ++i)
      a.set(static_cast<std::size_t>(t * rows * k) + i, f.a.get(i));
    for (std::size_t i = 0; i < static_cast<std::size_t>(k * n); ++i)
      b.set(static_cast<std::size_t>(t * k * n) + i, f.b.get(i));
    bias = f.bias;
  }
  std::vector<array> v{ta ? transposed(a) : a, tb ? transposed(b) : b};
  if (c.shapes.size() > 2) {
    v.push_back(c.formats[2] == c.formats[0] ? bias : fill(c.kind, c.formats[2], c.shapes[2], c.seed, 2));
  }
  return v;
}

std::vector<array> conversion_inputs(const digest_case& c) {
  array x = fill_conversion(c.kind, c.formats[0], c.formats[1], count_of(c.shapes[0]), c.seed, 0);
  x.shape = c.shapes[0];
  return {x};
}

std::vector<array> dot_inputs(const digest_case& c) {
  factors f = fill_factors(c.kind, 1, 1, count_of(c.shapes[0]), false, c.seed, 0, c.formats[0]);
  f.a.shape = c.shapes[0];
  f.b.shape = c.shapes[1];
  return {f.a, f.b};
}

std::vector<array> elementwise_inputs(const digest_case& c) {
  bool same = true;
  for (std::size_t i = 0; i < c.shapes.size(); ++i)
    same = same && c.shapes[i] == c.shapes[0] && c.formats[i] == c.formats[0];
  std::vector<array> v;
  const dtype t = c.formats[0];
  const auto to = attribute_of<std::string>(c.attrs, "dtype");
  if (same && c.kind != sample_class::all_patterns) {
    const auto arity = static_cast<int>(c.shapes.size());
    const std::int64_t count = count_of(c.shapes[0]);
    v = !to || format_named(*to) == t ? fill_operands(c.kind, *elementwise_named(c.op), t, count, c.seed, 0)
                                      : fill_operands(c.kind, t, format_named(*to), arity, count, c.seed, 0);
    for (array& a : v) a.shape = c.shapes[0];
  } else {
    for (std::size_t i = 0; i < c.shapes.size(); ++i) v.push_back(fill(c.kind, c.formats[i], c.shapes[i], c.seed, i));
  }
  return v;
}

/// Factors g and x, row by row. Where x > 0 both get the other sign, which leaves the product; some keep it: no terms.
std::vector<array> prelu_inputs(const digest_case& c) {
  const auto axes = attribute_of<std::vector<std::int64_t>>(c.attrs, "axis");
  const reduce_layout l = layout_of(c.shapes[0], axes, false);
  const std::uint64_t sign = format_of(c.formats[0]).sign_bit();
  std::vector<array> v(2, array(c.formats[0], c.shapes[0]));
  word_stream w(c.seed, 1);
  for (std::size_t row = 0; row < l.kept.size(); ++row) {
    const auto k = static_cast<std::int64_t>(l.reduced.size());
    const factors f = fill_factors(c.kind, 1, 1, k, false, c.seed, 2 + row, c.formats[0]);
    const bool all = w.flip();
    for (std::size_t i = 0; i < l.reduced.size(); ++i) {
      const std::uint64_t turned = (f.b.get(i) & sign) == 0 && (all || w.below(8) != 0) ? sign : 0;
      v[0].set(index(l.kept[row] + l.reduced[i]), f.a.get(i) ^ turned);
      v[1].set(index(l.kept[row] + l.reduced[i]), f.b.get(i) ^ turned);
    }
  }
  return v;
}

/// Rows of terms, put where the reduced axes want them.
std::vector<array> reduction_inputs(const digest_case& c) {
  const auto axes = attribute_of<std::vector<std::int64_t>>(c.attrs, "axis");
  const reduce_layout l = layout_of(c.shapes[0], axes, false);
  const auto rows = static_cast<std::int64_t>(l.kept.size()), k = static_cast<std::int64_t>(l.reduced.size());
  array terms;
  if (c.op == "sum_squares" || c.op == "vector_norm") {
    const double p = attribute_or(c.attrs, "p", 2.0);
    const magnitude_sum kind = c.op == "sum_squares" ? magnitude_sum::squares
                               : p == 2              ? magnitude_sum::root
                                                     : magnitude_sum::plain;
    terms = fill_magnitudes(c.kind, rows, k, kind, c.seed, 0, c.formats[0]);
  } else if (!is_floating(c.formats[0])) {
    terms = fill_integers(c.kind, rows, k, c.seed, 0, c.formats[0]);
  } else if (c.formats[0] == dtype::f64 && c.op != "sum" && c.op != "mean") {
    terms = fill_ordered(c.kind, rows, k, c.seed, 0, c.formats[0]);
  } else {
    terms = fill_terms(c.kind, rows, k, c.op == "mean", c.seed, 0, c.formats[0]);
  }
  array x(c.formats[0], c.shapes[0]);
  std::size_t i = 0;
  for (const std::int64_t base : l.kept)
    for (const std::int64_t d : l.reduced) x.set(index(base + d), terms.get(i++));
  return {x};
}

/// Lines of terms, factors or exponents along the axis, or the axes of a product.
std::vector<array> scan_inputs(const digest_case& c) {
  if (c.op == "logcumsumexp") {
    return fill_inputs("softmax", c.kind, c.shapes, c.attrs, c.seed, 0, c.formats.at(0));
  }
  const bool several = c.op == "prod";
  const auto axes = several ? attribute_of<std::vector<std::int64_t>>(c.attrs, "axis")
                            : shape_list{attribute_or<std::int64_t>(c.attrs, "axis", -1)};
  const reduce_layout l = layout_of(c.shapes[0], axes, false);
  const auto rows = static_cast<std::int64_t>(l.kept.size()), k = static_cast<std::int64_t>(l.reduced.size());
  const dtype type = c.formats[0];
  const array all = !is_floating(type) ? fill_integers(c.kind, rows, k, c.seed, 0, type, c.op != "cumsum")
                    : c.op == "cumsum" ? fill_terms(c.kind, rows, k, false, c.seed, 0, type)
                                       : fill_products(c.kind, rows, k, c.seed, 0, type);
  array x(c.formats[0], c.shapes[0]);
  std::size_t i = 0;
  for (const std::int64_t base : l.kept)
    for (const std::int64_t d : l.reduced) x.set(index(base + d), all.get(i++));
  return {x};
}

}  // namespace

std::vector<array> inputs(const digest_case& c) {
  if (elementwise_named(c.op) != nullptr) return elementwise_inputs(c);
  switch (structured_named(c.op).kind) {
    case ops::family::convert:
      return conversion_inputs(c);
    case ops::family::reduce:
      return c.op == "dot" ? dot_inputs(c) : c.op == "prelu_weight_backward" ? prelu_inputs(c) : reduction_inputs(c);
    case ops::family::matmul:
      return matmul_inputs(c);
    case ops::family::loss:
      return fill_losses(c.op, c.kind, c.formats[0], c.shapes, c.attrs, c.seed, 0);
    case ops::family::scatter:
      return fill_scatter(c.op, c.kind, c.formats[0], c.shapes, c.attrs, c.seed, 0);
    case ops::family::nll:
      return fill_nll(c.op, c.kind, c.formats[0], c.shapes, c.attrs, c.seed, 0);
    case ops::family::pooling:
    case ops::family::upsample:
      return fill_pooling(c.op, c.kind, c.formats[0], c.shapes, c.attrs, c.seed, 0);
    case ops::family::draw:
      return {fill_weights(c.kind, c.formats[0], c.shapes[0], attribute_or<std::int64_t>(c.attrs, "num_samples", 1),
                           c.seed)};
    case ops::family::scan:
      return scan_inputs(c);
    case ops::family::exponent:
      return fill_exponents(c.kind, c.formats, c.shapes, c.seed);
    case ops::family::attention:
      return (c.op == "attention" ? fill_attention : fill_attention_backward)(c.kind, c.formats, c.shapes, c.attrs,
                                                                              c.seed);
    case ops::family::sequence:
      return {};
    case ops::family::convolution:
      return fill_inputs(c.op, c.kind, c.shapes, c.attrs, c.seed, 0, c.formats.at(0));
    case ops::family::norm:
      return in_formats(fill_inputs(c.op, c.kind, c.shapes, c.attrs, c.seed, 0, c.formats.at(0)), c.formats, c.seed);
    case ops::family::random:
    case ops::family::softmax:
    case ops::family::optimizer:
      return fill_inputs(c.op, c.kind, c.shapes, c.attrs, c.seed, 0, c.formats.at(0));
  }
  throw std::logic_error("reference: a family without inputs");
}

std::string formats_text(const std::vector<dtype>& formats) {
  std::string s;
  for (const dtype t : formats) s += (s.empty() ? "" : ",") + std::string(format_name(t));
  return s;
}

std::uint64_t case_seed(const std::string& op, const std::vector<dtype>& formats, std::size_t line) {
  const sha256::digest d = sha256().update(op + '|' + formats_text(formats) + '|' + std::to_string(line)).finish();
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < 8; ++i) seed = seed << 8 | d[i];
  return seed;
}

std::string header(const digest_case& c) {
  std::string s =
      c.op + '|' + std::to_string(c.bits) + '|' + formats_text(c.formats) + '|' + shapes_text(c.shapes) + '|';
  for (std::size_t i = 0; i < c.attrs.size(); ++i)
    s += (i == 0 ? "" : ";") + c.attrs[i].name + '=' + parameter(c.attrs[i].value);
  return s;
}

sha256::digest digest(const digest_case& c, std::span<const array> outputs) {
  std::vector<sha256::digest> pieces;
  for (const array& a : outputs)
    for (const sha256::digest& d :
         piece_digests(a.bytes.data(), static_cast<std::uint64_t>(a.count()), size_of(a.type)))
      pieces.push_back(d);
  return combine(header(c), pieces);
}

std::string to_text(const digest_case& c) {
  std::ostringstream s;
  s << c.op << " bits=" << c.bits << ' ' << formats_text(c.formats) << ' ' << name_of(c.kind) << ' '
    << shapes_text(c.shapes) << " seed=" << c.seed;
  for (const attribute& a : c.attrs) s << ' ' << a.name << '=' << attribute_text(a.value);
  return s.str();
}

}  // namespace repdl::reference
