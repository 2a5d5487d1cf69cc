#include <librepdl/librepdl.h>
#include <stdio.h>

int main(void) {
  float x[4] = {1e8f, 1.0f, -1e8f, 1e-8f}, total = 0;
  int64_t shape[1] = {4};
  repdl_tensor in = {x, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0}; /* on the CPU, rank 1, f32, row-major */
  repdl_tensor out = {&total, {1, 0}, 0, {2, 32, 1}, NULL, NULL, 0};
  const repdl_tensor *ins[1] = {&in}, *outs[1] = {&out};
  repdl_context* ctx = NULL;
  const repdl_op* sum = NULL;
  if (repdl_context_create(NULL, &ctx) != REPDL_OK || repdl_op_find("sum", &sum) != REPDL_OK ||
      repdl_run(ctx, sum, ins, 1, outs, 1, NULL, 0) != REPDL_OK) {
    fprintf(stderr, "%s\n", repdl_last_error());
    return 1;
  }
  printf("%g\n", total); /* 1 */
  repdl_context_destroy(ctx);
  return 0;
}
