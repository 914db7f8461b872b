// Scores of additive attention. Part of isa_body.h: included there alone. Contracts stand in kernels.h.

static void attention_scores(idx n, idx columns, const float* keys, const float* query, const float* v, float* scores) {
  for (idx j = 0; j < columns; ++j, keys += n)
    scores[j] = static_cast<float>(block_sum(
        n, [&](idx i, auto w) DNL_LAMBDA { return w.load(v + i) * vtanh(w.load(keys + i) + w.load(query + i)); }));
}

static void attention_scores_bwd(idx n, idx columns, const float* keys, const float* query, const float* v,
                                 const float* dscores, float* dkeys, bool acc, float* dquery, float* dv) {
  for (idx j = 0; j < columns; ++j, keys += n, dkeys += dkeys ? n : 0) {
    const F d = F(dscores[j]);
    for_lanes(n, [&](idx i, auto w) DNL_LAMBDA {
      const F t = vtanh(w.load(keys + i) + w.load(query + i));
      const F sum = d * w.load(v + i) * (F(1.0f) - t * t);
      if (dkeys) w.store(dkeys + i, acc ? w.load(dkeys + i) + sum : sum);
      if (dquery) w.store(dquery + i, w.load(dquery + i) + sum);
      w.store(dv + i, madd(d, t, w.load(dv + i)));
    });
  }
}
