/* What is no librepdl_cuda.so of this build: all that the library reads of it is the build id. */
const char* const* repdl_cuda_backend_1(const void* library);

const char* const* repdl_cuda_backend_1(const void* library) {
  static const char* const table[] = {"0.0.0-another"};
  (void)library;
  return table;
}
