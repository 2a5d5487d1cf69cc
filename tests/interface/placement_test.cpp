// The layouts of tests, verify and fuzz: what each promises, and that damage beside a tensor is seen.
#include <doctest/doctest.h>

#include <set>

#include "tests/helpers/placed_tensor.hpp"

using namespace repdl;
using reference::array;
using reference::layout;
using reference::memory_image;
using reference::placement;
using reference::shape_list;
using reference::word_stream;

TEST_SUITE_BEGIN("portable");

TEST_CASE("placement: every layout of random shapes keeps its promises") {
  word_stream w(7, 0);
  std::int64_t aligned = 0, unaligned = 0, repeats = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    sizes shape;
    for (int rank = w.between(0, 8); rank > 0; --rank) shape.push_back(w.below(12) == 0 ? 0 : w.between(1, 4));
    const layout kind = reference::every_layout[w.below(reference::every_layout.size())];
    const bool may_repeat = w.flip();
    const placement p = reference::place(shape, kind, w, may_repeat);
    CAPTURE(reference::name_of(kind));
    CAPTURE(to_string(shape));
    CAPTURE(to_string(p.strides));
    CAPTURE(p.offset);
    CAPTURE(p.span);
    // Elements are inside the margins and, but for repeats, apart; the indices are row-major.
    std::set<std::int64_t> offsets;
    std::int64_t next = 0, bad = 0;
    reference::for_each_element(shape, p, [&](std::int64_t index, std::int64_t offset) {
      std::int64_t at = p.offset, rest = index;
      for (int i = shape.size(); i-- > 0; rest /= shape[i]) at += rest % shape[i] * p.strides[i];
      bad += index != next++ || at != offset || offset < placement::margin || offset >= p.span - placement::margin;
      offsets.insert(offset);
    });
    CHECK(bad == 0);
    CHECK(next == element_count(shape));
    bool repeated = false, negative = false, in_order = true;
    std::int64_t last = INT64_MAX;
    for (int i = 0; i < shape.size(); ++i) {
      if (shape[i] <= 1) continue;
      repeated = repeated || p.strides[i] == 0;
      negative = negative || p.strides[i] < 0;
      in_order = in_order && p.strides[i] < last;
      last = p.strides[i];
    }
    if (next > 0 && !repeated) CHECK(std::ssize(offsets) == next);
    if (repeated) CHECK((kind == layout::repeated || (kind == layout::mixed && may_repeat)));
    if (next == 0 || !shows(shape, kind)) continue;
    const const_tensor_view view(offsets.empty() ? nullptr : &p, dtype::boolean, shape, p.strides);
    if (kind == layout::contiguous) CHECK((view.is_contiguous() && p.offset % 4 == 0));
    if (kind == layout::shifted) CHECK((view.is_contiguous() && p.offset % 4 != 0));
    if (kind == layout::permuted) CHECK((!in_order && *offsets.rbegin() - *offsets.begin() + 1 == next));
    if (kind == layout::backwards) CHECK(negative);
    if (kind == layout::repeated) CHECK((repeated && std::ssize(offsets) < next));
    if (kind == layout::gaps) {
      // Two axes of a slice merge never, and half of the slices keep groups of four elements aligned.
      for (int i = 0; i + 1 < shape.size(); ++i) CHECK(p.strides[i] > p.strides[i + 1] * shape[i + 1]);
      bool groups = true;
      for (int i = 0; i + 1 < shape.size(); ++i) groups = groups && p.strides[i] % 4 == 0;
      ++(groups && shape[shape.size() - 1] % 4 == 0 ? aligned : unaligned);
    }
    repeats += repeated;
  }
  CHECK(aligned > 20);
  CHECK(unaligned > 20);
  CHECK(repeats > 100);
}

TEST_CASE("placement: a memory image returns what was set, and a byte beside is not an element") {
  word_stream w(8, 0);
  for (int trial = 0; trial < 300; ++trial) {
    memory_image m;
    std::vector<array> values;
    constexpr dtype types[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::i64, dtype::boolean, dtype::i32};
    for (int tensors = w.between(1, 3); tensors > 0; --tensors) {
      shape_list shape;
      for (int rank = w.between(0, 5); rank > 0; --rank) shape.push_back(w.between(1, 4));
      array& a = values.emplace_back(types[w.below(6)], shape);
      for (unsigned char& b : a.bytes) b = static_cast<unsigned char>(w.next());
      const layout kind = tests::layouts[w.below(std::size(tests::layouts))];
      const sizes s = tests::to_sizes(shape);
      m.set(m.add({a.type, s}, reference::place(s, kind, w), kind), a);
    }
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(m.get(i) == values[i]);
    // Without the elements nothing but the guard is left.
    for (std::size_t i = 0; i < values.size(); ++i) {
      array guards = values[i];
      for (unsigned char& b : guards.bytes) b = memory_image::guard;
      m.set(i, guards);
    }
    CHECK(std::count(m.bytes().begin(), m.bytes().end(), memory_image::guard) == std::ssize(m.bytes()));
  }
}

TEST_SUITE_END();
