// What crosses the boundary to other array libraries: the structures of DLPack 1.3 (https://dmlc.github.io/dlpack), of
// which version 1 keeps the layout.
#pragma once

#include <cstdint>

namespace repdl::python::dlpack {

struct version {
  std::uint32_t major;
  std::uint32_t minor;
};
struct device {
  std::int32_t type;  // 1 CPU, 2 CUDA
  std::int32_t index;
};
struct data_type {
  std::uint8_t code;  // 0 int, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct tensor {
  void* data;
  dlpack::device where;
  std::int32_t rank;
  data_type type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

// Of capsules named "dltensor".
struct managed {
  dlpack::tensor tensor;
  void* owner;
  void (*release)(managed*);
};
// Of capsules named "dltensor_versioned".
struct managed_versioned {
  dlpack::version version;
  void* owner;
  void (*release)(managed_versioned*);
  std::uint64_t flags;
  dlpack::tensor tensor;
};
inline constexpr std::uint64_t read_only = 1;

// A library's functions: the capsule "dlpack_exchange_api" in its type's attribute __dlpack_c_exchange_api__. Those that
// return an int return 0, or -1 with a Python exception set.
struct exchange_api {
  struct header {
    dlpack::version version;
    header* previous;  // an older table, for those who do not know this one
  } head;
  // Of the prototype's type, shape and device; row-major.
  int (*allocate)(tensor* prototype, managed_versioned** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*export_managed)(void* object, managed_versioned** out);
  int (*import_managed)(managed_versioned* stolen, void** out_object);
  int (*export_borrowed)(void* object, tensor* out);  // may be null; the object keeps what it points to
  int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** out);
};

}  // namespace repdl::python::dlpack
