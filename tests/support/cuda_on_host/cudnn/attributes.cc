// The attributes of the descriptors that the double has.
#include <algorithm>
#include <iterator>

#include "tests/support/cuda_on_host/cudnn/descriptor.h"

namespace cuda_on_host::cudnn {
namespace {

using enum Attribute::Count;
using enum Attribute::Access;

constexpr auto tensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
constexpr auto window = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR;
constexpr auto convolution = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
constexpr auto data_gradient = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
constexpr auto filter_gradient = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
constexpr auto mode = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
constexpr auto pointwise = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
constexpr auto resample = CUDNN_BACKEND_RESAMPLE_DESCRIPTOR;
constexpr auto pool = CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR;
constexpr auto unpool = CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR;
constexpr auto norm = CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR;
constexpr auto norm_back = CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
constexpr auto graph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
constexpr auto heuristics = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
constexpr auto engine = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
constexpr auto config = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
constexpr auto plan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
constexpr auto pack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
constexpr auto device = CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR;

constexpr cudnnBackendAttributeType_t integer = CUDNN_TYPE_INT64;
constexpr cudnnBackendAttributeType_t real = CUDNN_TYPE_FLOAT;
constexpr cudnnBackendAttributeType_t truth = CUDNN_TYPE_BOOLEAN;
constexpr cudnnBackendAttributeType_t data_type = CUDNN_TYPE_DATA_TYPE;
constexpr cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
constexpr cudnnBackendAttributeType_t handle = CUDNN_TYPE_HANDLE;
constexpr cudnnBackendAttributeType_t text = CUDNN_TYPE_CHAR;
constexpr cudnnBackendAttributeType_t pointer = CUDNN_TYPE_VOID_PTR;

constexpr Attribute all[] = {
    {tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, integer},
    {tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, data_type},
    {tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, integer, several},
    {tensor, CUDNN_ATTR_TENSOR_STRIDES, integer, several},
    {tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, integer},
    {tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, truth},
    {tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, truth},

    {window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, data_type},
    {window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
    {window, CUDNN_ATTR_CONVOLUTION_DILATIONS, integer, several},
    {window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, integer, several},
    {window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, integer, several},
    {window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, integer, several},
    {window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, integer},

    {convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, real},
    {convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, real},
    {convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, descriptor},
    {convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, descriptor},
    {convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, descriptor},
    {convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, descriptor},
    {data_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, real},
    {data_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, real},
    {data_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, descriptor},
    {data_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, descriptor},
    {data_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, descriptor},
    {data_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, descriptor},
    {filter_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, real},
    {filter_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, real},
    {filter_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, descriptor},
    {filter_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, descriptor},
    {filter_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, descriptor},
    {filter_gradient, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, descriptor},

    {mode, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
    {mode, CUDNN_ATTR_POINTWISE_MATH_PREC, data_type},
    {mode, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, descriptor},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, descriptor},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, descriptor},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, descriptor},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, real},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, real},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, descriptor},
    {pointwise, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, descriptor},

    {resample, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE},
    {resample, CUDNN_ATTR_RESAMPLE_COMP_TYPE, data_type},
    {resample, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, integer},
    {resample, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, integer, several},
    {resample, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, integer, several},
    {resample, CUDNN_ATTR_RESAMPLE_STRIDES, integer, several},
    {resample, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, integer, several},
    {resample, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION},
    {resample, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE},
    {pool, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, descriptor},
    {pool, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, descriptor},
    {pool, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, descriptor},
    {pool, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, CUDNN_TYPE_DOUBLE},
    {pool, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, CUDNN_TYPE_DOUBLE},
    {pool, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, descriptor},
    {unpool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, descriptor},
    {unpool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, descriptor},
    {unpool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, descriptor},
    {unpool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA, CUDNN_TYPE_DOUBLE},
    {unpool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA, CUDNN_TYPE_DOUBLE},
    {unpool, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, descriptor},

    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, descriptor},
    {norm, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, descriptor},
    {norm_back, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, descriptor},

    {graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle},
    {graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, descriptor, several},
    {graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, integer, one, read_only},

    {device, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32},
    {device, CUDNN_ATTR_DEVICEPROP_HANDLE, handle},
    {device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text, several},

    {heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, descriptor},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, CUDNN_TYPE_INT32},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, descriptor},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, descriptor, several, read_only},

    {engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, descriptor},
    {engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, integer},
    {engine, CUDNN_ATTR_ENGINE_DEVICEPROP, descriptor},
    {engine, CUDNN_ATTR_ENGINE_SM_COUNT_TARGET, CUDNN_TYPE_INT32},
    {engine, CUDNN_ATTR_ENGINE_KNOB_INFO, descriptor, several, read_only},
    {engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, several, read_only},
    {engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, several, read_only},

    {config, CUDNN_ATTR_ENGINECFG_ENGINE, descriptor},
    {config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, descriptor, several},
    {config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, integer, one, read_only},

    {plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, descriptor},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, descriptor},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, text, several},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, integer, one, read_only},

    {pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, integer, several, write_only},
    {pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointer, several, write_only},
    {pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, pointer, one, write_only},
};

}  // namespace

const Attribute* find_attribute(cudnnBackendDescriptorType_t of, int name) {
  const auto* const found = std::find_if(std::begin(all), std::end(all), [&](const Attribute& a) {
    return a.of == of && a.name == name;
  });
  return found == std::end(all) ? nullptr : found;
}

bool is_known(cudnnBackendDescriptorType_t type) {
  return std::any_of(std::begin(all), std::end(all),
                     [&](const Attribute& a) { return a.of == type; });
}

}  // namespace cuda_on_host::cudnn
