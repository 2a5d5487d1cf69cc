/* Prints the widest instruction set, of those that cmake/repdl.cmake names, that this machine has. The compiler asks for the same
   bits as instruction_sets.cpp, but for a few that no CPU with the others lacks. */
#include <stdio.h>

int main(void) {
  __builtin_cpu_init();
  const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                 __builtin_cpu_supports("bmi2");
  const int v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl");
  fputs(v3 && v4 ? "avx512" : v3 ? "avx2" : "baseline", stdout);
  return 0;
}
