// The device's kernels: name, record, threads of a block, whether threads wait for one another.
//
// DNL_DEVICE_KERNEL is defined by whoever includes this file; the order is the number of a kernel. Included several
// times, so without guard. Includes: nothing.

// ---- rows.h
DNL_DEVICE_KERNEL(fill, Fill, 128, false)
DNL_DEVICE_KERNEL(copy_rows, CopyRows, 128, false)
DNL_DEVICE_KERNEL(gather_sums, GatherSums, 128, false)
DNL_DEVICE_KERNEL(scale_to, ScaleTo, 128, false)
DNL_DEVICE_KERNEL(sum_rows, SumRows, 128, true)
DNL_DEVICE_KERNEL(scale_rows, ScaleRows, 128, false)
DNL_DEVICE_KERNEL(transpose, Transpose, 128, false)
DNL_DEVICE_KERNEL(copy_segments, CopySegments, 128, false)
// ---- elementwise.h
DNL_DEVICE_KERNEL(unary, Unary, 128, false)
DNL_DEVICE_KERNEL(unary_back, UnaryBack, 128, false)
DNL_DEVICE_KERNEL(binary, Binary, 128, false)
DNL_DEVICE_KERNEL(binary_back, BinaryBack, 128, false)
DNL_DEVICE_KERNEL(binary_back_sum, BinaryBack, 128, true)
// ---- products.h
DNL_DEVICE_KERNEL(product, Product, 256, true)
DNL_DEVICE_KERNEL(outer, Outer, 256, true)
// ---- cells.h
DNL_DEVICE_KERNEL(lstm, Lstm, 128, false)
DNL_DEVICE_KERNEL(lstm_back, LstmBack, 128, false)
DNL_DEVICE_KERNEL(gru_zr, GruZr, 128, false)
DNL_DEVICE_KERNEL(gru_out, GruOut, 128, false)
DNL_DEVICE_KERNEL(gru_out_back, GruOutBack, 128, false)
DNL_DEVICE_KERNEL(gru_zr_back, GruZrBack, 128, false)
DNL_DEVICE_KERNEL(tree_lstm, TreeLstm, 128, false)
DNL_DEVICE_KERNEL(tree_lstm_back, TreeLstmBack, 128, false)
// ---- reductions.h
DNL_DEVICE_KERNEL(reduce, Reduce, 128, true)
DNL_DEVICE_KERNEL(softmax, Softmax, 128, true)
DNL_DEVICE_KERNEL(softmax_back, SoftmaxBack, 128, true)
DNL_DEVICE_KERNEL(exp_shifted, ExpShifted, 128, false)
DNL_DEVICE_KERNEL(exp_below, ExpBelow, 128, true)
DNL_DEVICE_KERNEL(layer_norm, LayerNorm, 128, true)
DNL_DEVICE_KERNEL(layer_norm_back, LayerNormBack, 128, true)
DNL_DEVICE_KERNEL(attention_scores, AttentionScores, 128, true)
DNL_DEVICE_KERNEL(attention_scores_back, AttentionScoresBack, 128, false)
// ---- random.h
DNL_DEVICE_KERNEL(random_numbers, RandomNumbers, 128, false)
// ---- updates.h
DNL_DEVICE_KERNEL(update, Update, 128, false)
