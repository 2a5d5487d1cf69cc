#include "backends/cuda/rows/rows_kernels.cuh"
#include "backends/cuda/rows/rows_long.cuh"

namespace repdl::cuda {
template void run_registers<f16>(const row_geometry&, int, bool, const job&);
template void run_columns<f16>(const row_geometry&, const job&);
template void run_long_rows<f16>(const row_geometry&, const long_work&, const job&);
}  // namespace repdl::cuda
