// Matrix products, in tiles of 32 x 32 that a block of 256 threads makes.
//
// The products of a step are small: a few tiles, each a long sum. So the eight warps of a block share the sum over k:
// warp w takes pieces w, w + 8, ... of eight numbers, and what the warps have is added at the end, in their order. A
// thread has 4 x 8 numbers of its warp's tile. Each number is a sum over k in one order, whatever the tile: the same
// bits however many columns a product has.
// Who may include: kernels/all.h. Includes: memory.h, cells.h.
#pragma once
#include "cells.h"
#include "memory.h"

namespace dnl::device {

constexpr int kTile = 32, kDeep = 8, kWarps = 8, kRows = 4, kColumns = 8;
constexpr int kPitch = kTile + 4;  // of what lies in shared memory: no two threads of a warp want the same bank

constexpr int kNumbers = kTile * kTile;  // of a tile
// What the warps share at the end: number (i, j) of warp w's tile lies at w * kNumbers + j * kTile + i.
struct alignas(16) Sums {
  float at[kWarps * kNumbers];
};
// Read and written at once.
struct alignas(16) Four {
  float at[4];
};
inline Four four_at(const float* p) { return *reinterpret_cast<const Four*>(p); }

inline int lane() { return DNL_THREAD % 32; }
inline int warp() { return DNL_THREAD / 32; }

// One operand of a product: number (i, l), 0 beyond its edges, for row i of a tile. Row i lies where rows[i] says, if
// that is not 0, and l numbers at `step` behind one another.
struct Panel {
  const u64* rows;  // shared by the block
  i64 step, k;
  bool across;  // rows lie side by side, so neighbouring threads read along them; else they read along l

  void fetch(i64 l0, float (&v)[kDeep]) const {
    if (across) {
      const float* from = floats(rows[lane()]);
      DNL_UNROLL
      for (int e = 0; e < kDeep; ++e) v[e] = from && l0 + e < k ? from[(l0 + e) * step] : 0.0f;
    } else {
      const i64 l = l0 + lane() % kDeep;
      DNL_UNROLL
      for (int e = 0; e < kDeep; ++e) {
        const float* from = floats(rows[lane() / kDeep + 32 / kDeep * e]);
        v[e] = from && l < k ? from[l * step] : 0.0f;
      }
    }
  }
  // To number (i, l) at l * kPitch + i.
  void keep(const float (&v)[kDeep], float* to) const {
    DNL_UNROLL
    for (int e = 0; e < kDeep; ++e)
      to[across ? e * kPitch + lane() : lane() % kDeep * kPitch + lane() / kDeep + 32 / kDeep * e] = v[e];
  }
};
// The same of rows by l: number (i, l) is number i of row l.
struct Layers {
  Rows rows;
  i64 i0, count, k;

  void fetch(i64 l0, float (&v)[kDeep]) const {
    const i64 i = i0 + lane();
    DNL_UNROLL
    for (int e = 0; e < kDeep; ++e) v[e] = i < count && l0 + e < k ? row(rows, l0 + e)[i] : 0.0f;
  }
  void keep(const float (&v)[kDeep], float* to) const {
    DNL_UNROLL
    for (int e = 0; e < kDeep; ++e) to[e * kPitch + lane()] = v[e];
  }
};

// The products of a warp's piece, for the thread whose numbers begin at (r, c).
inline void add_piece(const float* a, const float* b, int r, int c, float (&sum)[kColumns][kRows]) {
  DNL_UNROLL_BY_4
  for (int l = 0; l < kDeep; ++l) {
    const Four x = four_at(a + l * kPitch + r);
    const Four y[2] = {four_at(b + l * kPitch + c), four_at(b + l * kPitch + c + 4)};
    DNL_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      DNL_UNROLL
      for (int i = 0; i < kRows; ++i) sum[j][i] = fmaf(x.at[i], y[j / 4].at[j % 4], sum[j][i]);
    }
  }
}

// The sums of a tile, which each warp leaves a part of in `shared`.
template <class Left, class Right>
inline void sum_tile(const Left& left, const Right& right, i64 k, Sums& shared) {
  // A warp's piece of both operands lies where its sums will.
  float* const a = shared.at + warp() * kNumbers;
  float* const b = a + kDeep * kPitch;
  static_assert(2 * kDeep * kPitch <= kNumbers, "there is room for both");
  const int r = lane() % (kTile / kRows) * kRows, c = lane() / (kTile / kRows) * kColumns;
  float sum[kColumns][kRows] = {}, next_a[kDeep], next_b[kDeep];
  constexpr i64 kRound = kDeep * kWarps;
  const i64 first = warp() * kDeep;
  left.fetch(first, next_a);
  right.fetch(first, next_b);
  for (i64 round = 0; round < k; round += kRound) {
    left.keep(next_a, a);
    right.keep(next_b, b);
    DNL_WARP_BARRIER();
    if (round + kRound < k) {
      left.fetch(round + kRound + first, next_a);
      right.fetch(round + kRound + first, next_b);
    }
    if (round + first < k) add_piece(a, b, r, c, sum);
    DNL_WARP_BARRIER();
  }
  DNL_UNROLL
  for (int j = 0; j < kColumns; ++j) {
    Four four;
    DNL_UNROLL
    for (int i = 0; i < kRows; ++i) four.at[i] = sum[j][i];
    *reinterpret_cast<Four*>(a + (c + j) * kTile + r) = four;
  }
}

// C is cut into tiles column by column; blocks take them in turns. begin(i0, j0), where rows are looked up, and
// end(i0, j0), which finds the parts of the sums in `shared`, for each tile.
template <class Begin, class Left, class Right, class End>
inline void each_tile(i64 m, i64 n, i64 k, Sums& shared, Begin begin, Left left, Right right, End end) {
  const i64 down = (m + kTile - 1) / kTile, tiles = down * ((n + kTile - 1) / kTile);
  for (i64 tile = DNL_BLOCK; tile < tiles; tile += DNL_BLOCKS) {
    const i64 i0 = tile % down * kTile, j0 = tile / down * kTile;
    begin(i0, j0);
    DNL_BARRIER();
    sum_tile(left(i0), right(j0), k, shared);
    DNL_BARRIER();
    end(i0, j0);
    DNL_BARRIER();
  }
}
// A thread finishes four numbers of a row of the tile's, eight columns apart: store(i, j, sum).
template <class Store>
inline void each_number(const Sums& shared, i64 m, i64 n, i64 i0, i64 j0, Store store) {
  const i64 i = i0 + lane();
  for (int column = warp(); column < kTile; column += kWarps) {
    const i64 j = j0 + column;
    if (i >= m || j >= n) return;
    const float* at = shared.at + column * kTile + lane();
    float sum = at[0];
    for (int w = 1; w < kWarps; ++w) sum += at[w * kNumbers];
    store(i, j, sum);
  }
}

// Columns of B as rows of a tile. Those that lie side by side are of a B that is transposed.
inline void look_up(u64* rows, const Rows& b, i64 j0, i64 n) {
  const int t = DNL_THREAD - kTile;
  if (t >= 0 && t < kTile) rows[t] = j0 + t < n ? place(b, j0 + t) : 0;
}

DNL_KERNEL(product, Product) {
  const Product& r = records[DNL_RECORD];
  DNL_SHARED Sums shared;
  DNL_SHARED u64 left[kTile], right[kTile];
  each_tile(
      r.m, r.n, r.k, shared,
      [&](i64 i0, i64 j0) {
        const i64 i = i0 + DNL_THREAD;
        if (DNL_THREAD < kTile) left[DNL_THREAD] = i < r.m ? behind(r.a, i * r.a_row) : 0;
        look_up(right, r.b, j0, r.n);
      },
      [&](i64) { return Panel{left, r.a_col, r.k, r.a_row == 1}; },
      [&](i64) { return Panel{right, r.b_step, r.k, r.b_step != 1}; },
      [&](i64 i0, i64 j0) {
        each_number(shared, r.m, r.n, i0, j0, [&](i64 i, i64 j, float sum) {
          float* to = row(r.c, j) + i;
          float v = r.alpha * sum;
          if (wanted(r.add)) v += row(r.add, j)[i];
          if (r.beta != 0) v += r.beta * *to;
          *to = v;
        });
      });
}

// A step of an LSTM: the sums are those of the product, and become gates at once. A tile has all gates of 8 units: row
// i of it is gate i % 4 of unit i / 4, so that four sums which lie side by side are the gates of one unit.
DNL_KERNEL(lstm_step, LstmStep) {
  const Product& r = records[DNL_RECORD].product;
  const Lstm& cell = records[DNL_RECORD].cell;
  DNL_SHARED Sums shared;
  DNL_SHARED u64 left[kTile], right[kTile];
  constexpr int kGates = 4, kUnits = kTile / kGates;
  each_tile(
      r.m, r.n, r.k, shared,
      [&](i64 i0, i64 j0) {
        const i64 unit = i0 / kGates + DNL_THREAD / kGates, i = DNL_THREAD % kGates * cell.h + unit;
        if (DNL_THREAD < kTile) left[DNL_THREAD] = unit < cell.h ? behind(r.a, i * r.a_row) : 0;
        look_up(right, r.b, j0, r.n);
      },
      [&](i64) { return Panel{left, r.a_col, r.k, r.a_row == 1}; },
      [&](i64) { return Panel{right, r.b_step, r.k, r.b_step != 1}; },
      [&](i64 i0, i64 j0) {
        const i64 unit = i0 / kGates + DNL_THREAD % kUnits, j = j0 + DNL_THREAD / kUnits;
        if (unit >= cell.h || j >= r.n) return;
        Four sum = four_at(shared.at + DNL_THREAD * kGates);
        for (int w = 1; w < kWarps; ++w)
          for (int gate = 0; gate < kGates; ++gate)
            sum.at[gate] += shared.at[w * kNumbers + DNL_THREAD * kGates + gate];
        for (int gate = 0; gate < kGates; ++gate) {
          float* to = row(r.c, j) + gate * cell.h + unit;
          float v = sum.at[gate];
          if (wanted(r.add)) v += row(r.add, j)[gate * cell.h + unit];
          if (r.beta != 0) v += r.beta * *to;
          *to = v;
        }
        lstm_unit(cell, j, unit);
      });
}

DNL_KERNEL(outer, Outer) {
  const Outer& r = records[DNL_RECORD];
  DNL_SHARED Sums shared;
  each_tile(
      r.m, r.n, r.k, shared, [](i64, i64) {}, [&](i64 i0) { return Layers{r.a, i0, r.m, r.k}; },
      [&](i64 j0) { return Layers{r.b, j0, r.n, r.k}; },
      [&](i64 i0, i64 j0) {
        each_number(shared, r.m, r.n, i0, j0, [&](i64 i, i64 j, float sum) {
          float* to = floats(r.c) + j * r.ldc + i;
          *to = r.beta != 0 ? r.alpha * sum + r.beta * *to : r.alpha * sum;
        });
      });
}

}  // namespace dnl::device
