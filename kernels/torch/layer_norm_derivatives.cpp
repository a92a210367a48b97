// SPDX-License-Identifier: Apache-2.0
// With c = s − m, x = c·r, g = d·w and a bar for the mean over a row, layer_norm_backward is
//   dx = r·(g − ḡ − x·mean(g·x)) + dsum,   dw = Σ d·x,   db = Σ d   (sums over the rows).
// Its gradients for u = ∂dx, v = ∂dw, z = ∂db follow from
//   ∂g = r·(u − ū − x·mean(u·x)),   ∂x = −r·(u·mean(g·x) + g·mean(u·x)) + v·d.
#include "layer_norm_derivatives.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

namespace opscope::ops {
namespace {

at::Tensor wide(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const at::ScalarType type = tensor.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
}

at::Tensor typed_as(const at::Tensor& result, const at::Tensor& like) {
  return result.defined() ? result.to(like.scalar_type()) : result;
}

/// a + b, a·b, where undefined is zero.
at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

at::Tensor product_of(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() ? a * b : at::Tensor();
}

at::Tensor weighted(const at::Tensor& a, const at::Tensor& weight) {
  return weight.defined() ? product_of(a, weight) : a;
}

/// Sums and means over dimensions of a row, or over the rows.
class reductions {
 public:
  explicit reductions(std::int64_t dims) {
    for (std::int64_t d = 1; d <= dims; ++d) row_.push_back(-d);
  }

  at::Tensor mean(const at::Tensor& a) const { return a.defined() ? a.mean(row_, true) : a; }
  at::Tensor sum(const at::Tensor& a) const { return a.defined() ? a.sum(row_, true) : a; }

  at::Tensor sum_of_rows(const at::Tensor& a, std::int64_t batch = 0) const {
    if (!a.defined()) return a;
    at::DimVector leading;
    for (std::int64_t d = batch; d < a.dim() - static_cast<std::int64_t>(row_.size()); ++d) {
      leading.push_back(d);
    }
    return leading.empty() ? a : a.sum(leading);
  }

  c10::Scalar count(const at::Tensor& a) const {
    c10::SymInt product = 1;
    for (const std::int64_t d : row_) product *= a.sym_size(d);
    return product;
  }

 private:
  at::DimVector row_;
};

/// The arguments of layer_norm_backward in the type of the arithmetic, and what follows from them.
struct backward_terms {
  at::Tensor d;
  at::Tensor w;
  at::Tensor r;
  at::Tensor c;
  at::Tensor x;
  at::Tensor g;

  explicit backward_terms(const layer_norm_backward_variables& arguments)
      : d(wide(arguments.grad_out)),
        w(wide(arguments.weight)),
        r(arguments.rstd),
        c(wide(arguments.sum) - arguments.mean),
        x(c * r),
        g(weighted(d, w)) {}
};

}  // namespace

std::array<at::Tensor, 3> layer_norm_forward_tangents(const at::Tensor& sum, const at::Tensor& mean,
                                                      const at::Tensor& rstd,
                                                      const at::Tensor& weight,
                                                      const layer_norm_forward_variables& tangents,
                                                      std::int64_t dims) {
  const reductions over(dims);
  const at::Tensor c = wide(sum) - mean;
  const at::Tensor x = c * rstd;
  const at::Tensor ds = wide(tangents.sum);
  at::Tensor dm = at::zeros_like(mean);
  at::Tensor dr = at::zeros_like(rstd);
  at::Tensor dx;
  if (ds.defined()) {
    dm = over.mean(ds);
    dr = -rstd.pow(3) * over.mean(c * ds);
    dx = (ds - dm) * rstd + c * dr;
  }
  at::Tensor out = sum_of(weighted(dx, wide(weight)), product_of(x, wide(tangents.weight)));
  out = sum_of(out, wide(tangents.bias));
  return {typed_as(out.expand_as(sum), sum), dm, dr};
}

at::Tensor layer_norm_statistics_gradient(const at::Tensor& grad_mean, const at::Tensor& grad_rstd,
                                          const at::Tensor& sum, const at::Tensor& mean,
                                          const at::Tensor& rstd, std::int64_t dims) {
  const reductions over(dims);
  at::Tensor result = grad_mean;
  if (grad_rstd.defined()) {
    result = sum_of(result, -grad_rstd * rstd.pow(3) * (wide(sum) - mean));
  }
  if (!result.defined()) return result;
  return typed_as((result / over.count(sum)).expand_as(sum), sum);
}

layer_norm_backward_variables layer_norm_backward_gradients(
    const layer_norm_gradients& grads, const layer_norm_backward_variables& arguments,
    std::int64_t dims) {
  const reductions over(dims);
  const backward_terms t(arguments);
  const at::Tensor u = wide(grads.input);
  const at::Tensor v = wide(grads.weight);
  const at::Tensor z = wide(grads.bias);
  at::Tensor for_g;
  at::Tensor for_x = product_of(v, t.d);
  at::Tensor for_r;
  if (u.defined()) {
    const at::Tensor mean_g = over.mean(t.g);
    const at::Tensor mean_gx = over.mean(t.g * t.x);
    const at::Tensor mean_ux = over.mean(u * t.x);
    for_g = t.r * (u - over.mean(u) - t.x * mean_ux);
    for_x = sum_of(for_x, -t.r * (u * mean_gx + t.g * mean_ux));
    for_r = over.sum(u * (t.g - mean_g - t.x * mean_gx));
  }
  layer_norm_backward_variables result;
  at::Tensor for_d = sum_of(weighted(for_g, t.w), product_of(v, t.x));
  for_d = sum_of(for_d, z);
  if (for_d.defined()) result.grad_out = typed_as(for_d.expand_as(t.d), arguments.grad_out);
  result.grad_sum = grads.input;
  const at::Tensor for_c = product_of(for_x, t.r);
  result.sum = typed_as(for_c, arguments.sum);
  if (for_c.defined()) result.mean = over.sum(-for_c);
  result.rstd = sum_of(for_r, over.sum(product_of(for_x, t.c)));
  if (t.w.defined()) {
    result.weight = typed_as(over.sum_of_rows(product_of(t.d, for_g)), arguments.weight);
  }
  return result;
}

layer_norm_gradients layer_norm_backward_tangents(const layer_norm_backward_variables& arguments,
                                                  const layer_norm_backward_variables& tangents,
                                                  std::int64_t dims) {
  const reductions over(dims);
  const backward_terms t(arguments);
  const at::Tensor dd = wide(tangents.grad_out);
  at::Tensor dc = wide(tangents.sum);
  if (tangents.mean.defined()) dc = sum_of(dc, -tangents.mean);
  const at::Tensor dr = tangents.rstd;
  const at::Tensor dx = sum_of(product_of(dc, t.r), product_of(t.c, dr));
  const at::Tensor dg = sum_of(weighted(dd, t.w), product_of(t.d, wide(tangents.weight)));
  const at::Tensor mean_gx = over.mean(t.g * t.x);
  const at::Tensor mean_dgx = over.mean(sum_of(product_of(dg, t.x), product_of(t.g, dx)));
  at::Tensor inner;
  if (dg.defined()) inner = dg - over.mean(dg);
  if (mean_dgx.defined()) inner = sum_of(inner, -(t.x * mean_dgx));
  if (dx.defined()) inner = sum_of(inner, -(dx * mean_gx));
  at::Tensor input = product_of(t.r, inner);
  if (dr.defined()) input = sum_of(input, dr * (t.g - over.mean(t.g) - t.x * mean_gx));
  input = sum_of(input, wide(tangents.grad_sum));
  layer_norm_gradients result;
  result.input = typed_as(input, arguments.sum);
  result.weight = over.sum_of_rows(sum_of(product_of(dd, t.x), product_of(t.d, dx)));
  result.bias = over.sum_of_rows(dd);
  return result;
}

layer_norm_gradients layer_norm_parameter_gradients(const at::Tensor& grad_out,
                                                    const at::Tensor& sum, const at::Tensor& mean,
                                                    const at::Tensor& rstd, std::int64_t dims,
                                                    std::int64_t batch) {
  const reductions over(dims);
  const at::Tensor d = wide(grad_out);
  return {at::Tensor(), over.sum_of_rows(d * ((wide(sum) - mean) * rstd), batch),
          over.sum_of_rows(d, batch)};
}

}  // namespace opscope::ops
