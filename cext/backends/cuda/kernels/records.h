// What a launch hands to a kernel: plain records, the same bytes on the host and on the device.
//
// A number that is an address is a u64, since only the device may follow it. Sizes are those of kernels/kernels.h, and
// so are the meanings of the fields: each record is a call of the kernel table.
// Who may include: backends/cuda. Includes: dialect.h for device code; the host has the same names of its own.
#pragma once

namespace dnl::device {

// Rows (base/rows.h): row m lies at base + m * stride floats or, if there is a list of addresses, where that says.
struct Rows {
  u64 base;
  i64 stride;
  u64 list;
};

struct Fill {
  Rows y;
  i64 k, n;
  float v;
};
struct CopyRows {
  Rows from, to;
  i64 k, n;
  i32 add;
};
// Row t of `to` gets the rows source[begin[t]] .. source[begin[t + 1] - 1] of `from` added, in that order.
struct GatherSums {
  Rows from, to;
  i64 k, n;
  u64 begin, source;  // of u32
};
struct ScaleTo {
  u64 x, y;
  i64 n;
  float a;
  i32 acc;
};
struct SumRows {
  Rows from;
  u64 y;
  i64 k, n;
  i32 acc;
};
struct ScaleRows {
  Rows x;
  u64 a, y;
  i64 k, n, step;
};
struct Transpose {
  u64 x, y;
  i64 k, n, from_step, to_step;
  i32 acc;
};

struct Unary {
  u64 x, y;
  i64 n;
  i32 formula;
  float a[2];
};
struct UnaryBack {
  u64 x, y, dy, dx;
  i64 n;
  i32 formula, acc;
  float a[2];
};
struct Binary {
  u64 u, v, y;
  i64 su, sv, n;
  i32 formula;
  float a[2];
};
// One gradient: of u, or of v if `second`.
struct BinaryBack {
  u64 u, v, y, dy, d;
  i64 su, sv, n;
  i32 formula, second, acc;
  float a[2];
};

// Row j of c, m numbers, is alpha times the sum over l < k of A(i, l) b_j[l * b_step], plus row j of add, plus beta
// times itself. A(i, l) lies at a + i * a_row + l * a_col.
struct Product {
  u64 a;
  i64 a_row, a_col;
  Rows b;
  i64 b_step;
  Rows add, c;
  i64 m, n, k;
  float alpha, beta;
};
// C(i, j), at c + i + j * ldc, is alpha times the sum over k rows of a_r[i] b_r[j], plus beta times itself.
struct Outer {
  Rows a, b;
  u64 c;
  i64 ldc, m, n, k;
  float alpha, beta;
};

struct Lstm {
  Rows gates, c_prev, c, h_out;
  i64 k, h;
  float forget_bias;
};
struct LstmBack {
  Rows gates, c_prev, c, dh, dc, da, dc_prev;
  i64 k, h;
  i32 acc_a, acc_c;
};
struct GruZr {
  Rows zr, h_prev, rh;
  i64 k, h;
};
struct GruOut {
  Rows zr, h_prev, cand, h_out;
  i64 k, h;
};
struct GruOutBack {
  Rows zr, h_prev, cand, dh, dcand, dzr, dh_prev;
  i64 k, h;
  i32 acc;
};
struct GruZrBack {
  Rows zr, h_prev, drh, dzr, dh_prev;
  i64 k, h;
};
// Lists of n_children Rows each.
struct TreeLstm {
  Rows iog, c, h_out;
  u64 f, c_child;
  i64 k, h;
  i32 n_children;
  float forget_bias;
};
struct TreeLstmBack {
  Rows iog, c, dh, dc, diog;
  u64 f, c_child, df, dc_child, acc_child;  // the last: of i32
  i64 k, h;
  i32 n_children;
};

// One number (`what` says which) of n, as a double, to `to`.
enum Reduction : i32 { kSum, kSumSquares, kDot, kMax, kArgmax, kFinite, kLogSumExp, kNonzero };
struct Reduce {
  u64 x, y, to;
  i64 n;
  i32 what;
};
struct Softmax {
  u64 x, y;
  i64 n;
  i32 logarithm;
};
struct SoftmaxBack {
  u64 y, dy, dx;
  i64 n;
  i32 logarithm, acc;
};
struct ExpShifted {
  u64 x, dx;
  i64 n;
  float lse, d;
  i32 acc;
};
// `state`: largest and sum, two doubles, before and after.
struct ExpBelow {
  u64 x, y, state;
  i64 n;
};
struct LayerNorm {
  u64 x, g, b, y, stats;
  i64 n;
};
struct LayerNormBack {
  u64 x, g, stats, dy, dx, dg, db;  // the last three may be 0
  i64 n;
  i32 acc;
};
struct AttentionScores {
  u64 keys, query, v, scores;
  i64 n, columns;
};
struct AttentionScoresBack {
  u64 keys, query, v, dscores, dkeys, dquery, dv;
  i64 n, columns;
  i32 acc;
};

enum Distribution : i32 { kUniform, kNormal, kMask };
struct RandomNumbers {
  u64 y, seed;
  i64 n;
  i32 what;
  float a, b;
};

// A step of a rule over rows of n numbers (op/update.h). Weights and states of row r lie at row row[r], if there is
// such a list; its gradient is row slot[r] of g, if there is that one, and zero where that is negative.
enum Rule : i32 { kSgd, kMomentum, kAdagrad, kAdadelta, kRmsprop, kAdam, kAmsgrad, kEgBegin };
struct Update {
  u64 w, g, s0, s1, s2, row, slot;
  i64 rows, n;
  i32 rule;
  float gscale, wdecay, c[6];
};

// Segments of memory that lie anywhere, side by side in `packed`: to there, or back.
struct Segment {
  u64 at, offset, n;  // an address; floats
};
struct CopySegments {
  u64 segments, packed;
  i64 k;
  i32 back;
};

}  // namespace dnl::device
