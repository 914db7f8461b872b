// Affine maps as nodes. Two forms: matmul and affine_transform, whose arguments are [b,] W1, x1, W2, x2, ..., and the
// engine's own (ops/affine.cc): x1, x2, ..., [b,] W1, W2, ... Who may include: rewrite/. Includes: rewrite/rewriter.h.
#pragma once
#include "rewrite/rewriter.h"

namespace dnl {

inline bool is_affine(const Signature& sig) { return sig.leaf == Leaf::None && !sig.alias && op_def(sig.op).joinable; }

// A node that is one map, of any form: the numbers of its arguments.
class AffineMap {
 public:
  AffineMap(const Graph& g, NodeId i) : args_(g.operands(i)) {
    const u32 s = g.node(i).sig, n = g.sig(s).nargs;
    if (op_def(g.sig(s).op).two_lists) {
      terms_ = g.key(s)[0].u;
      bias_ = g.key(s)[1 + terms_].i != 0;
      matrix_ = terms_ + bias_;
      columns_ = g.key(s) + 1;
    } else {
      terms_ = n / 2;
      bias_ = n % 2 != 0;
      matrix_ = bias_;
      vector_ = bias_ + 1;
      step_ = 2;
    }
  }
  u32 terms() const { return terms_; }
  bool has_bias() const { return bias_; }
  u32 bias_at() const { return step_ == 1 ? terms_ : 0; }
  u32 matrix_at(u32 t) const { return matrix_ + step_ * t; }
  u32 vector_at(u32 t) const { return vector_ + step_ * t; }
  NodeId bias() const { return args_[bias_at()]; }
  NodeId matrix(u32 t) const { return args_[matrix_at(t)]; }
  NodeId vector(u32 t) const { return args_[vector_at(t)]; }
  // Of the matrix, the first that takes part.
  u32 column(u32 t) const { return columns_ ? columns_[t].u : 0; }
  // Does f hold for one of the vectors?
  template <class F>
  bool any_vector(F f) const {
    for (u32 t = 0; t < terms_; ++t)
      if (f(vector(t))) return true;
    return false;
  }

 private:
  const NodeId* args_;
  const Word* columns_ = nullptr;
  u32 terms_, matrix_, vector_ = 0, step_ = 1;
  bool bias_;
};

// Writes a node of the engine's own: first all vectors, then the biases and matrices of one map after the other.
class AffineWriter {
 public:
  void begin() {
    args_.clear();
    key_.clear();
    key_.push_back(Word{0});
  }
  void add_vector(NodeId x, u32 column) {
    args_.push_back(x);
    Word word;
    word.u = column;
    key_.push_back(word);
    ++key_[0].i;
  }
  void add_weight(NodeId w) { args_.push_back(w); }
  void write(Rewriter& r, NodeId i, OpId op, bool bias) {
    key_.push_back(Word{bias});
    r.replace(i, op, args_.data(), static_cast<u32>(args_.size()), key_.data(), static_cast<u32>(key_.size()));
  }
  void release() { release_all(args_, key_); }

 private:
  Vec<NodeId> args_;
  Vec<Word> key_;
};

// Maps vectors that each node brings, with whole matrices and a bias that all nodes of its signature share.
inline bool maps_vectors(const Graph& g, NodeId i) {
  const AffineMap map(g, i);
  const u32 s = g.node(i).sig;
  if (!map.terms() || g.dim(i).nd != 1) return false;
  if (map.has_bias() &&
      (!g.arg_shared(s, map.bias_at()) || !g.dim(map.bias()).is_vector() || g.dim(map.bias()).bd != 1))
    return false;
  for (u32 t = 0; t < map.terms(); ++t) {
    const Dim &x = g.dim(map.vector(t)), &w = g.dim(map.matrix(t));
    if (!g.arg_shared(s, map.matrix_at(t)) || g.arg_shared(s, map.vector_at(t)) || w.bd != 1 || !x.is_vector() ||
        x.bd != g.dim(i).bd || x.rows() != w.cols())
      return false;
  }
  return true;
}

}  // namespace dnl
