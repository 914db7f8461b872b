// Matrix products, in tiles of 64 x 64 that a block of 256 threads makes, 4 x 4 numbers each.
//
// Each number is a sum over k in one order, whatever the tile: the same bits however many columns a product has.
// Who may include: kernels/all.h. Includes: memory.h, cells.h.
#pragma once
#include "cells.h"
#include "memory.h"

namespace dnl::device {

constexpr int kTile = 64, kDeep = 16, kEach = 4, kSide = kTile / kEach;  // 16 x 16 threads

// The sums of one thread: rows t % 16 + 16 * i and columns t / 16 + 16 * j of the tile.
struct Sums {
  float at[kEach][kEach] = {};

  void add(const float (&a)[kDeep][kTile + 1], const float (&b)[kDeep][kTile + 1]) {
    const int row = DNL_THREAD % kSide, column = DNL_THREAD / kSide;
    for (int l = 0; l < kDeep; ++l) {
      float x[kEach], y[kEach];
      for (int i = 0; i < kEach; ++i) {
        x[i] = a[l][row + kSide * i];
        y[i] = b[l][column + kSide * i];
      }
      for (int j = 0; j < kEach; ++j)
        for (int i = 0; i < kEach; ++i) at[j][i] = fmaf(x[i], y[j], at[j][i]);
    }
  }
};

// C is cut into tiles column by column; blocks take them in turns. end(i0, j0, sums) for each tile.
template <class Load, class End>
inline void each_whole_tile(i64 m, i64 n, i64 k, Load load, End end) {
  DNL_SHARED float a[kDeep][kTile + 1], b[kDeep][kTile + 1];
  const i64 down = (m + kTile - 1) / kTile, tiles = down * ((n + kTile - 1) / kTile);
  for (i64 tile = DNL_BLOCK; tile < tiles; tile += DNL_BLOCKS) {
    const i64 i0 = tile % down * kTile, j0 = tile / down * kTile;
    Sums sums;
    for (i64 l0 = 0; l0 < k; l0 += kDeep) {
      load(i0, j0, l0, a, b);
      DNL_BARRIER();
      sums.add(a, b);
      DNL_BARRIER();
    }
    end(i0, j0, sums);
  }
}
// The same, store(i, j, sum) for each number.
template <class Load, class Store>
inline void each_tile(i64 m, i64 n, i64 k, Load load, Store store) {
  each_whole_tile(m, n, k, load, [&](i64 i0, i64 j0, const Sums& sums) {
    const int row = DNL_THREAD % kSide, column = DNL_THREAD / kSide;
    for (int jj = 0; jj < kEach; ++jj)
      for (int ii = 0; ii < kEach; ++ii) {
        const i64 i = i0 + row + kSide * ii, j = j0 + column + kSide * jj;
        if (i < m && j < n) store(i, j, sums.at[jj][ii]);
      }
  });
}

DNL_KERNEL(product, Product) {
  const Product& r = records[DNL_RECORD];
  // Neighbouring threads read neighbouring numbers: along i where A lies by columns, along l where it is transposed.
  const bool by_columns = r.a_row == 1;
  each_tile(
      r.m, r.n, r.k,
      [&](i64 i0, i64 j0, i64 l0, float (&a)[kDeep][kTile + 1], float (&b)[kDeep][kTile + 1]) {
        for (int e = DNL_THREAD; e < kDeep * kTile; e += 256) {
          const int l = by_columns ? e / kTile : e % kDeep, i = by_columns ? e % kTile : e / kDeep;
          a[l][i] = i0 + i < r.m && l0 + l < r.k ? floats(r.a)[(i0 + i) * r.a_row + (l0 + l) * r.a_col] : 0.0f;
        }
        for (int e = DNL_THREAD; e < kDeep * kTile; e += 256) {
          const int l = e % kDeep, j = e / kDeep;
          b[l][j] = j0 + j < r.n && l0 + l < r.k ? row(r.b, j0 + j)[(l0 + l) * r.b_step] : 0.0f;
        }
      },
      [&](i64 i, i64 j, float sum) {
        float* to = row(r.c, j) + i;
        float v = r.alpha * sum;
        if (wanted(r.add)) v += row(r.add, j)[i];
        if (r.beta != 0) v += r.beta * *to;
        *to = v;
      });
}

// A step of an LSTM: the sums are those of the product, and become gates at once. A tile has all gates of 16 units: row
// i of it is gate i / 16 of unit i % 16, which makes the four sums of a thread's column the gates of one unit.
DNL_KERNEL(lstm_step, LstmStep) {
  const Product& r = records[DNL_RECORD].product;
  const Lstm& cell = records[DNL_RECORD].cell;
  each_whole_tile(
      r.m, r.n, r.k,
      [&](i64 i0, i64 j0, i64 l0, float (&a)[kDeep][kTile + 1], float (&b)[kDeep][kTile + 1]) {
        for (int e = DNL_THREAD; e < kDeep * kTile; e += 256) {
          const int l = e / kTile, i = e % kTile;
          const i64 unit = i0 / kEach + i % kSide, at = i / kSide * cell.h + unit;
          a[l][i] = unit < cell.h && l0 + l < r.k ? floats(r.a)[at * r.a_row + (l0 + l) * r.a_col] : 0.0f;
        }
        for (int e = DNL_THREAD; e < kDeep * kTile; e += 256) {
          const int l = e % kDeep, j = e / kDeep;
          b[l][j] = j0 + j < r.n && l0 + l < r.k ? row(r.b, j0 + j)[(l0 + l) * r.b_step] : 0.0f;
        }
      },
      [&](i64 i0, i64 j0, const Sums& sums) {
        const i64 unit = i0 / kEach + DNL_THREAD % kSide;
        for (int jj = 0; jj < kEach; ++jj) {
          const i64 j = j0 + DNL_THREAD / kSide + kSide * jj;
          if (unit >= cell.h || j >= r.n) continue;
          for (int gate = 0; gate < kEach; ++gate) {
            float* to = row(r.c, j) + gate * cell.h + unit;
            float v = sums.at[jj][gate];
            if (wanted(r.add)) v += row(r.add, j)[gate * cell.h + unit];
            if (r.beta != 0) v += r.beta * *to;
            *to = v;
          }
          lstm_unit(cell, j, unit);
        }
      });
}

DNL_KERNEL(outer, Outer) {
  const Outer& r = records[DNL_RECORD];
  each_tile(
      r.m, r.n, r.k,
      [&](i64 i0, i64 j0, i64 l0, float (&a)[kDeep][kTile + 1], float (&b)[kDeep][kTile + 1]) {
        for (int e = DNL_THREAD; e < kDeep * kTile; e += 256) {
          const int l = e / kTile, i = e % kTile;
          const bool there = l0 + l < r.k;
          a[l][i] = there && i0 + i < r.m ? row(r.a, l0 + l)[i0 + i] : 0.0f;
          b[l][i] = there && j0 + i < r.n ? row(r.b, l0 + l)[j0 + i] : 0.0f;
        }
      },
      [&](i64 i, i64 j, float sum) {
        float* to = floats(r.c) + j * r.ldc + i;
        *to = r.beta != 0 ? r.alpha * sum + r.beta * *to : r.alpha * sum;
      });
}

}  // namespace dnl::device
