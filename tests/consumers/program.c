/* A C user's program: exp over the C ABI; prints its fingerprint under the name that program.cpp gives it. */
#include <librepdl/librepdl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 3 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, repdl_last_error());
  return EXIT_FAILURE;
}

int main(void) {
  /* 1, the least subnormal, NaN with a payload: e, 1, the canonical NaN. */
  const uint32_t in_bits[count] = {0x3f800000u, 0x00000001u, 0xffc00123u};
  const uint32_t expected[count] = {0x402df854u, 0x3f800000u, 0x7fc00000u};
  uint32_t out_bits[count] = {0, 0, 0};
  int64_t shape[1] = {count};
  const repdl_data_type f32 = {2, 32, 1};
  const repdl_device cpu = {1, 0};
  repdl_tensor in = {(void*)in_bits, cpu, 1, f32, shape, NULL, 0};
  repdl_tensor out = {out_bits, cpu, 1, f32, shape, NULL, 0};
  const repdl_tensor* ins[1] = {&in};
  const repdl_tensor* outs[1] = {&out};
  repdl_context* ctx = NULL;
  const repdl_op* op = NULL;

  if (repdl_context_create(NULL, &ctx) != REPDL_OK) return fail("repdl_context_create");
  if (repdl_op_find("exp", &op) != REPDL_OK) return fail("repdl_op_find");
  if (repdl_run(ctx, op, ins, 1, outs, 1, NULL, 0) != REPDL_OK) return fail("repdl_run");
  if (memcmp(out_bits, expected, sizeof expected) != 0) {
    fprintf(stderr, "exp: %08x %08x %08x\n", out_bits[0], out_bits[1], out_bits[2]);
    return EXIT_FAILURE;
  }
  if (repdl_op_find("no_such_op", &op) != REPDL_INVALID_ARGUMENT || strlen(repdl_last_error()) == 0) {
    return fail("an unknown operation was found");
  }
  repdl_op_info info = {.size = sizeof info};
  int32_t sets = 0, devices = 0;
  if (repdl_op_find("exp", &op) != REPDL_OK || repdl_op_get_info(op, &info) != REPDL_OK || info.input_count != 1 ||
      repdl_instruction_sets(NULL, 0, &sets) != REPDL_OK || sets < 1 || repdl_devices(NULL, 0, &devices) != REPDL_OK ||
      devices < 1) {
    return fail("what the library says of itself");
  }
  repdl_context_destroy(ctx);
  printf("librepdl %s, bits version %d: exp over the C ABI is right\n", repdl_version(), (int)repdl_bits_version());
  return EXIT_SUCCESS;
}
