// The gate passes of recurrent cells: one thread a unit of a row. The formulas are those of kernels/kernels.h.
// Who may include: kernels/all.h. Includes: memory.h, functions.h.
#pragma once
#include "functions.h"
#include "memory.h"

namespace dnl::device {

// f(m, j) for unit j of row m.
template <class F>
inline void each_unit(i64 k, i64 h, F f) {
  const Stride s = stride(128);
  for (i64 i = s.first; i < k * h; i += s.step) f(i / h, i % h);
}
inline float or_zero(const Rows& r, i64 m, i64 j) { return wanted(r) ? row(r, m)[j] : 0.0f; }

inline void lstm_unit(const Lstm& r, i64 m, i64 j) {
  float *i = row(r.gates, m) + j, *f = i + r.h, *o = f + r.h, *g = o + r.h;
  *i = vgate(*i);
  *f = vgate(*f + r.forget_bias);
  *o = vgate(*o);
  *g = vtanh(*g);
  const float c = *f * or_zero(r.c_prev, m, j) + *i * *g;
  row(r.c, m)[j] = c;
  row(r.h_out, m)[j] = *o * vtanh(c);
}
DNL_KERNEL(lstm, Lstm) {
  const Lstm& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) { lstm_unit(r, m, j); });
}

DNL_KERNEL(lstm_back, LstmBack) {
  const LstmBack& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    const float* gate = row(r.gates, m) + j;
    const float i = gate[0], f = gate[r.h], o = gate[2 * r.h], g = gate[3 * r.h], t = vtanh(row(r.c, m)[j]);
    const float dh = or_zero(r.dh, m, j), s = dh * o * (1.0f - t * t) + or_zero(r.dc, m, j);
    float* da = row(r.da, m) + j;
    put(da, s * g * i * (1.0f - i), r.acc_a);
    put(da + r.h, wanted(r.c_prev) ? s * row(r.c_prev, m)[j] * f * (1.0f - f) : 0.0f, r.acc_a);
    put(da + 2 * r.h, dh * t * o * (1.0f - o), r.acc_a);
    put(da + 3 * r.h, s * i * (1.0f - g * g), r.acc_a);
    if (wanted(r.dc_prev)) put(row(r.dc_prev, m) + j, s * f, r.acc_c);
  });
}

DNL_KERNEL(gru_zr, GruZr) {
  const GruZr& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    float *z = row(r.zr, m) + j, *reset = z + r.h;
    *z = vgate(*z);
    *reset = vgate(*reset);
    row(r.rh, m)[j] = *reset * row(r.h_prev, m)[j];
  });
}

DNL_KERNEL(gru_out, GruOut) {
  const GruOut& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    float* c = row(r.cand, m) + j;
    *c = vtanh(*c);
    const float z = row(r.zr, m)[j];
    row(r.h_out, m)[j] = z * *c + (1.0f - z) * row(r.h_prev, m)[j];
  });
}

DNL_KERNEL(gru_out_back, GruOutBack) {
  const GruOutBack& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    const float z = row(r.zr, m)[j], c = row(r.cand, m)[j], d = row(r.dh, m)[j], p = row(r.h_prev, m)[j];
    row(r.dcand, m)[j] = d * z * (1.0f - c * c);
    row(r.dzr, m)[j] = d * (c - p) * z * (1.0f - z);
    if (wanted(r.dh_prev)) put(row(r.dh_prev, m) + j, d * (1.0f - z), r.acc);
  });
}

DNL_KERNEL(gru_zr_back, GruZrBack) {
  const GruZrBack& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    const float reset = row(r.zr, m)[r.h + j], d = row(r.drh, m)[j];
    row(r.dzr, m)[r.h + j] = d * row(r.h_prev, m)[j] * reset * (1.0f - reset);
    if (wanted(r.dh_prev)) put(row(r.dh_prev, m) + j, reset * d, true);
  });
}

// ---- parts of cells ------------------------------------------------------------------------------------------------

inline void lstm_part(const CellPart& r, i64 m, i64 j) {
  const i64 h = r.h;
  const float* gate = row(r.a, m) + j;
  float *y = wanted(r.y) ? row(r.y, m) + j : nullptr, *z = wanted(r.z) ? row(r.z, m) + j : nullptr;
  if (r.what == kLstmGates) {
    const float i = vgate(gate[0]), f = vgate(gate[h] + r.forget_bias), o = vgate(gate[2 * h]);
    y[0] = i;
    y[h] = f;
    y[2 * h] = o;
    y[3 * h] = vtanh(gate[3 * h]);
  } else if (r.what == kLstmGatesBack) {
    const float* d = row(r.b, m) + j;
    for (i64 q = 0; q < 3 * h; q += h) put(y + q, d[q] * gate[q] * (1.0f - gate[q]), r.acc_y);
    put(y + 3 * h, d[3 * h] * (1.0f - gate[3 * h] * gate[3 * h]), r.acc_y);
  } else if (r.what == kLstmCell) {
    y[0] = gate[h] * row(r.b, m)[j] + gate[0] * gate[3 * h];
  } else if (r.what == kLstmOutput) {
    y[0] = gate[2 * h] * vtanh(row(r.b, m)[j]);
  } else {
    const bool cell = r.what == kLstmCellBack;
    const float before = row(r.b, m)[j], s = row(r.c, m)[j], t = cell ? 0.0f : vtanh(before);
    const float dz = cell ? s * gate[h] : s * gate[2 * h] * (1.0f - t * t);
    if (y) {
      put(y, cell ? s * gate[3 * h] : 0.0f, r.acc_y);
      put(y + h, cell ? s * before : 0.0f, r.acc_y);
      put(y + 2 * h, cell ? 0.0f : s * t, r.acc_y);
      put(y + 3 * h, cell ? s * gate[0] : 0.0f, r.acc_y);
    }
    if (z) put(z, dz, r.acc_z);
  }
}

inline void gru_start_part(const CellPart& r, i64 m, i64 j) {
  const float* x = row(r.a, m) + j;
  float* y = row(r.y, m) + j;
  if (r.what == kGruStart) {
    const float z = vgate(x[0]), a = vtanh(x[2 * r.h]);
    y[0] = z;
    y[r.h] = a;
    row(r.z, m)[j] = z * a;
    return;
  }
  const float z = x[0], a = x[r.h], d = row(r.b, m)[j];
  put(y, d * a * z * (1.0f - z), r.acc_y);
  put(y + r.h, 0.0f, r.acc_y);
  put(y + 2 * r.h, d * z * (1.0f - a * a), r.acc_y);
}

inline void coupled_part(const CellPart& r, i64 m, i64 j) {
  const i64 h = r.h;
  float* y = row(r.y, m) + j;
  if (r.what == kCoupledCell) {
    const float i = vgate(y[0]), g = vtanh(y[2 * h]);
    y[0] = i;
    y[2 * h] = g;
    row(r.z, m)[j] = (1.0f - i) * or_zero(r.b, m, j) + i * g;
  } else if (r.what == kCoupledOutput) {
    const float o = vgate(y[h]);
    y[h] = o;
    row(r.z, m)[j] = o * vtanh(row(r.b, m)[j]);
  } else if (r.what == kCoupledOutputBack) {
    const float o = row(r.a, m)[h + j], t = vtanh(row(r.b, m)[j]), d = row(r.c, m)[j];
    row(r.z, m)[j] = d * o * (1.0f - t * t) + row(r.d, m)[j];
    y[h] = d * t * o * (1.0f - o);
  } else {
    const float i = row(r.a, m)[j], g = row(r.a, m)[2 * h + j], s = row(r.c, m)[j];
    const float before = or_zero(r.b, m, j);
    y[0] = s * (g - before) * i * (1.0f - i);
    y[2 * h] = s * i * (1.0f - g * g);
    if (wanted(r.z)) put(row(r.z, m) + j, s * (1.0f - i), r.acc_z);
  }
}

DNL_KERNEL(cell_part, CellPart) {
  const CellPart& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    if (r.what <= kLstmOutputBack)
      lstm_part(r, m, j);
    else if (r.what <= kGruStartBack)
      gru_start_part(r, m, j);
    else
      coupled_part(r, m, j);
  });
}

// ---- tree LSTM: one forget gate a child ----------------------------------------------------------------------------

inline const Rows* list_of_rows(u64 at) { return reinterpret_cast<const Rows*>(at); }

DNL_KERNEL(tree_lstm, TreeLstm) {
  const TreeLstm& r = records[DNL_RECORD];
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    float *i = row(r.iog, m) + j, *o = i + r.h, *g = o + r.h;
    *i = vgate(*i);
    *o = vgate(*o);
    *g = vtanh(*g);
    float c = *i * *g;
    for (int child = 0; child < r.n_children; ++child) {
      float* f = row(list_of_rows(r.f)[child], m) + j;
      *f = vgate(*f + r.forget_bias);
      c += *f * row(list_of_rows(r.c_child)[child], m)[j];
    }
    row(r.c, m)[j] = c;
    row(r.h_out, m)[j] = *o * vtanh(c);
  });
}

DNL_KERNEL(tree_lstm_back, TreeLstmBack) {
  const TreeLstmBack& r = records[DNL_RECORD];
  const i32* acc = reinterpret_cast<const i32*>(r.acc_child);
  each_unit(r.k, r.h, [&](i64 m, i64 j) {
    const float* gate = row(r.iog, m) + j;
    const float i = gate[0], o = gate[r.h], g = gate[2 * r.h], t = vtanh(row(r.c, m)[j]);
    const float dh = or_zero(r.dh, m, j), s = dh * o * (1.0f - t * t) + or_zero(r.dc, m, j);
    float* d = row(r.diog, m) + j;
    d[0] = s * g * i * (1.0f - i);
    d[r.h] = dh * t * o * (1.0f - o);
    d[2 * r.h] = s * i * (1.0f - g * g);
    for (int child = 0; child < r.n_children; ++child) {
      const float f = row(list_of_rows(r.f)[child], m)[j], c = row(list_of_rows(r.c_child)[child], m)[j];
      row(list_of_rows(r.df)[child], m)[j] = s * c * f * (1.0f - f);
      const Rows& dc = list_of_rows(r.dc_child)[child];
      if (wanted(dc)) put(row(dc, m) + j, s * f, acc[child]);
    }
  });
}

}  // namespace dnl::device
