"""The public names of DyNet 2.2: what `from dynet import *` brings in a program that runs on the stand-in.

Only the lists; the tests compare it with DyNet, where that is installed. Who may import: this folder and tests.
"""

NAMES: tuple[str, ...] = tuple(
    """
    AdadeltaTrainer AdagradTrainer AdamTrainer AmsgradTrainer BiRNNBuilder ClassFactoredSoftmaxBuilder
    CompactVanillaLSTMBuilder ComputationGraph ConstInitializer CoupledLSTMBuilder CyclicalSGDTrainer DeviceInfo
    DynetParams Expression FastLSTMBuilder FloatValue FloatVectorValue FromFileInitializer GRUBuilder
    GlorotInitializer HAVE_CUDA IdentityInitializer LSTMBuilder LookupParameters Model MomentumSGDTrainer
    NormalInitializer NumpyInitializer ParameterCollection Parameters PyInitializer RMSPropTrainer RNNState
    SaxeInitializer SimpleRNNBuilder SimpleSGDTrainer SoftmaxBuilder SparseLSTMBuilder StackedRNNState
    StandardSoftmaxBuilder Tensor Trainer UniformInitializer UnsignedValue UnsignedVectorValue
    VanillaLSTMBuilder abs acos acosh affine_transform argmax asin asinh atan atanh available_devices average
    binary_log_loss block_dropout bmax bmin cdiv ceil cg cg_checkpoint cg_revert cg_version circ_conv circ_corr
    cmult colwise_add concatenate concatenate_cols concatenate_to_batch const_parameter constant
    constrained_softmax contract3d_1d contract3d_1d_1d contract3d_1d_1d_bias contract3d_1d_bias conv2d
    conv2d_bias cos cosh cube cumsum dot_product dropout dropout_batch dropout_dim dump_cg dynet_config elu emax
    erf esum exp filter1d_narrow flip_gradient floor fold_rows forward get_device_info hinge hinge_batch
    hinge_dim huber_distance init init_from_params inputMatrix inputTensor inputTensorTranspose inputVector
    inverse kmax_pooling kmh_ngram l1_distance l2_norm layer_norm lgamma load load_generator log log_sigmoid
    log_softmax logdet logistic logsumexp logsumexp_dim lookup lookup_batch matInput max_dim maxpooling2d
    mean_batches mean_dim mean_elems min_dim moment_batches moment_dim moment_elems nobackprop noise npvalues
    one_hot ones pairwise_rank_loss parameter pick pick_batch pick_batch_elem pick_batch_elems pick_range
    pickneglogsoftmax pickneglogsoftmax_batch pickrange poisson_loss pow print_graphviz print_text_graphviz
    random_bernoulli random_gumbel random_normal random_uniform rectify renew_cg reset_random_seed reshape round
    save scalarInput scale_gradient select_cols select_rows selu silu sin sinh softmax softsign
    sparse_inputTensor sparsemax sqrt square squared_distance squared_norm std_batches std_dim std_elems
    strided_select sum_batches sum_dim sum_elems tan tanh to_device trace_of_product transpose values
    vanilla_lstm_c vanilla_lstm_gates vanilla_lstm_gates_concat vanilla_lstm_gates_dropout
    vanilla_lstm_gates_dropout_concat vanilla_lstm_h vecInput weight_norm zeroes zeros
    """.split()
)

# What a program of DyNet 1 with `from dynet import *` finds by these names: no other library has them, so bringing them
# hides nothing. The other old names (sum_dims, sigmoid, Saver, ...) are common words; `dy.sum_dims` finds them.
OF_DYNET_1: tuple[str, ...] = ("conv1d_narrow", "conv1d_wide", "cwise_multiply", "Saveable")

# Names that dir(dynet_lite) leaves out: DyNet's devices and command line, its second names for one thing, functions that only
# its own modules call, bases of classes, and what only a benchmark asks for. They work all the same.
UNLISTED: tuple[str, ...] = tuple(
    """
    DeviceInfo DynetParams HAVE_CUDA Model PyInitializer SoftmaxBuilder __gitversion__ available_devices cg_checkpoint cg_revert
    cg_version const_parameter dump_cg get_device_info heap_calls init init_from_params kmh_ngram load_generator lookup
    lookup_batch parameter pickrange print_text_graphviz scalarInput to_device vanilla_lstm_c vanilla_lstm_gates
    vanilla_lstm_gates_concat vanilla_lstm_gates_dropout vanilla_lstm_gates_dropout_concat vanilla_lstm_h vecInput zeroes
    """.split()
)
