/* librepdl's C ABI. Some thirty symbols that do not grow with the number of operations: an operation is found by name
 * and run on DLPack tensors with a list of attributes.
 *
 * Every function that can fail returns a status; the message is then in repdl_last_error() of the calling thread. No
 * exception leaves the library. Nothing is written to an output when an error is returned before the run.
 *
 * repdl_tensor is laid out as DLPack's DLTensor (version 0.8 and 1.x), so a DLTensor* may be cast to it.
 */
#ifndef REPDL_LIBREPDL_H
#define REPDL_LIBREPDL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define REPDL_API __attribute__((visibility("default")))
#else
#define REPDL_API
#endif

typedef int32_t repdl_status;
enum {
  REPDL_OK = 0,
  REPDL_INVALID_ARGUMENT = 1,
  REPDL_UNSUPPORTED = 2,
  REPDL_OUT_OF_MEMORY = 3,
  REPDL_WORKSPACE_TOO_SMALL = 4,
  REPDL_DEVICE_ERROR = 5,
  REPDL_UNDECIDED = 6,
  REPDL_INTERNAL = 7
};

/* DLPack's DLDevice, DLDataType, DLTensor. */
typedef struct {
  int32_t device_type; /* 1 CPU, 2 CUDA */
  int32_t device_id;
} repdl_device;
typedef struct {
  uint8_t code; /* DLPack's: 0 int, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2 */
  uint8_t bits;
  uint16_t lanes;
} repdl_data_type;
typedef struct {
  void* data; /* may be null when the tensor has no elements */
  repdl_device device;
  int32_t ndim;
  repdl_data_type dtype;
  int64_t* shape;
  int64_t* strides;     /* in elements; null: row-major */
  uint64_t byte_offset; /* below 2^63 */
} repdl_tensor;

/* DLPack's DLManagedTensorVersioned (1.0 and later): a tensor and what frees it. */
typedef struct {
  uint32_t major; /* another major version: another struct, of which only `deleter` may be used */
  uint32_t minor;
} repdl_dlpack_version;
enum { REPDL_READ_ONLY = 1, REPDL_IS_COPIED = 2 };
typedef struct repdl_managed_tensor {
  repdl_dlpack_version version;
  void* manager;                                      /* the maker's */
  void (*deleter)(struct repdl_managed_tensor* self); /* whoever was handed the tensor calls it, once; may be null */
  uint64_t flags;                                     /* REPDL_READ_ONLY ... */
  repdl_tensor tensor;
} repdl_managed_tensor;

enum { REPDL_BOOLEAN = 0, REPDL_INTEGER = 1, REPDL_REAL = 2, REPDL_TEXT = 3, REPDL_INTEGERS = 4 };
typedef struct {
  const char* name;
  int32_t kind;  /* REPDL_BOOLEAN ... */
  int64_t count; /* REPDL_INTEGERS: how many, 0 to 8; otherwise ignored */
  union {
    int64_t i64; /* REPDL_BOOLEAN (0 or 1), REPDL_INTEGER */
    double f64;
    const char* text;
    const int64_t* integers;
  } value;
} repdl_attribute;

typedef struct repdl_context repdl_context;   /* one caller at a time */
typedef struct repdl_op repdl_op;             /* never freed */
typedef struct repdl_prepared repdl_prepared; /* a call that was validated and planned; its context must outlive it */

/* Zero but for `size`, it means the defaults. Later versions add members at the end; a program that was compiled without
 * them says so by its `size`, and for it they are 0. */
typedef struct {
  size_t size;         /* sizeof(repdl_context_options) */
  repdl_device device; /* {0, 0} means the CPU */
  void* stream;        /* a cudaStream_t */
  int32_t threads;     /* CPU: 0 means the default; at most 1024 */
  int32_t first_tier;  /* 0; tests force later tiers: 1 binary64, 2 double-double, 3 exact */
  const char* isa;     /* CPU: null means the best */
  /* The most bits of the last tier of transcendental operations; 0 means 2048, -1 that it gives up at once. */
  int32_t last_tier_bits;
  /* Where workspaces come from; null: the library's own memory. `allocate` returns at least 256-byte aligned memory of the
   * context's device, or null when there is none; both get `memory_state` and the context's device and stream, and are
   * called on the thread that calls the library. Neither may throw. Both or neither. */
  void* (*allocate)(void* memory_state, size_t bytes, repdl_device device, void* stream);
  void (*deallocate)(void* memory_state, void* data, size_t bytes, repdl_device device, void* stream);
  void* memory_state;
  /* The next member begins at a multiple of 8 bytes: one that lay in the padding would not change the size. */
} repdl_context_options;

/* Contexts. `options` may be null. After fork(): see repdl::context in context.hpp; in short, contexts of the CPU go
 * on, on one thread if the process had more than one; those of a GPU fail with REPDL_DEVICE_ERROR. */
REPDL_API repdl_status repdl_context_create(const repdl_context_options* options, repdl_context** context);
REPDL_API void repdl_context_destroy(repdl_context* context);
REPDL_API repdl_status repdl_context_synchronize(repdl_context* context);
/* The caller's workspace (256-byte aligned, on the context's device) instead of allocations; null goes back. */
REPDL_API repdl_status repdl_context_workspace(repdl_context* context, void* data, size_t bytes);
/* Memory on the context's device, 256-byte aligned; stream-ordered on CUDA. 0 bytes give an address, too. */
REPDL_API repdl_status repdl_allocate(repdl_context* context, size_t bytes, void** data);
/* With the bytes that were allocated; null does nothing. */
REPDL_API void repdl_deallocate(repdl_context* context, void* data, size_t bytes);
/* Between host and device memory, in either direction or within one; after everything launched, and waits until it is
 * done. */
REPDL_API repdl_status repdl_copy(repdl_context* context, void* to, const void* from, size_t bytes);
/* Elements decided per tier: proved, binary64, double-double, exact. Waits for the stream. */
REPDL_API repdl_status repdl_context_statistics(repdl_context* context, int64_t elements[4]);

/* Operations. repdl_op_find sets *op or returns REPDL_INVALID_ARGUMENT. */
REPDL_API int32_t repdl_op_count(void);
REPDL_API repdl_status repdl_op_at(int32_t index, const repdl_op** op);
REPDL_API repdl_status repdl_op_find(const char* name, const repdl_op** op);
/* name, operand and attribute lists, formula: a line of text "name(x, y; axis, keepdim) = formula"; null for a null op.
 */
REPDL_API const char* repdl_op_describe(const repdl_op* op);

/* What an operation is. The caller sets `size`; later versions add members at the end. Strings and arrays are the library's,
 * and live as long as it. An index outside of the list is REPDL_INVALID_ARGUMENT. */
typedef struct {
  size_t size;          /* sizeof(repdl_op_info) */
  const char* name;     /* repdl_op_find takes it, */
  const char* function; /* and this one: the name of the C++ function, mostly the same */
  const char* family;   /* "elementwise", "reduce", ... */
  const char* formula;
  const char* proof; /* why its bits are right */
  int32_t bits;      /* the version of its bits */
  int32_t input_count;
  int32_t output_count;
  int32_t attribute_count;
} repdl_op_info;
typedef struct {
  size_t size; /* sizeof(repdl_operand_info) */
  const char* name;
  int32_t optional;   /* 1: may be absent, null */
  int32_t type_count; /* the element types that it may have; */
  const repdl_data_type*
      types; /* operands of a call have one format, where docs/operations.md does not say otherwise */
} repdl_operand_info;
typedef struct {
  size_t size; /* sizeof(repdl_attribute_info) */
  const char* name;
  const char* description;
  const char* default_text; /* "0.5", "[1, 1]", "exact"; "" where there is none */
  int32_t kind;             /* REPDL_BOOLEAN ... */
  int32_t required;         /* 1: by repdl_infer; repdl_run takes it from the outputs */
} repdl_attribute_info;
REPDL_API repdl_status repdl_op_get_info(const repdl_op* op, repdl_op_info* info);
REPDL_API repdl_status repdl_op_input(const repdl_op* op, int32_t index, repdl_operand_info* info);
REPDL_API repdl_status repdl_op_output(const repdl_op* op, int32_t index, repdl_operand_info* info);
REPDL_API repdl_status repdl_op_attribute(const repdl_op* op, int32_t index, repdl_attribute_info* info);

/* What contexts can be made for. `list` has room for `capacity` entries and may be null where that is 0; *count becomes how
 * many there are, of which the first `capacity` are written. Devices: the CPU, then GPUs. Instruction sets of the CPU: all of
 * this build, from the slowest to the fastest. */
typedef struct {
  repdl_device device;
  char name[120]; /* ends in a 0; longer ones are cut off */
} repdl_device_info;
typedef struct {
  const char* name;  /* the library's */
  int32_t available; /* 1: this CPU has it */
} repdl_isa_info;
REPDL_API repdl_status repdl_devices(repdl_device_info* list, int32_t capacity, int32_t* count);
REPDL_API repdl_status repdl_instruction_sets(repdl_isa_info* list, int32_t capacity, int32_t* count);

/* Managed tensors, as DLPack exchanges them. repdl_tensor_create: row-major, not initialised, in the memory of the context,
 * which must outlive it; its deleter frees it. repdl_tensor_of: the tensor in one that another library made, as an operand, or,
 * with `writable` 1, as a result; it lives as long as `managed`. A major version other than 1 is REPDL_UNSUPPORTED, a result
 * that is REPDL_READ_ONLY is REPDL_INVALID_ARGUMENT. */
REPDL_API repdl_status repdl_tensor_create(repdl_context* context, repdl_data_type dtype, int32_t ndim,
                                           const int64_t* shape, repdl_managed_tensor** managed);
REPDL_API repdl_status repdl_tensor_of(const repdl_managed_tensor* managed, int32_t writable,
                                       const repdl_tensor** tensor);

/* Shape inference for output `index`: dtype, *ndim and up to 8 sizes in shape[]. Absent optional inputs: null. */
REPDL_API repdl_status repdl_infer(const repdl_op* op, const repdl_tensor* const* in, int32_t in_count,
                                   const repdl_attribute* attributes, int32_t attribute_count, int32_t index,
                                   repdl_data_type* dtype, int32_t* ndim, int64_t shape[8]);
/* The bytes of workspace that repdl_run would need. */
REPDL_API repdl_status repdl_workspace(repdl_context* context, const repdl_op* op, const repdl_tensor* const* in,
                                       int32_t in_count, const repdl_tensor* const* out, int32_t out_count,
                                       const repdl_attribute* attributes, int32_t attribute_count, size_t* bytes);
/* Absent optional operands, of inputs and outputs alike: null. Of elementwise operations on a GPU, a floating-point input of
 * rank 0 beside another input may also lie in host memory: a number, taken by the call. */
REPDL_API repdl_status repdl_run(repdl_context* context, const repdl_op* op, const repdl_tensor* const* in,
                                 int32_t in_count, const repdl_tensor* const* out, int32_t out_count,
                                 const repdl_attribute* attributes, int32_t attribute_count);

/* repdl_run of `count` calls of one operation, as if one after the other: those of call k are in[k * in_count] and on, likewise out
 * and attributes. Elementwise ones are all checked before the first one runs; those that do not depend on each other then run
 * together, on a GPU in few launches. */
REPDL_API repdl_status repdl_run_list(repdl_context* context, const repdl_op* op, int32_t count,
                                      const repdl_tensor* const* in, int32_t in_count, const repdl_tensor* const* out,
                                      int32_t out_count, const repdl_attribute* attributes, int32_t attribute_count);

/* repdl_run in two steps: the first validates and plans, the second runs, as often as one likes. The tensors are named
 * by their addresses; the structs may be gone. Attributes are read once (a random operation draws the same numbers each
 * time). */
REPDL_API repdl_status repdl_prepare(repdl_context* context, const repdl_op* op, const repdl_tensor* const* in,
                                     int32_t in_count, const repdl_tensor* const* out, int32_t out_count,
                                     const repdl_attribute* attributes, int32_t attribute_count,
                                     repdl_prepared** prepared);
REPDL_API repdl_status repdl_prepared_run(repdl_prepared* prepared);
REPDL_API void repdl_prepared_destroy(repdl_prepared* prepared);

/* SHA-256 over dtypes, shapes and bytes, as 64 hexadecimal digits and a terminating 0. */
REPDL_API repdl_status repdl_fingerprint(repdl_context* context, const repdl_tensor* const* tensors, int32_t count,
                                         char hex[65]);

/* The message and the error site's name of the last failed call of this thread; "" when there was none. */
REPDL_API const char* repdl_last_error(void);
REPDL_API const char* repdl_last_error_site(void);
REPDL_API const char* repdl_version(void);
REPDL_API int32_t repdl_bits_version(void);

#ifdef __cplusplus
}
#endif
#endif
