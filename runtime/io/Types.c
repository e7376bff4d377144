/* Words for types and statuses; sizes of elements. */
#include "runtime/heed.h"

size_t heed_type_size(int32_t type) {
  switch (type) {
  case HEED_I8:
  case HEED_U8:
  case HEED_BOOL:
    return 1;
  case HEED_F16:
  case HEED_BF16:
  case HEED_I16:
    return 2;
  case HEED_F32:
  case HEED_I32:
    return 4;
  case HEED_I64:
  case HEED_F64:
    return 8;
  default:
    return 0;
  }
}

const char *heed_type_name(int32_t type) {
  switch (type) {
  case HEED_F32:
    return "f32";
  case HEED_F16:
    return "f16";
  case HEED_BF16:
    return "bf16";
  case HEED_I8:
    return "i8";
  case HEED_I16:
    return "i16";
  case HEED_I32:
    return "i32";
  case HEED_I64:
    return "i64";
  case HEED_BOOL:
    return "bool";
  case HEED_U8:
    return "u8";
  case HEED_F64:
    return "f64";
  default:
    return "no type";
  }
}

const char *heed_status_name(heed_status status) {
  switch (status) {
  case HEED_OK:
    return "ok";
  case HEED_ERROR_ARGUMENT:
    return "argument";
  case HEED_ERROR_SHAPE:
    return "shape";
  case HEED_ERROR_TYPE:
    return "type";
  case HEED_ERROR_RANGE:
    return "range";
  case HEED_ERROR_MEMORY:
    return "memory";
  case HEED_ERROR_FILE:
    return "file";
  case HEED_ERROR_WEIGHTS:
    return "weights";
  case HEED_ERROR_CPU:
    return "cpu";
  case HEED_ERROR_INTERNAL:
    return "internal";
  case HEED_ERROR_BUSY:
    return "busy";
  case HEED_ERROR_VERSION:
    return "version";
  case HEED_ERROR_CANCELLED:
    return "cancelled";
  case HEED_ERROR_DEADLINE:
    return "deadline";
  case HEED_ERROR_FORK:
    return "fork";
  case HEED_ERROR_DEVICE:
    return "device";
  }
  return "unknown";
}
