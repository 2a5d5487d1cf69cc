// Attributes that a call takes from its output.
#include "librepdl/api/submit.hpp"

namespace repdl::api {
namespace {

// Height and width of an output of rank 4.
ops::pair plane_size(std::string_view op, std::string_view name, const tensor_view& out, std::string_view what) {
  plan::check_rank(op, name, out, 4, what);
  return {out.shape()[2], out.shape()[3]};
}
// The spatial sizes of an output.
per_axis spatial_size(std::string_view op, std::string_view name, const tensor_view& out, std::string_view what) {
  const bool volumes = op.find("3d") != op.npos;
  const int rank = volumes ? 5 : 4;
  if (out.rank() != rank) {  // the text is memory
    plan::check_rank(op, name, out, rank,
                     std::string(what) + (volumes ? ", depth, height, width)" : ", height, width)"));
  }
  sizes s;
  for (int d = 2; d < out.rank(); ++d) s.push_back(out.shape()[d]);
  return s;
}

}  // namespace

void complete(std::string_view, ops::convert_attrs& a, const tensor_view& out) {
  if (!a.dtype) a.dtype = out.type();
}
void complete(std::string_view, ops::permutation_attrs& a, const tensor_view& out) {
  if (!a.n) a.n = out.count();
}
void complete(std::string_view, ops::bernoulli_attrs& a, const tensor_view& out) {
  if (!a.shape) a.shape = out.shape();
}
void complete(std::string_view, ops::randint_attrs& a, const tensor_view& out) {
  if (!a.shape) a.shape = out.shape();
}
void complete(std::string_view, ops::multinomial_attrs& a, const tensor_view& out) {
  if (!a.num_samples && out.rank() > 0) a.num_samples = out.shape()[out.rank() - 1];
}
void complete(std::string_view op, ops::conv2d_grad_input_attrs& a, const tensor_view& out) {
  if (!a.size) a.size = spatial_size(op, "grad_x", out, "images (samples, channels");
}
void complete(std::string_view op, ops::conv2d_grad_weight_attrs& a, const tensor_view& out) {
  if (!a.kernel) a.kernel = spatial_size(op, "grad_w", out, "kernels (output channels, input channels / groups");
}
void complete(std::string_view op, ops::avg_pool2d_backward_attrs& a, const tensor_view& out) {
  if (!a.size) a.size = spatial_size(op, "grad_x", out, "images (samples, channels");
}

void complete(std::string_view op, ops::adaptive_avg_pool2d_backward_attrs& a, const tensor_view& out) {
  if (!a.size) a.size = spatial_size(op, "grad_x", out, "images (samples, channels");
}

void complete(std::string_view op, ops::upsample_nearest2d_attrs& a, const tensor_view& out) {
  if (!a.size) {
    a.size =
        plane_size(op, op.ends_with("backward") ? "grad_x" : "out", out, "images (samples, channels, height, width)");
  }
}

void complete(std::string_view, ops::interpolation_attrs& a, const tensor_view& out) {
  if (!a.size && out.rank() > 2) a.size = sizes(std::span(out.shape().begin() + 2, out.shape().end()));
}

void complete(std::string_view op, ops::embedding_backward_attrs& a, const tensor_view& out) {
  if (a.rows) return;
  plan::check_rank(op, "grad_weight", out, 2, "rows of a weight");
  a.rows = out.shape()[0];
}

}  // namespace repdl::api
