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

// A walk over two tensors: `outs` axes of the numbers of y, then those that are summed. Number i of y, of n, is scale
// times the sum of `sums` numbers of x. Where a walk begins may be listed by member, as i64.
struct Axis {
  i64 n, x, y;
};
constexpr int kMostAxes = 8;
struct Walk {
  Rows x, y;
  u64 at_x, at_y;
  i64 members, n, sums;
  i32 outs, axes;
  Axis axis[kMostAxes];
  float scale;
  i32 acc;
};
// Standard deviations, to walk.y, and means.
struct Deviation {
  Walk walk;
  Rows mean;
};
struct DeviationBack {
  Rows x, y, mean, dy, dx;
  i64 members, n;
  i32 axes, acc;
  Axis axis[kMostAxes];
  float scale;
  i32 unused;
};

// A list of arguments, number by number: `args` and `gradients` are Rows of each, `step` how far its elements of a
// mini-batch are apart, 0 for one that repeats. Of member m the first counts[m] take part, if there is such a list, and
// a sum is multiplied by factors[m], if there is that one. n numbers an element.
enum ListKind : i32 { kListSum, kListMax, kListLogSumExp };
struct List {
  Rows y, dy;
  u64 args, gradients, step, acc;  // acc: of i32
  u64 counts, factors;             // of i32 and float
  i64 members, batch, n;
  i32 nargs, what;
  float scale;
  i32 unused;
};

// Columns of `inner` numbers that go to segments: of `outer` times n columns, the ones of segment s are
// order[begin[s]] .. order[begin[s + 1] - 1], by member. Means are sums divided by how many there are.
struct Segments {
  Rows x, y, dy, dx;
  u64 begin, order;  // of u32; segments + 1 and n a member
  i64 members, outer, inner, n, segments;
  i32 mean, acc;
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

// The program of a fused node (op/fused.h). Operands are inputs, from 0, or results of steps, from kMostFusedInputs.
// The flags from kMade on are those of backward: a result is made again, what a gradient reads, whom it is given to,
// and whether it is added there.
constexpr int kMostFusedInputs = 16, kMostFusedSteps = 24;
enum FusedFlag : unsigned {
  kBinary = 1,
  kOver = 2,
  kMade = 4,
  kReadA = 8,
  kReadB = 16,
  kReadResult = 32,
  kGiveA = 64,
  kGiveB = 128,
  kAddA = 256,
  kAddB = 512
};
struct FusedStep {
  u32 flags, constant;  // the first one of its constants
  u8 formula, a, b, unused;
};
struct FusedInput {
  Rows x, dx;
};
// Members of n numbers. Constants of member m begin at constants + m * constants_step, of floats.
struct Fused {
  u64 steps, inputs, constants;
  Rows y, dy;
  i64 members, n, constants_step;
  i32 count, ninputs, restore, unused;
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
// A product whose result is what the gates are made of.
struct LstmStep {
  Product product;
  Lstm cell;
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
// One of the parts of cells in kernels/kernels.h, which say what is read and written, in the order of their arguments:
// a to d are read, y and z written, gates that are changed in place among them.
enum CellPartKind : i32 {
  kLstmGates,
  kLstmGatesBack,
  kLstmCell,
  kLstmCellBack,
  kLstmOutput,
  kLstmOutputBack,
  kGruStart,
  kGruStartBack,
  kCoupledCell,
  kCoupledOutput,
  kCoupledOutputBack,
  kCoupledCellBack
};
struct CellPart {
  Rows a, b, c, d, y, z;
  i64 k, h;
  i32 what, acc_y, acc_z;
  float forget_bias;
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
// Members of `lines` lines of n numbers, which lie `inner` apart: line l begins at l / inner * n * inner + l % inner.
// What a line comes to, or the place of it, is number l of a member. What each field holds is told at the kernels.
struct Lines {
  Rows x, y, z, dy, dx;
  u64 words, numbers;  // of i32 and float, by member
  i64 members, lines, n, inner;
  i32 what, acc;
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
// Normalisation of n numbers of each of `batch` elements of a member; gain and bias are blocks of n_g and n_b numbers
// that repeat. An operand that has one element for all of them repeats it: its distance between elements is 0.
struct LayerNorm {
  Rows x, g, b, y, stats;
  i64 members, batch, n, n_g, n_b, step_x, step_g, step_b;
};
struct LayerNormBack {
  Rows x, g, stats, dy, dx;
  i64 members, batch, n, n_g, step_x, step_g;
  i32 acc;
};
// What is added to the gradient of gain, or of bias: `own` blocks of `size` numbers, for each member or for all.
struct LayerNormWeight {
  Rows x, stats, dy, to;
  i64 members, batch, n, size, own, step_x;
  i32 gain, for_all;
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

// An image {rows, cols, channels} and filters {k_rows, k_cols, channels, filters}, or a window of that size; elements
// of a mini-batch are that far apart, 0 where one repeats.
struct Image {
  Rows x, f, bias, y, z, dy, dx;
  i64 members, batch, step_x, step_f, step_bias;
  i64 rows, cols, channels, filters, k_rows, k_cols, stride_rows, stride_cols, pad_rows, pad_cols, out_rows, out_cols;
  i32 acc, for_all;
};
// TwoVectors convolution, or correlation, of vectors of n numbers.
struct TwoVectors {
  Rows u, v, y, dy, du, dv;
  i64 members, batch, n, step_u, step_v;
  i32 correlation, acc_u, acc_v, unused;
};
// Square matrices, n x n, `batch` a member; work: (n + 1) * n doubles and n i32 for each.
struct Matrices {
  Rows x, y, dy, dx;
  u64 work;
  i64 members, batch, n, work_bytes;
  i32 acc, unused;
};

enum Distribution : i32 { kUniform, kNormal, kMask, kGumbel };
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
  u64 factor;  // 0, or of a number that gradients are multiplied by; NaN: they are cleared, and nothing else happens
  i64 rows, n;
  i32 rule;
  float gscale, wdecay, c[6];
};

// What brings the norm down to `most`, NaN where that is not finite, and the norm, from k sums of squares.
struct Clip {
  u64 sums, to;  // of doubles; two floats
  i64 k;
  double most;
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
