# Writes OUT: the version and a hash of the names and contents of all sources that the library and a backend in a library of
# its own have in common. The same sources give the same id, wherever they are.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/librepdl/* ${ROOT}/backends/cuda/* ${ROOT}/backends/loaded/*)
list(SORT files)
set(all "")
foreach(file IN LISTS files)
  file(SHA256 ${ROOT}/${file} hash)
  string(APPEND all "${hash} ${file}\n")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define REPDL_SOURCES_ID \"${VERSION}-${id}\"\n")
