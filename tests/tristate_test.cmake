# Tests of cmake/tristate.cmake: cmake -P tests/tristate_test.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../cmake/tristate.cmake)

if(DEFINED refused)  # called by the loop below: must fail
  repdl_tristate(refused)
  return()
endif()

set(cases 0)
foreach(pair AUTO:AUTO auto:AUTO Auto:AUTO ON:ON on:ON 1:ON 2:ON yes:ON True:ON y:ON OFF:OFF off:OFF 0:OFF NO:OFF no:OFF FALSE:OFF
    false:OFF n:OFF ignore:OFF NotFound:OFF nvcc-NOTFOUND:OFF :OFF)
  string(REGEX MATCH "^([^:]*):(.*)$" whole "${pair}")
  set(expected ${CMAKE_MATCH_2})
  set(choice "${CMAKE_MATCH_1}")
  repdl_tristate(choice)
  if(NOT choice STREQUAL expected)
    message(FATAL_ERROR "'${CMAKE_MATCH_1}': expected ${expected}, got '${choice}'")
  endif()
  math(EXPR cases "${cases} + 1")
endforeach()
foreach(value maybe cuda "ON OFF" automatic -1x)
  execute_process(COMMAND ${CMAKE_COMMAND} "-Drefused=${value}" -P ${CMAKE_CURRENT_LIST_FILE}
    RESULT_VARIABLE status ERROR_VARIABLE text)
  if(status EQUAL 0 OR NOT text MATCHES "refused: expected AUTO, ON or OFF, got '${value}'")
    message(FATAL_ERROR "'${value}' was not refused (status ${status}): ${text}")
  endif()
  math(EXPR cases "${cases} + 1")
endforeach()
message(STATUS "REPDL_CUDA's values: ${cases} as expected")
