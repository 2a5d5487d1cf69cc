/* quadratic over the C ABI, with its option. */
#include <librepdl/librepdl.h>
#include <stdio.h>

int main(void) {
  float x[1] = {3.0f}, y[1] = {0.0f};
  int64_t shape[1] = {1};
  const repdl_data_type f32 = {2, 32, 1};
  const repdl_device cpu = {1, 0};
  repdl_tensor in = {x, cpu, 1, f32, shape, NULL, 0};
  repdl_tensor out = {y, cpu, 1, f32, shape, NULL, 0};
  const repdl_tensor* ins[1] = {&in};
  const repdl_tensor* outs[1] = {&out};
  repdl_attribute scale = {0};
  repdl_context* ctx = NULL;
  const repdl_op* op = NULL;
  scale.name = "scale";
  scale.kind = REPDL_REAL;
  scale.value.f64 = 0.5;
  if (repdl_context_create(NULL, &ctx) != REPDL_OK || repdl_op_find("quadratic", &op) != REPDL_OK ||
      repdl_run(ctx, op, ins, 1, outs, 1, &scale, 1) != REPDL_OK || y[0] != 4.5f) {
    fprintf(stderr, "quadratic: %g, %s\n", y[0], repdl_last_error());
    return 1;
  }
  repdl_context_destroy(ctx);
  return 0;
}
