// SPDX-License-Identifier: Apache-2.0
// What the hand-written graph nodes of all operators share.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <memory>
#include <vector>

namespace opscope::ops {

using ivalues = std::vector<c10::IValue>;

/// Puts a node's computation, as a function of its gradients and `arguments`, into the graph that
/// compiled autograd records. Gradients are placeholders without a shape there, so the computation
/// itself must not run.
torch::autograd::variable_list record(const torch::autograd::Node& node,
                                      torch::dynamo::autograd::SwapSavedVariables& saved,
                                      const torch::autograd::variable_list& grads,
                                      torch::dynamo::autograd::functional_apply_t function,
                                      const ivalues& arguments);

/// A node with its edges; torch deletes long chains of nodes without recursion.
template <class NodeType>
std::shared_ptr<NodeType> make_node(torch::autograd::edge_list&& edges) {
  std::shared_ptr<NodeType> node(new NodeType(), torch::autograd::deleteNode);
  node->set_next_edges(std::move(edges));
  return node;
}

/// Forward-mode tangent of `tensor`; undefined where it has none, or is undefined itself.
at::Tensor tangent_of(const at::Tensor& tensor);

/// `tensor` without its forward-mode tangent.
at::Tensor primal_of(const at::Tensor& tensor);

}  // namespace opscope::ops
