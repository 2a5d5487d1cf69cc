// Kernels of norms, emulated: those that have rows in chunks, rows side by side in tiles, or a row a thread. Of 16 bits, whose packed rows are
// computed with instructions of a GPU, the last two.
#include "backends/cuda/rows/rows_kernels.cuh"
#include "backends/cuda/rows/rows_long.cuh"

namespace repdl::cuda {
namespace {

template <class T>
void run_tiles(const row_geometry& g, const long_work& w, const job& j) {
  if (!g.tiled) std::abort();
  ops::for_row_operation(g.op, [&]<class Op>() { launch_tiles<Op::id, T>(g, w, j, 3); });
}

}  // namespace

template void run_long_rows<float>(const row_geometry&, const long_work&, const job&);
template <>
void run_long_rows<f16>(const row_geometry& g, const long_work& w, const job& j) {
  run_tiles<f16>(g, w, j);
}
template <>
void run_long_rows<bf16>(const row_geometry& g, const long_work& w, const job& j) {
  run_tiles<bf16>(g, w, j);
}

template void run_columns<float>(const row_geometry&, const job&);
template void run_columns<f16>(const row_geometry&, const job&);
template void run_columns<bf16>(const row_geometry&, const job&);

// Not emulated.
template <>
void run_registers<float>(const row_geometry&, int, bool, const job&) {
  std::abort();
}
template <>
void run_registers<f16>(const row_geometry&, int, bool, const job&) {
  std::abort();
}
template <>
void run_registers<bf16>(const row_geometry&, int, bool, const job&) {
  std::abort();
}
void prepare(const plan::reduce_plan&, const job&, dispatch::task&) { std::abort(); }
void prepare_wide(const plan::row_plan&, std::unique_ptr<widened_x>, const job&, dispatch::task&) { std::abort(); }
void run_widening(const widened_x&, const job&) { std::abort(); }
void take_weight_workspace(std::byte*&, carver&) { std::abort(); }
void run_weights(const row_geometry&, std::byte*, const job&) { std::abort(); }
void take_total_workspace(std::byte*&, const row_geometry&, carver&) { std::abort(); }
void run_total(const row_geometry&, std::byte*, const job&) { std::abort(); }

}  // namespace repdl::cuda

// Of all emulated kernels.
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
